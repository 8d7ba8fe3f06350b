"""Does a classifier err more on some groups of people than on others? Rates by group.

1. Rows say yes or no (a probability says yes from a half); gold says what is right. A group's false positive
   rate is the share of its negatives that were called positive, its false negative rate the converse.
2. A group is compared with its background, the rows outside it: a large group compared with all rows would be
   compared with itself.
3. A rate without rows to have it on is missing (None), never 0, and takes no part in any gap.
4. Intervals: percentile bootstrap over rows, 95 %, all figures on the same draws. Rows alike in prediction,
   gold and groups are interchangeable, so a draw is one multinomial over the kinds of rows.

A gap (largest less smallest rate) is never negative, so that draws of small groups lean it upward: read its
interval together with the groups' own.

Legend: N rows, K kinds of rows, M draws, R rates (false positive, false negative, accuracy).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splade.errors import DataError
from splade.evaluation.intervals import Interval, intervals
from splade.evaluation.seeds import DRAWS

_TAILS = (0.025, 0.975)
_Kind = tuple[bool, bool, frozenset[str]]  # said yes, is yes, groups
_Draws = NDArray[np.float64]


@dataclass(frozen=True)
class Rates:
    """False positive and negative rates and accuracy of some rows; None where no row could have one."""

    rows: int
    negatives: int
    positives: int
    fpr: Interval | None
    fnr: Interval | None
    accuracy: Interval | None


@dataclass(frozen=True)
class GroupBias:
    """A group, its background, and by how much the group's rates are larger."""

    group: str
    inside: Rates
    background: Rates
    fpr_difference: Interval | None
    fnr_difference: Interval | None


@dataclass(frozen=True)
class Bias:
    """All groups by name. Gaps are largest less smallest rate over the groups that have one, two at least.

    `mean_fpr_difference` is the mean over groups of |rate - background's rate|; `missing` names the groups
    that have no false positive rate.
    """

    overall: Rates
    groups: list[GroupBias]
    fpr_gap: Interval | None
    fnr_gap: Interval | None
    mean_fpr_difference: Interval | None
    missing: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Collateral:
    """What an edit did to rows it should have left alone: decisions changed, mean |Δp| where p is given."""

    rows: int
    changed: Interval
    moved: Interval | None


def evaluate_bias(
    predicted: ArrayLike,
    gold: ArrayLike,
    groups: Sequence[Collection[str]],
    draws: int = DRAWS,
    seed: int = 0,
) -> Bias:
    """Rates by group; `predicted` are decisions or probabilities of yes, `groups` the names of each row."""
    kinds, count_K = _kinds(_decisions(predicted), np.asarray(gold).astype(bool), groups)
    drawn_MK = np.random.default_rng(seed).multinomial(count_K.sum(), count_K / count_K.sum(), size=draws)
    # the first row is what was seen, the others are draws
    counts_MK = np.concatenate([count_K[None], drawn_MK]).astype(np.float64)
    names = sorted(set().union(*(kind[2] for kind in kinds)))
    every = np.ones(len(kinds), dtype=bool)
    members = {name: np.array([name in kind[2] for kind in kinds]) for name in names}
    inside = {name: _rates(kinds, counts_MK, members[name]) for name in names}
    outside = {name: _rates(kinds, counts_MK, ~members[name]) for name in names}
    fprs = np.stack([inside[name][0] for name in names], 1) if names else np.empty((draws + 1, 0))
    fnrs = np.stack([inside[name][1] for name in names], 1) if names else np.empty((draws + 1, 0))
    apart = [np.abs(inside[name][0] - outside[name][0]) for name in names]
    return Bias(
        overall=_told(kinds, count_K, every, _rates(kinds, counts_MK, every)),
        groups=[
            GroupBias(
                group=name,
                inside=_told(kinds, count_K, members[name], inside[name]),
                background=_told(kinds, count_K, ~members[name], outside[name]),
                fpr_difference=_interval(inside[name][0] - outside[name][0]),
                fnr_difference=_interval(inside[name][1] - outside[name][1]),
            )
            for name in names
        ],
        fpr_gap=_interval(_gap(fprs)),
        fnr_gap=_interval(_gap(fnrs)),
        mean_fpr_difference=_interval(_mean(np.stack(apart, 1))) if names else None,
        missing=[name for name in names if np.isnan(inside[name][0][0])],
    )


