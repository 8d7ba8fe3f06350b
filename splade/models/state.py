"""The values that pass between everything: sparse rows, and a decision over them.

Legend: N rows (documents, or labelled positions when tagging), P active (row, word) pairs, Q shares of pairs
by input position, V vocabulary, C classes, D head width, B documents, L positions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from splade.models.heads import Head


@dataclass(frozen=True)
class SparseRows:
    """Activations s [N, V] as (row, word, value), sorted by row, with where each was read.

    `logit_P` are the logits behind the values. In training, pairs just below their threshold are kept with
    value 0, because their thresholds learn. Pair `source_pair_Q` took share `source_share_Q` of its value
    from position `source_position_Q` of its document; the shares of a pair sum to 1.
    """

    row_P: Tensor
    word_P: Tensor
    value_P: Tensor
    logit_P: Tensor
    source_pair_Q: Tensor
    source_position_Q: Tensor
    source_share_Q: Tensor
    n_rows: int
    vocab_size: int

    @cached_property
    def offsets_N(self) -> Tensor:
        """Where each row's pairs begin."""
        counts = torch.bincount(self.row_P, minlength=self.n_rows)
        return torch.cumsum(counts, 0) - counts

    @property
    def open_P(self) -> Tensor:
        """Pairs whose gate is open."""
        return self.value_P > 0

    @property
    def active_N(self) -> Tensor:
        """How many words are active in each row."""
        return self.sum_by_row(self.open_P.float())

    def sum_by_row(self, amount_P: Tensor) -> Tensor:
        """Sum of `amount_P` [P] or [P, ...] over each row's pairs."""
        shape = (self.n_rows, *amount_P.shape[1:])
        return amount_P.new_zeros(shape).index_add_(0, self.row_P, amount_P)

    def dense(self, amount_P: Tensor | None = None) -> Tensor:
        """`amount_P` (the values by default) as a dense [N, V] view."""
        amount_P = self.value_P if amount_P is None else amount_P
        out_NV = amount_P.new_zeros(self.n_rows, self.vocab_size)
        return out_NV.index_put((self.row_P, self.word_P), amount_P)

    def where(self, keep_P: Tensor) -> SparseRows:
        """The same rows with only the pairs in `keep_P` left."""
        kept_Q = keep_P[self.source_pair_Q]
        renumber_P = torch.cumsum(keep_P.long(), 0) - 1
        return SparseRows(
            row_P=self.row_P[keep_P],
            word_P=self.word_P[keep_P],
            value_P=self.value_P[keep_P],
            logit_P=self.logit_P[keep_P],
            source_pair_Q=renumber_P[self.source_pair_Q[kept_Q]],
            source_position_Q=self.source_position_Q[kept_Q],
            source_share_Q=self.source_share_Q[kept_Q],
            n_rows=self.n_rows,
            vocab_size=self.vocab_size,
        )

    def without(self, word_ids: Tensor) -> SparseRows:
        """The rows after the words' values were set to zero."""
        return self.where(~torch.isin(self.word_P, word_ids))

    def ranks(self, amount_P: Tensor) -> Tensor:
        """Each pair's place [P] in its row, the largest amount first, ties broken by word id."""
        order = torch.argsort(self.word_P, stable=True)
        order = order[torch.argsort(amount_P[order].detach(), descending=True, stable=True)]
        order = order[torch.argsort(self.row_P[order], stable=True)]
        place = torch.arange(len(order), device=order.device) - self.offsets_N[self.row_P[order]]
        return torch.empty_like(order).scatter_(0, order, place)

    def largest(self, k: int) -> Tensor:
        """Which pairs [P] are among their row's k largest values, ties broken by word id."""
        return self.ranks(self.value_P) < k

    def with_values(self, value_P: Tensor) -> SparseRows:
        """The same pairs carrying other values."""
        return replace(self, value_P=value_P)


@dataclass(frozen=True)
class Linearisation:
    """An exact sum over words: logit_c = Σ_j s_j · (W_in[j] · mix[n, c] + square[n, c] · s_j) + bias[n, c].

    W_in [V, D] is the head's first matrix; mix [N, C, D] and bias [N, C] depend on the row. W_eff[n, c, j] is
    W_in[j] · mix[n, c], never made as a whole unless it is asked for. `square` [N, C] is there only in the
    path attribution of heads that see ‖s‖.
    """

    W_in_VD: Tensor
    mix_NCD: Tensor
    bias_NC: Tensor
    square_NC: Tensor | None = None


@dataclass(frozen=True)
class CircuitState:
    """A decision: the sparse rows it was made from, its logits, and the head that made it."""

    rows: SparseRows
    logits: Tensor
    head: Head

    @cached_property
    def linearisation(self) -> Linearisation:
        """The head's exact local form at these rows."""
        return self.head.linearise(self.rows)

    @property
    def sparse_vector(self) -> Tensor:
        """s as a dense view [N, V], made when read."""
        return self.rows.dense()

    @property
    def W_eff(self) -> Tensor:
        """The effective weights as a dense view [N, C, V], made when read."""
        local = self.linearisation
        return local.mix_NCD @ local.W_in_VD.T

    @property
    def b_eff(self) -> Tensor:
        """The effective bias [N, C]."""
        return self.linearisation.bias_NC


@dataclass(frozen=True)
class TagCircuitState(CircuitState):
    """A decision at every position of a batch; row b·L + l is position l of document b."""

    batch: int
    length: int

    def by_position(self, per_row: Tensor) -> Tensor:
        """Any [B·L, ...] view of the state as [B, L, ...]."""
        return per_row.view(self.batch, self.length, *per_row.shape[1:])
