"""A multiplier finds the price of its constraint, and keeps within its limits whatever it observes."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, distributed

from splade.circuits.geco import Multiplier, relaxation, smoothing_floor, threshold
from splade.errors import TrainingError

Constraint = Callable[[Tensor], Tensor]
Point = list[float]


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


def converge(bounds: list[float], constraints: list[Constraint], steps: int = 6000) -> tuple[Point, Point]:
    """Minimise x² + y² under constraints by gradient descent; the point reached and its multipliers."""
    multipliers = [Multiplier(bound, step=0.02) for bound in bounds]
    point = torch.tensor([3.0, 1.0], dtype=torch.float64, requires_grad=True)
    for _ in range(steps):
        values = [constraint(point) for constraint in constraints]
        priced = [m.value.double() * value for m, value in zip(multipliers, values, strict=True)]
        (slope,) = torch.autograd.grad((point**2).sum() + torch.stack(priced).sum(), point)
        point = (point - 0.02 * slope).detach().requires_grad_()
        for multiplier, value in zip(multipliers, values, strict=True):
            multiplier.update(value)
    return point.tolist(), [float(m.value) for m in multipliers]


def distance_to(x: float, y: float) -> Constraint:
    return lambda point: ((point - torch.tensor([x, y], dtype=torch.float64)) ** 2).sum()


def test_the_nearest_point_of_a_disc_is_reached() -> None:
    """x² + y² subject to (x-2)² + y² <= 1 is least at (1, 0), where ∇f = (2, 0) balances λ·(-2, 0)."""
    point, prices = converge([1.0], [distance_to(2, 0)])
    assert point == pytest.approx([1.0, 0.0], abs=1e-3)
    assert prices == pytest.approx([1.0], abs=1e-2)


def test_two_constraints_find_their_own_prices() -> None:
    """At (0.8, 0.4) ∇f = (1.6, 0.8) balances 1·(-2.4, 0.8) + ½·(1.6, -3.2), and both bounds are met."""
    point, prices = converge([1.6, 3.2], [distance_to(2, 0), distance_to(0, 2)])
    assert point == pytest.approx([0.8, 0.4], abs=1e-2)
    assert prices == pytest.approx([1.0, 0.5], abs=3e-2)


def test_a_constraint_implied_by_another_loses_its_price() -> None:
    point, prices = converge([1.0, 100.0], [distance_to(2, 0), distance_to(0, 2)])
    assert point == pytest.approx([1.0, 0.0], abs=1e-2)
    assert prices[1] == pytest.approx(math.exp(-5))


def test_relaxing_is_a_wider_bound_for_once() -> None:
    relaxed, wider = Multiplier(1.0, 0.1), Multiplier(1.5, 0.1)
    for value in (1.2, 1.7, 1.4):
        relaxed.update(torch.tensor(value), torch.tensor(1.5))
        wider.update(torch.tensor(value))
    assert float(relaxed.value) == float(wider.value)
    assert relaxed.bound == 1.0


def test_a_bound_may_be_set_anew() -> None:
    multiplier = Multiplier(bound=1.0, step=0.1, smoothing=0.0)
    multiplier.update(torch.tensor(1.0))
    assert float(multiplier.value) == 1.0
    multiplier.bound = 0.5
    multiplier.update(torch.tensor(1.0))
    assert float(multiplier.value) == pytest.approx(math.exp(0.1))


@pytest.mark.parametrize("before", [0, 1, 7])
def test_a_multiplier_continues_bit_for_bit(before: int) -> None:
    observed = torch.rand(20, generator=torch.Generator().manual_seed(0)) * 3
    first, second = Multiplier(0.7, 0.05), Multiplier(1.0, 0.05)
    for value in observed[:before]:
        first.update(value)
    state = first.state_dict()
    for value in observed[before:]:
        first.update(value)
    second.load_state_dict(state)
    for value in observed[before:]:
        second.update(value)
    assert second.bound == first.bound
    assert torch.equal(first.value, second.value)
    assert first.mean is not None
    assert second.mean is not None
    assert torch.equal(first.mean, second.mean)


def observe_apart(process: int, folder: str) -> None:
    """One of two processes: its observations and relaxations differ from the other's."""
    store = distributed.FileStore(f"{folder}/store", 2)
    distributed.init_process_group("gloo", store=store, rank=process, world_size=2)
    multiplier = Multiplier(1.0, 0.1)
    for step in range(5):
        multiplier.update(torch.tensor(step + process * 2.0), torch.tensor(1.0 + process))
    torch.save(multiplier.state_dict(), f"{folder}/{process}.pt")
    distributed.destroy_process_group()


def test_processes_agree_on_the_multiplier_of_their_mean(tmp_path: Path) -> None:
    torch.multiprocessing.spawn(observe_apart, (str(tmp_path),), nprocs=2)
    alone = Multiplier(1.0, 0.1)
    for step in range(5):
        alone.update(torch.tensor(step + 1.0), torch.tensor(1.5))
    for process in range(2):
        state = torch.load(tmp_path / f"{process}.pt", weights_only=True)
        assert torch.equal(state["log_value"], alone.log_value)


def test_the_threshold_is_the_lower_quartile_with_slack() -> None:
    assert threshold([4.0, 1.0, 2.0, 3.0, 5.0], slack=0.1, floor=0.0) == pytest.approx(2.2)
    assert threshold([0.1, 0.1, 0.1, 0.1], slack=0.1, floor=0.3) == 0.3
    assert threshold([0.0] * 4, slack=0.1, floor=0.0) > 0


def test_a_warm_up_too_short_for_a_threshold_says_what_to_raise() -> None:
    with pytest.raises(TrainingError, match=r"3 looks.*training\.warmup_fraction or training\.epochs"):
        threshold([1.0, 1.0, 1.0], slack=0.1, floor=0.0)


@given(smoothing=st.floats(0, 0.9), classes=st.integers(1, 20), seed=st.integers(0, 99))
def test_no_logits_have_less_cross_entropy_than_the_floor(smoothing: float, classes: int, seed: int) -> None:
    floor = smoothing_floor(smoothing, classes)
    label = torch.zeros(1, dtype=torch.long)
    target = torch.full((1, classes), smoothing / classes, dtype=torch.float64)
    target[0, 0] += 1 - smoothing
    best = F.cross_entropy(target.clamp(min=1e-300).log(), label, label_smoothing=smoothing)
    assert floor == pytest.approx(float(best), abs=1e-9)
    other = torch.randn(1, classes, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    assert float(F.cross_entropy(other, label, label_smoothing=smoothing)) >= floor - 1e-9


def test_without_smoothing_cross_entropy_has_no_floor() -> None:
    assert smoothing_floor(0.0, 5) == 0


def test_the_threshold_yields_with_the_number_of_words() -> None:
    factors = relaxation(torch.tensor([0.0, 5.0, 10.0, 100.0, 1000.0, 5000.0]), target=10, vocab_size=1000)
    assert factors.tolist() == pytest.approx([1, 1, 1, 1.25, 1.5, 1.5])
    assert relaxation(torch.tensor(500.0), target=2000, vocab_size=1000).item() == 1