def collateral(before: ArrayLike, after: ArrayLike, draws: int = DRAWS, seed: int = 0) -> Collateral:
    """What changed between two sets of predictions of the same rows.

    They are decisions, probabilities of yes [N], or probabilities of each class [N, C]; p is then that of the
    class that was decided before.
    """
    first, second = np.asarray(before), np.asarray(after)
    if first.shape != second.shape:
        raise DataError(f"{len(first)} and {len(second)} predictions: give both for the same rows")
    if first.ndim == 2:
        chosen_N = first.argmax(1)
        changed_N = chosen_N != second.argmax(1)
        first, second = (np.take_along_axis(p_NC, chosen_N[:, None], 1)[:, 0] for p_NC in (first, second))
    else:
        changed_N = _decisions(first) != _decisions(second)
    probable = first.dtype.kind == "f" and second.dtype.kind == "f"
    columns = [changed_N, np.abs(first - second)] if probable else [changed_N]
    found = intervals(np.stack(columns, 1), draws=draws, seed=seed)
    return Collateral(len(first), found[0], found[1] if probable else None)


def _decisions(predicted: ArrayLike) -> NDArray[np.bool_]:
    """Yes or no [N]; probabilities say yes from a half."""
    values = np.asarray(predicted)
    if values.dtype.kind == "f":
        if not ((values >= 0) & (values <= 1)).all():
            raise DataError("probabilities lie between 0 and 1: give those of the positive class")
        return values >= 0.5
    return values.astype(bool)


def _kinds(
    predicted_N: NDArray[np.bool_], gold_N: NDArray[np.bool_], groups: Sequence[Collection[str]]
) -> tuple[list[_Kind], NDArray[np.int64]]:
    """The kinds of rows there are, and how many rows are of each."""
    if not len(predicted_N) == len(gold_N) == len(groups):
        sizes = f"{len(predicted_N)} predictions, {len(gold_N)} labels and {len(groups)} sets of groups"
        raise DataError(f"{sizes}: give one of each for every row")
    if not len(gold_N):
        raise DataError("there are no rows: give at least one prediction with its label")
    if any(isinstance(names, str) for names in groups):
        raise DataError("give the groups of a row as a set of names, {'group'}, not as one text")
    sets = map(frozenset, groups)
    found = Counter(zip(predicted_N.tolist(), gold_N.tolist(), sets, strict=True))
    kinds = sorted(found, key=lambda kind: (*kind[:2], sorted(kind[2])))
    return kinds, np.array([found[kind] for kind in kinds])


def _rates(kinds: list[_Kind], counts_MK: _Draws, chosen_K: NDArray[np.bool_]) -> list[_Draws]:
    """False positive rate, false negative rate and accuracy [M] of the chosen rows; NaN without any."""
    said, true = (np.array([kind[i] for kind in kinds]) for i in (0, 1))
    return [
        _ratio(counts_MK, chosen_K & ~true & said, chosen_K & ~true),
        _ratio(counts_MK, chosen_K & true & ~said, chosen_K & true),
        _ratio(counts_MK, chosen_K & (true == said), chosen_K),
    ]


def _ratio(counts_MK: _Draws, part_K: NDArray[np.bool_], whole_K: NDArray[np.bool_]) -> _Draws:
    part_M, whole_M = counts_MK @ part_K, counts_MK @ whole_K
    return np.where(whole_M > 0, part_M / np.maximum(whole_M, 1), np.nan)


def _told(
    kinds: list[_Kind], count_K: NDArray[np.int64], chosen_K: NDArray[np.bool_], rates_RM: list[_Draws]
) -> Rates:
    true_K = np.array([kind[1] for kind in kinds])
    negatives, positives = int(count_K[chosen_K & ~true_K].sum()), int(count_K[chosen_K & true_K].sum())
    return Rates(negatives + positives, negatives, positives, *map(_interval, rates_RM))


def _gap(rates_MG: _Draws) -> _Draws:
    """Largest less smallest rate [M] among the groups that have one; NaN with fewer than two."""
    there_MG = ~np.isnan(rates_MG)
    largest = np.where(there_MG, rates_MG, -np.inf).max(1, initial=-np.inf)
    smallest = np.where(there_MG, rates_MG, np.inf).min(1, initial=np.inf)
    return np.where(there_MG.sum(1) >= 2, largest - smallest, np.nan)


def _mean(values_MG: _Draws) -> _Draws:
    """Mean [M] over the groups that have a value; NaN without any."""
    there_MG = ~np.isnan(values_MG)
    total_M = np.where(there_MG, values_MG, 0.0).sum(1)
    return np.where(there_MG.any(1), total_M / np.maximum(there_MG.sum(1), 1), np.nan)


def _interval(values_M: _Draws) -> Interval | None:
    """The first value, as seen, with the 95 % range of the others that exist; None if it does not exist."""
    seen, drawn = values_M[0], values_M[1:]
    if np.isnan(seen):
        return None
    low, high = np.quantile(drawn[~np.isnan(drawn)], _TAILS)
    return Interval(float(seen), float(low), float(high))
