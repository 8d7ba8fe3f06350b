"""Explainers side by side in two tables, on the same texts, for the class predicted of each.

1. Bottleneck: the words the decision was made from; removing one sets its s_j to 0.
2. Inputs: the words a reader sees; removing one masks its pieces, or deletes them. One row for each removal.
3. Each explainer runs at the batch size that is fastest for it. Forward passes are texts through the
   backbone; knowing the predicted class is free to all. Gradients count in the time alone.

Whatever cannot run here, for want of a package say, has a row whose `note` says what it lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from splade.errors import ConfigError, DataError
from splade.evaluation.completeness import FRACTIONS
from splade.evaluation.explainers.attention import Recorded, recording
from splade.evaluation.explainers.bottleneck import BOTTLENECK, Decided, Scorer
from splade.evaluation.explainers.erasing import (
    Erasures,
    Faithfulness,
    erase_active,
    erase_inputs,
    faithfulness,
)
from splade.evaluation.explainers.inputs import EXPLAINERS, InputExplainer, Scores
from splade.evaluation.explainers.questions import (
    Meter,
    Question,
    Removal,
    Settings,
    UnavailableError,
    ask,
    decide,
)
from splade.inference.reading import Input
from splade.models.lexical_sae import LexicalSAE

Table = Literal["bottleneck", "inputs"]
REMOVALS: tuple[Removal, ...] = ("mask", "deletion")
BATCH_SIZES = {"cpu": (8, 32, 128), "cuda": (32, 256, 2048)}
_PROBE = 256  # LIME samples and SHAP evaluations that tell batch sizes apart

_Scored = list[tuple[Decided, Tensor, list[int]]]


@dataclass(frozen=True)
class Cost:
    """Forward passes and milliseconds a text, at the fastest `batch_size` tried."""

    forward_passes: float
    milliseconds: float
    batch_size: int


@dataclass(frozen=True)
class ExplainerRow:
    """One explainer in one table, words removed by `removal`; without figures, `note` says why."""

    explainer: str
    table: Table
    removal: str
    texts: int
    faithfulness: Faithfulness | None = None
    cost: Cost | None = None
    note: str = ""


def compare(
    model: LexicalSAE,
    texts: Sequence[Input],
    settings: Settings | None = None,
    explainers: Sequence[str] | None = None,
    fractions: Sequence[float] = FRACTIONS,
    batch_sizes: Sequence[int] = (),
    advance: Callable[[str], None] = lambda _: None,
) -> list[ExplainerRow]:
    """Both tables; `explainers` names those to run (all by default), `advance` hears of each in the end."""
    known = {**BOTTLENECK, **EXPLAINERS}
    wanted = list(known) if explainers is None else explainers
    if unknown := [name for name in wanted if name not in known]:
        raise ConfigError(f"no explainer '{unknown[0]}': choose among {', '.join(known)}")
    if not texts:
        raise DataError("explainers are compared on texts: give at least one")
    sizes = sorted(batch_sizes or BATCH_SIZES[model.backbone.E_VH.device.type])
    trial = _Trial(model.eval(), texts, settings or Settings(), sorted(fractions), sizes)
    rows: list[ExplainerRow] = []
    for name in [name for name in BOTTLENECK if name in wanted]:
        rows.append(trial.bottleneck(name, BOTTLENECK[name]))
        advance(name)
    for name in [name for name in EXPLAINERS if name in wanted]:
        rows += trial.inputs(name, EXPLAINERS[name])
        advance(name)
    return rows


class _Trial:
    """The same questions for every explainer."""

    def __init__(
        self,
        model: LexicalSAE,
        texts: Sequence[Input],
        settings: Settings,
        fractions: Sequence[float],
        batch_sizes: Sequence[int],
    ) -> None:
        self.model, self.settings = model, settings
        self.fractions, self.batch_sizes = fractions, batch_sizes
        self.questions = ask(model, texts, settings.batch_size)

    def bottleneck(self, name: str, scorer: Scorer) -> ExplainerRow:
        """Scores of active words; the whole set runs at every batch size."""
        row = ExplainerRow(name, "bottleneck", "zero", len(self.questions))
        try:
            self._score(name, scorer, self.batch_sizes[0])  # the first time pays for warming up
            tries = [self._score(name, scorer, size) for size in self.batch_sizes]
        except UnavailableError as problem:
            return replace(row, note=str(problem))
        scored, cost = min(tries, key=lambda found: found[1].milliseconds)
        config = self.model.config
        parts = [
            erase_active(config, d.state, d.classes_N, score_P, self.fractions) for d, score_P, _ in scored
        ]
        order = torch.tensor([i for _, _, indices in scored for i in indices]).argsort()
        erasures = Erasures(*(torch.cat(columns)[order] for columns in zip(*parts, strict=True)))
        return replace(row, faithfulness=faithfulness(erasures, self.fractions), cost=cost)

    def inputs(self, name: str, explainer: InputExplainer) -> list[ExplainerRow]:
        """Scores of input words, once, and what they are worth under each removal."""
        rows = [ExplainerRow(name, "inputs", removal, len(self.questions)) for removal in REMOVALS]
        try:
            best = replace(self.settings, batch_size=self._fastest(explainer))
            scores, cost = self._explain(explainer, self.questions, best)
        except UnavailableError as problem:
            return [replace(row, note=str(problem)) for row in rows]
        worth = [self._worth(scores, removal) for removal in REMOVALS]
        return [replace(row, faithfulness=w, cost=cost) for row, w in zip(rows, worth, strict=True)]

    def _score(self, name: str, scorer: Scorer, batch_size: int) -> tuple[_Scored, Cost]:
        settings, found = replace(self.settings, batch_size=batch_size), []
        with Meter(self.model) as meter, self._recording(name) as recorded:
            for indices, batch, state in decide(self.model, self.questions, settings):
                labels = [self.questions[i].label for i in indices]
                classes_N = torch.tensor(labels, device=state.logits.device)
                decided = Decided(state, classes_N, batch.attention_mask, recorded)
                found.append((decided, scorer(decided, settings), indices))
        return found, _cost(meter, len(self.questions), batch_size)

    def _recording(self, name: str) -> AbstractContextManager[Recorded | None]:
        return recording(self.model) if name == "attention" else nullcontext()

    def _fastest(self, explainer: InputExplainer) -> int:
        """The batch size that answers a few questions soonest; the first try pays for warming up."""
        some = self.questions[: self.batch_sizes[-1]] if explainer.batches else self.questions[:1]
        little = replace(
            self.settings,
            lime_samples=min(self.settings.lime_samples, _PROBE),
            shap_evaluations=min(self.settings.shap_evaluations, _PROBE),
        )
        took = {}
        for size in (self.batch_sizes[0], *self.batch_sizes):
            _, cost = self._explain(explainer, some, replace(little, batch_size=size))
            took[size] = cost.milliseconds
        return min(took, key=took.__getitem__)

    def _explain(
        self, explainer: InputExplainer, questions: Sequence[Question], settings: Settings
    ) -> tuple[Scores, Cost]:
        with Meter(self.model) as meter:
            scores = explainer.explain(self.model, questions, settings)
        return scores, _cost(meter, len(questions), settings.batch_size)

    def _worth(self, scores: Scores, removal: Removal) -> Faithfulness:
        size = self.settings.batch_size
        erasures = erase_inputs(self.model, self.questions, scores, removal, self.fractions, size)
        return faithfulness(erasures, self.fractions)


def _cost(meter: Meter, texts: int, batch_size: int) -> Cost:
    return Cost(meter.passes / texts, meter.seconds * 1e3 / texts, batch_size)
