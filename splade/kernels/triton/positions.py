"""The scan of every position on a GPU: logits leave the chip as one bit each.

1. A program multiplies a tile of rows of h by a tile of words, compares with the words' bounds where the
   sums are, and writes one bit a logit: 1/32 of the bytes that float32 logits would need.
2. Rows are counted, and the counts' running sum says where each row's pairs begin.
3. One program a row turns its bits into pairs, lowest word first. So pairs come out sorted, without a sort,
   and every repeat is the same.

The head is not folded into this pass, although a tile of s could be multiplied by the head's weights before
it leaves the chip: a head that must add up exactly reads float32 logits, which are made for the surviving
pairs only, and the survivors are what a prediction is explained with.

As in the reference, a NaN survives nowhere, and infinite logits are compared like others. Logits are summed
in float32 and never rounded. Rows are taken in parts of at most BITMAP_BYTES of bits.

Legend: N rows of h, H hidden size, W words scanned, G = W / 32 integers of bits, P surviving pairs.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from splade.kernels.reference import Pairs, _concatenate, _no_pairs
from splade.kernels.triton.tiles import (
    Blocks,
    aligned,
    blocks_for,
    bound_of,
    fitting,
    operand,
    place,
    product,
    programs,
    slack,
)

BITMAP_BYTES = 1 << 28  # held at once: 40,000 rows of 50,000 words
BLOCK_G = 512  # integers of bits that a program reads at once


# fmt: off
@triton.jit(do_not_specialize=["N", "W", "G"])
def _bits(  # type: ignore[no-untyped-def]
    h, E, e, floor, bits, N, W, G, H: tl.constexpr, BW: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    GROUP: tl.constexpr, SLACK: tl.constexpr,
):
    n_words = tl.cdiv(W, BW)
    n_others = tl.cdiv(N, BN)
    for item in tl.range(tl.program_id(0), n_words * n_others, tl.num_programs(0), flatten=True):
        w_tile, tile = place(item, n_words, n_others, GROUP)
        z = product(h, E, tile * BN, w_tile * BW, H, BN, BW, BK)

        w = w_tile * BW + tl.arange(0, BW)
        above = bound_of(floor, e, w, W, SLACK)
        hit = tl.reshape((z > above[None, :]).to(tl.int32), (BN, BW // 32, 32))
        word_bits = tl.sum(hit << tl.arange(0, 32)[None, None, :], axis=2)
        n = tile * BN + tl.arange(0, BN)
        g = w_tile * (BW // 32) + tl.arange(0, BW // 32)
        inside = (n < N)[:, None] & (g < G)[None, :]
        tl.store(bits + n.to(tl.int64)[:, None] * G + g[None, :], word_bits, mask=inside)
# fmt: on


@triton.jit
def _popcount(x):  # type: ignore[no-untyped-def]
    """How many of 32 bits are set: sums of neighbours, then of pairs, then of bytes."""
    x = x.to(tl.uint32, bitcast=True)
    x = x - ((x >> 1) & 0x55555555)
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F
    return ((x * 0x01010101) >> 24).to(tl.int32)


@triton.jit(do_not_specialize=["G"])
def _count(bits, count, G, BG: tl.constexpr):  # type: ignore[no-untyped-def]
    n = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BG,), dtype=tl.int32)
    for start in range(0, G, BG):
        g = start + tl.arange(0, BG)
        total += _popcount(tl.load(bits + n * G + g, mask=g < G, other=0))
    tl.store(count + n, tl.sum(total, 0).to(tl.int64))


@triton.jit(do_not_specialize=["G", "first_row"])
def _expand(bits, end, row, word, G, first_row, BG: tl.constexpr):  # type: ignore[no-untyped-def]
    n = tl.program_id(0).to(tl.int64)
    p = tl.load(end + n - 1, mask=n > 0, other=0)
    for start in range(0, G, BG):
        g = start + tl.arange(0, BG)
        left = tl.load(bits + n * G + g, mask=g < G, other=0)
        count = _popcount(left)
        at = p + tl.cumsum(count, 0) - count
        for _ in range(tl.max(count, 0)):  # the lowest set bit of every integer that has one
            lowest = left & -left
            tl.store(word + at, (g * 32 + _popcount(lowest - 1)).to(tl.int64), mask=left != 0)
            tl.store(row + at, n + first_row, mask=left != 0)
            at += 1
            left ^= lowest
        p += tl.sum(count, 0)


def bitmap(h_NH: Tensor, E_WH: Tensor, e_W: Tensor, floor_W: Tensor, blocks: Blocks | None = None) -> Tensor:
    """Bits [N, G] of words whose logit exceeds their floor; h and E as `aligned` returns them."""
    N, W = len(h_NH), len(E_WH)
    blocks = fitting(blocks or blocks_for(h_NH.dtype), h_NH.dtype, h_NH.device)
    bits_NG = torch.empty(N, -(-W // 32), dtype=torch.int32, device=h_NH.device)
    _bits[(programs(h_NH.device) * blocks.programs,)](
        operand(h_NH, blocks.positions, blocks.k), operand(E_WH, blocks.words, blocks.k),
        e_W, floor_W, bits_NG, N, W, bits_NG.shape[1],
        H=h_NH.shape[1], BW=blocks.words, BN=blocks.positions, BK=blocks.k, GROUP=blocks.group,
        SLACK=slack(h_NH.dtype), num_warps=blocks.warps, num_stages=blocks.stages,
    )  # fmt: skip
    return bits_NG


def expand(bits_NG: Tensor, first_row: int = 0) -> Pairs:
    """The set bits as pairs, by row and then word; waits once, for their number."""
    N, G = bits_NG.shape
    count_N = torch.empty(N, dtype=torch.int64, device=bits_NG.device)
    _count[(N,)](bits_NG, count_N, G, BG=BLOCK_G)
    end_N = count_N.cumsum(0)
    row_P = torch.empty(int(end_N[-1]), dtype=torch.int64, device=bits_NG.device)
    word_P = torch.empty_like(row_P)
    if len(row_P):
        _expand[(N,)](bits_NG, end_N, row_P, word_P, G, first_row, BG=BLOCK_G)
    return Pairs(row_P, word_P, row_P)


@torch.no_grad()
def scan_positions(
    h_NH: Tensor, E_WH: Tensor, e_W: Tensor, floor_W: Tensor, blocks: Blocks | None = None
) -> Pairs:
    """Pairs of every row of h, unpooled."""
    if len(h_NH) * len(E_WH) == 0:
        return _no_pairs(h_NH.device)
    h_NH, E_WH, e_W, floor_W = aligned(h_NH), aligned(E_WH), e_W.float().contiguous(), floor_W.contiguous()
    height = max(1, BITMAP_BYTES // (4 * -(-len(E_WH) // 32)))
    parts = range(0, len(h_NH), height)
    found = [expand(bitmap(h_NH[n : n + height], E_WH, e_W, floor_W, blocks), n) for n in parts]
    return _concatenate(found) if len(found) > 1 else found[0]
