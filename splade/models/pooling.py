"""Pooling: from words active at positions to words active in a document, with provenance.

    max        s_j = max_l s_lj, read at the first position that attains it
    attention  s_j = Σ_l α_l s_lj,  α = softmax over positions with an active word of q · s_l

Legend: P pairs (one per position and word), M merged pairs (one per document and word), L positions.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from splade.kernels import Pairs, pool_max
from splade.models.state import SparseRows


class MaxPooling(nn.Module):
    """The largest activation of a word over positions; gates are monotone, so it commutes with them."""

    name = "max"
    has_shortcut = True  # max_l gate(z_l) = gate(max_l z_l): the vocabulary head may pool logits

    def __init__(self, vocab_size: int) -> None:  # noqa: ARG002
        super().__init__()

    def forward(self, positions: SparseRows, length: int, documents: int) -> SparseRows:
        """Pool rows b·L + l of `positions` into one row a document."""
        pairs = Pairs(positions.row_P, positions.word_P, positions.row_P)
        row_of_position = torch.arange(positions.n_rows, device=positions.row_P.device) // length
        # by logit, so that a word below its threshold everywhere keeps its best position too
        best = pool_max(pairs, positions.logit_P.detach(), row_of_position)
        return one_source(
            positions.row_P[best] // length,
            positions.word_P[best],
            positions.value_P[best],
            positions.logit_P[best],
            positions.row_P[best] % length,
            documents,
            positions.vocab_size,
        )


class AttentionPooling(nn.Module):
    """A learned query over words weighs the positions; positions without an active word have no vote."""

    name = "attention"
    has_shortcut = False

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.query_V = nn.Parameter(torch.zeros(vocab_size))

    def forward(self, positions: SparseRows, length: int, documents: int) -> SparseRows:
        """Pool rows b·L + l of `positions` into one row a document, every position keeping its share."""
        alpha_R = self._weights(positions, length, documents)
        weighted_P = alpha_R[positions.row_P] * positions.value_P
        document_P = positions.row_P // length
        key_P = document_P * positions.vocab_size + positions.word_P
        key_M, pair_P = torch.unique(key_P, return_inverse=True)
        value_M = weighted_P.new_zeros(len(key_M)).index_add(0, pair_P, weighted_P)
        logit_M = torch.full_like(value_M, float("-inf")).scatter_reduce(0, pair_P, positions.logit_P, "amax")
        whole = torch.where(value_M > 0, value_M, 1.0)
        return SparseRows(
            row_P=key_M // positions.vocab_size,
            word_P=key_M % positions.vocab_size,
            value_P=value_M,
            logit_P=logit_M,
            source_pair_Q=pair_P,
            source_position_Q=positions.row_P % length,
            source_share_Q=(weighted_P / whole[pair_P]).detach(),
            n_rows=documents,
            vocab_size=positions.vocab_size,
        )

    def _weights(self, positions: SparseRows, length: int, documents: int) -> Tensor:
        """α of every row b·L + l, zero where no word is active."""
        score_R = positions.sum_by_row(positions.value_P * self.query_V[positions.word_P])
        voting_R = positions.active_N > 0
        score_BL = score_R.masked_fill(~voting_R, float("-inf")).view(documents, length)
        top_B1 = score_BL.amax(dim=1, keepdim=True)
        exp_BL = torch.exp(score_BL - torch.where(top_B1.isfinite(), top_B1, 0.0).detach())
        total_B1 = exp_BL.sum(dim=1, keepdim=True)
        return (exp_BL / torch.where(total_B1 > 0, total_B1, 1.0)).flatten()


def one_source(
    row_P: Tensor,
    word_P: Tensor,
    value_P: Tensor,
    logit_P: Tensor,
    position_P: Tensor,
    n_rows: int,
    vocab_size: int,
) -> SparseRows:
    """Rows whose every pair was read at one position."""
    return SparseRows(
        row_P=row_P,
        word_P=word_P,
        value_P=value_P,
        logit_P=logit_P,
        source_pair_Q=torch.arange(len(row_P), device=row_P.device),
        source_position_Q=position_P,
        source_share_Q=torch.ones(len(row_P), device=row_P.device),
        n_rows=n_rows,
        vocab_size=vocab_size,
    )


POOLINGS: dict[str, type[MaxPooling] | type[AttentionPooling]] = {
    pooling.name: pooling for pooling in (MaxPooling, AttentionPooling)
}
