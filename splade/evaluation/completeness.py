"""Do a row's few largest words decide as all of them do? The decisions of circuits, at several sizes.

A circuit is the share `fraction` of a row's active words that add most, by size, to the predicted class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from splade.circuits.core import circuit_logits, hard_circuit_mask
from splade.config.model import LexicalConfig
from splade.data.encoding import Batch
from splade.inference.rows import EncodedRows
from splade.inference.scoring import LogitsFitter, quality
from splade.mechanistic.attribution import Attribution

FRACTIONS = (0.01, 0.05, 0.1, 0.2, 0.5)


@dataclass(frozen=True)
class Completeness:
    """Circuits of one size: their accuracy or F1, and the share of rows whose decision stays the same."""

    fraction: float
    score: float
    agreement: float


class CompletenessFitter:
    """Decides every row from circuits, batch by batch."""

    def __init__(
        self, rows: EncodedRows, config: LexicalConfig, fractions: Sequence[float] = FRACTIONS
    ) -> None:
        self._rows, self._config, self._fractions = rows, config, fractions
        self._logits = [LogitsFitter(rows, len(config.label_names)) for _ in fractions]
        self._same, self._count = [0] * len(fractions), 0

    @torch.no_grad()
    def update(self, attribution: Attribution, batch: Batch) -> None:
        """Count the rows of one attribution to predicted classes."""
        state = attribution.state
        predicted_N = state.logits.argmax(-1)
        self._count += len(predicted_N)
        for i, fraction in enumerate(self._fractions):
            kept_P = hard_circuit_mask(state.rows, attribution.amount, fraction)
            logits_NC = circuit_logits(state, kept_P)
            self._logits[i].update(batch, logits_NC)
            self._same[i] += int((logits_NC.argmax(-1) == predicted_N).sum())

    def result(self) -> list[Completeness]:
        """The figures of everything counted so far, smallest circuits first."""
        return [
            Completeness(
                fraction,
                quality(self._config, self._rows, fitter.result()).score,
                same / max(self._count, 1),
            )
            for fraction, fitter, same in zip(self._fractions, self._logits, self._same, strict=True)
        ]
