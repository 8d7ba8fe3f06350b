"""Logits of chosen (position, word) pairs on a GPU: gathered dot products that keep no gathered rows.

1. Forward: a program takes a block of pairs and walks over H in tiles; products are summed in float32.
2. Backward: pairs are sorted by word, then by position. The program at the first pair of a group sums the
   group's gradients in the order of pairs and writes one row of the gradient, once.

So a row of a gradient is made by one program in one order: no atomics, repeats are equal to the bit, and the
sum stays in registers until it is rounded to the parameter's own dtype. Pairs without a gradient are masked
where they stand, which costs no wait for their number. The gradient of E is dense, because the optimiser's
is: filling it with zeros is the only work that grows with V.

Legend: N rows of h, H hidden size, V vocabulary, P pairs.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK_P, BLOCK_H = 8, 256  # of a program of the forward pass
SHORT_P, SHORT_H = 8, 256  # of a step of the backward pass where groups are short, as those of most words
LONG_P, LONG_H = 32, 64  # and where they are long, as those of rows that have hundreds of words
LONG = 8  # pairs of an average group that is long


@triton.jit(do_not_specialize=["P"])
def _dots(  # type: ignore[no-untyped-def]
    h, E, e, position, word, z, P, h_row, E_row,
    H: tl.constexpr, BIASED: tl.constexpr, BP: tl.constexpr, BH: tl.constexpr,
):  # fmt: skip
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    inside = p < P
    at = tl.load(position + p, mask=inside, other=0).to(tl.int64)
    j = tl.load(word + p, mask=inside, other=0).to(tl.int64)
    products = tl.zeros((BP, BH), dtype=tl.float32)
    for start in range(0, H, BH):
        k = start + tl.arange(0, BH)
        mask = inside[:, None] & (k < H)[None, :]
        h_tile = tl.load(h + at[:, None] * h_row + k[None, :], mask=mask, other=0.0).to(tl.float32)
        E_tile = tl.load(E + j[:, None] * E_row + k[None, :], mask=mask, other=0.0).to(tl.float32)
        products += h_tile * E_tile
    total = tl.sum(products, axis=1)
    if BIASED:
        total += tl.load(e + j, mask=inside, other=0.0).to(tl.float32)
    tl.store(z + p, total, mask=inside)


@triton.jit
def _sums(  # type: ignore[no-untyped-def]
    grad, order, key, end, other, rows, out, out_e, rows_row,
    H: tl.constexpr, BIASED: tl.constexpr, BP: tl.constexpr, BH: tl.constexpr,
):  # fmt: skip
    """out[key] = Σ grad · rows[other] over the pairs of one key, which lie together in `order`."""
    first, tile = tl.program_id(0), tl.program_id(1)
    mine = tl.load(key + first).to(tl.int64)
    before = tl.load(key + tl.maximum(first - 1, 0)).to(tl.int64)
    if (first == 0) | (mine != before):
        k = tile * BH + tl.arange(0, BH)
        total = tl.zeros((BH,), dtype=tl.float32)
        total_e = 0.0
        last = tl.load(end + first).to(tl.int32)
        start = first
        while start < last:
            p = start + tl.arange(0, BP)
            inside = p < last
            pair = tl.load(order + p, mask=inside, other=0)
            g = tl.load(grad + pair, mask=inside, other=0.0).to(tl.float32)
            at = tl.load(other + pair, mask=inside, other=0).to(tl.int64)
            mask = (g != 0)[:, None] & (k < H)[None, :]  # 0·∞ is no gradient
            tile_PH = tl.load(rows + at[:, None] * rows_row + k[None, :], mask=mask, other=0.0)
            total += tl.sum(g[:, None] * tile_PH.to(tl.float32), axis=0)
            total_e += tl.sum(g, axis=0)
            start += BP
        tl.store(out + mine * H + k, total, mask=k < H)
        if BIASED:
            tl.store(out_e + mine, total_e, mask=tile == 0)


class _PairLogits(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h_NH, E_VH, e_V, position_P, word_P):  # type: ignore[no-untyped-def]
        h_NH, E_VH = _rows(h_NH), _rows(E_VH)
        position_P, word_P = position_P.contiguous(), word_P.contiguous()
        ctx.save_for_backward(h_NH, E_VH, position_P, word_P)
        ctx.has_bias = e_V is not None
        return _forward(h_NH, E_VH, e_V, position_P, word_P)

    @staticmethod
    def backward(ctx, grad_P):  # type: ignore[no-untyped-def]
        h_NH, E_VH, position_P, word_P = ctx.saved_tensors
        grad_P = grad_P.contiguous()
        by_h, by_E, by_e = ctx.needs_input_grad[:3]
        grad_h = grad_E = grad_e = None
        if by_E or by_e:
            grad_e = E_VH.new_zeros(len(E_VH), dtype=torch.float32) if ctx.has_bias else None
            grad_E = _gathered(E_VH, h_NH, grad_P, word_P, position_P, grad_e)
        if by_h:
            grad_h = _gathered(h_NH, E_VH, grad_P, position_P, word_P, None)
        return grad_h, grad_E, grad_e, None, None


def pair_logits(h_NH: Tensor, E_VH: Tensor, e_V: Tensor | None, position_P: Tensor, word_P: Tensor) -> Tensor:
    """The logits of chosen (position, word) pairs in float32, differentiable in h, E and e."""
    z_P: Tensor = _PairLogits.apply(h_NH, E_VH, e_V, position_P, word_P)  # type: ignore[no-untyped-call]
    return z_P


def _forward(h_NH: Tensor, E_VH: Tensor, e_V: Tensor | None, position_P: Tensor, word_P: Tensor) -> Tensor:
    P, H = len(position_P), h_NH.shape[1]
    z_P = torch.empty(P, dtype=torch.float32, device=h_NH.device)
    if P:
        e = z_P if e_V is None else e_V.contiguous()
        _dots[(triton.cdiv(P, BLOCK_P),)](
            h_NH, E_VH, e, position_P, word_P, z_P, P, h_NH.stride(0), E_VH.stride(0),
            H=H, BIASED=e_V is not None, BP=BLOCK_P, BH=_tile(H, BLOCK_H),
        )  # fmt: skip
    return z_P


def _gathered(
    like_KH: Tensor, rows_MH: Tensor, grad_P: Tensor, key_P: Tensor, other_P: Tensor, out_e: Tensor | None
) -> Tensor:
    """Σ over the pairs of each key of grad · rows[other], [K, H] in the dtype of `like_KH`."""
    H = like_KH.shape[1]
    out_KH = torch.zeros(like_KH.shape, dtype=like_KH.dtype, device=like_KH.device)
    if len(key_P):
        key, order = torch.sort(key_P, stable=True)
        end = torch.searchsorted(key, key, right=True)
        step, widest = (LONG_P, LONG_H) if len(key_P) > LONG * len(like_KH) else (SHORT_P, SHORT_H)
        tile = _tile(H, widest)
        _sums[(len(key), triton.cdiv(H, tile))](
            grad_P, order, key, end, other_P, rows_MH, out_KH, out_KH if out_e is None else out_e,
            rows_MH.stride(0), H=H, BIASED=out_e is not None, BP=step, BH=tile,
        )  # fmt: skip
    return out_KH


def _rows(rows_NH: Tensor) -> Tensor:
    """The same rows, each without gaps."""
    return rows_NH if rows_NH.stride(-1) == 1 else rows_NH.contiguous()


def _tile(H: int, largest: int) -> int:
    return min(largest, int(triton.next_power_of_2(H)))
