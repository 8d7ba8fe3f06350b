"""Circuits: the few words of a row that carry its decision, and what the head says of them alone.

1. Of a row's A active words, k = max(1, ceil(fraction · A)) with the largest |a| are its circuit.
2. The threshold t lies midway between the kth and the (k+1)th |a|; the (A+1)th is 0.
3. Training keeps word j by σ((|a_j| - t) / (temperature · t)); evaluation by whether j is among the k.

As the temperature goes to 0 the first tends to the second wherever the kth and the (k+1)th differ; where they
are equal the soft mask gives both ½ and the hard one prefers the smaller word id. The threshold is
differentiable, so the gradient is the loss's own: growing every |a| of a row alike opens nothing.

Legend: N rows, P (row, word) pairs, C classes, A active words of a row.
"""

from __future__ import annotations

import torch
from torch import Tensor

from splade import kernels
from splade.models.state import CircuitState, SparseRows, TagCircuitState

__all__ = [
    "CircuitState",
    "SparseRows",
    "TagCircuitState",
    "circuit_logits",
    "circuit_mask",
    "circuit_size",
    "hard_circuit_mask",
]

_LEAST = 1e-6  # of a logit; rows whose threshold is below it are measured against this


def circuit_mask(
    rows: SparseRows, attribution_P: Tensor, circuit_fraction: float, temperature: float
) -> Tensor:
    """How far each pair [P] is in its row's circuit, in [0, 1]; pairs of value 0 are exactly out."""
    assert temperature > 0
    if kernels.ranks_in_pairs(attribution_P, rows.n_rows):
        orders = rows.by_row, rows.by_word, rows.bounds_N1
        return kernels.circuit_mask(
            attribution_P, rows.value_P, *orders, circuit_fraction, temperature, _LEAST
        )
    rank_P, k_P = _ranked(rows, attribution_P, circuit_fraction)
    magnitude_P = attribution_P.abs()
    edge_P = rows.open_P & ((rank_P == k_P - 1) | (rank_P == k_P))
    t_N = rows.sum_by_row(torch.where(edge_P, magnitude_P / 2, 0.0))
    t_P = rows.of_row(t_N)
    soft_P = torch.sigmoid((magnitude_P - t_P) / (temperature * t_P.clamp(min=_LEAST)))
    return torch.where(rows.open_P, soft_P, 0.0)


def hard_circuit_mask(rows: SparseRows, attribution_P: Tensor, circuit_fraction: float) -> Tensor:
    """Which pairs [P] are in their row's circuit, ties broken by word id."""
    rank_P, k_P = _ranked(rows, attribution_P, circuit_fraction)
    return rows.open_P & (rank_P < k_P)


def circuit_logits(state: CircuitState, mask_P: Tensor) -> Tensor:
    """Logits [N, C] of the state's head when each value is scaled by its mask."""
    rows = state.rows
    logits_NC: Tensor = state.head(rows.with_values(rows.value_P * mask_P))
    return logits_NC


def circuit_size(active: Tensor, fraction: float | Tensor) -> Tensor:
    """k = max(1, ceil(fraction · A)) for numbers A of active words, as wide as the two broadcast to."""
    # less a hair before rounding up: 0.07 · 100 is a little over 7 in binary
    return (active.double() * fraction - 1e-9).ceil().clamp(min=1).long()


@torch.no_grad()
def _ranked(rows: SparseRows, attribution_P: Tensor, fraction: float) -> tuple[Tensor, Tensor]:
    """Each pair's place in its row by descending |a|, active pairs first; and the k of its row."""
    assert 0 <= fraction <= 1
    rank_P = rows.ranks(torch.where(rows.open_P, attribution_P.abs(), -1.0))
    return rank_P, circuit_size(rows.active_N, fraction)[rows.row_P]
