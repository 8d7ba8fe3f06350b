"""Soft circuits on a GPU, or interpreted on a CPU: the masks and gradients of the formula."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from splade.circuits.core import circuit_mask, circuit_size
from splade.models.pooling import one_source
from splade.models.state import SparseRows
from tests.kernels.interpreted import DEVICE

kernel = pytest.importorskip("splade.kernels.triton.circuits")

LEAST = 1e-6


def draw(counts: list[int], seed: int) -> tuple[SparseRows, Tensor]:
    """Rows of so many pairs, a third of them closed, and amounts of which some are equal."""
    maker = torch.Generator().manual_seed(seed)
    row_P = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    word_P = torch.cat([torch.randperm(400, generator=maker)[:n].sort().values for n in counts])
    value_P = torch.rand(len(row_P), generator=maker) * (torch.rand(len(row_P), generator=maker) > 0.3)
    amount_P = torch.randn(len(row_P), generator=maker)
    amount_P = torch.where(torch.rand(len(row_P), generator=maker) > 0.8, amount_P.round(), amount_P)
    columns = (row_P, word_P, value_P, value_P, torch.zeros_like(row_P))
    rows = one_source(*(column.to(DEVICE) for column in columns), len(counts), 400)
    return rows, amount_P.to(DEVICE)


def ours(rows: SparseRows, amount_P: Tensor, fraction: float, temperature: float = 0.1) -> Tensor:
    bounds_N1 = rows.bounds_N1
    return kernel.circuit_mask(
        amount_P, rows.value_P, rows.row_P, rows.word_P, bounds_N1, fraction, temperature, LEAST
    )


@pytest.mark.parametrize("fraction", [0.0, 0.07, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("counts", [[5, 0, 1, 70], [200, 3, 129], [0, 0], [128, 64]])
def test_masks_and_gradients_are_those_of_the_formula(counts: list[int], fraction: float) -> None:
    rows, amount_P = draw(counts, seed=len(counts))
    masks, slopes = [], []
    # in float64 the formula is run in plain torch on every device
    for of, dtype in ((ours, torch.float32), (plainly, torch.float64)):
        leaf_P = amount_P.to(dtype).requires_grad_()
        mask_P = of(rows, leaf_P, fraction)
        weight_P = torch.linspace(-1, 2, len(leaf_P), device=DEVICE, dtype=dtype)
        slopes.append(torch.autograd.grad((mask_P * weight_P).sum(), leaf_P)[0].double())
        masks.append(mask_P.double())
    torch.testing.assert_close(masks[0], masks[1], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(slopes[0], slopes[1], atol=1e-3, rtol=1e-3)


def plainly(rows: SparseRows, amount_P: Tensor, fraction: float) -> Tensor:
    return circuit_mask(rows, amount_P, fraction, 0.1)


@pytest.mark.parametrize("fraction", [0.07, 0.1, 0.3, 1 / 3, 0.7])
def test_sizes_are_those_of_the_host_for_every_number_of_words(fraction: float) -> None:
    """k is found by the threshold: where amounts are 1, 2, … it lies between the kth and the next."""
    for active in (1, 3, 10, 100, 300):
        rows, _ = draw([active], seed=active)
        rows = rows.with_values(torch.ones_like(rows.value_P))
        amount_P = torch.arange(active, 0, -1, device=DEVICE).float()
        k = int(circuit_size(torch.tensor(active), fraction))
        assert int((ours(rows, amount_P, fraction) > 0.5).sum()) == k


def test_rows_without_open_pairs_have_no_circuit_and_no_gradient() -> None:
    rows, amount_P = draw([4, 6], seed=1)
    closed = rows.with_values(torch.zeros_like(rows.value_P))
    amount_P.requires_grad_()
    mask_P = ours(closed, amount_P, 0.1)
    mask_P.sum().backward()
    assert not mask_P.any()
    assert amount_P.grad is not None
    assert not amount_P.grad.any()
