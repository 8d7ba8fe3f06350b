"""The sweep finds a rate in proportion to what a loss bears, and says so where there is none."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from splade.errors import TrainingError
from splade.training.range_test import SAFETY, learning_rate_range


def descent(curvature: float, offset: float = 0.0) -> Callable[[float], float]:
    """Gradient descent on ½·curvature·x² + offset, which diverges at rates above 2 / curvature."""
    x = 1.0

    def step(rate: float) -> float:
        nonlocal x
        loss = 0.5 * curvature * x**2 + offset
        x -= rate * curvature * x
        return loss

    return step


@pytest.mark.parametrize("curvature", [1e3, 1e4, 1e5])
def test_a_quadratic_is_given_a_rate_well_within_what_it_bears(curvature: float) -> None:
    rate = learning_rate_range(descent(curvature))
    assert 0.01 / curvature < rate < 0.5 / curvature


def test_ten_times_the_curvature_is_a_tenth_of_the_rate() -> None:
    notch = (1e-2 / 1e-6) ** (1 / 59)
    mild, steep = (learning_rate_range(descent(curvature)) for curvature in (3e3, 3e4))
    assert mild / steep == pytest.approx(10, rel=notch - 1)


def test_the_size_of_the_loss_does_not_matter() -> None:
    plain, raised = descent(1e4), descent(1e4)
    assert learning_rate_range(plain) == pytest.approx(learning_rate_range(lambda rate: 1e3 * raised(rate)))


@pytest.mark.parametrize("broken", [math.nan, math.inf, 1e9])
def test_what_comes_after_divergence_is_not_looked_at(broken: float) -> None:
    seen = []
    healthy = descent(1e3)

    def step(rate: float) -> float:
        seen.append(rate)
        return healthy(rate) if rate < 1e-3 else broken

    assert learning_rate_range(step) < 1e-3
    assert sum(rate >= 1e-3 for rate in seen) == 1


def test_a_fall_from_a_peak_after_the_minimum_is_not_taken_for_learning() -> None:
    losses = [10 - 0.1 * number for number in range(40)] + [20.0] * 8 + [8.0] * 12
    told = iter(losses)
    seen: list[float] = []

    def step(rate: float) -> float:
        seen.append(rate)
        return next(told)

    rate = learning_rate_range(step)
    assert rate <= seen[40] / SAFETY
    assert len(seen) == len(losses), "the peak is no divergence"


def test_rates_rise_evenly_in_log_from_low_to_high() -> None:
    seen: list[float] = []

    def step(rate: float) -> float:
        seen.append(rate)
        return 10.0 - len(seen)

    learning_rate_range(step, low=1e-4, high=1e-1, steps=4)
    assert seen == pytest.approx([1e-4, 1e-3, 1e-2, 1e-1])


@pytest.mark.parametrize("losses", ["rising", "nan"])
def test_a_loss_that_never_falls_asks_for_a_rate(losses: str) -> None:
    count = iter(range(1000))
    with pytest.raises(TrainingError, match=r"set training\.learning_rate"):
        learning_rate_range(lambda rate: math.nan if losses == "nan" else 1.0 + next(count))
