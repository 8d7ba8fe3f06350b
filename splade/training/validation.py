"""Validation rows after an epoch: right answers, loss, active words, and how honest and many they are.

Legend: N rows, P active pairs, Q reads, C classes, V vocabulary, B documents, L positions, K words the frozen
LM would say at a position.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from splade.circuits.losses import outside_share, outside_top_words
from splade.circuits.metrics import effective_vocabulary
from splade.circuits.objective import places
from splade.circuits.prediction import prediction_loss
from splade.data.encoding import Batch, by_length
from splade.inference.rows import EncodedRows, decide, document_of_row
from splade.inference.scoring import LogitsFitter, quality
from splade.mechanistic.attribution import compute_attribution_tensor
from splade.models.dense import DenseModel
from splade.models.lexical_sae import LexicalSAE
from splade.models.state import CircuitState


@dataclass(frozen=True)
class Validation:
    """Figures of a split; those about words are None for a model without any.

    Accuracy or F1, mean loss, mean active words a row, the share of s outside the frozen LM's words, and the
    mean over predicted classes of the effective number of words behind them.
    """

    score: float
    ce: float
    active: float | None
    outside: float | None
    effective_vocabulary: float | None


@torch.no_grad()
def validate(
    model: LexicalSAE | DenseModel, rows: EncodedRows, batch_size: int, label_smoothing: float = 0.0
) -> Validation:
    """Score a split with the model as it would predict."""
    model.eval()
    logits, words = LogitsFitter(rows, len(model.config.label_names)), _WordsFitter()
    for indices in by_length(rows.lengths, batch_size):
        batch = rows.batch(indices)
        top_BLK = rows.top_words(batch)
        state = decide(model, batch, top_BLK)
        logits.update(batch, state.logits)
        if isinstance(state, CircuitState):
            words.update(state, batch, top_BLK)
    logits_NC = logits.result()
    return Validation(
        quality(model.config, rows, logits_NC).score,
        float(prediction_loss(logits_NC, rows.labels_N, label_smoothing)),
        *words.result(),
    )


class _WordsFitter:
    """Counts active words, their mass outside the frozen LM's words, and what they add to each class."""

    def __init__(self) -> None:
        self._rows, self._active, self._outside = 0, 0.0, 0.0
        self._grounded = False
        self._mass_CV: Tensor | None = None

    def update(self, state: CircuitState, batch: Batch, top_BLK: Tensor | None) -> None:
        """Count a decided batch."""
        rows = state.rows
        self._rows += rows.n_rows
        self._active += float(rows.active_N.sum())
        if top_BLK is not None:
            self._grounded = True
            outside_Q = outside_top_words(rows, *places(rows, top_BLK, document_of_row(batch)))
            self._outside += float(outside_share(rows, outside_Q)) * rows.n_rows
        predicted_N = state.logits.argmax(-1)
        amount_P = compute_attribution_tensor(state, predicted_N).amount.clamp(min=0)
        if self._mass_CV is None:
            self._mass_CV = amount_P.new_zeros(state.logits.shape[1], rows.vocab_size)
        key_P = predicted_N[rows.row_P] * rows.vocab_size + rows.word_P
        self._mass_CV.view(-1).index_add_(0, key_P, amount_P)

    def result(self) -> tuple[float | None, float | None, float | None]:
        """Active words, share outside, effective vocabulary."""
        if self._mass_CV is None:
            return None, None, None
        effective_C = effective_vocabulary(self._mass_CV)[self._mass_CV.sum(1) > 0]
        rows = max(self._rows, 1)
        return (
            self._active / rows,
            self._outside / rows if self._grounded else None,
            float(effective_C.mean()) if len(effective_C) else 0.0,
        )
