"""What several runs say together: mean and spread, and whether two systems differ.

1. Runs of one system over seeds: every measured figure as mean and standard deviation.
2. Two systems over the same seeds: a paired t-test.
3. Two systems on the same rows: a paired bootstrap. A row counts (right, found, there), so that one formula,
   2·right / (found + there), is accuracy for labels and F1 for entities.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats  # type: ignore[import-untyped,unused-ignore]

Count = tuple[int, int, int]  # right, found, there

DRAWS = 2000
_LEVEL = 0.95
_NOT_MEASURED = {"complete", "environment", "explanations", "history", "model", "rows", "settings"}


@dataclass(frozen=True)
class Spread:
    """A figure over seeds; one value has no standard deviation."""

    mean: float
    sd: float | None
    values: list[float]


@dataclass(frozen=True)
class Difference:
    """How much larger the first system's score is, with a 95 % interval and a two-sided p-value."""

    difference: float
    low: float
    high: float
    p: float
    n: int


def spread(values: Sequence[float]) -> Spread:
    """Mean and standard deviation (of a sample) of one value a seed."""
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Spread(float(np.mean(values)), sd, list(values))


def summarise(runs: Sequence[Mapping[str, Any]]) -> dict[str, Spread]:
    """Every number that all runs have measured, by its dotted key."""
    numbers = [dict(_numbers(run)) for run in runs]
    common = [key for key in numbers[0] if all(key in found for found in numbers)] if numbers else []
    return {key: spread([found[key] for found in numbers]) for key in common}


def headline(results: Mapping[str, Any]) -> tuple[str, float]:
    """The score by which runs are compared, and its name: entity F1 where there is one, else accuracy."""
    name = "f1" if results.get("f1") is not None else "accuracy"
    return name, float(results[name])


def paired_t(first: Sequence[float], second: Sequence[float]) -> Difference | None:
    """Whether two systems differ over the same seeds; None for fewer than two of them."""
    assert len(first) == len(second)
    gaps = np.subtract(first, second)
    n, mean = len(gaps), float(np.mean(gaps)) if len(gaps) else 0.0
    if n < 2:
        return None
    error = float(np.std(gaps, ddof=1)) / n**0.5
    if error < 1e-12:  # the same gap at every seed: no spread to test against
        return Difference(mean, mean, mean, 1.0 if abs(mean) < 1e-12 else 0.0, n)
    half = float(stats.t.ppf((1 + _LEVEL) / 2, n - 1)) * error
    p = 2 * float(stats.t.sf(abs(mean) / error, n - 1))
    return Difference(mean, mean - half, mean + half, p, n)


def paired_bootstrap(
    first: Sequence[Sequence[Count]], second: Sequence[Sequence[Count]], draws: int = DRAWS, seed: int = 0
) -> Difference | None:
    """Whether two systems differ on the same rows, drawn anew with all their seeds; None without rows.

    Each argument holds the counts of every row, one sequence a seed.
    """
    a_N3, b_N3 = _over_seeds(first), _over_seeds(second)
    if not len(a_N3) or len(a_N3) != len(b_N3):
        return None
    maker, n = np.random.default_rng(seed), len(a_N3)
    gaps = np.empty(draws)
    for draw in range(draws):
        rows = maker.integers(0, n, n)
        gaps[draw] = _score(a_N3[rows]) - _score(b_N3[rows])
    low, high = np.quantile(gaps, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    tail = min(int((gaps <= 0).sum()), int((gaps >= 0).sum()))
    p = min(1.0, 2 * (tail + 1) / (draws + 1))
    return Difference(_score(a_N3) - _score(b_N3), float(low), float(high), p, n)


def _over_seeds(runs: Sequence[Sequence[Count]]) -> NDArray[np.int64]:
    """Counts of each row summed over seeds: predictions of one row are not independent."""
    counts_N3 = np.zeros((max(map(len, runs), default=0), 3), dtype=np.int64)
    for run in runs:
        counts_N3[: len(run)] += np.asarray(run, dtype=np.int64).reshape(-1, 3)
    return counts_N3


def _score(counts_N3: NDArray[np.int64]) -> float:
    right, found, there = counts_N3.sum(0)
    return float(2 * right / max(found + there, 1))


def _numbers(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    for key, value in values.items():
        if not prefix and key in _NOT_MEASURED:
            continue
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{prefix}{key}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{prefix}{key}", float(value)
