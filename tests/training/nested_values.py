"""Nested values as optimisers give them, drawn at random, and what it means that two are the same."""

from __future__ import annotations

import math
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor

DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool)
SHAPES = ((), (0,), (3,), (2, 0, 3), (4, 3))


def tensor(dtype: torch.dtype, shape: tuple[int, ...], transposed: bool) -> Tensor:
    drawn = torch.randint(0, 100, shape).to(dtype)
    if dtype.is_floating_point and drawn.numel() > 1:
        drawn.view(-1)[:2] = torch.tensor([math.nan, -math.inf], dtype=dtype)
    return drawn.mT if transposed and drawn.ndim > 1 else drawn


plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6)
keys = st.text(max_size=4) | st.integers() | st.sampled_from(["$float", "$tensor", "$dict", "$$", "a.b", "1"])
tensors = st.builds(tensor, st.sampled_from(DTYPES), st.sampled_from(SHAPES), st.booleans())
nested = st.recursive(
    plain | tensors,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(keys, inner, max_size=4)
    ),
    max_leaves=12,
)


def same(a: Any, b: Any) -> bool:
    """Equal in type, order, dtype and bits; nan equals nan, 0.0 is not -0.0."""
    if isinstance(a, Tensor):
        return isinstance(b, Tensor) and a.dtype == b.dtype and a.shape == b.shape and bits(a) == bits(b)
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return same(list(a), list(b)) and same(list(a.values()), list(b.values()))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return repr(a) == repr(b)


def bits(value: Tensor) -> bytes:
    return value.contiguous().view(-1).view(torch.uint8).numpy().tobytes()
