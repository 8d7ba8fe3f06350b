"""Do words speak for the class that people say they speak for? For two classes, some rows of one word.

1. The label of a row of one word is a human label of that word. All such rows are held out of training, so
   that no model has seen them (`one_word_rows`). A word whose rows disagree has no label.
2. In test texts, what a word adds to logit(second class) - logit(first class) has a sign; people gave one
   too.
3. Words: the share of labelled words whose signs agree. Mass: the share of |difference| that they carry,
   averaged over texts. Coverage: the share of a text's |difference| on labelled words.

Two views: input words, as any explainer scores them (ours through provenance), and concept words, the
named dimensions of the model. Function words are left out, and words that add nothing have no sign. An
explainer that cannot say for which class a word speaks (attention, noise) agrees nowhere and is given
without figures. The row `prediction` takes the predicted class as the sign of every labelled word: what
there is to beat.

Legend: N labelled words in texts, P active pairs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import torch

from splade.attribution.words import segment
from splade.data.rows import Texts
from splade.errors import ConfigError, DataError
from splade.evaluation.explainers.inputs import EXPLAINERS, Explain
from splade.evaluation.explainers.questions import Question, Settings, UnavailableError, ask, decide
from splade.evaluation.intervals import Interval, intervals
from splade.mechanistic.attribution import compute_attribution_tensor
from splade.models.lexical_sae import LexicalSAE
from splade.models.lexicon import normalise

View = Literal["inputs", "concepts"]
Human = Mapping[str, int]  # the class, 0 or 1, that people gave a word


@dataclass(frozen=True)
class Agreed:
    """Shares of agreement, over `occurrences` of `vocabulary` different words in `texts` texts."""

    words: Interval
    mass: Interval
    coverage: Interval
    occurrences: int
    vocabulary: int
    texts: int


@dataclass(frozen=True)
class Agreement:
    """One explainer in one view; without figures, `note` says why."""

    explainer: str
    view: View
    agreed: Agreed | None = None
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


class Said(NamedTuple):
    """A word of a text, and what it adds to the second class over the first."""

    word: str
    margin: float


def one_word_rows(rows: Texts) -> tuple[dict[str, int], Texts]:
    """Words with the label people gave them, and the rows of more than one word (punctuation is none)."""
    if not rows.labels:
        raise DataError("words have labels where texts have one each: give rows with single labels")
    labels: dict[str, set[int]] = defaultdict(set)
    rest = []
    for i, text in enumerate(rows.texts):
        words = [word for a, b in segment(text) if any(map(str.isalnum, word := text[a:b]))]
        if len(words) == 1:
            labels[normalise(words[0])].add(rows.labels[i])
        else:
            rest.append(i)
    agreed = {word: found.pop() for word, found in labels.items() if len(found) == 1}
    return agreed, rows.take(rest)


def agreement(
    model: LexicalSAE,
    texts: Sequence[str],
    human: Human,
    settings: Settings | None = None,
    explainers: Sequence[str] = ("ours",),
    advance: Callable[[str], None] = lambda _: None,
) -> list[Agreement]:
    """The model's concept words, then input words by each explainer, then by the prediction alone."""
    if model.config.multi_label or len(model.config.label_names) != 2:
        raise ConfigError("words have a sign between two classes: give a model of exactly two")
    if unknown := [name for name in explainers if name not in EXPLAINERS]:
        raise ConfigError(f"no explainer '{unknown[0]}': choose among {', '.join(EXPLAINERS)}")
    lexicon = model.lexicon
    closed = {normalise(lexicon.surfaces[j]) for j in lexicon.function_V.nonzero()[:, 0].tolist()}
    human = {word: label for word, label in human.items() if word not in closed}
    settings = settings or Settings()
    questions = ask(model.eval(), texts, settings.batch_size)
    rows = [Agreement("ours", "concepts", agreed(concept_words(model, questions, settings), human))]
    for name in explainers:
        rows.append(_inputs(name, model, questions, settings, human))
        advance(name)
    predicted = [[Said(p.text, 2.0 * q.label - 1) for p in q.reading.places] for q in questions]
    return [*rows, Agreement("prediction", "inputs", agreed(predicted, human))]


def concept_words(model: LexicalSAE, questions: Sequence[Question], settings: Settings) -> list[list[Said]]:
    """The active words of each text by name; senses of a word (`bank#2`) have the word's name."""
    found: list[list[Said]] = [[] for _ in questions]
    for indices, _, state in decide(model, questions, settings):
        with torch.no_grad():
            amount_P2 = compute_attribution_tensor(state).amount
        margins = (amount_P2[:, 1] - amount_P2[:, 0]).tolist()
        rows = state.rows
        for n, j, margin in zip(rows.row_P.tolist(), rows.word_P.tolist(), margins, strict=True):
            found[indices[n]].append(Said(model.lexicon.surfaces[j], margin))
    return found


def input_words(
    explain: Explain, model: LexicalSAE, questions: Sequence[Question], settings: Settings
) -> list[list[Said]]:
    """The words of each text: their scores for the second class less those for the first."""
    for_first, for_second = (
        explain(model, [replace(question, label=label) for question in questions], settings)
        for label in (0, 1)
    )
    return [
        [Said(place.text, b - a) for place, a, b in zip(question.reading.places, first, second, strict=True)]
        for question, first, second in zip(questions, for_first, for_second, strict=True)
    ]


def agreed(said: Iterable[Sequence[Said]], human: Human) -> Agreed | None:
    """How far the signs of texts' words are those people gave; None where no labelled word has a sign."""
    vocabulary: set[str] = set()
    signs, texts, shares, coverage = [], [], [], []
    for text, words in enumerate(said):
        labelled = [(normalise(word), margin) for word, margin in words if margin]
        labelled = [(word, margin) for word, margin in labelled if word in human]
        whole = sum(abs(margin) for _, margin in words)
        if whole:
            coverage.append(sum(abs(margin) for _, margin in labelled) / whole)
        if not labelled:
            continue
        right = [(margin > 0) == (human[word] == 1) for word, margin in labelled]
        signs += right
        texts += [text] * len(labelled)
        size = np.abs([margin for _, margin in labelled])
        shares.append(size[right].sum() / size.sum())
        vocabulary.update(word for word, _ in labelled)
    if not signs:
        return None
    return Agreed(
        words=intervals(np.array(signs, dtype=float)[:, None], texts)[0],
        mass=intervals(np.array(shares)[:, None])[0],
        coverage=intervals(np.array(coverage)[:, None])[0],
        occurrences=len(signs),
        vocabulary=len(vocabulary),
        texts=len(shares),
    )


def _inputs(
    name: str, model: LexicalSAE, questions: Sequence[Question], settings: Settings, human: Human
) -> Agreement:
    try:
        said = input_words(EXPLAINERS[name].explain, model, questions, settings)
    except UnavailableError as problem:
        return Agreement(name, "inputs", note=str(problem))
    found = agreed(said, human)
    return Agreement(name, "inputs", found, "" if found else "no labelled word has a sign")
