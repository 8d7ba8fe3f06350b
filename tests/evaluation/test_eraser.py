"""Erasure is what taking words away by hand gives, and good and bad explainers reach its limits."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from torch import Tensor

from splade.evaluation.eraser import Eraser, EraserFitter, circuit_sizes, nested_logits, ranks
from splade.evaluation.intervals import Interval, paired_difference
from splade.mechanistic.attribution import compute_attribution_tensor
from splade.models.state import CircuitState, SparseRows
from tests.evaluation.plain import linear_state
from tests.mechanistic.draws import NAMES, SEEDS, draw_head, draw_state, labels_of
from tests.mechanistic.draws import decide as decision
from tests.tiny import Sizes, tiny_rows

NOTHING = Interval(0.0, 0.0, 0.0)
HALVES = (0.25, 0.5, 1.0)


def measured(
    state: CircuitState, scores_P: Tensor, classes_N: Tensor | None = None, **settings: object
) -> EraserFitter:
    classes_N = state.logits.argmax(-1) if classes_N is None else classes_N
    fitter = EraserFitter("test", "predicted", **settings)
    fitter.update(state, scores_P, classes_N)
    return fitter


def means(found: Eraser, kind: str) -> list[float]:
    return [getattr(one, kind).mean for one in found.at]


def margin_state(n_rows: int = 6, seed: int = 0) -> CircuitState:
    """Two classes told apart by one linear margin, so that contributions are effects."""
    maker = torch.Generator().manual_seed(seed)
    w_V = torch.randn(12, generator=maker)
    s_NV = torch.rand(n_rows, 12, generator=maker)
    return linear_state([w_V.tolist(), (-w_V).tolist()], s_NV)


def test_erasure_by_hand() -> None:
    """Logits (3, 2) from words worth 2, 1 and 2; half of three words are two."""
    state = linear_state([[2.0, 1.0, 0.0], [0.0, 0.0, 2.0]], [[1.0, 1.0, 1.0]])
    found = measured(state, torch.tensor([2.0, 1.0, 0.0]), fractions=[0.1, 0.5]).result()
    p = lambda a, b: float(torch.tensor([a, b]).double().softmax(-1)[0])  # noqa: E731
    assert means(found, "comprehensiveness") == pytest.approx([p(3, 2) - p(1, 2), p(3, 2) - p(0, 2)])
    assert means(found, "sufficiency") == pytest.approx([p(3, 2) - p(2, 0), p(3, 2) - p(3, 0)])
    assert found.aopc_comprehensiveness.mean == pytest.approx(p(3, 2) - (p(1, 2) + p(0, 2)) / 2)
    assert found.aopc_sufficiency.mean == pytest.approx(p(3, 2) - (p(2, 0) + p(3, 0)) / 2)
    assert (found.explainer, found.target, found.rows, found.empty) == ("test", "predicted", 1, 0)


@given(name=NAMES, seed=SEEDS)
def test_nested_sets_decide_as_each_set_does(name: str, seed: int) -> None:
    state = draw_state(name, seed, n_rows=5, double=True)
    score_P = torch.randn(len(state.rows.word_P))
    size_NK = circuit_sizes(state.rows, (0.05, 0.2, 0.5, 1.0))
    alone_NKC, without_NKC = nested_logits(state, score_P, size_NK)
    rank_P = ranks(state.rows, score_P)
    for k in range(size_NK.shape[1]):
        named_P = rank_P < size_NK[state.rows.row_P, k]
        with torch.no_grad():
            torch.testing.assert_close(alone_NKC[:, k], state.head(state.rows.where(named_P)))
            torch.testing.assert_close(without_NKC[:, k], state.head(state.rows.where(~named_P)))


@pytest.mark.parametrize("name", ["relu_mlp", "bcos"])
def test_naming_every_word_leaves_exactly_the_empty_text(name: str) -> None:
    state = draw_state(name)
    scores_P = torch.randn(len(state.rows.word_P))
    _, without_NKC = nested_logits(state, scores_P, circuit_sizes(state.rows, [1.0]))
    assert torch.equal(without_NKC[:, 0], state.logits[-1:].expand(len(without_NKC), -1))
    assert means(measured(state, scores_P, fractions=[1.0]).result(), "sufficiency") == pytest.approx([0.0])


def test_the_sizes_are_those_of_circuits() -> None:
    state = linear_state([[1.0] * 100], torch.ones(2, 100) * torch.tensor([[1.0], [0.0]]))
    assert circuit_sizes(state.rows, (0.001, 0.07, 0.071, 1.0)).tolist() == [[1, 7, 8, 100], [1, 1, 1, 1]]


def test_ranks_are_rows_of_their_own_with_ties_by_word() -> None:
    rows = linear_state([[0.0] * 3], [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]).rows
    assert ranks(rows, torch.tensor([1.0, 3.0, 2.0, -5.0, 0.0, 0.0])).tolist() == [2, 0, 1, 2, 0, 1]


def test_a_perfect_explainer_needs_one_word_and_the_worst_keeps_it_to_the_end() -> None:
    """Only the first of eight words does anything."""
    state = linear_state([[4.0] + [0.0] * 7, [0.0] * 8], torch.ones(3, 8))
    only_P = (state.rows.word_P == 0).float()
    perfect = measured(state, only_P, fractions=HALVES).result()
    worst = measured(state, -only_P, fractions=HALVES).result()
    all_of_it = float(torch.tensor(4.0).double().sigmoid()) - 0.5
    assert means(perfect, "comprehensiveness") == pytest.approx([all_of_it] * 3)
    assert means(perfect, "sufficiency") == pytest.approx([0.0] * 3)
    assert means(worst, "comprehensiveness") == pytest.approx([0.0, 0.0, all_of_it])
    assert means(worst, "sufficiency") == pytest.approx([all_of_it, all_of_it, 0.0])


@given(seed=SEEDS)
def test_no_explainer_beats_exact_contributions_where_the_head_is_linear(seed: int) -> None:
    state = margin_state(seed=seed)
    exact = compute_attribution_tensor(state, state.logits.argmax(-1)).amount
    best = measured(state, exact).rows()
    other = measured(state, torch.randn(len(exact))).rows()
    assert (best.comprehensiveness_NK >= other.comprehensiveness_NK - 1e-6).all()
    assert (best.sufficiency_NK <= other.sufficiency_NK + 1e-6).all()


def test_random_scores_are_told_from_exact_ones() -> None:
    state = margin_state(n_rows=200)
    exact = measured(state, compute_attribution_tensor(state, state.logits.argmax(-1)).amount).rows()
    chance = measured(state, torch.randn(len(state.rows.word_P))).rows()
    gap = paired_difference(
        exact.comprehensiveness_NK.mean(1), chance.comprehensiveness_NK.mean(1), exact.text_N
    )
    assert gap is not None
    assert gap.low > 0


def test_a_constant_explainer_names_words_by_id() -> None:
    state = draw_state("relu_mlp")
    constant = measured(state, torch.full((len(state.rows.word_P),), 0.3)).result()
    assert constant == measured(state, -state.rows.word_P.float()).result()


def test_only_the_order_of_scores_counts() -> None:
    state = draw_state("relu_mlp")
    scores_P = torch.randn(len(state.rows.word_P))
    assert measured(state, scores_P).result() == measured(state, scores_P.exp() * 5).result()


@pytest.mark.parametrize("name", ["relu_mlp", "bcos"])
def test_rows_without_active_words_lose_nothing_and_count(name: str) -> None:
    state = draw_state(name)
    found = measured(state, torch.randn(len(state.rows.word_P)))
    assert found.result().empty == 1
    assert found.result().rows == 4
    assert not found.rows().comprehensiveness_NK[-1].any()
    assert not found.rows().sufficiency_NK[-1].any()
    assert found.rows().comprehensiveness_NK[:-1].any()
    nobody = measured(decision(state.head, tiny_rows(3, 24, density=0.0)), torch.empty(0)).result()
    assert (nobody.empty, nobody.aopc_comprehensiveness, nobody.aopc_sufficiency) == (3, NOTHING, NOTHING)


def test_nothing_measured_and_no_rows_are_zeros() -> None:
    fitter = EraserFitter("test", "gold")
    empty = fitter.result()
    assert (empty.rows, empty.target, empty.aopc_comprehensiveness) == (0, "gold", NOTHING)
    head = draw_head("relu_mlp")
    none = SparseRows(*(torch.empty(0, dtype=t) for t in _PAIR_TYPES), n_rows=0, vocab_size=24)
    fitter.update(CircuitState(none, torch.empty(0, 3), head), torch.empty(0), torch.empty(0).long())
    assert fitter.result() == empty


_PAIR_TYPES = (torch.long, torch.long, torch.float, torch.float, torch.long, torch.long, torch.float)


def test_a_single_class_is_certain_whatever_goes() -> None:
    state = linear_state([[1.0, 2.0, 3.0]], torch.ones(2, 3))
    found = measured(state, torch.randn(6)).result()
    assert (found.aopc_comprehensiveness, found.aopc_sufficiency) == (NOTHING, NOTHING)


def test_the_gold_class_is_asked_about_where_it_is_given() -> None:
    state = linear_state([[2.0, 0.0], [0.0, 1.0]], [[1.0, 1.0]])
    scores_P = torch.tensor([1.0, 0.0])
    predicted = measured(state, scores_P, fractions=[0.5]).result()
    gold = measured(state, scores_P, torch.tensor([1]), fractions=[0.5]).result()
    assert predicted.aopc_comprehensiveness.mean > 0
    assert gold.aopc_comprehensiveness.mean == pytest.approx(-predicted.aopc_comprehensiveness.mean)


def test_several_labels_are_probabilities_of_their_own() -> None:
    state = linear_state([[2.0, 0.0], [0.0, 9.0]], [[1.0, 1.0]])
    first = torch.tensor([0])
    found = measured(
        state, torch.tensor([1.0, 0.0]), first, multi_label=True, temperature=2.0, fractions=[0.5]
    )
    sigmoid = float(torch.tensor(1.0).double().sigmoid())
    assert found.result().aopc_comprehensiveness.mean == pytest.approx(sigmoid - 0.5)
    assert found.result().aopc_sufficiency.mean == pytest.approx(0.0)


def test_closed_pairs_are_never_named() -> None:
    state = linear_state([[2.0, 1.0, 1.0], [0.0, 0.0, 0.0]], [[1.0, 1.0, 1.0]])
    value_P = state.rows.value_P * torch.tensor([1.0, 1.0, 0.0])
    closed = decision(state.head, state.rows.with_values(value_P))
    scores_P = torch.tensor([2.0, 1.0, 99.0])
    kept = decision(state.head, closed.rows.where(closed.rows.open_P))
    assert measured(closed, scores_P).result() == measured(kept, scores_P[:2]).result()


def test_batches_in_any_order_give_the_same_figures() -> None:
    states = [draw_state("relu_mlp", seed=seed, n_rows=5) for seed in range(3)]
    states = [dataclasses.replace(state, head=states[0].head) for state in states]
    states = [decision(state.head, state.rows) for state in states]
    scores = [torch.randn(len(state.rows.word_P)) for state in states]

    def gathered(order: list[int]) -> Eraser:
        fitter = EraserFitter("test", "gold")
        for i in order:
            fitter.update(states[i], scores[i], labels_of(states[i]), torch.arange(5) + 5 * i)
        return fitter.result()

    one, other = gathered([0, 1, 2]), gathered([2, 0, 1])
    for kind in ("comprehensiveness", "sufficiency"):
        bounds = [[(i.low, i.high) for i in (getattr(at, kind) for at in found.at)] for found in (one, other)]
        np.testing.assert_allclose(*bounds, atol=1e-12)


def test_nothing_as_large_as_rows_times_vocabulary_is_made() -> None:
    state = decision(draw_head("relu_mlp", vocab=20_000), tiny_rows(16, 20_000, density=0.002))
    scores_P = torch.randn(len(state.rows.word_P))
    with Sizes() as sizes:
        measured(state, scores_P)
    assert 0 < sizes.largest < 20_000
