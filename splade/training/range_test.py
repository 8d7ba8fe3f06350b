"""The learning rate that a model bears, by one sweep over rising rates (Smith 2017).

1. A throw-away copy takes one step at each of `steps` rates, spaced evenly in log.
2. The losses are smoothed; a loss that is no number, or 4 times the best, has diverged and ends the sweep.
3. Where the smoothed loss fell fastest per log rate, before its minimum, a third of that rate is safe.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from splade.circuits.weighting import newest_share
from splade.errors import TrainingError

SMOOTHING = 0.8  # about five steps of lag, a factor of 2 in rate by default
DIVERGED = 4.0  # times the best smoothed loss
SAFETY = 3.0
REACH = 100.0  # how far below the rate of the least loss the steepest fall is looked for


def learning_rate_range(
    step: Callable[[float], float], low: float = 1e-6, high: float = 1e-2, steps: int = 60
) -> float:
    """A rate to train at; `step(rate)` trains a throw-away copy once and returns the loss before that."""
    assert 0 < low < high
    assert steps >= 2
    rates = np.geomspace(low, high, steps)
    smoothed = _sweep(step, [float(rate) for rate in rates])
    lowest = int(np.argmin(smoothed)) if smoothed else 0
    if lowest == 0:
        raise TrainingError(
            f"the loss fell at no learning rate from {low:g} to {high:g}; set training.learning_rate"
        )
    # a fall at rates far below those that move the loss is chance
    first = min(int(np.searchsorted(rates, rates[lowest] / REACH)), lowest - 1)
    steepest = first + int(np.argmin(np.diff(smoothed[first : lowest + 1])))
    return float(rates[steepest]) / SAFETY


def _sweep(step: Callable[[float], float], rates: Sequence[float]) -> list[float]:
    """Smoothed losses up to where they diverge."""
    smoothed: list[float] = []
    mean = 0.0
    for count, rate in enumerate(rates, start=1):
        loss = step(rate)
        mean += newest_share(SMOOTHING, count) * (loss - mean)
        if not math.isfinite(mean) or (smoothed and mean > DIVERGED * min(smoothed)):
            break
        smoothed.append(mean)
    return smoothed
