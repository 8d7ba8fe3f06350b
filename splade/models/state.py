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

from splade import kernels

if TYPE_CHECKING:
    from splade.models.heads import Head


class _SumByRow(torch.autograd.Function):
    """Sums of consecutive pairs, without atomic additions."""

    @staticmethod
    def forward(ctx, amount_P, row_P, bounds_N1):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(row_P, bounds_N1)
        return torch.segment_reduce(amount_P, "sum", offsets=bounds_N1, axis=0, initial=0, unsafe=True)

    @staticmethod
    def backward(ctx, grad_N):  # type: ignore[no-untyped-def]
        return _OfRow.apply(grad_N, *ctx.saved_tensors), None, None  # type: ignore[no-untyped-call]


class _OfRow(torch.autograd.Function):
    """The adjoint: what belongs to a row, at each of its pairs."""

    @staticmethod
    def forward(ctx, amount_N, row_P, bounds_N1):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(row_P, bounds_N1)
        return amount_N[row_P]

    @staticmethod
    def backward(ctx, grad_P):  # type: ignore[no-untyped-def]
        return _SumByRow.apply(grad_P, *ctx.saved_tensors), None, None  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class SparseRows:
    """Activations s [N, V] as (row, word, value), sorted by row, with where each was read.

    Sums over rows use that order: each is made in the order of pairs, so repeats are equal to the bit.

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
    def bounds_N1(self) -> Tensor:
        """Where each row's pairs begin, and the last one's end."""
        rows = torch.arange(self.n_rows + 1, device=self.row_P.device)
        return torch.searchsorted(self.row_P.contiguous(), rows)

    @property
    def offsets_N(self) -> Tensor:
        """Where each row's pairs begin."""
        return self.bounds_N1[:-1]

    @cached_property
    def by_row(self) -> kernels.Order:
        """The rows of pairs, for sums over them."""
        return kernels.Order(self.row_P, is_sorted=True)

    @cached_property
    def by_word(self) -> kernels.Order:
        """The words of pairs, for sums over them."""
        return kernels.Order(self.word_P)

    @cached_property
    def open_P(self) -> Tensor:
        """Pairs whose gate is open."""
        return self.value_P > 0

    @cached_property
    def active_N(self) -> Tensor:
        """How many words are active in each row."""
        return self.sum_by_row(self.open_P.float())

    def sum_by_row(self, amount_P: Tensor) -> Tensor:
        """Sum of `amount_P` [P] or [P, ...] over each row's pairs."""
        total: Tensor = _SumByRow.apply(amount_P, self.row_P, self.bounds_N1)  # type: ignore[no-untyped-call]
        return total

    def of_row(self, amount_N: Tensor) -> Tensor:
        """Each pair's share of what belongs to its row: `amount_N` [N] or [N, ...] at the pairs' rows."""
        spread: Tensor = _OfRow.apply(amount_N, self.row_P, self.bounds_N1)  # type: ignore[no-untyped-call]
        return spread

    def word_counts(self) -> Tensor:
        """In how many rows each word [V] is active."""
        # not bincount, which makes the host wait for the largest word
        counts_V = torch.zeros(self.vocab_size, dtype=torch.long, device=self.word_P.device)
        return counts_V.scatter_add_(0, self.word_P, self.open_P.long())

    def dense(self, amount_P: Tensor | None = None) -> Tensor:
        """`amount_P` (the values by default) as a dense [N, V] view."""
        amount_P = self.value_P if amount_P is None else amount_P
        out_NV = amount_P.new_zeros(self.n_rows, self.vocab_size)
        return out_NV.index_put((self.row_P, self.word_P), amount_P)

    def where(self, keep_P: Tensor) -> SparseRows:
        """The same rows with only the pairs in `keep_P` left."""
        left_P = keep_P.nonzero()[:, 0]  # indices: every use of a mask waits for its count anew
        if len(left_P) == len(keep_P):
            return self
        left_Q = keep_P[self.source_pair_Q].nonzero()[:, 0]
        renumber_P = torch.cumsum(keep_P.long(), 0) - 1
        return SparseRows(
            row_P=self.row_P[left_P],
            word_P=self.word_P[left_P],
            value_P=self.value_P[left_P],
            logit_P=self.logit_P[left_P],
            source_pair_Q=renumber_P[self.source_pair_Q[left_Q]],
            source_position_Q=self.source_position_Q[left_Q],
            source_share_Q=self.source_share_Q[left_Q],
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
        other = replace(self, value_P=value_P)
        vars(other).update(bounds_N1=self.bounds_N1, by_row=self.by_row, by_word=self.by_word)
        return other


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
