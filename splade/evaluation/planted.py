"""Do explainers find the words that decide? Asked where they are known (`data/corpora/planted.py`).

1. A model is trained on planted texts, and asked about test texts. Counted are those it follows: it gets
   the text right, and its prediction changes when praise and blame are exchanged. Of the others nobody
   knows what decided.
2. An explainer scores every word of a text, and words are ranked by the size of their scores: a word that
   speaks against the class decides it too, as what was taken back does.
3. Precision@k: of the k highest words, k the number of planted ones, how many are planted. AUC: how often
   a planted word ranks above another word of the text. Words of equal score share their places.

Texts in which one word decides and those in which two do together are also given apart. Texts all of whose
words are planted, or none that was read, have no ranking and are left out.

Legend: T texts, W words of a text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splade.data.corpora.planted import Planted
from splade.errors import ConfigError, DataError
from splade.evaluation.explainers.inputs import EXPLAINERS, Scores
from splade.evaluation.explainers.questions import Meter, Question, Settings, UnavailableError, ask
from splade.evaluation.intervals import Interval, intervals
from splade.inference.explanation import Place
from splade.models.lexical_sae import LexicalSAE

Truth = list[list[bool]]  # of every word of every text, whether it was planted


@dataclass(frozen=True)
class Found:
    """How well planted words were found in `texts` texts."""

    texts: int
    precision: Interval
    auc: Interval


@dataclass(frozen=True)
class PlantedRow:
    """One explainer on the texts the model follows; without figures, `note` says why.

    `accuracy` and `followed` are shares of all texts; `alone` is where one word decides, `together` where
    more do.
    """

    explainer: str
    accuracy: float
    followed: float
    found: Found | None = None
    alone: Found | None = None
    together: Found | None = None
    forward_passes: float = 0.0
    milliseconds: float = 0.0
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def planted_rows(
    model: LexicalSAE,
    planted: Planted,
    settings: Settings | None = None,
    explainers: Sequence[str] | None = None,
    advance: Callable[[str], None] = lambda _: None,
) -> list[PlantedRow]:
    """One row an explainer (all of input words by default); `advance` hears of each in the end."""
    wanted, settings = EXPLAINERS if explainers is None else explainers, settings or Settings()
    if unknown := [name for name in wanted if name not in EXPLAINERS]:
        raise ConfigError(f"no explainer '{unknown[0]}': choose among {', '.join(EXPLAINERS)}")
    if not len(planted):
        raise DataError("planted words are looked for in texts: give at least one")
    asked, twins = (ask(model.eval(), t, settings.batch_size) for t in (planted.texts, planted.twins))
    right = [question.label == label for question, label in zip(asked, planted.labels, strict=True)]
    changed = [one.label != other.label for one, other in zip(asked, twins, strict=True)]
    follows = [i for i in range(len(asked)) if right[i] and changed[i]]
    questions = [asked[i] for i in follows]
    truth = words_in(questions, planted.take(follows))
    start = PlantedRow("", sum(right) / len(asked), len(follows) / len(asked))
    rows = []
    for name in wanted:
        rows.append(_fill(replace(start, explainer=name), model, questions, truth, settings))
        advance(name)
    return rows


def words_in(questions: Sequence[Question], planted: Planted) -> Truth:
    """Which words of each question's text were planted."""
    return [
        [_inside(place, spans) for place in question.reading.places]
        for question, spans in zip(questions, planted.spans, strict=True)
    ]


def precision(scores: Scores, truth: Truth) -> Found:
    """Precision@k and AUC, means over texts that have words of both kinds."""
    asked = [
        (np.abs(score_W), np.asarray(planted_W))
        for score_W, planted_W in zip(scores, truth, strict=True)
        if 0 < sum(planted_W) < len(planted_W)
    ]
    figures_T2 = np.array([(_precision(*text), _auc(*text)) for text in asked]).reshape(-1, 2)
    return Found(len(asked), *intervals(figures_T2))


def _fill(
    row: PlantedRow, model: LexicalSAE, questions: Sequence[Question], truth: Truth, settings: Settings
) -> PlantedRow:
    """The row with its figures, or with what keeps it from having any."""
    if not questions:
        return replace(row, note="the model follows no text: train it longer")
    try:
        with Meter(model) as meter:
            scores = EXPLAINERS[row.explainer].explain(model, questions, settings)
    except UnavailableError as problem:
        return replace(row, note=str(problem))
    n, alone = len(questions), [sum(planted_W) < 2 for planted_W in truth]
    return replace(
        row,
        found=precision(scores, truth),
        alone=precision(*_only(scores, truth, alone)),
        together=precision(*_only(scores, truth, [not one for one in alone])),
        forward_passes=meter.passes / n,
        milliseconds=meter.seconds * 1e3 / n,
    )


def _only(scores: Scores, truth: Truth, keep: Sequence[bool]) -> tuple[Scores, Truth]:
    return list(compress(scores, keep)), list(compress(truth, keep))


def _inside(place: Place, spans: Sequence[tuple[int, int]]) -> bool:
    return any(place.start < end and start < place.end for start, end in spans)


def _precision(score_W: NDArray[np.float64], planted_W: NDArray[np.bool_]) -> float:
    """The expected share of planted words among as many highest ones, equal scores in random order."""
    k = int(planted_W.sum())
    least = np.sort(score_W)[-k]
    above_W, level_W = score_W > least, score_W == least
    certain = planted_W[above_W].sum()
    return float((certain + (k - above_W.sum()) * planted_W[level_W].mean()) / k)


def _auc(score_W: NDArray[np.float64], planted_W: NDArray[np.bool_]) -> float:
    """How often a planted word is above another; equal ones count half."""
    gap = score_W[planted_W][:, None] - score_W[~planted_W][None]
    return float(((gap > 0) + 0.5 * (gap == 0)).mean())
