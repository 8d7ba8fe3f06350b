"""The licensed scan on a GPU: each row of h against its own few words, and nothing that grows with V.

1. A program holds one row of h, a tile at a time, gathers the decoder rows of a block of its licences, and
   sums their products in float32. No [N, K, H] is made, and E is read as it is stored, uncopied.
2. It writes which licences survive, [N, K] of single bytes; their number is what the host waits for.
3. The survivors are sorted by row and then word; of equal pairs the earlier licence stays first.

Legend: N rows of h, H hidden size, V vocabulary, K licensed words of a row, P surviving pairs.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from splade.kernels.reference import Pairs, _no_pairs, _slack

BLOCK_K, BLOCK_H = 16, 256


@triton.jit(do_not_specialize=["K"])
def _survivors(  # type: ignore[no-untyped-def]
    h, E, e, licence, floor, alive, K, h_row, E_row, H: tl.constexpr, BK: tl.constexpr, BH: tl.constexpr
):
    n = tl.program_id(0).to(tl.int64)
    slot = tl.program_id(1) * BK + tl.arange(0, BK)
    inside = slot < K
    word = tl.load(licence + n * K + slot, mask=inside, other=-1).to(tl.int64)
    licensed = word >= 0
    products = tl.zeros((BK, BH), dtype=tl.float32)
    for start in range(0, H, BH):
        k = start + tl.arange(0, BH)
        mask = licensed[:, None] & (k < H)[None, :]
        h_tile = tl.load(h + n * h_row + k, mask=k < H, other=0.0).to(tl.float32)
        E_tile = tl.load(E + word[:, None] * E_row + k[None, :], mask=mask, other=0.0).to(tl.float32)
        products += h_tile[None, :] * E_tile
    z = tl.sum(products, axis=1) + tl.load(e + word, mask=licensed, other=0.0).to(tl.float32)
    passes = licensed & (z > tl.load(floor + word, mask=licensed, other=0.0).to(tl.float32))
    tl.store(alive + n * K + slot, passes.to(tl.int8), mask=inside)


@torch.no_grad()
def scan_licensed(h_NH: Tensor, E_VH: Tensor, e_V: Tensor, licence_NK: Tensor, floor_V: Tensor) -> Pairs:
    """Pairs of every row of h among its licensed words only (-1: no licence); costs O(K), not O(V)."""
    (N, H), K = h_NH.shape, licence_NK.shape[1]
    if N * K == 0:
        return _no_pairs(h_NH.device)
    h_NH, E_VH = (rows if rows.stride(-1) == 1 else rows.contiguous() for rows in (h_NH, E_VH))
    licence_NK = licence_NK.contiguous()
    floor_V = _slack(floor_V, h_NH.dtype)
    alive_NK = torch.empty(N, K, dtype=torch.int8, device=h_NH.device)
    _survivors[(N, triton.cdiv(K, BLOCK_K))](
        h_NH, E_VH, e_V.contiguous(), licence_NK, floor_V, alive_NK, K, h_NH.stride(0), E_VH.stride(0),
        H=H, BK=BLOCK_K, BH=min(BLOCK_H, triton.next_power_of_2(H)),
    )  # fmt: skip
    row_P, slot_P = alive_NK.nonzero(as_tuple=True)
    word_P = licence_NK[row_P, slot_P].long()
    order = torch.argsort(row_P * len(E_VH) + word_P, stable=True)
    row_P = row_P[order]
    return Pairs(row_P, word_P[order], row_P)
