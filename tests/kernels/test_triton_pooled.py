"""The pooled scan on a GPU, or interpreted on a CPU, finds the reference's pairs, ties and all."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from splade.kernels import Pairs, reference
from tests.kernels.interpreted import DEVICE
from tests.kernels.test_reference import triples

kernel = pytest.importorskip("splade.kernels.triton.pooled")
tiles = pytest.importorskip("splade.kernels.triton.tiles")

TILE = tiles.Blocks(words=32, positions=16, k=16, warps=4, stages=2, group=2)
DTYPES = [torch.float32, torch.bfloat16, torch.float16]


def draw(B: int, L: int, H: int, W: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """(h, E, e, valid, floor) of small integers: sums are exact in every dtype, and equal logits abound."""
    maker = torch.Generator().manual_seed(seed)
    h_BLH, E_WH, e_W, floor_W = (
        torch.randint(-2, 3, shape, generator=maker).float() for shape in ((B, L, H), (W, H), (W,), (W,))
    )
    valid_BL = torch.rand(B, L, generator=maker) > 0.3
    tensors = [h_BLH.to(dtype), E_WH.to(dtype), e_W, valid_BL, floor_W + 12.5]
    return [tensor.to(DEVICE) for tensor in tensors]


def assert_as_the_reference(tensors: list[Tensor], blocks: tiles.Blocks = TILE) -> Pairs:
    found = kernel.scan_pooled(*tensors, blocks)
    assert triples(found) == triples(reference.scan_pooled(*tensors))
    return found


@pytest.mark.parametrize("dtype", DTYPES)
def test_pairs_are_the_references_in_every_dtype(dtype: torch.dtype) -> None:
    found = assert_as_the_reference(draw(2, 19, 24, 40, dtype=dtype))
    assert 4 < len(found.row_P) < 70


@pytest.mark.parametrize("shape", [(3, 1, 5, 7), (1, 16, 16, 32), (1, 33, 23, 65), (0, 4, 8, 6)])
def test_odd_and_empty_shapes(shape: tuple[int, int, int, int]) -> None:
    h, E, e, valid, floor = draw(*shape, seed=1)
    assert_as_the_reference([h, E, e, valid, floor - 16])


def test_a_dictionary_without_words_has_no_pairs() -> None:
    assert not len(kernel.scan_pooled(*draw(2, 3, 8, 0), TILE).row_P)


def test_documents_without_a_valid_position_have_no_pairs() -> None:
    h, E, e, valid, floor = draw(3, 5, 8, 9)
    valid[:] = True
    valid[1] = False
    found = assert_as_the_reference([h, E, e, valid, torch.full_like(floor, -50.0)])
    assert set(found.row_P.tolist()) == {0, 2}
    valid[:] = False
    assert not len(assert_as_the_reference([h, E, e, valid, torch.full_like(floor, -50.0)]).row_P)


def test_the_first_of_equal_positions_wins_across_tiles_whatever_its_sign() -> None:
    h, E, e, valid, floor = draw(1, 40, 8, 12, seed=2)
    h[:] = h[:, :1]  # every position is equal
    valid[:] = True
    valid[0, :17] = False  # the first tile has none
    found = assert_as_the_reference([h, E, e, valid, torch.full_like(floor, float("-inf"))])
    assert found.position_P.unique().tolist() == [17]
    assert len(found.word_P) == 12


def test_nan_and_infinite_logits_are_judged_as_in_the_reference() -> None:
    h, E, e, valid, floor = draw(2, 18, 8, 20, seed=3)
    valid[:] = True
    h[0, 17, 0], E[:, 0] = float("nan"), 1.0
    assert set(assert_as_the_reference([h, E, e, valid, floor - 12]).row_P.tolist()) == {1}
    h[0, 17, 0] = float("inf")
    found = assert_as_the_reference([h, E, e, valid, floor - 12])
    assert set(found.position_P[found.row_P == 0].tolist()) == {17}
    floor[3], floor[4], floor[5], e[6] = float("nan"), float("inf"), float("-inf"), float("-inf")
    assert not {3, 4, 6} & set(assert_as_the_reference([h, E, e, valid, floor - 12]).word_P.tolist())


def test_what_stands_at_masked_positions_changes_no_pair() -> None:
    h, E, e, valid, floor = draw(2, 18, 8, 20, seed=4)
    loud = torch.where(valid[..., None], h, float("nan"))
    assert triples(kernel.scan_pooled(loud, E, e, valid, floor, TILE)) == triples(
        assert_as_the_reference([h, E, e, valid, floor])
    )


def test_non_contiguous_inputs_give_the_same_pairs() -> None:
    h, E, e, valid, floor = draw(2, 9, 8, 20, seed=5)
    strided = [h.mT.contiguous().mT, E.mT.contiguous().mT, e, valid.mT.contiguous().mT, floor]
    assert not any(strided[i].is_contiguous() for i in (0, 1, 3))
    assert triples(kernel.scan_pooled(*strided, TILE)) == triples(
        reference.scan_pooled(h, E, e, valid, floor)
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_errs_no_more_than_eager(dtype: torch.dtype) -> None:
    """Against float32 logits of the same operands: by how much a reported position misses the best one."""
    torch.manual_seed(6)
    h, E, e = torch.randn(2, 20, 64).to(dtype), torch.randn(40, 64).to(dtype), torch.randn(40)
    valid, floor = torch.rand(2, 20) > 0.2, torch.full((40,), 12.0)
    truth_BLW = (h.float() @ E.float().T + e).masked_fill(~valid[..., None], float("-inf"))
    tensors = [tensor.to(DEVICE) for tensor in (h, E, e, valid, floor)]
    slack = 4 * torch.finfo(dtype).eps * 12
    errors, best_BW = {}, truth_BLW.amax(1)
    for name, scan in (("kernel", kernel.scan_pooled), ("eager", reference.scan_pooled)):
        found = Pairs(
            *(column.cpu() for column in (scan(*tensors, TILE) if name == "kernel" else scan(*tensors)))
        )
        here_P = truth_BLW.flatten(0, 1)[found.position_P, found.word_P]
        errors[name] = float((best_BW[found.row_P, found.word_P] - here_P).max())
        missed_BW = best_BW > 12
        missed_BW[found.row_P, found.word_P] = False
        if name == "kernel":
            assert not missed_BW.any()
            assert best_BW[found.row_P, found.word_P].min() > 12 - slack - 1e-4
    assert errors["kernel"] <= min(errors["eager"], 1e-5) + 1e-5
