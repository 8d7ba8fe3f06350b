"""The printed residual is that of every row, and a broken sum cannot hide in it."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from splade.evaluation.identity import Identity, IdentityFitter
from splade.mechanistic.attribution import Attribution, compute_attribution_tensor
from tests.mechanistic.draws import draw_state, labels_of


def measured(*attributions: Attribution) -> Identity:
    fitter = IdentityFitter()
    for attribution in attributions:
        fitter.update(attribution)
    return fitter.result()


@pytest.mark.parametrize("method", ["dla", "path"])
@pytest.mark.parametrize("name", ["relu_mlp", "bcos"])
def test_exact_sums_have_no_error_but_rounding(name: str, method: str) -> None:
    state = draw_state(name)
    for classes in (None, labels_of(state)):
        found = measured(compute_attribution_tensor(state, classes, method))
        assert 0 < found.mean_relative_residual <= found.max_relative_residual <= 1e-6
        assert 0 < found.mean_abs_error <= found.max_abs_error <= 1e-5


def test_one_wrong_row_is_the_largest_error() -> None:
    state = draw_state("relu_mlp", double=True)
    found = compute_attribution_tensor(state, labels_of(state))
    wrong = found.amount.clone()
    wrong[0] += 0.5
    identity = measured(dataclasses.replace(found, amount=wrong))
    assert identity.max_abs_error == pytest.approx(0.5)
    assert identity.mean_abs_error == pytest.approx(0.5 / 4)
    total = found.logit[0].abs() + wrong[state.rows.row_P == 0].abs().sum() + found.bias[0].abs()
    assert identity.max_relative_residual == pytest.approx(0.5 / total.item())


def test_a_shown_logit_that_is_not_the_sum_is_an_error() -> None:
    state = draw_state("relu_mlp")
    rounded = dataclasses.replace(state, logits=state.logits.bfloat16().float())
    assert measured(compute_attribution_tensor(rounded)).max_relative_residual > 1e-4


def test_a_broken_number_is_not_hidden() -> None:
    state = draw_state("relu_mlp")
    broken = dataclasses.replace(state, logits=torch.full_like(state.logits, torch.nan))
    assert not measured(compute_attribution_tensor(broken)).max_relative_residual <= 1e-6


def test_batches_add_up() -> None:
    one, other = (compute_attribution_tensor(draw_state("bcos", seed)) for seed in (1, 2))
    both, first, second = measured(one, other), measured(one), measured(other)
    assert both.max_relative_residual == max(first.max_relative_residual, second.max_relative_residual)
    assert both.mean_abs_error == pytest.approx((first.mean_abs_error + second.mean_abs_error) / 2)


def test_nothing_has_no_error() -> None:
    assert measured() == Identity(0.0, 0.0, 0.0, 0.0)
