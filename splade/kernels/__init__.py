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
from splade.kernels.order import Order
from splade.kernels.reference import Pairs, pool_max

__all__ = [
    "Order",
    "Pairs",
    "circuit_mask",
    "has_surrogates",
    "jump_backward",
    "pair_logits",
    "pool_max",
    "ranks_in_pairs",
    "row_sums",
    "scan_licensed",
    "scan_pooled",
    "scan_positions",
    "step_backward",
    "take",
]

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
LONGEST_ROW = 1 << 12  # pairs of an average row beyond which sorting costs less than comparing


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


def pair_logits(
    h_NH: Tensor,
    E_VH: Tensor,
    e_V: Tensor | None,
    position_P: Tensor,
    word_P: Tensor,
    by_position: Order | None = None,
    by_word: Order | None = None,
) -> Tensor:
    """The logits of chosen (position, word) pairs, differentiable in h, E and e.

    Orders of the positions and words, where they are known, save the backward pass a sort each.
    """
    if not _fast(h_NH, E_VH):
        return reference.pair_logits(h_NH, E_VH, e_V, position_P, word_P)
    from splade.kernels.triton import pairs

    return pairs.pair_logits(h_NH, E_VH, e_V, by_position or Order(position_P), by_word or Order(word_P))


def row_sums(amount_P: Tensor, W_VD: Tensor, by_row: Order, by_word: Order, bounds_N1: Tensor) -> Tensor:
    """Σ amount · W[word] over the pairs of each row [N, D], differentiable in both."""
    if not _fast(amount_P, W_VD):
        return reference.row_sums(amount_P, W_VD, by_word.id_P, bounds_N1)
    from splade.kernels.triton import pairs

    return pairs.row_sums(amount_P, W_VD, by_row, by_word, len(bounds_N1) - 1)


def take(table_V: Tensor, by_word: Order) -> Tensor:
    """The entry of each pair's word, its gradient summed in the order of pairs."""
    if not _fast(table_V):
        return table_V[by_word.id_P]
    from splade.kernels.triton import pairs

    return pairs.take(table_V, by_word)


def has_surrogates(*operands: Tensor) -> bool:
    """Whether `jump_backward` and `step_backward` are there for such operands, all of one shape."""
    return _fast(*operands) and len({x.shape for x in operands}) == 1


def jump_backward(
    grad: Tensor, z: Tensor, theta: Tensor, epsilon: float, truncate: float
) -> tuple[Tensor, Tensor]:
    """The gradients of z and θ of a jump: those of `splade.models.layers.activation`, on a GPU alone."""
    from splade.kernels.triton import gates

    return gates.backward(grad, z, theta, epsilon, truncate, jump=True)


def step_backward(
    grad: Tensor, z: Tensor, theta: Tensor, epsilon: float, truncate: float
) -> tuple[Tensor, Tensor]:
    """The same of a step."""
    from splade.kernels.triton import gates

    return gates.backward(grad, z, theta, epsilon, truncate, jump=False)


def ranks_in_pairs(amount_P: Tensor, n_rows: int) -> bool:
    """Whether `circuit_mask` is there for such amounts: it compares every two pairs of a row."""
    return _fast(amount_P) and amount_P.dtype == torch.float32 and len(amount_P) <= LONGEST_ROW * n_rows


def circuit_mask(
    amount_P: Tensor,
    value_P: Tensor,
    by_row: Order,
    by_word: Order,
    bounds_N1: Tensor,
    fraction: float,
    temperature: float,
    least: float,
) -> Tensor:
    """The soft circuit masks of `splade.circuits.core`, differentiable in the amounts, on a GPU alone."""
    from splade.kernels.triton import circuits

    ids = by_row.id_P, by_word.id_P
    return circuits.circuit_mask(amount_P, value_P, *ids, bounds_N1, fraction, temperature, least)
