"""The scans at real shapes on a real GPU, against float32 logits of the same operands."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from splade.kernels import Pairs, reference, scan_pooled, scan_positions
from tests.kernels.test_reference import triples

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

DTYPES = [torch.bfloat16, torch.float16, torch.float32]
SHAPES = [(8, 512, 768, 50368), (3, 130, 312, 30522), (5, 61, 384, 32001), (2, 2048, 1024, 50368)]


class Case(NamedTuple):
    h_BLH: Tensor
    E_WH: Tensor
    e_W: Tensor
    valid_BL: Tensor
    floor_W: Tensor

    @property
    def slack(self) -> float:
        """Between the floor and the lowest logit that may survive, with rounding of sums."""
        return float(4 * torch.finfo(self.h_BLH.dtype).eps * self.floor_W.abs().max()) + 2e-3

    def truth(self, b: int) -> Tensor:
        """Logits [L, W] of one document in float64, at valid positions."""
        z_LW = self.h_BLH[b].double() @ self.E_WH.double().T + self.e_W
        return z_LW.masked_fill(~self.valid_BL[b][:, None], float("-inf"))


def draw(B: int, L: int, H: int, W: int, dtype: torch.dtype, whole: bool = False) -> Case:
    """Random operands; `whole` makes them small integers, whose sums are exact and often equal."""
    maker = torch.Generator("cuda").manual_seed(B * L + W)

    def random(*shape: int) -> Tensor:
        if whole:
            return torch.randint(-1, 2, shape, generator=maker, device="cuda").float()
        return torch.randn(shape, generator=maker, device="cuda")

    h_BLH, E_WH, e_W = random(B, L, H).to(dtype), random(W, H).to(dtype), random(W)
    length_B = torch.randint(1, L + 1, (B,), generator=maker, device="cuda")
    valid_BL = torch.arange(L, device="cuda") < length_B[:, None]
    valid_BL &= torch.rand(B, L, generator=maker, device="cuda") > 0.05
    spread = (2 / 3 if whole else 1.0) * H**0.5
    return Case(h_BLH, E_WH, e_W, valid_BL, torch.full((W,), 4.2 * spread, device="cuda").round() + 0.5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_pooled_pairs_are_those_of_float64_to_rounding(
    shape: tuple[int, int, int, int], dtype: torch.dtype
) -> None:
    case = draw(*shape, dtype)
    found = scan_pooled(*case)
    L, floor = shape[1], float(case.floor_W[0])
    for b in range(min(3, shape[0])):
        truth_LW = case.truth(b)
        best_W = truth_LW.amax(0)
        word_P = found.word_P[found.row_P == b]
        at_P = found.position_P[found.row_P == b] - b * L
        assert (best_W[word_P] - truth_LW[at_P, word_P] <= 2e-3).all()
        assert (best_W[word_P] > floor - case.slack).all()
        missed_W = best_W > floor
        missed_W[word_P] = False
        assert not missed_W.any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_pooled_pairs_of_exact_sums_are_the_references(dtype: torch.dtype) -> None:
    """Sums stay below 257, so that bf16 holds them."""
    case = draw(4, 300, 256, 20000, dtype, whole=True)._replace(e_W=torch.zeros(20000, device="cuda"))
    assert triples(scan_pooled(*case)) == triples(reference.scan_pooled(*case))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES[1:])
def test_position_pairs_are_those_of_float64_to_rounding(
    shape: tuple[int, int, int, int], dtype: torch.dtype
) -> None:
    case = draw(*shape, dtype)
    found = scan_positions(case.h_BLH.flatten(0, 1), case.E_WH, case.e_W, case.floor_W)
    L, floor = shape[1], float(case.floor_W[0])
    z_LW = case._replace(valid_BL=torch.ones_like(case.valid_BL)).truth(1)
    seen_LW = torch.zeros_like(z_LW, dtype=torch.bool)
    here_P = found.row_P // L == 1
    seen_LW[found.row_P[here_P] - L, found.word_P[here_P]] = True
    assert seen_LW[z_LW > floor + 2e-3].all()
    assert not seen_LW[z_LW < floor - case.slack].any()
    assert seen_LW.any()
    order_P = found.row_P * shape[3] + found.word_P
    assert (order_P[1:] > order_P[:-1]).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_repeats_are_equal_to_the_bit(dtype: torch.dtype) -> None:
    case = draw(*SHAPES[1], dtype)
    rows = (case.h_BLH.flatten(0, 1), case.E_WH, case.e_W, case.floor_W)
    for scan, operands in ((scan_pooled, case), (scan_positions, rows)):
        first = scan(*operands)
        for _ in range(3):
            again: Pairs = scan(*operands)
            assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


def test_logits_are_never_kept() -> None:
    """At most a bit a logit for positions, and 64 bits a document and word for documents."""
    B, L, H, W = 16, 512, 768, 50368
    case = draw(B, L, H, W, torch.bfloat16)
    for scan, operands, bits in (
        (scan_pooled, case, 64 * B * W),
        (scan_positions, (case.h_BLH.flatten(0, 1), case.E_WH, case.e_W, case.floor_W), B * L * W),
    ):
        scan(*operands)
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        found = scan(*operands)
        spent = torch.cuda.max_memory_allocated() - before
        assert spent <= 1.6 * bits / 8 + 100 * len(found.row_P) + (8 << 20)
