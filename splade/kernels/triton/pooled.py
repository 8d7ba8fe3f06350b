"""The pooled scan on a GPU: one pass of the matrix product, of which only surviving pairs leave the chip.

1. A program multiplies a tile of words by a tile of positions of one document. Words are the rows, so a
   word's largest logit is found mostly within a thread, at one operation a logit.
2. Only where a word of the tile exceeds its bound, which is rare, is its first best position looked for, and
   the pair (logit, position) merged into the document's entry as one 64-bit integer: larger logits first,
   then earlier positions. The largest integer does not depend on the order of merging, so repeats are equal.
3. Tiles without a valid position are never visited: a first, small program lists the others.
4. Entries that were merged into are the pairs. They are counted in parts, and the counts' running sum says
   where each part writes its own: pairs come out sorted by document and word, without a sort.

As in the reference, a word with a NaN at a valid position of a document has no pair there, and infinite
logits are ordered like others. Logits are summed in float32 and never rounded, so in bf16 and fp16 the
position of a pair may be better than the reference's, which compares rounded logits.

Legend: B documents, L positions, H hidden size, W words scanned, T tiles of positions, P surviving pairs.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from splade.kernels.reference import Pairs, _no_pairs
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

POSITION_BITS = 31
PART_W = 1024  # words that a program counts, and writes the pairs of
LISTED = 64  # tiles looked at together for a valid position

_LAST = tl.constexpr((1 << POSITION_BITS) - 1)
_POISON = tl.constexpr((1 << 63) - 1)  # a NaN: larger than every logit


@triton.jit
def _larger(x, y):  # type: ignore[no-untyped-def]
    return tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _key(z, position):  # type: ignore[no-untyped-def]
    """(z, position) as an integer above 0 that is larger for larger z, then for earlier positions."""
    bits = z.to(tl.int32, bitcast=True)
    ordered = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).to(tl.int64) + 2147483648
    return tl.where(z == z, (ordered << 31) | (_LAST - position), _POISON)


# fmt: off
@triton.jit(do_not_specialize=["L", "T", "tiles"])
def _list(valid, tile_T, n_tiles, L, T, tiles, BL: tl.constexpr, BT: tl.constexpr):  # type: ignore[no-untyped-def]
    """The tiles that have a valid position, in order, and their number."""
    count = 0
    for first in range(0, T, BT):
        t = first + tl.arange(0, BT)
        at = (t % tiles)[:, None] * BL + tl.arange(0, BL)[None, :]
        inside = (t < T)[:, None] & (at < L)
        spoken = tl.load(valid + (t // tiles).to(tl.int64)[:, None] * L + at, mask=inside, other=0)
        some = (tl.max(spoken.to(tl.int32), 1) > 0).to(tl.int32)
        tl.store(tile_T + count + tl.cumsum(some, 0) - 1, t, mask=some > 0)
        count += tl.sum(some, 0)
    tl.store(n_tiles, count)


@triton.jit(do_not_specialize=["W", "L", "tiles"])
def _best(  # type: ignore[no-untyped-def]
    h, E, e, floor, valid, tile_T, n_tiles, key, W, L, tiles, H: tl.constexpr, BW: tl.constexpr,
    BL: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, SLACK: tl.constexpr,
):
    n_words = tl.cdiv(W, BW)
    n_others = tl.load(n_tiles)
    for item in tl.range(tl.program_id(0), n_words * n_others, tl.num_programs(0), flatten=True):
        w_tile, t = place(item, n_words, n_others, GROUP)
        tile = tl.load(tile_T + t)
        b = tile // tiles
        start = (tile % tiles) * BL
        z = product(E, h, w_tile * BW, b * L + start, H, BW, BL, BK)

        w = w_tile * BW + tl.arange(0, BW)
        at = start + tl.arange(0, BL)
        spoken = tl.load(valid + b.to(tl.int64) * L + at, mask=at < L, other=0) != 0
        z = tl.where(spoken[None, :], z, float("-inf"))
        best = tl.reduce(z, 1, _larger)
        above = bound_of(floor, e, w, W, SLACK)
        hit = (w < W) & ((best > above) | (best != best))
        if tl.max(hit.to(tl.int32), 0) > 0:
            first = tl.min(tl.where(z == best[:, None], at[None, :], L), 1)
            found = _key(best, first.to(tl.int64))
        else:
            found = tl.zeros((BW,), dtype=tl.int64)
        tl.atomic_max(key + b.to(tl.int64) * W + w, found, mask=hit, sem="relaxed")
# fmt: on


@triton.jit
def _pairs_of(key, part, W, parts, BW: tl.constexpr):  # type: ignore[no-untyped-def]
    """Document, words and entries of a part, and which entries are pairs."""
    row = part // parts
    word = (part % parts) * BW + tl.arange(0, BW)
    entry = tl.load(key + row.to(tl.int64) * W + word, mask=word < W, other=0)
    return row, word, entry, (entry > 0) & (entry < _POISON)


@triton.jit(do_not_specialize=["W", "parts"])
def _count(key, count, W, parts, BW: tl.constexpr):  # type: ignore[no-untyped-def]
    part = tl.program_id(0)
    _, _, _, found = _pairs_of(key, part, W, parts, BW)
    tl.store(count + part, tl.sum(found.to(tl.int64), 0))


@triton.jit(do_not_specialize=["W", "L", "parts"])
def _write(key, end, row_P, word_P, position_P, W, L, parts, BW: tl.constexpr):  # type: ignore[no-untyped-def]
    part = tl.program_id(0)
    row, word, entry, found = _pairs_of(key, part, W, parts, BW)
    before = tl.load(end + part - 1, mask=part > 0, other=0)
    p = before + tl.cumsum(found.to(tl.int64), 0) - 1
    tl.store(row_P + p, row.to(tl.int64), mask=found)
    tl.store(word_P + p, word.to(tl.int64), mask=found)
    tl.store(position_P + p, row.to(tl.int64) * L + _LAST - (entry & _LAST), mask=found)


def best_keys(
    h_BLH: Tensor, E_WH: Tensor, e_W: Tensor, valid_BL: Tensor, floor_W: Tensor, blocks: Blocks | None = None
) -> Tensor:
    """Integers [B, W]: 0, or a document's best (logit, position) where it exceeds the word's floor."""
    (B, L, H), W = h_BLH.shape, len(E_WH)
    blocks = fitting(blocks or blocks_for(h_BLH.dtype, L), h_BLH.dtype, h_BLH.device)
    h_NH, E_WH, valid_BL = aligned(h_BLH.reshape(B * L, H)), aligned(E_WH), valid_BL.contiguous()
    tiles = -(-L // blocks.positions)
    tile_T = torch.empty(B * tiles + 1, dtype=torch.int32, device=h_BLH.device)
    n_tiles = tile_T[-1:]
    key_BW = torch.zeros(B, W, dtype=torch.int64, device=h_BLH.device)
    _list[(1,)](valid_BL, tile_T, n_tiles, L, B * tiles, tiles, BL=blocks.positions, BT=LISTED)
    _best[(programs(h_BLH.device) * blocks.programs,)](
        operand(h_NH, blocks.positions, blocks.k), operand(E_WH, blocks.words, blocks.k),
        e_W.float().contiguous(), floor_W.contiguous(), valid_BL, tile_T, n_tiles, key_BW, W, L, tiles,
        H=h_NH.shape[1], BW=blocks.words, BL=blocks.positions, BK=blocks.k, GROUP=blocks.group,
        SLACK=slack(h_BLH.dtype), num_warps=blocks.warps, num_stages=blocks.stages,
    )  # fmt: skip
    return key_BW


def pairs_of(key_BW: Tensor, length: int) -> Pairs:
    """The entries that are pairs, by document and then word; waits once, for their number."""
    B, W = key_BW.shape
    parts = -(-W // PART_W)
    count_T = torch.empty(B * parts, dtype=torch.int64, device=key_BW.device)
    _count[(B * parts,)](key_BW, count_T, W, parts, BW=PART_W)
    end_T = count_T.cumsum(0)
    row_P, word_P, position_P = torch.empty(3, int(end_T[-1]), dtype=torch.int64, device=key_BW.device)
    if len(row_P):
        _write[(B * parts,)](key_BW, end_T, row_P, word_P, position_P, W, length, parts, BW=PART_W)
    return Pairs(row_P, word_P, position_P)


@torch.no_grad()
def scan_pooled(
    h_BLH: Tensor,
    E_WH: Tensor,
    e_W: Tensor,
    valid_BL: Tensor,
    floor_W: Tensor,
    blocks: Blocks | None = None,
) -> Pairs:
    """Pairs whose largest logit over a document's valid positions exceeds the word's floor."""
    L = h_BLH.shape[1]
    if h_BLH.shape[0] * L * len(E_WH) == 0:
        return _no_pairs(h_BLH.device)
    return pairs_of(best_keys(h_BLH, E_WH, e_W, valid_BL, floor_W, blocks), L)
