"""The vocabulary head's kernels, one public function each; every implementation agrees with `reference`.

Tensors of float32, float16 or bfloat16 on an NVIDIA GPU of compute capability 8.0 or later go to the Triton
kernels, where Triton is installed. Everything else runs in plain torch.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from splade.kernels import reference
from splade.kernels.reference import Pairs, pool_max

__all__ = ["Pairs", "pair_logits", "pool_max", "scan_licensed", "scan_pooled", "scan_positions"]

DTYPES = (torch.float32, torch.float16, torch.bfloat16)


@cache
def _has_kernels(device: torch.device) -> bool:
    """Whether the Triton kernels run on a device."""
    if device.type != "cuda" or torch.version.cuda is None or find_spec("triton") is None:
        return False
    return torch.cuda.get_device_capability(device) >= (8, 0)


def _fast(*operands: Tensor) -> bool:
    return all(x.dtype in DTYPES and _has_kernels(x.device) for x in operands)


def scan_pooled(h_BLH: Tensor, E_WH: Tensor, e_W: Tensor, valid_BL: Tensor, floor_W: Tensor) -> Pairs:
    """Pairs whose largest logit over a document's valid positions exceeds the word's floor."""
    if not _fast(h_BLH, E_WH):
        return reference.scan_pooled(h_BLH, E_WH, e_W, valid_BL, floor_W)
    from splade.kernels.triton import pooled

    return pooled.scan_pooled(h_BLH, E_WH, e_W, valid_BL, floor_W)


def scan_positions(h_NH: Tensor, E_WH: Tensor, e_W: Tensor, floor_W: Tensor) -> Pairs:
    """Pairs of every row of h, unpooled."""
    if not _fast(h_NH, E_WH):
        return reference.scan_positions(h_NH, E_WH, e_W, floor_W)
    from splade.kernels.triton import positions

    return positions.scan_positions(h_NH, E_WH, e_W, floor_W)


def scan_licensed(h_NH: Tensor, E_VH: Tensor, e_V: Tensor, licence_NK: Tensor, floor_V: Tensor) -> Pairs:
    """Pairs of every row of h among its licensed words only (-1: no licence); costs O(K), not O(V)."""
    if not _fast(h_NH, E_VH):
        return reference.scan_licensed(h_NH, E_VH, e_V, licence_NK, floor_V)
    from splade.kernels.triton import licensed

    return licensed.scan_licensed(h_NH, E_VH, e_V, licence_NK, floor_V)


def pair_logits(h_NH: Tensor, E_VH: Tensor, e_V: Tensor | None, position_P: Tensor, word_P: Tensor) -> Tensor:
    """The logits of chosen (position, word) pairs, differentiable in h, E and e."""
    if not _fast(h_NH, E_VH):
        return reference.pair_logits(h_NH, E_VH, e_V, position_P, word_P)
    from splade.kernels.triton import pairs

    return pairs.pair_logits(h_NH, E_VH, e_V, position_P, word_P)
