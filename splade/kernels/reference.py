"""The vocabulary head in plain torch: which (row, word) pairs matter, and their exact logits.

A vocabulary head multiplies every position by every word. Almost all of those products end up below the
gate, so nothing of size [B, L, V] is kept:

1. scan: logits are made in chunks that fit the cache, and only pairs above a per-word floor survive;
2. pool: for documents, a word keeps its best position (the first one, where several are equal);
3. pair_logits: the surviving pairs' logits in float32, with a backward pass that touches only the pairs
   that received a gradient.

Legend: B documents, L positions, N = B·L or fewer rows of h, H hidden size, W words scanned, V vocabulary,
K licensed words of a position, P surviving pairs.

Tie routing is defined here and nowhere else: the value and the gradient of a pooled word belong to the
first position that attains its largest logit, whether or not that logit passes the gate.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

CHUNK_ELEMENTS = 1 << 22  # logits held at once: 16 MiB in float32, about the size of a last-level cache
PAIR_CHUNK = 1 << 16  # pairs gathered at once, so that gathers stay small however many gates are open


class Pairs(NamedTuple):
    """Surviving (row, word) pairs, sorted by row and then word; `position` indexes the rows of h."""

    row_P: Tensor
    word_P: Tensor
    position_P: Tensor


def _slack(floor_W: Tensor, dtype: torch.dtype) -> Tensor:
    """How far a logit computed in `dtype` may fall short of its float32 value."""
    return floor_W - 4 * torch.finfo(dtype).eps * floor_W.abs()


@torch.no_grad()
def scan_pooled(h_BLH: Tensor, E_WH: Tensor, e_W: Tensor, valid_BL: Tensor, floor_W: Tensor) -> Pairs:
    """Pairs whose largest logit over a document's valid positions exceeds the word's floor."""
    B, L, _ = h_BLH.shape
    if B * L == 0:
        return _no_pairs(h_BLH.device)
    width = max(1, CHUNK_ELEMENTS // (B * L))
    invalid_BL1 = ~valid_BL[:, :, None]
    floor_W = _slack(floor_W, h_BLH.dtype)
    found: list[Pairs] = []
    for start in range(0, E_WH.shape[0], width):
        chunk = slice(start, start + width)
        z_BLw = (h_BLH @ E_WH[chunk].T).masked_fill_(invalid_BL1, float("-inf"))
        row_P, word_P = (z_BLw.amax(dim=1) + e_W[chunk] > floor_W[chunk]).nonzero(as_tuple=True)
        at_P = z_BLw[row_P, :, word_P].argmax(dim=1)  # the first of equals; of survivors only, it is slow
        found.append(Pairs(row_P, word_P + start, row_P * L + at_P))
    return _by_row(_concatenate(found))


@torch.no_grad()
def scan_positions(h_NH: Tensor, E_WH: Tensor, e_W: Tensor, floor_W: Tensor) -> Pairs:
    """Pairs of every row of h, unpooled."""
    floor_W = _slack(floor_W, h_NH.dtype)
    height = max(1, CHUNK_ELEMENTS // max(1, E_WH.shape[0]))
    found = [_no_pairs(h_NH.device)]
    for start in range(0, h_NH.shape[0], height):
        z_nW = h_NH[start : start + height] @ E_WH.T + e_W
        row_P, word_P = (z_nW > floor_W).nonzero(as_tuple=True)
        found.append(Pairs(row_P + start, word_P, row_P + start))
    return _concatenate(found)


@torch.no_grad()
def scan_licensed(h_NH: Tensor, E_VH: Tensor, e_V: Tensor, licence_NK: Tensor, floor_V: Tensor) -> Pairs:
    """Pairs of every row of h among its licensed words only (-1: no licence); costs O(K), not O(V)."""
    floor_V = _slack(floor_V, h_NH.dtype)
    height = max(1, CHUNK_ELEMENTS // max(1, licence_NK.shape[1] * h_NH.shape[1]))
    found = [_no_pairs(h_NH.device)]
    for start in range(0, h_NH.shape[0], height):
        licence_nK = licence_NK[start : start + height]
        word_nK = licence_nK.clamp(min=0)
        z_nK = torch.einsum("nh,nkh->nk", h_NH[start : start + height], E_VH[word_nK]) + e_V[word_nK]
        row_P, slot_P = ((z_nK > floor_V[word_nK]) & (licence_nK >= 0)).nonzero(as_tuple=True)
        found.append(Pairs(row_P + start, licence_nK[row_P, slot_P], row_P + start))
    return _by_row(_concatenate(found))


def pool_max(pairs: Pairs, value_P: Tensor, row_of_position_N: Tensor) -> Tensor:
    """Indices of the pairs that win their (document, word): largest value, then first position."""
    row_P = row_of_position_N[pairs.position_P]
    order = torch.argsort(pairs.position_P, stable=True)
    order = order[torch.argsort(value_P[order], descending=True, stable=True)]
    order = order[torch.argsort(pairs.word_P[order], stable=True)]
    order = order[torch.argsort(row_P[order], stable=True)]
    row, word = row_P[order], pairs.word_P[order]
    first = torch.ones_like(row, dtype=torch.bool)
    first[1:] = (row[1:] != row[:-1]) | (word[1:] != word[:-1])
    return order[first]


class _PairLogits(torch.autograd.Function):
    """z_p = h[position_p] · E[word_p] + e[word_p] in float32, with a backward pass over live pairs only."""

    @staticmethod
    def forward(ctx, h_NH, E_VH, e_V, position_P, word_P):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(h_NH, E_VH, position_P, word_P)
        ctx.has_bias = e_V is not None
        z_P = torch.empty(len(position_P), dtype=torch.float32, device=h_NH.device)
        for start in range(0, len(position_P), PAIR_CHUNK):
            chunk = slice(start, start + PAIR_CHUNK)
            h_pH, E_pH = h_NH[position_P[chunk]].float(), E_VH[word_P[chunk]].float()
            z_P[chunk] = torch.linalg.vecdot(h_pH, E_pH)
        return z_P if e_V is None else z_P + e_V.float()[word_P]

    @staticmethod
    def backward(ctx, grad_P):  # type: ignore[no-untyped-def]
        h_NH, E_VH, position_P, word_P = ctx.saved_tensors
        live = grad_P.nonzero()[:, 0]
        grad_P, position_P, word_P = grad_P[live], position_P[live], word_P[live]
        grad_h = torch.zeros(h_NH.shape, dtype=torch.float32, device=h_NH.device)
        grad_E = torch.zeros(E_VH.shape, dtype=torch.float32, device=h_NH.device)
        for start in range(0, len(live), PAIR_CHUNK):
            chunk = slice(start, start + PAIR_CHUNK)
            g_p1, at, word = grad_P[chunk, None], position_P[chunk], word_P[chunk]
            grad_h.index_add_(0, at, g_p1 * E_VH[word].float())
            grad_E.index_add_(0, word, g_p1 * h_NH[at].float())
        grad_e = grad_P.new_zeros(E_VH.shape[0]).index_add_(0, word_P, grad_P) if ctx.has_bias else None
        return grad_h.to(h_NH.dtype), grad_E.to(E_VH.dtype), grad_e, None, None


def pair_logits(h_NH: Tensor, E_VH: Tensor, e_V: Tensor | None, position_P: Tensor, word_P: Tensor) -> Tensor:
    """The logits of chosen (position, word) pairs, differentiable in h, E and e."""
    z_P: Tensor = _PairLogits.apply(h_NH, E_VH, e_V, position_P, word_P)  # type: ignore[no-untyped-call]
    return z_P


def row_sums(amount_P: Tensor, W_VD: Tensor, word_P: Tensor, bounds_N1: Tensor) -> Tensor:
    """Σ amount · W[word] over the pairs of each row [N, D], differentiable in both."""
    return F.embedding_bag(word_P, W_VD, bounds_N1[:-1], per_sample_weights=amount_P, mode="sum")


def _no_pairs(device: torch.device) -> Pairs:
    none = torch.empty(0, dtype=torch.long, device=device)
    return Pairs(none, none, none)


def _concatenate(found: list[Pairs]) -> Pairs:
    return Pairs(*(torch.cat(column) for column in zip(*found, strict=True)))


def _by_row(pairs: Pairs) -> Pairs:
    """Sort by row, then word; the sorts are stable, so earlier positions stay first."""
    order = torch.argsort(pairs.word_P, stable=True)
    order = order[torch.argsort(pairs.row_P[order], stable=True)]
    return Pairs(*(column[order] for column in pairs))
