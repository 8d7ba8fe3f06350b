"""Intervals cover what may be, draw whole texts, repeat exactly, and do not depend on the order of rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from splade.data.rows import Sentences, Texts
from splade.evaluation import intervals as module
from splade.evaluation.intervals import Interval, TextNumbers, intervals, paired_difference, text_of_row
from splade.inference.rows import EncodedRows
from tests.tiny import SENTENCES, tiny_model


def test_two_texts_are_drawn_as_both_or_either() -> None:
    """Draws of 0 and 1 have means 0, ½ and 1, a quarter of them at each end."""
    [found] = intervals([[0.0], [1.0]])
    assert found == Interval(0.5, 0.0, 1.0)


def test_equal_values_have_no_spread() -> None:
    assert intervals([[0.25, 3.0]] * 7) == [Interval(0.25, 0.25, 0.25), Interval(3.0, 3.0, 3.0)]
    assert intervals([[0.25]]) == [Interval(0.25, 0.25, 0.25)]


def test_nothing_has_zeros() -> None:
    assert intervals(np.zeros((0, 2))) == [Interval(0.0, 0.0, 0.0)] * 2
    assert intervals(np.zeros((0, 1)), np.zeros(0, dtype=int)) == [Interval(0.0, 0.0, 0.0)]


def test_the_interval_tends_to_that_of_the_normal_limit() -> None:
    values = np.random.default_rng(1).exponential(size=(3000, 1))
    [found] = intervals(values)
    half = 1.96 * values.std() / math.sqrt(len(values))
    assert found.mean == pytest.approx(values.mean())
    assert found.low == pytest.approx(values.mean() - half, abs=0.1 * half)
    assert found.high == pytest.approx(values.mean() + half, abs=0.1 * half)


def test_about_95_of_100_intervals_hold_the_truth() -> None:
    samples = np.random.default_rng(2).normal(size=(80, 300))
    held = [one.low <= 0 <= one.high for one in intervals(samples)]
    assert 0.90 <= sum(held) / len(held) <= 0.99


def test_rows_of_one_text_are_drawn_together() -> None:
    """A text of three rows and one of a single row: a draw of both has the mean of all four rows."""
    [found] = intervals([[1.0], [1.0], [1.0], [0.0]], [7, 7, 7, 2])
    assert found == Interval(0.75, 0.0, 1.0)
    values, texts = np.random.default_rng(3).normal(size=(50, 1)), np.arange(50)
    [once], [copied] = intervals(values, texts), intervals(values.repeat(9, 0), texts.repeat(9))
    assert (copied.low, copied.high) == pytest.approx((once.low, once.high))
    [as_if_apart] = intervals(values.repeat(9, 0))
    assert as_if_apart.high - as_if_apart.low < 0.5 * (once.high - once.low)


def test_the_order_of_rows_changes_nothing_where_texts_are_known() -> None:
    maker = np.random.default_rng(4)
    values, texts, order = maker.normal(size=(40, 2)), maker.integers(0, 15, 40), maker.permutation(40)
    for one, other in zip(intervals(values, texts), intervals(values[order], texts[order]), strict=True):
        assert (one.mean, one.low, one.high) == pytest.approx((other.mean, other.low, other.high), abs=1e-12)


def test_draws_repeat_and_do_not_depend_on_how_many_are_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(5).normal(size=(30, 1))
    whole = intervals(values)
    assert intervals(values) == whole
    assert intervals(values, seed=1) != whole
    monkeypatch.setattr(module, "_WEIGHTS_AT_ONCE", 30 * 7)
    assert [(i.low, i.high) for i in intervals(values)] == [pytest.approx((i.low, i.high)) for i in whole]


def test_a_broken_number_is_not_hidden() -> None:
    [found] = intervals([[1.0], [math.nan]])
    assert math.isnan(found.mean)
    assert math.isnan(found.high)


def test_a_paired_difference_is_the_mean_of_differences() -> None:
    maker = np.random.default_rng(6)
    first = maker.normal(size=400)
    second = first - 0.01 + 0.02 * maker.normal(size=400)  # far below the spread of either
    found = paired_difference(first, second)
    assert found is not None
    [alone] = intervals((first - second)[:, None])
    assert (found.difference, found.low, found.high) == (alone.mean, alone.low, alone.high)
    assert found.low > 0
    assert (found.n, found.p) == (400, pytest.approx(2 / 2001))
    back = paired_difference(second, first)
    assert back is not None
    assert (back.difference, back.low, back.high) == pytest.approx(
        (-found.difference, -found.high, -found.low)
    )


def test_equal_explainers_do_not_differ_and_unlike_rows_are_not_compared() -> None:
    same = paired_difference([0.1, 0.5], [0.1, 0.5])
    assert same is not None
    assert (same.difference, same.low, same.high, same.p) == (0.0, 0.0, 0.0, 1.0)
    assert paired_difference([], []) is None
    assert paired_difference([1.0], [1.0, 2.0]) is None


def test_texts_are_counted_not_rows() -> None:
    found = paired_difference([1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [4, 4, 9])
    assert found is not None
    assert found.n == 2
    assert found.difference == pytest.approx(2.0)


def test_each_row_belongs_to_the_example_it_came_from() -> None:
    texts = Texts(list(SENTENCES), [0] * len(SENTENCES))
    assert text_of_row(EncodedRows(texts, tiny_model()).batch([5, 2])).tolist() == [5, 2]
    words = [sentence.split() for sentence in SENTENCES]
    tagged = Sentences(words, [["O"] * len(sentence) for sentence in words])
    batch = EncodedRows(tagged, tiny_model(task="tagging")).batch([3, 1])
    assert text_of_row(batch).tolist() == [3] * len(words[3]) + [1] * len(words[1])


def test_rows_without_a_text_are_texts_of_their_own() -> None:
    numbers = TextNumbers()
    numbers.update(2)
    numbers.update(3)
    assert numbers.result().tolist() == [0, 1, 2, 3, 4]
    named = TextNumbers()
    named.update(2, torch.tensor([8, 8]))
    assert named.result().tolist() == [8, 8]
