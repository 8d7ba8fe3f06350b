"""Do a row's few largest words decide as all of them do? The decisions of circuits, at several sizes.

A circuit is the share `fraction` of a row's active words that add most, by size, to the predicted class.
Circuits of growing size are nested, so one pass of the head decides from all of them. Classes are the gold
ones; those whose rows the whole model never gets right have nothing to keep.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from splade.config.model import LexicalConfig
from splade.data.encoding import Batch
from splade.evaluation.eraser import FRACTIONS, circuit_sizes, nested_logits
from splade.inference.rows import EncodedRows
from splade.inference.scoring import LogitsFitter, Quality, quality
from splade.mechanistic.attribution import Attribution

__all__ = ["FRACTIONS", "Completeness", "CompletenessFitter"]


@dataclass(frozen=True)
class Completeness:
    """Circuits of one size: their accuracy or F1, and the share of rows whose decision stays the same.

    `retention` is the circuits' recall of each gold class over the whole model's, or entity F1.
    """

    fraction: float
    score: float
    agreement: float
    retention: dict[str, float]


class CompletenessFitter:
    """Decides every row from circuits, batch by batch."""

    def __init__(
        self, rows: EncodedRows, config: LexicalConfig, fractions: Sequence[float] = FRACTIONS
    ) -> None:
        self._rows, self._config, self._fractions = rows, config, sorted(fractions)
        self._logits = [LogitsFitter(rows, len(config.label_names)) for _ in fractions]
        self._whole = LogitsFitter(rows, len(config.label_names))
        self._same, self._count = [0] * len(fractions), 0

    @torch.no_grad()
    def update(self, attribution: Attribution, batch: Batch) -> None:
        """Count the rows of one attribution to predicted classes."""
        state = attribution.state
        self._count += state.rows.n_rows
        self._whole.update(batch, state.logits)
        size_NK = circuit_sizes(state.rows, self._fractions)
        alone_NKC, _ = nested_logits(state, attribution.amount.abs(), size_NK)
        for i, logits_NC in enumerate(alone_NKC.unbind(1)):
            self._logits[i].update(batch, logits_NC)
            self._same[i] += int(self._agree(logits_NC, state.logits).sum())

    def _agree(self, circuit_NC: Tensor, full_NC: Tensor) -> Tensor:
        """Which rows [N] have the same class, or the same set of classes."""
        if self._config.multi_label:
            return ((circuit_NC >= 0) == (full_NC >= 0)).all(-1)
        return circuit_NC.argmax(-1) == full_NC.argmax(-1)

    def result(self) -> list[Completeness]:
        """The figures of everything counted so far, smallest circuits first."""
        whole = self._quality(self._whole)
        parts = [self._quality(fitter) for fitter in self._logits]
        return [
            Completeness(fraction, part.score, same / max(self._count, 1), _retention(part, whole))
            for fraction, part, same in zip(self._fractions, parts, self._same, strict=True)
        ]

    def _quality(self, logits: LogitsFitter) -> Quality:
        return quality(self._config, self._rows, logits.result())


def _retention(part: Quality, whole: Quality) -> dict[str, float]:
    kept = _by_class(part)
    return {name: kept.get(name, 0.0) / score for name, score in _by_class(whole).items() if score > 0}


def _by_class(found: Quality) -> dict[str, float]:
    kinds = {name: score.f1 for name, score in found.entities.items() if name != "micro"}
    return kinds or found.recall
