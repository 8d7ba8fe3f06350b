"""The scan of every position on a GPU, or interpreted on a CPU, finds the reference's pairs in its order."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from splade.kernels import Pairs, reference
from tests.kernels.interpreted import DEVICE
from tests.kernels.test_reference import triples

kernel = pytest.importorskip("splade.kernels.triton.positions")
tiles = pytest.importorskip("splade.kernels.triton.tiles")

TILE = tiles.Blocks(words=32, positions=16, k=16, warps=4, stages=2, group=2)
DTYPES = [torch.float32, torch.bfloat16, torch.float16]


@pytest.fixture(autouse=True)
def _few_bits_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "BLOCK_G", 2)


def draw(N: int, H: int, W: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """(h, E, e, floor) of small integers: sums are exact in every dtype, and many logits equal a floor."""
    maker = torch.Generator().manual_seed(seed)
    h_NH, E_WH, e_W, floor_W = (
        torch.randint(-2, 3, shape, generator=maker).float() for shape in ((N, H), (W, H), (W,), (W,))
    )
    return [tensor.to(DEVICE) for tensor in (h_NH.to(dtype), E_WH.to(dtype), e_W, floor_W + 9)]


def assert_as_the_reference(tensors: list[Tensor], blocks: tiles.Blocks = TILE) -> Pairs:
    found = kernel.scan_positions(*tensors, blocks)
    assert triples(found) == triples(reference.scan_positions(*tensors))
    return found


@pytest.mark.parametrize("dtype", DTYPES)
def test_pairs_are_the_references_in_every_dtype(dtype: torch.dtype) -> None:
    found = assert_as_the_reference(draw(5, 24, 70, dtype=dtype))
    assert 5 < len(found.row_P) < 100


@pytest.mark.parametrize("shape", [(1, 5, 1), (3, 23, 33), (17, 16, 20), (0, 8, 6), (2, 8, 0)])
def test_odd_and_empty_shapes(shape: tuple[int, int, int]) -> None:
    assert_as_the_reference(draw(*shape, seed=1))


def test_every_bit_of_an_integer_is_its_own_word() -> None:
    """All words of one row and none of the next; bit 31 is the sign."""
    h, E, e, floor = draw(2, 8, 64, seed=2)
    floor[:] = float("-inf")
    h[1] = float("nan")
    found = assert_as_the_reference([h, E, e, floor])
    assert found.word_P.tolist() == list(range(64))
    assert not found.row_P.any()


def test_infinite_logits_and_floors_are_judged_as_in_the_reference() -> None:
    h, E, e, floor = draw(3, 8, 20, seed=3)
    h[1, 0], E[:, 0] = float("inf"), 1.0
    floor[3], floor[4], floor[5], e[6] = float("nan"), float("inf"), float("-inf"), float("-inf")
    found = assert_as_the_reference([h, E, e, floor])
    assert len(found.word_P[found.row_P == 1]) == 20 - 3


def test_non_contiguous_inputs_give_the_same_pairs() -> None:
    h, E, e, floor = draw(4, 8, 20, seed=4)
    strided = [h.mT.contiguous().mT, E.mT.contiguous().mT]
    assert not any(tensor.is_contiguous() for tensor in strided)
    assert triples(kernel.scan_positions(*strided, e, floor, TILE)) == triples(
        reference.scan_positions(h, E, e, floor)
    )


def test_rows_taken_in_parts_are_numbered_through(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = draw(5, 8, 40, seed=5)
    monkeypatch.setattr(kernel, "BITMAP_BYTES", 2 * 2 * 4)  # two rows of two integers
    assert_as_the_reference(tensors)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_decides_by_the_float32_logit(dtype: torch.dtype) -> None:
    torch.manual_seed(6)
    h, E, e = torch.randn(6, 64).to(dtype), torch.randn(40, 64).to(dtype), torch.randn(40)
    floor = torch.full((40,), 12.0)
    truth_NW = h.float() @ E.float().T + e
    found = kernel.scan_positions(*(tensor.to(DEVICE) for tensor in (h, E, e, floor)), TILE)
    seen_NW = torch.zeros(6, 40, dtype=torch.bool)
    seen_NW[found.row_P.cpu(), found.word_P.cpu()] = True
    edge = 12 - 4 * torch.finfo(dtype).eps * 12
    assert torch.equal(
        seen_NW[(truth_NW - edge).abs() > 1e-4], (truth_NW > edge)[(truth_NW - edge).abs() > 1e-4]
    )
    assert seen_NW[truth_NW > 12].all()
