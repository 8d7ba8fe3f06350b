"""The terms of training: unweighted scalars over valid rows; `objective.py` alone weights them.

Every term is 0, and no NaN, where there are no rows. A vector shorter than 1e-6 has no direction: its cosine
is 0 and teaches nothing.

Legend: N rows, P (row, word) pairs, Q shares of pairs by input position, V vocabulary, C classes,
R positions that the anchor sampled, K = 100 words that the frozen LM would say at a position.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from splade import kernels
from splade.models.state import SparseRows

MARGIN = 0.1  # where a learned margin starts, and what it is held to

_READS_AT_ONCE = 1 << 14  # each is compared with K words
_LEAST_SQUARE = 1e-12  # of a vector that has a direction


# --- the word budget --------------------------------------------------------------------------------------


def active_words(rows: SparseRows, opened_P: Tensor) -> Tensor:
    """Mean number of active words a row; `opened_P` is exact forward and carries the surrogate backward."""
    return opened_P.sum() / max(rows.n_rows, 1)


def excess_words(rows: SparseRows, opened_P: Tensor, target: float) -> Tensor:
    """relu(L0 / target - 1): nothing at or below the target, linear above it."""
    return torch.relu(active_words(rows, opened_P) / target - 1)


def gate_l0(rows: SparseRows, theta_P: Tensor, epsilon: float, truncate: float) -> Tensor:
    """Mean over N·V of σ((z - θ)/ε), cut to exactly 0 or 1, and to no gradient, where |z - θ| > truncate·ε.

    Rows of training only: those hold every logit inside the window, and what they do not hold counts 0.
    """
    margin_P = rows.logit_P.float() - theta_P
    inside_P = margin_P.abs() <= truncate * epsilon
    soft_P = torch.where(inside_P, torch.sigmoid(margin_P / epsilon), (margin_P > 0).float())
    return soft_P.sum() / max(rows.n_rows * rows.vocab_size, 1)


def frequency(log_theta_P: Tensor, word_P: Tensor, dead_V: Tensor) -> Tensor:
    """Mean log θ over the distinct dead words among the pairs; descent lowers their thresholds.

    Only near misses of the batch are pairs, so a word that merely is rare is left alone.
    """
    times_V = torch.zeros_like(dead_V, dtype=torch.long).scatter_add_(0, word_P, torch.ones_like(word_P))
    once_P = torch.where(dead_V[word_P], log_theta_P / times_V[word_P], 0.0)
    return once_P.sum() / (dead_V & (times_V > 0)).sum().clamp(min=1)


def l1(rows: SparseRows) -> Tensor:
    """Mean over rows of Σ s: the same slope for every activation."""
    return rows.value_P.sum() / max(rows.n_rows, 1)


def l0_proxy(rows: SparseRows, softness: float) -> Tensor:
    """Mean over rows of Σ 2σ(s / softness) - 1, which is tanh(s / 2 softness): 0 at s = 0, 1 far above it."""
    return torch.tanh(rows.value_P / (2 * softness)).sum() / max(rows.n_rows, 1)


def df_flops(rows: SparseRows) -> Tensor:
    """‖w‖₁ / (‖w‖₂ √V), w_j = df_j · mean_i s_ij; df, the share of rows with the word, is a constant.

    Least where few words do all the work. The scale of w cancels, so counts and sums stand for the means.
    """
    V = rows.vocab_size
    sum_V = rows.value_P.new_zeros(V).index_add(0, rows.word_P, rows.value_P)
    w_V = rows.word_counts() * sum_V
    return w_V.sum() * _inverse_norm(w_V.square().sum()) / math.sqrt(V)


# --- grounding --------------------------------------------------------------------------------------------


def outside_share(rows: SparseRows, outside_Q: Tensor) -> Tensor:
    """Mean over rows of the share of s on (word, position) reads marked in `outside_Q`; empty rows have 0."""
    # the shares of a pair sum to 1, so its mass is its value
    outside_P = torch.zeros_like(rows.value_P, requires_grad=False).index_add_(
        0, rows.source_pair_Q, rows.source_share_Q * outside_Q
    )
    total_N, outside_N = rows.sum_by_row(rows.value_P), rows.sum_by_row(rows.value_P * outside_P)
    return _mean(outside_N / torch.where(total_N > 0, total_N, 1.0))


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


def anchor(frozen_RV: Tensor, now_RV: Tensor) -> Tensor:
    """Mean KL(p_frozen ‖ p_now) of logits over the vocabulary; the frozen ones are constants."""
    return _divergence(frozen_RV, now_RV)


# --- completeness: the circuit decides as the whole does --------------------------------------------------


def completeness_kl(full_NC: Tensor, circuit_NC: Tensor, several: bool = False) -> Tensor:
    """KL(p_full ‖ p_circuit); the full decision is a constant.

    Where `several` classes may hold, each is a decision of its own: the mean over them.
    """
    if not several:
        return _divergence(full_NC, circuit_NC)
    two_sided = (torch.stack([logits_NC, -logits_NC], -1) / 2 for logits_NC in (full_NC, circuit_NC))
    return _divergence(*(pair_NC2.flatten(0, 1) for pair_NC2 in two_sided))


# --- separation: classes have reasons of their own --------------------------------------------------------


def separation_cosine(centroid_CV: Tensor) -> Tensor:
    """Mean cosine over pairs of classes; one whose centroid is zero, as before its first row, is absent."""
    square_C = centroid_CV.square().sum(-1)
    unit_CV = centroid_CV * _inverse_norm(square_C)[:, None]
    twice = unit_CV.sum(0).square().sum() - unit_CV.square().sum()  # every cosine, in both orders
    present = (square_C > _LEAST_SQUARE).sum()
    return twice / (present * (present - 1)).clamp(min=1)


def separation_contrastive(
    similarity_NC: Tensor, labels_N: Tensor, present_C: Tensor, margin: Tensor | float
) -> Tensor:
    """Mean of relu(margin + cos(a, hardest other centroid) - cos(a, own)), of present centroids only.

    Rows whose own class is absent, or that have no other class to compare with, do not count.
    """
    classes_C = torch.arange(similarity_NC.shape[1], device=labels_N.device)
    other_NC = present_C & (classes_C != labels_N[:, None])
    counts_N = present_C[labels_N] & other_NC.any(-1)
    hardest_N = torch.where(other_NC, similarity_NC, -torch.inf).amax(-1)
    own_N = similarity_NC.gather(1, labels_N[:, None])[:, 0]
    gap_N = torch.where(counts_N, hardest_N - own_N, -torch.inf)
    return torch.relu(margin + gap_N).sum() / counts_N.sum().clamp(min=1)


def cosine_to(rows: SparseRows, attribution_P: Tensor, centroid_CV: Tensor) -> Tensor:
    """Cosine [N, C] of each row's attribution with each centroid, a sum over the row's pairs only."""
    attribution_P = attribution_P.to(centroid_CV.dtype)
    centroid_VC = centroid_CV.T.contiguous()
    dot_NC = kernels.row_sums(attribution_P, centroid_VC, rows.by_row, rows.by_word, rows.bounds_N1)
    of_row_N = _inverse_norm(rows.sum_by_row(attribution_P.square()))
    return dot_NC * of_row_N[:, None] * _inverse_norm(centroid_CV.square().sum(-1))


def margin_drift(margin: Tensor) -> Tensor:
    """(margin / 0.1 - 1)²: the contrastive term alone only ever shrinks its margin.

    That term's slope in the margin is the share of rows that break it, 1 at most, and a drift of the same
    weight then holds the margin at 0.095 or more; unscaled, (margin - 0.1)², it would let it fall to -0.4.
    """
    return (margin / MARGIN - 1) ** 2


# --- sharpness --------------------------------------------------------------------------------------------


def sharpness(rows: SparseRows, attribution_P: Tensor) -> Tensor:
    """Mean over rows of 1 - Hoyer sparsity of |a| over n active words, (‖a‖₁/‖a‖₂ - 1) / (√n - 1).

    Rows of fewer than two active words, or without any attribution, have 0.
    """
    active_P = torch.where(rows.open_P, attribution_P, 0.0)
    square_N = rows.sum_by_row(active_P.square())
    ratio_N = rows.sum_by_row(active_P.abs()) * _inverse_norm(square_N)
    spread_N = (ratio_N - 1) / (rows.active_N.clamp(min=2).sqrt() - 1)
    return _mean(torch.where((rows.active_N >= 2) & (square_N > _LEAST_SQUARE), spread_N, 0.0))


# --- means and directions ---------------------------------------------------------------------------------


def _mean(per_row_N: Tensor) -> Tensor:
    return per_row_N.sum() / max(len(per_row_N), 1)


def _divergence(fixed_NC: Tensor, moving_NC: Tensor) -> Tensor:
    """Mean KL(softmax(fixed) ‖ softmax(moving)), in float32, moved by the second only."""
    log_p_NC = torch.log_softmax(fixed_NC.detach().float(), -1)
    log_q_NC = torch.log_softmax(moving_NC.float(), -1)
    return _mean(F.kl_div(log_q_NC, log_p_NC, reduction="none", log_target=True).sum(-1))


def _inverse_norm(square: Tensor) -> Tensor:
    """1/‖x‖ from ‖x‖²; 0, and without gradient, where x has no direction."""
    inverse: Tensor = _InverseRoot.apply(square)  # type: ignore[no-untyped-call]
    return inverse


class _InverseRoot(torch.autograd.Function):
    @staticmethod
    def forward(ctx, square):  # type: ignore[no-untyped-def]
        inverse = square.clamp(min=_LEAST_SQUARE).rsqrt() * (square > _LEAST_SQUARE)
        ctx.save_for_backward(inverse)
        return inverse

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        (inverse,) = ctx.saved_tensors
        return grad * inverse**3 * -0.5
