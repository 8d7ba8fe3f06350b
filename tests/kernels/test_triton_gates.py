"""Backward passes of gates on a GPU, or interpreted on a CPU: those of plain torch."""

from __future__ import annotations

import pytest
import torch

from splade import kernels
from splade.models.layers.activation import GatedJumpReLU
from tests.kernels.interpreted import DEVICE

pytest.importorskip("splade.kernels.triton.gates")


@pytest.mark.parametrize("truncate", [0.5, 4.0, float("inf")])
@pytest.mark.parametrize("method", ["forward", "opened"])
def test_gradients_are_those_of_plain_torch(
    method: str, truncate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = GatedJumpReLU(3, epsilon=0.3, truncate=truncate)
    maker = torch.Generator().manual_seed(0)
    z_P = torch.randn(700, generator=maker)
    z_P[:2] = torch.tensor([float("inf"), float("-inf")])
    found = []
    for plain in (True, False):
        monkeypatch.setattr(kernels, "has_surrogates", lambda *_, plain=plain: not plain)
        leaves = [x.to(DEVICE).requires_grad_() for x in (z_P.clone(), torch.rand(700, generator=maker) * 0)]
        out_P = getattr(gate, method)(*leaves)
        weight_P = torch.linspace(-1, 1, 700, device=DEVICE)
        found.append(torch.autograd.grad(out_P, leaves, weight_P))
    for mine, expected in zip(*found, strict=True):
        torch.testing.assert_close(mine, expected, atol=1e-6, rtol=1e-5)
        assert mine.any()
