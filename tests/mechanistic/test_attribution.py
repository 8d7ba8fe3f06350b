"""Contributions sum to the logit for every gate, pooling, head and honesty mode, and intervening agrees."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
import torch
from hypothesis import given
from torch import Tensor

from splade.mechanistic.attribution import (
    METHODS,
    Attribution,
    compute_active_slice_weff,
    compute_attribution_tensor,
    discrepancy,
    exact_logits,
    residual,
)
from splade.models.heads import HEADS
from splade.models.layers.activation import GATES
from splade.models.lexicon import HONESTY_MODES
from splade.models.materialised import rows_of
from splade.models.state import CircuitState
from tests.mechanistic.draws import NAMES, SEEDS, C, V, decide, draw_head, draw_state, labels_of
from tests.tiny import Sizes, tiny_batch, tiny_model, tiny_rows

HEAD_NAMES, SUMMING = sorted(HEADS), ("dla", "path")


def tiny_state(task: str = "classification", **kinds: object) -> CircuitState:
    model = tiny_model(task=task, **kinds)
    ids, mask = tiny_batch(model)
    with torch.no_grad():
        return model.decide(model.encode(ids, mask, mask.bool() if task == "tagging" else None))


def empty_logits(state: CircuitState) -> Tensor:
    rows = state.rows
    return decide(state.head, rows.where(torch.zeros_like(rows.open_P))).logits


@pytest.mark.parametrize("pooling", ["max", "attention"])
@pytest.mark.parametrize("honesty", HONESTY_MODES)
@pytest.mark.parametrize("gate", sorted(GATES))
def test_contributions_sum_to_the_logit_of_every_model(gate: str, honesty: str, pooling: str) -> None:
    for head, topk in itertools.product(HEAD_NAMES, (0, 3)):
        state = tiny_state(gate=gate, honesty=honesty, pooling=pooling, head=head, topk=topk)
        assert state.rows.open_P.any()
        for method in SUMMING:
            found = compute_attribution_tensor(state, method=method)
            torch.testing.assert_close(found.total, state.logits, atol=1e-4, rtol=1e-5)
            assert residual(found).max() <= 1e-6


@pytest.mark.parametrize("head", HEAD_NAMES)
def test_contributions_sum_to_the_logit_of_every_tagged_word(head: str) -> None:
    state = tiny_state("tagging", head=head)
    for method in SUMMING:
        assert residual(compute_attribution_tensor(state, method=method)).max() <= 1e-6


@given(NAMES, SEEDS)
def test_sums_hold_to_the_rounding_of_their_precision(name: str, seed: int) -> None:
    """Weights are of order one here, and a logit may be far smaller than the hidden units it cancels from."""
    for method, (double, bound) in itertools.product(SUMMING, ((False, 1e-6), (True, 1e-13))):
        found = compute_attribution_tensor(draw_state(name, seed, double=double), method=method)
        gap, scale = discrepancy(found)
        assert (gap / scale.clamp(min=1)).max() <= bound
        torch.testing.assert_close(residual(found), torch.where(gap > 0, gap / scale, 0.0))


@given(NAMES, SEEDS)
def test_path_contributions_sum_to_the_change_from_the_empty_text(name: str, seed: int) -> None:
    state = draw_state(name, seed, double=True)
    found = compute_attribution_tensor(state, method="path")
    change = state.logits - empty_logits(state)
    torch.testing.assert_close(state.rows.sum_by_row(found.amount), change)


@pytest.mark.parametrize("name", HEAD_NAMES)
def test_path_is_the_integral_of_the_gradient(name: str) -> None:
    """Against the midpoint rule with 10,000 steps from the empty text to s."""
    state = draw_state(name, 5, n_rows=2, double=True)
    s_NV = state.rows.dense().double()[:1]
    steps_T = (torch.arange(10_000, dtype=torch.float64) + 0.5) / 10_000
    points = rows_of((steps_T[:, None] * s_NV)[None])
    s_P = points.value_P.clone().requires_grad_()
    slope_P = torch.autograd.grad(state.head(points.with_values(s_P))[:, 1].sum(), s_P)[0]
    mean_V = points.dense(slope_P).mean(0)
    exact_P = compute_attribution_tensor(state, torch.tensor([1, 1]), "path").amount
    torch.testing.assert_close(state.rows.dense(exact_P)[0], s_NV[0] * mean_V, atol=1e-3, rtol=1e-3)


@given(NAMES, SEEDS)
def test_gradient_times_input_is_dla_for_relu_and_path_for_bcos(name: str, seed: int) -> None:
    state, classes_N = draw_state(name, seed, double=True), torch.tensor([0, 1, 2, 0])
    s_P = state.rows.value_P.double().requires_grad_()
    logits = state.head(state.rows.with_values(s_P)).gather(1, classes_N[:, None])
    product_P = s_P.detach() * torch.autograd.grad(logits.sum(), s_P)[0]
    method = "dla" if name == "relu_mlp" else "path"
    torch.testing.assert_close(compute_attribution_tensor(state, classes_N, method).amount, product_P)


def test_the_contributions_of_a_bcos_head_are_not_its_gradient() -> None:
    state = draw_state("bcos", 1, double=True)
    dla, path = (compute_attribution_tensor(state, method=method).amount for method in SUMMING)
    assert (dla - path).abs().max() > 0.01


@given(NAMES, SEEDS)
def test_ablation_is_the_logit_with_the_word_minus_without_it(name: str, seed: int) -> None:
    state = draw_state(name, seed, double=True)
    rows, found = state.rows, compute_attribution_tensor(state, method="ablation")
    for pair in range(len(rows.row_P)):
        others = torch.arange(len(rows.row_P)) != pair
        without = decide(state.head, rows.where(others)).logits[rows.row_P[pair]]
        torch.testing.assert_close(found.amount[pair], state.logits[rows.row_P[pair]] - without)


@pytest.mark.parametrize("name", HEAD_NAMES)
def test_removing_the_only_word_leaves_the_empty_text(name: str) -> None:
    rows = tiny_rows(2, V)
    state = decide(draw_head(name), rows.where(torch.arange(len(rows.row_P)) == 0))
    found = compute_attribution_tensor(state, method="ablation")
    torch.testing.assert_close(found.amount[0], state.logits[0] - empty_logits(state)[0])


@given(NAMES, SEEDS)
def test_one_class_is_a_slice_of_all(name: str, seed: int) -> None:
    state = draw_state(name, seed)
    classes_N = labels_of(state, seed)
    for method in METHODS:
        one = compute_attribution_tensor(state, classes_N, method)
        every = compute_attribution_tensor(state, None, method)
        chosen_P = classes_N[state.rows.row_P]
        assert torch.equal(one.amount, every.amount[torch.arange(len(chosen_P)), chosen_P])
        assert torch.equal(one.bias, every.bias.gather(1, classes_N[:, None])[:, 0])
        assert torch.equal(one.logit, every.logit.gather(1, classes_N[:, None])[:, 0])


@given(NAMES, SEEDS)
def test_the_active_slice_is_the_dense_weights_at_active_words(name: str, seed: int) -> None:
    state = draw_state(name, seed)
    W_NCA, words_A = compute_active_slice_weff(state)
    assert torch.equal(words_A, state.rows.dense().any(0).nonzero()[:, 0])
    torch.testing.assert_close(W_NCA, state.W_eff[:, :, words_A])
    dense = compute_attribution_tensor(state).amount
    slope = state.W_eff[state.rows.row_P, :, state.rows.word_P]
    torch.testing.assert_close(dense, state.rows.value_P[:, None] * slope, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", HEAD_NAMES)
def test_rows_without_words_have_their_bias_alone(name: str, method: str) -> None:
    rows = tiny_rows(3, V)
    state = decide(draw_head(name), rows.where(torch.zeros_like(rows.open_P)))
    for classes in (None, torch.tensor([0, 1, 2])):
        found = compute_attribution_tensor(state, classes, method)
        assert found.amount.shape == ((0, C) if classes is None else (0,))
        assert found.by_read.shape == found.amount.shape
        if method != "ablation":
            torch.testing.assert_close(found.total, found.logit)
            assert discrepancy(found)[0].max() <= 1e-6


def test_a_row_of_zeros_over_zeros_has_no_residual() -> None:
    state = draw_state("bcos")
    found = compute_attribution_tensor(state)
    assert not state.logits[-1].any()
    assert not residual(found)[-1].any()


@pytest.mark.parametrize("pooling", ["max", "attention"])
def test_reads_divide_each_contribution_among_its_positions(pooling: str) -> None:
    state = tiny_state(pooling=pooling, opened=30)
    rows, found = state.rows, compute_attribution_tensor(state)
    summed = torch.zeros_like(found.amount).index_add_(0, rows.source_pair_Q, found.by_read)
    torch.testing.assert_close(summed, found.amount, atol=1e-5, rtol=1e-5)
    if pooling == "max":
        assert len(found.by_read) == len(found.amount)
    else:
        assert len(found.by_read) > len(found.amount)


def test_removed_words_contribute_nothing() -> None:
    state = tiny_state()
    gone = state.rows.word_P.unique()[:3]
    after = compute_attribution_tensor(decide(state.head, state.rows.without(gone)))
    assert not torch.isin(after.state.rows.word_P, gone).any()
    assert residual(after).max() <= 1e-6


@pytest.mark.parametrize("name", HEAD_NAMES)
def test_autocast_leaves_the_algebra_in_full_precision(name: str) -> None:
    state = draw_state(name)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = CircuitState(state.rows, state.head(state.rows), state.head)
        found = [compute_attribution_tensor(inside, method=method) for method in METHODS]
        slices, exact = compute_active_slice_weff(inside)[0], exact_logits(inside)
        errors = [residual(attribution) for attribution in found[:1]]
    assert slices.dtype == torch.float32
    assert exact.dtype == torch.float64
    assert errors[0].max() <= 1e-6
    for method, attribution in zip(METHODS, found, strict=True):
        assert attribution.amount.dtype == torch.float32
        assert torch.equal(attribution.amount, compute_attribution_tensor(state, method=method).amount)


@pytest.mark.parametrize("classes", [None, "one"])
@pytest.mark.parametrize("name", HEAD_NAMES)
def test_nothing_as_large_as_rows_by_vocabulary_times_width_or_classes(
    name: str, classes: str | None
) -> None:
    vocab, n_rows = 4000, 40
    head, rows = draw_head(name, vocab=vocab), tiny_rows(n_rows, vocab, density=0.002)
    state = decide(head, rows)
    chosen = None if classes is None else labels_of(state)
    for method in METHODS:
        with Sizes() as sizes:
            residual(compute_attribution_tensor(state, chosen, method))
        assert sizes.shapes
        assert sizes.largest < n_rows * vocab


@given(NAMES, SEEDS)
def test_a_wrong_sum_shows_in_the_residual(name: str, seed: int) -> None:
    state = draw_state(name, seed)
    found = compute_attribution_tensor(state)
    wrong = found.amount.clone()
    wrong[0] += 0.01 * (1 + wrong[0].abs())
    assert residual(dataclasses.replace(found, amount=wrong))[state.rows.row_P[0]].min() > 1e-5
    shown = dataclasses.replace(state, logits=state.logits.bfloat16().float() * 1.01)
    assert residual(Attribution(shown, None, found.amount, found.bias, "dla"))[0].max() > 1e-5


@given(NAMES, SEEDS)
def test_exact_logits_are_the_head_in_double_precision(name: str, seed: int) -> None:
    state, double = draw_state(name, seed), draw_state(name, seed, double=True)
    bound = 1e-12 if name == "relu_mlp" else 1e-5  # the unit columns of a B-cos head are float32
    torch.testing.assert_close(exact_logits(state), double.logits, atol=bound, rtol=bound)
