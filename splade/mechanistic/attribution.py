"""The exact algebra of a decision: what each word adds to a logit, and what the logit would be without it.

    dla        a_cj = s_j W_eff[c, j],                     Σ_j a_cj + b_eff[c] = logit_c(s)
    path       a_cj = s_j ∫_0^1 W_eff(t·s)[c, j] dt,       Σ_j a_cj + logit_c(0) = logit_c(s)
    ablation   a_cj = logit_c(s) - logit_c(s without j),   effects overlap and do not sum

`compute_attribution_tensor` is the one function behind losses, evaluation, centroids and explanations.
For the ReLU head `dla` equals gradient × input, because the head is linear around s. For the B-cos head the
gradient is not W_eff; its `path` is gradient × input (Euler's theorem), and its `dla` is not.

Legend: N rows, P active (row, word) pairs, Q shares of pairs by input position, A active words of all rows,
C classes, D head width, V vocabulary. Nothing of size [N, D, V] or [N, C, V] is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call

from splade import kernels
from splade.models.heads import Head
from splade.models.state import CircuitState, Linearisation, SparseRows

Method = Literal["dla", "ablation", "path"]
METHODS: tuple[Method, ...] = ("dla", "ablation", "path")

_PAIRS_AT_ONCE = 1 << 14  # pairs whose D-wide rows are gathered together


@dataclass(frozen=True)
class Attribution:
    """What each active pair adds to a logit: [P] for one class a row (`classes` [N]), [P, C] for all."""

    state: CircuitState
    classes: Tensor | None
    amount: Tensor
    bias: Tensor
    method: Method

    @property
    def logit(self) -> Tensor:
        """The explained logits, as the model gave them."""
        return _chosen(self.state.logits, self.classes)

    @property
    def total(self) -> Tensor:
        """Σ a + bias of each row: the logit, for `dla` and `path`."""
        return self.state.rows.sum_by_row(self.amount) + self.bias

    @property
    def by_read(self) -> Tensor:
        """The amounts divided among the input positions each word was read at, [Q] or [Q, C]."""
        share = self.state.rows.source_share_Q
        share = share if self.amount.ndim == 1 else share[:, None]
        return self.amount[self.state.rows.source_pair_Q] * share


def compute_attribution_tensor(
    state: CircuitState, classes: Tensor | None = None, method: Method = "dla"
) -> Attribution:
    """Contributions of every active word to one class a row (`classes` [N]), or to all classes (None)."""
    rows = state.rows
    with _full_precision(rows.value_P):
        if method == "ablation":
            bias = torch.zeros_like(_chosen(state.logits, classes))
            return Attribution(state, classes, _ablation(state, classes), bias, method)
        local = state.linearisation if method == "dla" else state.head.path(rows)
        if classes is None:
            every = torch.arange(state.head.classes, device=rows.row_P.device)
            amount = torch.stack([_one_class(rows, local, c.expand(rows.n_rows)) for c in every], -1)
        else:
            amount = _one_class(rows, local, classes)
    return Attribution(state, classes, amount, _chosen(local.bias_NC, classes), method)


def compute_active_slice_weff(state: CircuitState) -> tuple[Tensor, Tensor]:
    """W_eff on the active words only: [N, C, A], and their ids [A], ascending."""
    words_A, local = _words(state.rows)[0], state.linearisation
    with _full_precision(local.mix_NCD):
        return local.mix_NCD @ local.W_in_VD[words_A].T, words_A


@torch.no_grad()
def residual(attribution: Attribution) -> Tensor:
    """|logit - Σa - b| / (|logit| + Σ|a| + |b|) of each row, the logit recomputed in float64; 0/0 is 0."""
    return relative(*discrepancy(attribution))


@torch.no_grad()
def discrepancy(attribution: Attribution) -> tuple[Tensor, Tensor]:
    """(|logit - Σa - b|, |logit| + Σ|a| + |b|), the gap to the float64 logit or the model's, the larger."""
    rows = attribution.state.rows
    exact = _chosen(exact_logits(attribution.state), attribution.classes)
    amount, bias = attribution.amount.double(), attribution.bias.double()
    total = rows.sum_by_row(amount) + bias
    gap = torch.maximum((exact - total).abs(), (attribution.logit.double() - total).abs())
    return gap, exact.abs() + rows.sum_by_row(amount.abs()) + bias.abs()


