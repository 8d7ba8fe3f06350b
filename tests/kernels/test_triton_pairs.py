"""Pair logits on a GPU, or interpreted on a CPU: exact to rounding, once for every shape, type and repeat."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from splade.kernels import reference
from splade.kernels.order import Order
from tests.kernels.interpreted import DEVICE

kernel = pytest.importorskip("splade.kernels.triton.pairs")

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
EPS = {dtype: torch.finfo(dtype).eps for dtype in DTYPES}


def draw(N: int, V: int, H: int, P: int, seed: int = 0) -> tuple[Tensor, ...]:
    """(h, E, e, position, word, weight of each pair), half of the weights 0; many pairs share a row."""
    maker = torch.Generator().manual_seed(seed)
    h_NH, E_VH, e_V = (torch.randn(shape, generator=maker) for shape in ((N, H), (V, H), (V,)))
    at_P, word_P = (torch.randint(0, size, (P,), generator=maker) for size in (N, V))
    weight_P = torch.randn(P, generator=maker) * (torch.rand(P, generator=maker) > 0.5)
    return tuple(tensor.to(DEVICE) for tensor in (h_NH, E_VH, e_V, at_P, word_P, weight_P))


def truth(h: Tensor, E: Tensor, e: Tensor, at: Tensor, word: Tensor, weight: Tensor) -> list[Tensor]:
    """Logits and gradients of h, E and e, by the dense product in float64."""
    leaves = [tensor.detach().double().requires_grad_() for tensor in (h, E, e)]
    z_P = torch.nn.functional.linear(*leaves)[at, word]
    return [z_P.detach(), *torch.autograd.grad(z_P, leaves, weight.double())]


def ours(h: Tensor, E: Tensor, e: Tensor, at: Tensor, word: Tensor, weight: Tensor) -> list[Tensor]:
    leaves = [tensor.detach().requires_grad_() for tensor in (h, E, e)]
    z_P = kernel.pair_logits(*leaves, Order(at), Order(word))
    return [z_P.detach(), *torch.autograd.grad(z_P, leaves, weight)]


@pytest.mark.parametrize(
    ("N", "V", "H", "P"), [(5, 7, 23, 40), (3, 4, 312, 9), (40, 1, 64, 33), (2, 9, 1, 8)]
)
def test_logits_and_gradients_are_those_of_the_dense_product(N: int, V: int, H: int, P: int) -> None:
    drawn = draw(N, V, H, P)
    for mine, exact in zip(ours(*drawn), truth(*drawn), strict=True):
        assert mine.dtype == torch.float32
        torch.testing.assert_close(mine.double(), exact, atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("h_dtype", DTYPES)
@pytest.mark.parametrize("E_dtype", DTYPES)
def test_half_inputs_lose_nothing_but_the_rounding_of_their_gradient(
    h_dtype: torch.dtype, E_dtype: torch.dtype
) -> None:
    """Logits are float32 products of the inputs as they are; a gradient is rounded once, to its own type."""
    h, E, *rest = draw(6, 8, 40, 60)
    drawn = (h.to(h_dtype), E.to(E_dtype), *rest)
    z_P, *grads = ours(*drawn)
    exact_P, *exact = truth(*drawn)
    assert z_P.dtype == torch.float32
    torch.testing.assert_close(z_P.double(), exact_P, atol=1e-5, rtol=1e-5)
    for grad, true, dtype in zip(grads, exact, (h_dtype, E_dtype, torch.float32), strict=True):
        assert grad.dtype == dtype
        torch.testing.assert_close(grad.double(), true, atol=1e-5, rtol=max(1e-5, EPS[dtype]))


def test_a_missing_bias_is_no_bias() -> None:
    h, E, _, at, word, _ = draw(4, 5, 8, 11)
    none_P, zero_P = (
        kernel.pair_logits(h, E, e, Order(at), Order(word)) for e in (None, torch.zeros(5, device=DEVICE))
    )
    assert torch.equal(none_P, zero_P)


def test_no_pairs_are_empty_and_still_have_a_gradient() -> None:
    h, E, e, *_ = draw(3, 5, 4, 1)
    none = torch.empty(0, dtype=torch.long, device=DEVICE)
    for grad in ours(h, E, e, none, none, torch.empty(0, device=DEVICE))[1:]:
        assert not grad.any()


def test_gaps_between_rows_and_columns_change_nothing() -> None:
    h, E, *rest = draw(6, 9, 23, 50)
    wide = torch.randn(6, 46, device=DEVICE)
    wide[:, :23] = h
    for strided in ((wide[:, :23], E), (h.T.contiguous().T, E.T.contiguous().T)):
        for mine, plain in zip(ours(*strided, *rest), ours(h, E, *rest), strict=True):
            assert torch.equal(mine, plain)


def test_infinite_and_missing_numbers_stay_where_the_reference_has_them() -> None:
    """A pair without a gradient takes nothing from an infinite row, where 0·∞ would be no number."""
    h, E, e, at, word, weight = draw(5, 6, 16, 60)
    h[1, 3], h[2, 5], E[4, 7] = float("inf"), float("nan"), float("-inf")
    weight[(at == 1) | (word == 4)] = 0.0
    weight[(at == 0).nonzero()[0]] = float("nan")
    leaves = [tensor.requires_grad_() for tensor in (h, E, e)]
    theirs_P = reference.pair_logits(*leaves, at, word)
    theirs = [theirs_P.detach(), *torch.autograd.grad(theirs_P, leaves, weight)]
    for mine, expected in zip(ours(h, E, e, at, word, weight), theirs, strict=True):
        torch.testing.assert_close(mine, expected, atol=1e-5, rtol=1e-5, equal_nan=True)
    assert theirs[2].isfinite().any(-1).all() or theirs[2].isnan().any()


@pytest.mark.parametrize("long", [0, 1000], ids=["steps for long groups", "steps for short groups"])
def test_a_group_longer_than_a_step_is_summed_whole_and_in_order(
    long: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every pair of one word and one position: the sums are exact integers, and repeats equal to the bit."""
    monkeypatch.setattr(kernel, "LONG", long)
    P = 2 * kernel.LONG_P + 3
    h, E, e, _, _, _ = draw(2, 3, 70, 1)
    one = torch.ones(P, dtype=torch.long, device=DEVICE)
    grad_h, grad_E, grad_e = ours(h.round(), E.round(), e, one, one, one.float())[1:]
    assert torch.equal(grad_E[1], P * h[1].round())
    assert torch.equal(grad_h[1], P * E[1].round())
    assert grad_e.tolist() == [0, P, 0]
    drawn = draw(4, 5, 40, 100)
    for first, again in zip(ours(*drawn), ours(*drawn), strict=True):
        assert torch.equal(first, again)


