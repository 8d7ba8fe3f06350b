"""The terms of training: unweighted scalars over valid rows; `objective.py` alone weights them.

Legend: N rows, P (row, word) pairs, Q shares of pairs by input position, V vocabulary,
K = 100 words that the frozen LM would say at a position.
"""

from __future__ import annotations

import torch
from torch import Tensor

from splade.models.state import SparseRows

_READS_AT_ONCE = 1 << 14  # each is compared with K words


def active_words(rows: SparseRows, opened_P: Tensor) -> Tensor:
    """Mean number of active words a row; `opened_P` is exact forward and carries the surrogate backward."""
    return opened_P.sum() / max(rows.n_rows, 1)


def excess_words(rows: SparseRows, opened_P: Tensor, target: float) -> Tensor:
    """relu(L0 / target - 1): nothing at or below the target, linear above it."""
    return torch.relu(active_words(rows, opened_P) / target - 1)


def outside_share(rows: SparseRows, outside_Q: Tensor) -> Tensor:
    """Mean over rows of the share of s on (word, position) reads marked in `outside_Q`; empty rows have 0."""
    mass_Q = rows.value_P[rows.source_pair_Q] * rows.source_share_Q
    row_Q = rows.row_P[rows.source_pair_Q]
    total_N = mass_Q.new_zeros(rows.n_rows).index_add(0, row_Q, mass_Q)
    outside_N = mass_Q.new_zeros(rows.n_rows).index_add(0, row_Q, mass_Q * outside_Q)
    return (outside_N / torch.where(total_N > 0, total_N, 1.0)).mean()


@torch.no_grad()
def outside_top_words(rows: SparseRows, top_RK: Tensor, place_Q: Tensor) -> Tensor:
    """Which reads [Q] are of a word that is not among the `top_RK` words at place `place_Q` of that table."""
    word_Q = rows.word_P[rows.source_pair_Q]
    among = [
        (top_RK[place] == word[:, None]).any(-1)
        for place, word in zip(
            torch.split(place_Q, _READS_AT_ONCE), torch.split(word_Q, _READS_AT_ONCE), strict=True
        )
    ]
    return ~torch.cat(among)
