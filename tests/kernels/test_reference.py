"""The scans find exactly the pairs that brute force finds, whatever the shapes, ties and masks."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from splade.kernels import Pairs, pair_logits, pool_max, reference, scan_licensed, scan_pooled, scan_positions
from tests.tiny import Sizes

SEEDS = st.integers(0, 2**16)
CHUNKS = st.sampled_from([1, 7, 40, 1 << 22])


def draw(seed: int, B: int, L: int, H: int, W: int, ties: bool = False) -> tuple[Tensor, ...]:
    """(h, E, e, valid, floor); with `ties` all numbers are small integers, so that equal logits abound."""
    torch.manual_seed(seed)
    h_BLH, E_WH, e_W, floor_W = (torch.randn(shape) for shape in ((B, L, H), (W, H), (W,), (W,)))
    if ties:
        h_BLH, E_WH, e_W, floor_W = (tensor.round() for tensor in (h_BLH, E_WH, e_W, floor_W))
        floor_W = floor_W + 0.5
    return h_BLH, E_WH, e_W, torch.rand(B, L) > 0.3, floor_W


def triples(pairs: Pairs) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in pairs), strict=True))


def brute_pooled(
    h_BLH: Tensor, E_WH: Tensor, e_W: Tensor, valid_BL: Tensor, floor_W: Tensor
) -> list[tuple[int, ...]]:
    """Read word by word and position by position."""
    found = []
    for b, h_LH in enumerate(h_BLH):
        z_LW = h_LH @ E_WH.T + e_W
        for j in range(len(E_WH)):
            here = [(-float(z_LW[i, j]), i) for i in range(len(h_LH)) if valid_BL[b, i]]
            if here and -min(here)[0] > floor_W[j]:
                found.append((b, j, b * len(h_LH) + min(here)[1]))
    return found


@given(SEEDS, st.integers(0, 3), st.integers(1, 5), st.integers(1, 9), CHUNKS)
def test_pooled_scan_finds_the_first_best_position_of_every_word_above_its_floor(
    seed: int, B: int, L: int, W: int, chunk: int
) -> None:
    tensors = draw(seed, B, L, 3, W, ties=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "CHUNK_ELEMENTS", chunk)
        assert triples(scan_pooled(*tensors)) == brute_pooled(*tensors)


@given(SEEDS, st.integers(0, 6), st.integers(1, 9), CHUNKS)
def test_position_scan_finds_every_pair_above_its_floor(seed: int, N: int, W: int, chunk: int) -> None:
    h_1NH, E_WH, e_W, _, floor_W = draw(seed, 1, N, 3, W, ties=True)
    rows, words = (h_1NH[0] @ E_WH.T + e_W > floor_W).nonzero(as_tuple=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "CHUNK_ELEMENTS", chunk)
        found = scan_positions(h_1NH[0], E_WH, e_W, floor_W)
    assert triples(found) == triples(Pairs(rows, words, rows))


@given(SEEDS, st.integers(0, 6), st.integers(1, 9), CHUNKS)
def test_licensed_scan_is_the_position_scan_cut_to_the_licences(
    seed: int, N: int, W: int, chunk: int
) -> None:
    h_1NH, E_WH, e_W, _, floor_W = draw(seed, 1, N, 3, W, ties=True)
    licence_NK = torch.stack([torch.randperm(W + 2)[:4] - 2 for _ in range(N)]) if N else torch.zeros(0, 4)
    licence_NK = licence_NK.long().clamp(min=-1)
    everything = triples(scan_positions(h_1NH[0], E_WH, e_W, floor_W))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "CHUNK_ELEMENTS", chunk)
        found = triples(scan_licensed(h_1NH[0], E_WH, e_W, licence_NK, floor_W))
    assert found == [pair for pair in everything if pair[1] in licence_NK[pair[0]].tolist()]


def test_rows_without_a_valid_position_have_no_pairs() -> None:
    h_BLH, E_WH, e_W, valid_BL, _ = draw(0, 3, 4, 5, 6)
    valid_BL[:] = True
    valid_BL[1] = False
    pairs = scan_pooled(h_BLH, E_WH, e_W, valid_BL, torch.full((6,), -50.0))
    assert set(pairs.row_P.tolist()) == {0, 2}


def test_what_stands_at_masked_positions_changes_no_pair() -> None:
    h_BLH, E_WH, e_W, valid_BL, floor_W = draw(1, 3, 6, 5, 20)
    loud_BLH = torch.where(valid_BL[..., None], h_BLH, float("nan"))
    before, after = (scan_pooled(h, E_WH, e_W, valid_BL, floor_W) for h in (h_BLH, loud_BLH))
    assert triples(before) == triples(after)


def test_non_contiguous_inputs_give_the_same_pairs() -> None:
    h_BLH, E_WH, e_W, valid_BL, floor_W = draw(2, 3, 6, 5, 20, ties=True)
    strided = [tensor.mT.contiguous().mT for tensor in (h_BLH, E_WH, valid_BL)]
    assert not any(tensor.is_contiguous() for tensor in strided)
    again = scan_pooled(strided[0], strided[1], e_W, strided[2], floor_W)
    assert triples(again) == triples(scan_pooled(h_BLH, E_WH, e_W, valid_BL, floor_W))


def test_bf16_scan_misses_no_pair_clearly_above_its_floor() -> None:
    h_BLH, E_WH, e_W, valid_BL, _ = draw(3, 4, 16, 64, 200)
    low_h, low_E = h_BLH.bfloat16(), E_WH.bfloat16()
    floor_W = torch.full((200,), 12.0)
    exact = set(triples(scan_pooled(low_h.float(), low_E.float(), e_W, valid_BL, floor_W)))
    found = {pair[:2] for pair in triples(scan_pooled(low_h, low_E, e_W, valid_BL, floor_W))}
    assert exact
    assert {pair[:2] for pair in exact} <= found


def test_pooled_scan_holds_no_more_logits_than_a_chunk_or_one_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """With more positions than a chunk has elements, words are scanned one by one."""
    h_BLH, E_WH, e_W, valid_BL, floor_W = draw(4, 8, 32, 4, 100)
    for chunk in (64, 1024):
        monkeypatch.setattr(reference, "CHUNK_ELEMENTS", chunk)
        with Sizes() as sizes:
            scan_pooled(h_BLH, E_WH, e_W, valid_BL, floor_W)
        assert sizes.largest <= max(chunk, h_BLH.numel())


@given(SEEDS, st.integers(0, 40))
def test_pool_max_keeps_the_largest_value_and_the_first_of_equals(seed: int, P: int) -> None:
    torch.manual_seed(seed)
    cells = torch.randperm(12 * 4)[:P]  # a pair is one (position, word); 12 positions in 3 documents
    position_P, word_P = cells // 4, cells % 4
    value_P = torch.randint(0, 3, (len(cells),)).float()
    document_of = torch.arange(12) // 4
    kept = pool_max(Pairs(position_P, word_P, position_P), value_P, document_of).tolist()
    best: dict[tuple[int, int], tuple[float, int, int]] = {}
    for p in range(len(cells)):
        key = (int(document_of[position_P[p]]), int(word_P[p]))
        best[key] = min(best.get(key, (9.0, 0, 0)), (-float(value_P[p]), int(position_P[p]), p))
    assert kept == [best[key][2] for key in sorted(best)]


@given(SEEDS, st.booleans(), st.sampled_from([1, 3, 1 << 16]))
def test_pair_logits_and_their_gradients_are_those_of_the_dense_product(
    seed: int, with_bias: bool, chunk: int
) -> None:
    h_1NH, E_VH, e_V, _, _ = draw(seed, 1, 5, 4, 7)
    leaves = [h_1NH[0], E_VH, e_V][: 3 if with_bias else 2]
    at, word = torch.randint(0, 5, (9,)), torch.randint(0, 7, (9,))
    weight_P = torch.randn(9) * (torch.rand(9) > 0.5)
    for leaf in leaves:
        leaf.requires_grad_()
    dense_P = torch.nn.functional.linear(*leaves)[at, word]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "PAIR_CHUNK", chunk)
        sparse_P = pair_logits(leaves[0], E_VH, e_V if with_bias else None, at, word)
        ours = torch.autograd.grad(sparse_P, leaves, weight_P)
    torch.testing.assert_close(sparse_P, dense_P)
    for mine, theirs in zip(ours, torch.autograd.grad(dense_P, leaves, weight_P), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-5)


def test_pair_logits_of_no_pairs_are_empty_and_still_have_a_gradient() -> None:
    h_NH, E_VH = torch.randn(3, 4, requires_grad=True), torch.randn(5, 4)
    none = torch.empty(0, dtype=torch.long)
    pair_logits(h_NH, E_VH, None, none, none).sum().backward()
    assert h_NH.grad is not None
    assert not h_NH.grad.any()


def test_pair_logits_are_float32_products_of_bf16_inputs() -> None:
    h_NH, E_VH, e_V = torch.randn(4, 64).bfloat16(), torch.randn(9, 64).bfloat16(), torch.randn(9)
    at, word = torch.randint(0, 4, (30,)), torch.randint(0, 9, (30,))
    exact_P = (h_NH.double() @ E_VH.double().T + e_V)[at, word]
    z_P = pair_logits(h_NH, E_VH, e_V, at, word)
    assert z_P.dtype == torch.float32
    torch.testing.assert_close(z_P.double(), exact_P, atol=1e-5, rtol=1e-5)


def test_backward_touches_only_pairs_with_a_gradient() -> None:
    P, H, live = 5000, 32, 7
    h_NH, E_VH = torch.randn(6, H, requires_grad=True), torch.randn(50, H, requires_grad=True)
    z_P = pair_logits(h_NH, E_VH, None, torch.randint(0, 6, (P,)), torch.randint(0, 50, (P,)))
    grad_P = torch.zeros(P)
    grad_P[torch.randperm(P)[:live]] = 1.0
    with Sizes() as sizes:
        z_P.backward(grad_P)
    assert sizes.largest <= max(P, 50 * H)
    assert all(shape[0] <= live for shape in sizes.shapes if len(shape) == 2 and shape[0] not in (6, 50))
