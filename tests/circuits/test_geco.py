"""A multiplier finds the price of its constraint, and keeps within its limits whatever it observes."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from splade.circuits.geco import Multiplier


def descend(multiplier: Multiplier, steps: int = 4000, rate: float = 0.02) -> torch.Tensor:
    """Minimise (x - 3)² subject to x <= 1; the optimum has x = 1 and λ = 4, the slope that λ must balance."""
    x = torch.tensor(0.5, requires_grad=True)
    for _ in range(steps):
        loss = (x - 3) ** 2 + multiplier.value * x
        (slope,) = torch.autograd.grad(loss, x)
        x = (x - rate * slope).detach().requires_grad_()
        multiplier.update(x)
    return x.detach()


@pytest.mark.parametrize("start", [0.1, 1.0, 50.0])
def test_a_constrained_optimum_is_reached_with_its_price(start: float) -> None:
    multiplier = Multiplier(bound=1.0, step=0.01, start=start)
    x = descend(multiplier)
    assert float(x) == pytest.approx(1.0, abs=1e-3)
    assert float(multiplier.value) == pytest.approx(4.0, abs=1e-2)


def test_a_constraint_that_costs_nothing_loses_its_price() -> None:
    multiplier = Multiplier(bound=10.0, step=0.01)
    x = descend(multiplier)
    assert float(x) == pytest.approx(3.0, abs=0.01)
    assert float(multiplier.value) == pytest.approx(math.exp(-5))


@given(observed=st.lists(st.floats(0, 1e9), min_size=1, max_size=50), step=st.floats(0.01, 10))
def test_the_multiplier_stays_within_its_limits(observed: list[float], step: float) -> None:
    multiplier = Multiplier(bound=0.05, step=step, limit=5.0)
    for value in observed:
        multiplier.update(torch.tensor(value))
        assert math.exp(-5.01) <= float(multiplier.value) <= math.exp(5.01)


@given(st.floats(1e-6, 1e6))
def test_one_observation_moves_the_logarithm_by_one_step_at_most(value: float) -> None:
    multiplier = Multiplier(bound=1.0, step=0.1)
    multiplier.update(torch.tensor(value))
    assert abs(math.log(float(multiplier.value))) <= 0.1 + 1e-6


def test_the_multiplier_rises_while_broken_and_falls_while_kept() -> None:
    multiplier = Multiplier(bound=1.0, step=0.1, smoothing=0.0)
    values = []
    for observed in (2.0, 2.0, 1.0, 0.5, 0.5):
        multiplier.update(torch.tensor(observed))
        values.append(float(multiplier.value))
    assert 1 < values[0] < values[1] == values[2] > values[3] > values[4]


def test_smoothing_outlasts_one_odd_batch() -> None:
    multiplier = Multiplier(bound=1.0, step=0.1, smoothing=0.9)
    for observed in [0.5] * 20:
        multiplier.update(torch.tensor(observed))
    before = float(multiplier.value)
    multiplier.update(torch.tensor(3.0))
    assert multiplier.mean is not None
    assert float(multiplier.mean) == pytest.approx(0.9 * 0.5 + 0.1 * 3.0)
    assert float(multiplier.value) < before, "the mean still keeps the constraint"


def test_observing_leaves_no_graph_behind() -> None:
    multiplier = Multiplier(bound=1.0, step=0.1)
    multiplier.update(torch.tensor(2.0, requires_grad=True) * 2)
    assert not multiplier.value.requires_grad
    assert multiplier.mean is not None
    assert not multiplier.mean.requires_grad
