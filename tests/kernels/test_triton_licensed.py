"""The licensed scan on a GPU, or interpreted on a CPU, finds the reference's pairs in its order."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from splade.kernels import reference
from tests.kernels.interpreted import DEVICE
from tests.kernels.test_reference import triples

kernel = pytest.importorskip("splade.kernels.triton.licensed")


def draw(N: int, V: int, H: int, K: int, seed: int = 0) -> tuple[Tensor, ...]:
    """(h, E, e, licence, floor): small integers, so that sums are exact and many logits equal their floor."""
    maker = torch.Generator().manual_seed(seed)
    shapes = ((N, H), (V, H), (V,))
    h_NH, E_VH, e_V = (torch.randint(-2, 3, shape, generator=maker).float() for shape in shapes)
    licence_NK = torch.randint(-2, V, (N, K), generator=maker).clamp(min=-1)  # with duplicates, and gaps
    floor_V = torch.randint(-4, 5, (V,), generator=maker).float()
    return tuple(tensor.to(DEVICE) for tensor in (h_NH, E_VH, e_V, licence_NK, floor_V))


def brute(h: Tensor, E: Tensor, e: Tensor, licence: Tensor, floor: Tensor) -> list[tuple[int, ...]]:
    """Licence by licence, in float64."""
    z_NV, low_V = h.double() @ E.double().T + e.double(), reference._slack(floor, h.dtype)
    named = [(n, j) for n, words in enumerate(licence.tolist()) for j in words if j >= 0]
    return sorted((n, j, n) for n, j in named if z_NV[n, j] > low_V[j])


@pytest.mark.parametrize(
    ("N", "V", "H", "K"), [(9, 30, 23, 16), (3, 20, 312, 50), (5, 7, 1, 3), (1, 1, 8, 17), (6, 40, 64, 33)]
)
def test_pairs_are_those_above_their_floor_by_row_and_word(N: int, V: int, H: int, K: int) -> None:
    drawn = draw(N, V, H, K)
    found = triples(kernel.scan_licensed(*drawn))
    assert found == brute(*drawn) == triples(reference.scan_licensed(*drawn))


def test_there_is_something_to_find_and_something_to_refuse() -> None:
    drawn = draw(9, 30, 23, 16)
    assert 0 < len(brute(*drawn)) < int((drawn[3] >= 0).sum())


@pytest.mark.parametrize("h_dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("E_dtype", [torch.float32, torch.bfloat16])
def test_half_inputs_are_summed_in_float32(h_dtype: torch.dtype, E_dtype: torch.dtype) -> None:
    """Sums past the mantissa of the inputs: halves that were summed in their own type would miss a floor."""
    h, E, e, licence, _ = draw(6, 20, 40, 16)
    h, E = (h * 100).to(h_dtype), E.to(E_dtype)
    drawn = (h, E, e, licence, torch.full_like(e, 30.0))
    assert triples(kernel.scan_licensed(*drawn)) == brute(*drawn)


@pytest.mark.parametrize(("N", "K"), [(0, 16), (4, 0)])
def test_without_rows_or_licences_there_are_no_pairs(N: int, K: int) -> None:
    drawn = draw(N, 9, 8, K)
    assert triples(kernel.scan_licensed(*drawn)) == []


def test_without_any_licence_there_are_no_pairs() -> None:
    h, E, e, licence, floor = draw(4, 9, 8, 16)
    assert triples(kernel.scan_licensed(h, E, e, torch.full_like(licence, -1), floor - 1e9)) == []


def test_gaps_between_rows_and_columns_change_nothing() -> None:
    h, E, e, licence, floor = draw(5, 20, 23, 16)
    wide = torch.randn(5, 40, device=DEVICE)
    wide[:, :23] = h
    strided = (wide[:, :23], E.T.contiguous().T, e, licence.T.contiguous().T, floor)
    assert triples(kernel.scan_licensed(*strided)) == triples(kernel.scan_licensed(h, E, e, licence, floor))


def test_infinite_logits_pass_and_missing_numbers_do_not() -> None:
    """As in the reference; and a row that no licence names touches nothing."""
    h, E, e, licence, floor = draw(6, 12, 16, 8)
    h[:, 0] = 1.0
    E[3, 0], E[5, 0], E[7, 0] = float("inf"), float("-inf"), float("nan")
    licence[0] = torch.tensor([3, 5, 7, -1, 3, 0, 1, 2])
    licence[1:] = licence[1:].where(licence[1:] != 7, -1)
    drawn = (h, E, e, licence, floor)
    found = triples(kernel.scan_licensed(*drawn))
    assert found == triples(reference.scan_licensed(*drawn))
    assert [pair for pair in found if pair[0] == 0 and pair[1] in (3, 5, 7)] == [(0, 3, 0), (0, 3, 0)]


def test_licences_of_32_bits_give_pairs_of_64() -> None:
    h, E, e, licence, floor = draw(5, 20, 23, 16)
    pairs = kernel.scan_licensed(h, E, e, licence.int(), floor)
    assert {column.dtype for column in pairs} == {torch.long}
    assert triples(pairs) == triples(kernel.scan_licensed(h, E, e, licence, floor))
