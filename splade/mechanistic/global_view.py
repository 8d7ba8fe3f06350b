"""What a model does over a whole corpus: mean and spread of contributions and of effective weights.

W_eff depends on the input, so its summary is a statistic. W_eff[c, j] = W_in[j] · mix_c is linear in the
row's mix_c, so the moments of mix give those of every word's weight without ever making [N, C, V]:

    mean_j = W_in[j] · E[mix_c],     mean of squares_j = W_in[j]ᵀ E[mix_c mix_cᵀ] W_in[j]

Legend: N rows, C classes, D head width, V vocabulary, P active pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from splade.mechanistic.attribution import compute_attribution_tensor
from splade.models.heads import Head
from splade.models.state import CircuitState


@dataclass(frozen=True)
class GlobalView:
    """Statistics over `rows` rows; contributions count 0 where a word is not active."""

    rows: int
    active_V: Tensor
    contribution_mean_CV: Tensor
    contribution_std_CV: Tensor
    weight_mean_CV: Tensor
    weight_std_CV: Tensor


class GlobalViewFitter:
    """Accumulates states batch by batch, in float64."""

    def __init__(self, head: Head) -> None:
        C, D, V = head.classes, head.width, head.vocab_size
        self.head, self.rows = head, 0
        device = head.W_in.device
        self._active_V = torch.zeros(V, dtype=torch.long, device=device)
        self._sum_CV, self._square_CV = (torch.zeros(C, V, dtype=torch.double, device=device) for _ in "ab")
        self._mix_CD = torch.zeros(C, D, dtype=torch.double, device=device)
        self._mix_CDD = torch.zeros(C, D, D, dtype=torch.double, device=device)

    @torch.no_grad()
    def update(self, state: CircuitState) -> None:
        """Count a batch of decided rows."""
        rows = state.rows
        self.rows += rows.n_rows
        self._active_V += torch.bincount(rows.word_P[rows.open_P], minlength=rows.vocab_size)
        amount_CP = compute_attribution_tensor(state).amount.double().T
        self._sum_CV.index_add_(1, rows.word_P, amount_CP)
        self._square_CV.index_add_(1, rows.word_P, amount_CP**2)
        mix_NCD = state.linearisation.mix_NCD.double()
        self._mix_CD += mix_NCD.sum(0)
        self._mix_CDD += torch.einsum("ncd,nce->cde", mix_NCD, mix_NCD)

    @torch.no_grad()
    def result(self) -> GlobalView:
        """The statistics of everything counted so far."""
        n = max(self.rows, 1)
        W_VD = self.head.projection().double()
        weight_CV = self._mix_CD @ W_VD.T / n
        squares_CV = torch.stack([((W_VD @ m_DD) * W_VD).sum(-1) for m_DD in self._mix_CDD]) / n
        mean_CV = self._sum_CV / n
        return GlobalView(
            rows=self.rows,
            active_V=self._active_V.clone(),
            contribution_mean_CV=mean_CV,
            contribution_std_CV=_spread(self._square_CV / n, mean_CV),
            weight_mean_CV=weight_CV,
            weight_std_CV=_spread(squares_CV, weight_CV),
        )


def _spread(mean_of_squares: Tensor, mean: Tensor) -> Tensor:
    return (mean_of_squares - mean**2).clamp(min=0).sqrt()
