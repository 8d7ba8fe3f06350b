"""A decision flips when what made it is gone, and not before."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from torch import Tensor

from splade.evaluation.intervals import Interval
from splade.evaluation.removability import KS, RemovabilityFitter
from splade.mechanistic.attribution import compute_attribution_tensor
from splade.mechanistic.removal import counterfactual
from splade.models.state import CircuitState
from tests.evaluation.plain import linear_state
from tests.mechanistic.draws import SEEDS, decide, draw_head, draw_state
from tests.tiny import tiny_rows


def measured(state: CircuitState, scores_P: Tensor, **settings: object) -> RemovabilityFitter:
    fitter = RemovabilityFitter("test", **settings)
    fitter.update(state, scores_P)
    return fitter


def rates(fitter: RemovabilityFitter) -> list[float]:
    return [flips.rate.mean for flips in fitter.result().at]


def test_flip_rates_by_hand() -> None:
    """The bias is for the other class: rows of one, two and three words flip without all of theirs."""
    s_NV = [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]
    state = linear_state([[2.0, 2.0, 2.0], [0.0, 0.0, 0.0]], s_NV, [0.0, 1.0])
    found = measured(state, torch.zeros(6))
    assert rates(found) == pytest.approx([0.25, 0.5, 0.75, 0.75, 0.75])
    assert [flips.k for flips in found.result().at] == list(KS)
    assert (found.result().explainer, found.result().rows) == ("test", 4)


def test_a_perfect_explainer_flips_with_one_word_and_the_worst_with_all() -> None:
    state = linear_state([[4.0, 0.1, 0.1], [0.0, 0.0, 0.0]], torch.ones(5, 3), [0.0, 1.0])
    only_P = (state.rows.word_P == 0).float()
    assert rates(measured(state, only_P, ks=(1, 2, 3))) == [1.0, 1.0, 1.0]
    assert rates(measured(state, -only_P, ks=(1, 2, 3))) == [0.0, 0.0, 1.0]
    assert rates(measured(state, torch.ones(15), ks=(1,))) == [1.0]  # ties go by word id


@given(seed=SEEDS)
def test_contributions_flip_a_linear_head_with_the_smallest_set_there_is(seed: int) -> None:
    maker = torch.Generator().manual_seed(seed)
    w_V, s_NV = torch.randn(7, generator=maker), torch.rand(4, 7, generator=maker) + 0.1
    state = linear_state([w_V.tolist(), (-w_V).tolist()], s_NV, [0.3, 0.0])
    scores_P = compute_attribution_tensor(state, state.logits.argmax(-1)).amount
    flips_NK = measured(state, scores_P, ks=range(1, 8)).rows()
    for row in range(4):
        smallest = len(counterfactual(state, row).words)
        first = flips_NK[row].nonzero()[:, 0]
        assert (int(first[0]) + 1 if len(first) else 0) == smallest


def test_random_scores_flip_fewer_rows() -> None:
    maker = torch.Generator().manual_seed(0)
    w_V, s_NV = torch.randn(30, generator=maker), torch.rand(200, 30, generator=maker)
    state = linear_state([w_V.tolist(), (-w_V).tolist()], s_NV)
    exact = compute_attribution_tensor(state, state.logits.argmax(-1)).amount
    good = measured(state, exact).result()
    chance = measured(state, torch.randn(len(exact))).result()
    assert all(g.rate.low > c.rate.high for g, c in zip(good.at[2:], chance.at[2:], strict=True))


def test_rows_without_active_words_cannot_flip() -> None:
    head = draw_head("relu_mlp")
    found = measured(decide(head, tiny_rows(3, 24, density=0.0)), torch.empty(0))
    assert rates(found) == [0.0] * len(KS)
    assert found.result().rows == 3
    assert RemovabilityFitter("test").result().at[0].rate == Interval(0.0, 0.0, 0.0)


def test_a_single_class_cannot_flip() -> None:
    state = linear_state([[1.0, 2.0]], torch.ones(3, 2))
    assert rates(measured(state, torch.ones(6))) == [0.0] * len(KS)


def test_a_set_of_labels_flips_when_any_of_them_does() -> None:
    """Without the second label's word the best label stays; without the first's both are likely still."""
    state = linear_state([[5.0, 0.0], [0.0, 1.0]], [[1.0, 1.0]], [0.0, -0.5])
    second_P = torch.tensor([0.0, 1.0])
    assert rates(measured(state, second_P, ks=(1,), multi_label=True)) == [1.0]
    assert rates(measured(state, second_P, ks=(1,))) == [0.0]
    assert rates(measured(state, -second_P, ks=(1,), multi_label=True)) == [0.0]
    assert rates(measured(state, -second_P, ks=(1,))) == [1.0]


@pytest.mark.parametrize("name", ["relu_mlp", "bcos"])
def test_flips_are_those_of_the_head_without_the_words(name: str) -> None:
    state = draw_state(name, n_rows=30)
    scores_P = state.rows.value_P
    flips_NK = measured(state, scores_P).rows()
    for i, k in enumerate(KS):
        with torch.no_grad():
            without_NC = state.head(state.rows.where(~state.rows.largest(k)))
        assert torch.equal(flips_NK[:, i], without_NC.argmax(-1) != state.logits.argmax(-1))
    assert flips_NK.any()


def test_rows_of_one_text_are_drawn_together() -> None:
    state = linear_state([[2.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    fitter = RemovabilityFitter("test", ks=(1,))
    fitter.update(state, torch.tensor([1.0, 0.0, 1.0, 0.0, 1.0]), torch.tensor([0, 0, 1]))
    [flips] = fitter.result().at
    assert flips.rate == Interval(pytest.approx(2 / 3), 0.0, 1.0)