def relative(gap: Tensor, scale: Tensor) -> Tensor:
    """gap / scale, where 0/0 is 0."""
    return gap / torch.where(scale > 0, scale, 1.0)


@torch.no_grad()
def exact_logits(state: CircuitState) -> Tensor:
    """The logits [N, C] of the same rows, recomputed from the head's weights in float64."""
    rows, head = state.rows, state.head
    words_A, slot_P = _words(rows)
    W_AD = head.projection()[words_A].double()
    s_P = rows.value_P.double()
    u_ND = rows.sum_by_row(s_P[:, None] * W_AD[slot_P])
    doubled = {f"head.{name}": p.double() for name, p in head.named_parameters() if name != "W_in"}
    logits: Tensor = functional_call(_Rest(head), doubled, (u_ND, rows.sum_by_row(s_P**2)))
    return logits


class _Rest(nn.Module):
    """The part of a head after its first matrix, as a module whose weights can be replaced."""

    def __init__(self, head: Head) -> None:
        super().__init__()
        self.head = head

    def forward(self, u_ND: Tensor, square_norm_N: Tensor) -> Tensor:
        return self.head.rest(u_ND, square_norm_N)


def _one_class(rows: SparseRows, local: Linearisation, classes_N: Tensor) -> Tensor:
    # gathered: an index by arrays sorts them in its backward pass
    place_N1D = classes_N[:, None, None].expand(-1, 1, local.mix_NCD.shape[-1])
    mix_ND = local.mix_NCD.gather(1, place_N1D)[:, 0]
    slope_P = _slopes(rows, local.W_in_VD, mix_ND)
    if local.square_NC is not None:
        slope_P = slope_P + _chosen(local.square_NC, classes_N)[rows.row_P] * rows.value_P
    return (rows.value_P * slope_P).to(local.W_in_VD.dtype)


def _slopes(rows: SparseRows, W_in_VD: Tensor, mix_ND: Tensor) -> Tensor:
    """W_in[j] · mix[n] of each pair [P]; in float32 nothing gathered is kept for the backward pass."""
    if W_in_VD.dtype == torch.float32:
        return kernels.pair_logits(mix_ND, W_in_VD, None, rows.row_P, rows.word_P, rows.by_row, rows.by_word)
    return torch.cat([(W_in_VD[word] * mix_ND[row]).sum(-1) for row, word, _ in _chunks(rows)])


def _words(rows: SparseRows) -> tuple[Tensor, Tensor]:
    """The active words of all rows [A], ascending, and the place [P] of each pair's word among them."""
    words_A, slot_P = torch.unique(rows.word_P, return_inverse=True)
    return words_A, slot_P


def _ablation(state: CircuitState, classes: Tensor | None) -> Tensor:
    """logit - logit without the word: every pair is one more row of the head, u - s_j W_in[j]."""
    rows, head = state.rows, state.head
    u_ND, square_N, W_VD = head.project(rows), head.square_norm(rows), head.projection()
    effects = [_chosen(state.logits.new_zeros(0, head.classes), None if classes is None else classes[:0])]
    for row, word, s in _chunks(rows.with_values(rows.value_P.to(W_VD.dtype))):
        without = head.rest(u_ND[row] - s[:, None] * W_VD[word], (square_N[row] - s**2).clamp(min=0))
        effects.append(_chosen(state.logits[row] - without, None if classes is None else classes[row]))
    return torch.cat(effects)


def _chunks(rows: SparseRows) -> list[tuple[Tensor, Tensor, Tensor]]:
    """(row, word, value) of a bounded number of pairs at a time; at least one chunk, perhaps empty."""
    parts = (torch.split(column, _PAIRS_AT_ONCE) for column in (rows.row_P, rows.word_P, rows.value_P))
    return list(zip(*parts, strict=True))


def _chosen(per_class: Tensor, classes: Tensor | None) -> Tensor:
    """One class a row of [N, C], or all of them."""
    return per_class if classes is None else per_class.gather(-1, classes[:, None])[:, 0]


def _full_precision(tensor: Tensor) -> torch.autocast:
    return torch.autocast(tensor.device.type, enabled=False)
