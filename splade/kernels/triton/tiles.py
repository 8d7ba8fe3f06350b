"""What the two free-dictionary scans share: tiles of a matrix product, and how they cover a GPU.

1. Both operands are rows of length H, contiguous and aligned to 16 bytes, so that the copy engine of a GPU
   that has one can fetch a tile by its coordinates; on others Triton turns coordinates into addresses.
2. As many programs run as the GPU has multiprocessors, and each walks over many tiles in one flat loop, so
   that the next tile is being fetched while the last one is read.
3. Tiles are taken in groups of rows of E: the rows of h stay in the L2 cache, and E is read about once.

Shapes of tiles are fixed by dtype and length, never tuned at run time: a product that is summed in another
order may pick another of two nearly equal positions, and repeats must be equal to the bit.

Legend: R rows of an operand, H hidden size.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

ALIGNED_BYTES = 16  # of a row's start, as the copy engine demands
SPARE_BYTES = 16 << 10  # of shared memory, left for reductions
INTERPRETED_PROGRAMS = 3  # where there is no GPU to ask


class Blocks(NamedTuple):
    """The shape of a tile and how it is computed; `programs` is how many run on one multiprocessor."""

    words: int
    positions: int
    k: int
    warps: int
    stages: int
    group: int = 8
    programs: int = 1

    def bytes(self, dtype: torch.dtype) -> int:
        """Shared memory of one stage."""
        return (self.words + self.positions) * self.k * dtype.itemsize


SHORT = 64  # positions of a document, for which a narrower tile wastes less


def blocks_for(dtype: torch.dtype, length: int = SHORT + 1) -> Blocks:
    """Tiles as measured on an H200, for documents of so many positions or for positions of any."""
    positions = 64 if length <= SHORT else 128
    if dtype == torch.float32:
        return Blocks(words=128, positions=positions, k=32, warps=8, stages=3)
    return Blocks(words=256, positions=positions, k=64, warps=8, stages=4)


@cache
def _machine(device: torch.device) -> tuple[int, int]:
    """Multiprocessors, and bytes of shared memory a program may have."""
    found = triton.runtime.driver.active.utils.get_device_properties(device.index or 0)
    return int(found["multiprocessor_count"]), int(found["max_shared_mem"])


def fitting(blocks: Blocks, dtype: torch.dtype, device: torch.device) -> Blocks:
    """The same tiles with as many stages as the device's shared memory holds."""
    if device.type != "cuda":
        return blocks
    room = _machine(device)[1] - SPARE_BYTES
    return blocks._replace(stages=max(1, min(blocks.stages, room // (blocks.programs * blocks.bytes(dtype)))))


def programs(device: torch.device) -> int:
    """How many programs run at once, at one a multiprocessor."""
    return _machine(device)[0] if device.type == "cuda" else INTERPRETED_PROGRAMS


def aligned(x_RH: Tensor) -> Tensor:
    """`x_RH` itself where its rows are contiguous and aligned, else a copy padded with zeros."""
    step = ALIGNED_BYTES // x_RH.dtype.itemsize
    H = x_RH.shape[1]
    if x_RH.stride() == (H, 1) and H % step == 0 and x_RH.data_ptr() % ALIGNED_BYTES == 0:
        return x_RH
    padded = x_RH.new_zeros(len(x_RH), -(-H // step) * step)
    padded[:, :H] = x_RH
    return padded


def operand(x_RH: Tensor, rows: int, k: int) -> TensorDescriptor:
    """Tiles [rows, k] of an operand, for a kernel to fetch."""
    return TensorDescriptor.from_tensor(x_RH, [rows, k])


def slack(dtype: torch.dtype) -> float:
    """How far a logit summed here may fall short of its float32 value, relative to its floor.

    float32 products are made of three of the matrix unit's short ones, which loses its last bits.
    """
    return 64 * torch.finfo(dtype).eps if dtype == torch.float32 else 4 * torch.finfo(dtype).eps


@triton.jit
def place(item, n_words, n_others, GROUP: tl.constexpr):  # type: ignore[no-untyped-def]
    """(tile of words, tile of positions) of a program's item: a group of word tiles over all positions."""
    group = item // (GROUP * n_others)
    within = item % (GROUP * n_others)
    first = group * GROUP
    height = tl.minimum(n_words - first, GROUP)
    return first + within % height, within // height


# fmt: off
@triton.jit
def product(a, b, a_row, b_row, H: tl.constexpr, A: tl.constexpr, B: tl.constexpr, K: tl.constexpr):  # type: ignore[no-untyped-def]
    """a[a_row:][:A] @ b[b_row:][:B].T in float32."""
    z = tl.zeros((A, B), dtype=tl.float32)
    for k in range(0, H, K):
        z = tl.dot(a.load([a_row, k]), b.load([b_row, k]).T, z, input_precision="tf32x3")
    return z


@triton.jit
def bound_of(floor, e, w, W, SLACK: tl.constexpr):  # type: ignore[no-untyped-def]
    """What the product must exceed for a word's logit to pass its floor, rounding allowed for."""
    least = tl.load(floor + w, mask=w < W, other=float("inf"))
    bias = tl.load(e + w, mask=w < W, other=0.0)
    return least - SLACK * tl.abs(least) - bias
