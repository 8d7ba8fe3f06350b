"""Rates by group are those counted by hand; what cannot be measured is missing, not 0."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splade.errors import DataError
from splade.evaluation.bias import Bias, Rates, collateral, evaluate_bias
from splade.evaluation.intervals import Interval

# said, is, groups: 'red' errs on 1 of 2 negatives and 1 of 2 positives, 'blue' on 0 of 3 negatives
ROWS = [
    (1, 0, {"red"}),
    (0, 0, {"red"}),
    (1, 1, {"red", "blue"}),
    (0, 1, {"red"}),
    (0, 0, {"blue"}),
    (0, 0, {"blue"}),
    (0, 0, {"blue"}),
    (1, 0, set()),
    (1, 1, set()),
    (1, 1, {"green"}),
]


def measured(rows: list[tuple[int, int, set[str]]], **settings: int) -> Bias:
    said, true, groups = zip(*rows, strict=True)
    return evaluate_bias(np.array(said, dtype=bool), np.array(true, dtype=bool), groups, **settings)


def means(rates: Rates) -> list[float | None]:
    return [None if found is None else found.mean for found in (rates.fpr, rates.fnr, rates.accuracy)]


def test_rates_by_hand() -> None:
    found = measured(ROWS)
    by_name = {group.group: group for group in found.groups}
    assert list(by_name) == ["blue", "green", "red"]
    assert means(found.overall) == pytest.approx([2 / 6, 1 / 4, 7 / 10])
    assert means(by_name["red"].inside) == pytest.approx([1 / 2, 1 / 2, 1 / 2])
    assert means(by_name["red"].background) == pytest.approx([1 / 4, 0, 5 / 6])
    assert means(by_name["blue"].inside) == pytest.approx([0, 0, 1])
    assert means(by_name["blue"].background) == pytest.approx([2 / 3, 1 / 3, 3 / 6])
    assert by_name["red"].fpr_difference.mean == pytest.approx(1 / 4)
    assert by_name["red"].fnr_difference.mean == pytest.approx(1 / 2)
    assert (by_name["red"].inside.negatives, by_name["red"].inside.positives) == (2, 2)
    assert found.fpr_gap.mean == pytest.approx(1 / 2)
    assert found.fnr_gap.mean == pytest.approx(1 / 2)
    assert found.mean_fpr_difference.mean == pytest.approx((1 / 4 + 2 / 3) / 2)


def test_a_group_without_negatives_is_missing_and_takes_no_part_in_the_gap() -> None:
    found = measured(ROWS)
    green = next(group for group in found.groups if group.group == "green")
    assert green.inside.fpr is None
    assert green.fpr_difference is None
    assert green.inside.fnr.mean == 0.0
    assert green.background.fpr.mean == pytest.approx(2 / 6)
    assert found.missing == ["green"]
    # were it counted as 0, the gap with red alone would be a half
    assert measured([row for row in ROWS if "blue" not in row[2]]).fpr_gap is None


def test_a_group_of_everyone_has_no_background() -> None:
    found = measured([(said, true, {"all"}) for said, true, _ in ROWS])
    [everyone] = found.groups
    assert means(everyone.background) == [None, None, None]
    assert everyone.fpr_difference is None
    assert found.mean_fpr_difference is None
    assert means(everyone.inside) == means(found.overall)


def test_rows_without_groups_have_rates_and_no_gaps() -> None:
    found = measured([(1, 0, set()), (0, 1, set())])
    assert means(found.overall) == [1.0, 1.0, 0.0]
    assert (found.groups, found.fpr_gap, found.mean_fpr_difference) == ([], None, None)


def test_probabilities_say_yes_from_a_half() -> None:
    groups = [{"g"}] * 3
    found = evaluate_bias([0.5, 0.49, 1.0], [0, 0, 1], groups)
    assert means(found.overall) == pytest.approx([0.5, 0.0, 2 / 3])


def test_the_interval_of_a_rate_is_that_of_the_binomial() -> None:
    """200 negatives with 50 errors, and nothing else: a draw errs on Binomial(200, 1/4) rows."""
    found = measured([(int(i < 50), 0, {"g"}) for i in range(200)], draws=4000)
    rate = found.overall.fpr
    spread = (0.25 * 0.75 / 200) ** 0.5
    assert rate.low == pytest.approx(0.25 - 1.96 * spread, abs=0.006)
    assert rate.high == pytest.approx(0.25 + 1.96 * spread, abs=0.006)
    assert found.groups[0].inside.fpr == rate  # the same draws


def test_a_difference_has_a_narrower_interval_for_more_rows() -> None:
    few, many = (measured(ROWS * times) for times in (3, 30))
    widths = [bias.fpr_gap.high - bias.fpr_gap.low for bias in (few, many)]
    assert many.fpr_gap.mean == few.fpr_gap.mean
    assert widths[1] < widths[0] / 2


@given(st.permutations(range(len(ROWS))), st.integers(0, 5))
def test_the_order_of_rows_changes_nothing(order: list[int], seed: int) -> None:
    assert measured([ROWS[i] for i in order], seed=seed, draws=50) == measured(ROWS, seed=seed, draws=50)


def test_the_report_is_json_with_missing_rates_as_null() -> None:
    values = json.loads(json.dumps(measured(ROWS).to_dict(), allow_nan=False))
    assert values["groups"][1]["inside"]["fpr"] is None
    assert values["fpr_gap"]["mean"] == 0.5


def test_collateral_by_hand() -> None:
    found = collateral([0.9, 0.4, 0.5, 0.1], [0.7, 0.6, 0.5, 0.1])
    assert found.rows == 4
    assert found.changed.mean == 0.25
    assert found.moved.mean == pytest.approx(0.1)
    assert found.moved.low <= 0.1 <= found.moved.high
    plain = collateral([True, False], [True, True])
    assert (plain.changed.mean, plain.moved) == (0.5, None)
    assert collateral([0.3, 0.8], [0.3, 0.8]).moved == Interval(0.0, 0.0, 0.0)


def test_collateral_of_classes_follows_the_class_decided_before() -> None:
    before, after = [[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]], [[0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    found = collateral(before, after)
    assert (found.rows, found.changed.mean) == (2, 0.5)
    assert found.moved.mean == pytest.approx((0.5 + 0.2) / 2)
    yes, no = np.array([0.9, 0.4, 0.6]), np.array([0.7, 0.6, 0.2])
    assert collateral(np.stack([1 - yes, yes], 1), np.stack([1 - no, no], 1)) == collateral(yes, no)


@pytest.mark.parametrize(
    ("predicted", "gold", "groups", "line"),
    [
        ([True], [True, False], [set()], "one of each"),
        ([], [], [], "no rows"),
        ([1.5], [True], [set()], "between 0 and 1"),
        ([float("nan")], [True], [set()], "between 0 and 1"),
        ([True], [True], ["red"], "set of names"),
    ],
)
def test_what_cannot_be_measured_says_what_to_give(predicted, gold, groups, line) -> None:
    with pytest.raises(DataError, match=line):
        evaluate_bias(predicted, gold, groups)
