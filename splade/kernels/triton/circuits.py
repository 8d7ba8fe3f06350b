"""Soft circuits on a GPU: three programs in place of the sorts and the many small steps of the formula.

1. A pair's rank is how many pairs of its row come before it: all are compared, a tile at a time. Rows have
   hundreds of pairs, so that this costs less than one launch of a sort.
2. A program for each row counts its open pairs, finds its threshold, and writes its masks.
3. Backward, another writes the gradients of its amounts; the threshold's part goes to the two at its edge.

Legend: N rows, P pairs.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK_P = 64  # pairs ranked by a program
TILE_P = 128  # pairs of a row looked at together
FRACTION_BITS = 44  # a fraction as an integer: exact to a hair for up to 2^18 words


@triton.jit
def _magnitude(amount, value, p, inside):  # type: ignore[no-untyped-def]
    """|amount| of open pairs; shut ones stand behind all of them."""
    is_open = tl.load(value + p, mask=inside, other=0.0) > 0
    return tl.where(is_open, tl.abs(tl.load(amount + p, mask=inside, other=0.0)), -1.0)


@triton.jit(do_not_specialize=["P"])
def _rank(amount, value, row, word, bounds, rank, P, BP: tl.constexpr, BQ: tl.constexpr):  # type: ignore[no-untyped-def]
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    inside = p < P
    n = tl.load(row + p, mask=inside, other=-1)
    mine = _magnitude(amount, value, p, inside)
    j = tl.load(word + p, mask=inside, other=0)
    start = tl.load(bounds + tl.load(row + tl.program_id(0) * BP)).to(tl.int32)
    last = tl.load(bounds + 1 + tl.load(row + tl.minimum(tl.program_id(0) * BP + BP, P) - 1)).to(tl.int32)
    before = tl.zeros((BP,), dtype=tl.int32)
    while start < last:
        q = start + tl.arange(0, BQ)
        there = q < last
        n_q = tl.load(row + q, mask=there, other=-2)
        a_q = _magnitude(amount, value, q, there)
        j_q = tl.load(word + q, mask=there, other=0)
        ahead = (a_q[None, :] > mine[:, None]) | (
            (a_q[None, :] == mine[:, None]) & (j_q[None, :] < j[:, None])
        )
        before += tl.sum((ahead & (n_q[None, :] == n[:, None])).to(tl.int32), axis=1)
        start += BQ
    tl.store(rank + p, before, mask=inside)


@triton.jit(do_not_specialize=["fraction", "temperature", "least"])
def _mask(  # type: ignore[no-untyped-def]
    amount, value, rank, bounds, mask, size, threshold, fraction, temperature, least,
    BITS: tl.constexpr, BP: tl.constexpr,
):  # fmt: skip
    n = tl.program_id(0)
    first, last = tl.load(bounds + n).to(tl.int32), tl.load(bounds + n + 1).to(tl.int32)
    active = tl.sum(tl.zeros((BP,), dtype=tl.int64), axis=0)
    start = first
    while start < last:
        p = start + tl.arange(0, BP)
        active += tl.sum((tl.load(value + p, mask=p < last, other=0.0) > 0).to(tl.int64), axis=0)
        start += BP
    # less a hair before rounding up, as on the host
    one = tl.full((), 1, tl.int64) << BITS
    k = tl.maximum((active * fraction - one // 1000000000 + one - 1) >> BITS, 1)
    t = 0.0
    start = first
    while start < last:
        p = start + tl.arange(0, BP)
        there = p < last
        is_open = tl.load(value + p, mask=there, other=0.0) > 0
        r = tl.load(rank + p, mask=there, other=-5)
        edge = is_open & ((r == k - 1) | (r == k))
        t += tl.sum(tl.where(edge, tl.abs(tl.load(amount + p, mask=there, other=0.0)) / 2, 0.0), axis=0)
        start += BP
    width = temperature * tl.maximum(t, least)
    start = first
    while start < last:
        p = start + tl.arange(0, BP)
        there = p < last
        is_open = tl.load(value + p, mask=there, other=0.0) > 0
        soft = tl.sigmoid((tl.abs(tl.load(amount + p, mask=there, other=0.0)) - t) / width)
        tl.store(mask + p, tl.where(is_open, soft, 0.0), mask=there)
        start += BP
    tl.store(size + n, k)
    tl.store(threshold + n, t)


@triton.jit(do_not_specialize=["temperature", "least"])
def _slope(  # type: ignore[no-untyped-def]
    grad, amount, value, rank, mask, size, threshold, bounds, out, temperature, least, BP: tl.constexpr
):
    n = tl.program_id(0)
    first, last = tl.load(bounds + n).to(tl.int32), tl.load(bounds + n + 1).to(tl.int32)
    k, t = tl.load(size + n), tl.load(threshold + n)
    width = temperature * tl.maximum(t, least)
    narrows = tl.where(t >= least, temperature, 0.0)
    by_t = 0.0
    start = first
    while start < last:
        p = start + tl.arange(0, BP)
        there = p < last
        m = tl.load(mask + p, mask=there, other=0.0)
        pull = tl.load(grad + p, mask=there, other=0.0) * m * (1 - m) / width
        x = (tl.abs(tl.load(amount + p, mask=there, other=0.0)) - t) / width
        by_t -= tl.sum(tl.where(m > 0, pull * (1 + x * narrows), 0.0), axis=0)
        start += BP
    start = first
    while start < last:
        p = start + tl.arange(0, BP)
        there = p < last
        m = tl.load(mask + p, mask=there, other=0.0)
        a = tl.load(amount + p, mask=there, other=0.0)
        r = tl.load(rank + p, mask=there, other=-5)
        is_open = tl.load(value + p, mask=there, other=0.0) > 0
        pull = tl.load(grad + p, mask=there, other=0.0) * m * (1 - m) / width
        pull = tl.where(m > 0, pull, 0.0) + tl.where(is_open & ((r == k - 1) | (r == k)), by_t / 2, 0.0)
        sign = (a > 0).to(tl.float32) - (a < 0).to(tl.float32)
        tl.store(out + p, sign * pull, mask=there)
        start += BP


class _CircuitMask(torch.autograd.Function):
    @staticmethod
    def forward(ctx, amount_P, value_P, row_P, word_P, bounds_N1, fraction, temperature, least):  # type: ignore[no-untyped-def]
        amount_P, value_P, row_P, word_P = (x.contiguous() for x in (amount_P, value_P, row_P, word_P))
        N, P = len(bounds_N1) - 1, len(row_P)
        rank_P = torch.empty(P, dtype=torch.int32, device=row_P.device)
        mask_P = torch.empty(P, dtype=torch.float32, device=row_P.device)
        size_N = torch.empty(N, dtype=torch.int64, device=row_P.device)
        threshold_N = torch.empty(N, dtype=torch.float32, device=row_P.device)
        if P:
            blocks = (triton.cdiv(P, BLOCK_P),)
            _rank[blocks](amount_P, value_P, row_P, word_P, bounds_N1, rank_P, P, BP=BLOCK_P, BQ=TILE_P)
            share = round(fraction * (1 << FRACTION_BITS))
            _mask[(N,)](
                amount_P, value_P, rank_P, bounds_N1, mask_P, size_N, threshold_N, share, temperature, least,
                BITS=FRACTION_BITS, BP=TILE_P,
            )  # fmt: skip
        ctx.save_for_backward(amount_P, value_P, rank_P, mask_P, size_N, threshold_N, bounds_N1)
        ctx.numbers = temperature, least
        return mask_P

    @staticmethod
    def backward(ctx, grad_P):  # type: ignore[no-untyped-def]
        *saved, bounds_N1 = ctx.saved_tensors
        out_P = torch.zeros_like(saved[0])
        if len(out_P):
            _slope[(len(bounds_N1) - 1,)](
                grad_P.contiguous(), *saved, bounds_N1, out_P, *ctx.numbers, BP=TILE_P
            )
        return out_P, *[None] * 7


def circuit_mask(
    amount_P: Tensor,
    value_P: Tensor,
    row_P: Tensor,
    word_P: Tensor,
    bounds_N1: Tensor,
    fraction: float,
    temperature: float,
    least: float,
) -> Tensor:
    """σ((|a| - t) / (temperature · t)) of open pairs, t of their row; differentiable in a, `amount_P`."""
    mask_P: Tensor = _CircuitMask.apply(  # type: ignore[no-untyped-call]
        amount_P, value_P.detach(), row_P, word_P, bounds_N1, fraction, temperature, least
    )
    return mask_P
