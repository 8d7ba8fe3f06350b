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

from splade.kernels.order import Order

BLOCK_P, BLOCK_H = 8, 256  # of a program of the forward pass
SHORT_P, SHORT_H = 8, 256  # of a step of the backward pass where groups are short, as those of most words
LONG_P, LONG_H = 32, 64  # and where they are long, as those of rows that have hundreds of words
BLOCK_TOTALS = 128  # pairs of a program that sums single numbers
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


@triton.jit(do_not_specialize=["P"])
def _totals(grad, order, key, end, out, P, BP: tl.constexpr):  # type: ignore[no-untyped-def]
    """out[key] = Σ grad over the pairs of one key; a group is summed where it begins."""
    first = tl.program_id(0) * BP + tl.arange(0, BP)
    inside = first < P
    mine = tl.load(key + first, mask=inside, other=0).to(tl.int64)
    before = tl.load(key + first - 1, mask=inside & (first > 0), other=-1).to(tl.int64)
    begins = inside & (mine != before)
    size = tl.where(begins, tl.load(end + first, mask=inside, other=0).to(tl.int32) - first, 0)
    total = tl.zeros((BP,), dtype=tl.float32)
    step = 0
    longest = tl.max(size, axis=0)
    while step < longest:
        live = step < size
        pair = tl.load(order + first + step, mask=live, other=0)
        total += tl.load(grad + pair, mask=live, other=0.0).to(tl.float32)
        step += 1
    tl.store(out + mine, total, mask=begins)


class _Take(torch.autograd.Function):
    @staticmethod
    def forward(ctx, table_V, by_word):  # type: ignore[no-untyped-def]
        ctx.by_word, ctx.size = by_word, len(table_V)
        return table_V[by_word.id_P]

    @staticmethod
    def backward(ctx, grad_P):  # type: ignore[no-untyped-def]
        out_V = torch.zeros(ctx.size, dtype=torch.float32, device=grad_P.device)
        if P := len(grad_P):
            key, order, end = ctx.by_word.groups
            _totals[(triton.cdiv(P, BLOCK_TOTALS),)](
                grad_P.contiguous(), order, key, end, out_V, P, BP=BLOCK_TOTALS
            )
        return out_V, None


def take(table_V: Tensor, by_word: Order) -> Tensor:
    """The entry of each pair's word in float32; its gradient is summed in the order of pairs."""
    taken_P: Tensor = _Take.apply(table_V, by_word)  # type: ignore[no-untyped-call]
    return taken_P


class _RowSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx, amount_P, W_VD, by_row, by_word, n_rows):  # type: ignore[no-untyped-def]
        amount_P, W_VD = amount_P.contiguous(), _rows(W_VD)
        ctx.save_for_backward(amount_P, W_VD)
        ctx.orders = by_row, by_word
        empty_ND = W_VD.new_empty(n_rows, W_VD.shape[1])
        return _gathered(empty_ND, W_VD, amount_P, by_row, by_word.id_P, None)

    @staticmethod
    def backward(ctx, grad_ND):  # type: ignore[no-untyped-def]
        amount_P, W_VD = ctx.saved_tensors
        by_row, by_word = ctx.orders
        grad_ND, grad_P, grad_VD = _rows(grad_ND), None, None
        if ctx.needs_input_grad[0]:
            grad_P = _forward(grad_ND, W_VD, None, by_row.id_P.contiguous(), by_word.id_P.contiguous())
        if ctx.needs_input_grad[1]:
            grad_VD = _gathered(W_VD, grad_ND, amount_P, by_word, by_row.id_P, None)
        return grad_P, grad_VD, None, None, None


def row_sums(amount_P: Tensor, W_VD: Tensor, by_row: Order, by_word: Order, n_rows: int) -> Tensor:
    """Σ amount · W[word] over the pairs of each row [N, D], differentiable in both."""
    sum_ND: Tensor = _RowSums.apply(amount_P, W_VD, by_row, by_word, n_rows)  # type: ignore[no-untyped-call]
    return sum_ND


class _PairLogits(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h_NH, E_VH, e_V, by_position, by_word):  # type: ignore[no-untyped-def]
        h_NH, E_VH = _rows(h_NH), _rows(E_VH)
        ctx.save_for_backward(h_NH, E_VH)
        ctx.orders = by_position, by_word
        ctx.has_bias = e_V is not None
        return _forward(h_NH, E_VH, e_V, by_position.id_P.contiguous(), by_word.id_P.contiguous())

    @staticmethod
    def backward(ctx, grad_P):  # type: ignore[no-untyped-def]
        h_NH, E_VH = ctx.saved_tensors
        by_position, by_word = ctx.orders
        grad_P = grad_P.contiguous()
        by_h, by_E, by_e = ctx.needs_input_grad[:3]
        grad_h = grad_E = grad_e = None
        if by_E or by_e:
            grad_e = E_VH.new_zeros(len(E_VH), dtype=torch.float32) if ctx.has_bias else None
            grad_E = _gathered(E_VH, h_NH, grad_P, by_word, by_position.id_P, grad_e)
        if by_h:
            grad_h = _gathered(h_NH, E_VH, grad_P, by_position, by_word.id_P, None)
        return grad_h, grad_E, grad_e, None, None


def pair_logits(h_NH: Tensor, E_VH: Tensor, e_V: Tensor | None, by_position: Order, by_word: Order) -> Tensor:
    """The logits of chosen (position, word) pairs in float32, differentiable in h, E and e."""
    z_P: Tensor = _PairLogits.apply(h_NH, E_VH, e_V, by_position, by_word)  # type: ignore[no-untyped-call]
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
    like_KH: Tensor, rows_MH: Tensor, grad_P: Tensor, by_key: Order, other_P: Tensor, out_e: Tensor | None
) -> Tensor:
    """Σ over the pairs of each key of grad · rows[other], [K, H] in the dtype of `like_KH`."""
    H = like_KH.shape[1]
    out_KH = torch.zeros(like_KH.shape, dtype=like_KH.dtype, device=like_KH.device)
    if len(grad_P):
        key, order, end = by_key.groups
        step, widest = (LONG_P, LONG_H) if len(grad_P) > LONG * len(like_KH) else (SHORT_P, SHORT_H)
        tile = _tile(H, widest)
        _sums[(len(key), triton.cdiv(H, tile))](
            grad_P, order, key, end, other_P.contiguous(), rows_MH, out_KH,
            out_KH if out_e is None else out_e, rows_MH.stride(0),
            H=H, BIASED=out_e is not None, BP=step, BH=tile,
        )  # fmt: skip
    return out_KH


def _rows(rows_NH: Tensor) -> Tensor:
    """The same rows, each without gaps."""
    return rows_NH if rows_NH.stride(-1) == 1 else rows_NH.contiguous()


def _tile(H: int, largest: int) -> int:
    return min(largest, int(triton.next_power_of_2(H)))
