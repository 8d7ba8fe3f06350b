"""Statistics over seeds and rows agree with their definitions and do not cry wolf."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from splade.evaluation.seeds import headline, paired_bootstrap, paired_t, spread, summarise

RIGHT, WRONG = (1, 1, 1), (0, 1, 1)


def test_the_spread_is_that_of_a_sample() -> None:
    found = spread([0.8, 0.9, 1.0])
    assert found.mean == pytest.approx(0.9)
    assert found.sd == pytest.approx(0.1)
    assert spread([0.8]).sd is None


def test_every_number_that_all_runs_have_is_summarised() -> None:
    one = {"accuracy": 0.5, "dla": {"mean": 1e-7}, "history": [1], "settings": {"seed": 0}, "complete": True}
    two = {"accuracy": 0.7, "dla": {"mean": 3e-7}, "extra": 1, "settings": {"seed": 1}, "complete": True}
    found = summarise([one, two])
    assert set(found) == {"accuracy", "dla.mean"}
    assert found["dla.mean"].mean == pytest.approx(2e-7)
    assert found["accuracy"].values == [0.5, 0.7]
    assert summarise([]) == {}


def test_runs_are_compared_by_f1_where_there_is_one() -> None:
    assert headline({"accuracy": 0.9, "f1": 0.4}) == ("f1", 0.4)
    assert headline({"accuracy": 0.9, "f1": None}) == ("accuracy", 0.9)


def test_the_paired_t_test_is_that_of_the_literature() -> None:
    first, second = [0.91, 0.88, 0.93, 0.90], [0.89, 0.885, 0.90, 0.87]
    found, reference = paired_t(first, second), stats.ttest_rel(first, second)
    interval = reference.confidence_interval(0.95)
    assert found is not None
    assert found.p == pytest.approx(reference.pvalue)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    back = paired_t(second, first)
    assert back is not None
    assert back.difference == pytest.approx(-found.difference)


def test_a_t_test_needs_two_seeds_and_survives_equal_gaps() -> None:
    assert paired_t([0.9], [0.8]) is None
    same, always = paired_t([0.9, 0.8], [0.9, 0.8]), paired_t([0.9, 0.8], [0.8, 0.7])
    assert same is not None
    assert always is not None
    assert (same.difference, same.p) == (0.0, 1.0)
    assert always.difference == pytest.approx(0.1)
    assert always.p == 0.0


def test_equal_systems_do_not_differ() -> None:
    rows = [RIGHT] * 60 + [WRONG] * 40
    found = paired_bootstrap([rows], [rows])
    assert found is not None
    assert (found.difference, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)


def test_the_bootstrap_agrees_with_the_normal_limit() -> None:
    maker = np.random.default_rng(1)
    first = [RIGHT if u < 0.8 else WRONG for u in maker.random(2000)]
    second = [RIGHT if u < 0.75 else WRONG for u in maker.random(2000)]
    found = paired_bootstrap([first], [second])
    assert found is not None
    gaps = np.array([a[0] - b[0] for a, b in zip(first, second, strict=True)])
    half = 1.96 * gaps.std() / math.sqrt(len(gaps))
    assert found.difference == pytest.approx(gaps.mean())
    assert found.low == pytest.approx(gaps.mean() - half, abs=0.004)
    assert found.high == pytest.approx(gaps.mean() + half, abs=0.004)
    assert found.p < 0.01


def test_pairing_sees_what_is_lost_unpaired() -> None:
    rows = [RIGHT, WRONG] * 200
    better = [RIGHT] * 20 + rows[20:]  # ten rows more, and none worse
    found = paired_bootstrap([better], [rows])
    assert found is not None
    assert found.low > 0


def test_the_same_draws_come_again() -> None:
    first, second = [RIGHT] * 30 + [WRONG] * 10, [RIGHT] * 25 + [WRONG] * 15
    assert paired_bootstrap([first], [second]) == paired_bootstrap([first], [second])


def test_seeds_do_not_multiply_rows() -> None:
    first, second = [RIGHT] * 30 + [WRONG] * 10, [RIGHT] * 25 + [WRONG] * 15
    one, three = paired_bootstrap([first], [second]), paired_bootstrap([first] * 3, [second] * 3)
    assert one is not None
    assert three is not None
    assert three.n == 40
    assert (three.low, three.high) == pytest.approx((one.low, one.high))


def test_entities_are_scored_by_f1() -> None:
    rows = [(1, 2, 1), (0, 0, 1)]  # one of two found is right; two were there
    found = paired_bootstrap([rows], [[(0, 0, 1), (0, 0, 1)]])
    assert found is not None
    assert found.difference == pytest.approx(2 * 1 / (2 + 2))


def test_rows_that_are_not_the_same_are_not_compared() -> None:
    assert paired_bootstrap([[RIGHT]], [[RIGHT, WRONG]]) is None
    assert paired_bootstrap([], []) is None