def test_what_needs_no_gradient_gets_none() -> None:
    h, E, e, at, word, weight = draw(4, 5, 8, 20)
    exact = truth(h, E, e, at, word, weight)
    h.requires_grad_()
    kernel.pair_logits(h, E, e, Order(at), Order(word)).backward(weight)
    assert E.grad is None
    assert h.grad is not None
    torch.testing.assert_close(h.grad.double(), exact[1], atol=1e-5, rtol=1e-5)


def test_sums_over_rows_and_their_gradients_are_those_of_the_dense_product() -> None:
    """Row 2 has no pairs; one row is longer than a step."""
    _, W, _, _, word, weight = draw(1, 6, 40, 90)
    row = torch.tensor([0] * 70 + [1] * 5 + [3] * 15, device=DEVICE)
    leaves = [weight.clone().requires_grad_(), W.clone().requires_grad_()]
    sum_ND = kernel.row_sums(*leaves, Order(row, is_sorted=True), Order(word), 4)
    exact = [x.detach().double().requires_grad_() for x in leaves]
    spread_NV = torch.zeros(4, 6, dtype=torch.float64, device=DEVICE)
    exact_ND = spread_NV.index_put((row, word), exact[0], accumulate=True) @ exact[1]
    torch.testing.assert_close(sum_ND.double(), exact_ND, atol=2e-5, rtol=2e-5)
    pull_ND = torch.randn(4, 40, device=DEVICE)
    grads = torch.autograd.grad(sum_ND, leaves, pull_ND)
    for mine, true in zip(grads, torch.autograd.grad(exact_ND, exact, pull_ND.double()), strict=True):
        torch.testing.assert_close(mine.double(), true, atol=2e-5, rtol=2e-5)


def test_what_is_taken_from_a_table_gives_its_gradient_back_word_by_word() -> None:
    table = torch.arange(5, device=DEVICE).float().requires_grad_()
    word = torch.tensor([3, 0, 3, 3, 4] * 60, device=DEVICE)
    taken_P = kernel.take(table, Order(word))
    assert torch.equal(taken_P, table[word])
    (grad,) = torch.autograd.grad(taken_P, table, torch.ones_like(taken_P))
    assert grad.tolist() == [60, 0, 0, 180, 60]
