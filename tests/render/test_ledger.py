"""Printed figures add up to the printed logit, to the last digit."""

import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splade.render.ledger import equation, ledger, number, percent, signed, strength
from tests.render.samples import CASES, REVIEW, ablation, explanation

finite = st.floats(-1e6, 1e6).filter(lambda value: value == 0 or abs(value) > 1e-9)
SUMS = [case for case in CASES if case not in ("ablation", "not a number")]


def assert_adds_up(data: dict[str, Any], top: int) -> None:
    book = ledger(data, top)
    rest = [Decimal(figure) for figure in (book.rest, book.unattributed) if figure]
    words = sum(map(Decimal, book.figures)) + (Decimal(book.rest) if book.rest else 0)
    assert words == Decimal(book.words)
    assert sum(map(Decimal, book.figures)) + sum(rest) + Decimal(book.bias) == Decimal(book.logit)


@pytest.mark.parametrize("case", SUMS)
@pytest.mark.parametrize("top", [0, 1, 3, 15])
def test_figures_add_up_to_the_logit(case: str, top: int) -> None:
    assert_adds_up(CASES[case], top)


@given(st.lists(finite, max_size=30), finite, st.integers(0, 12))
def test_figures_of_any_contributions_add_up(values: list[float], bias: float, top: int) -> None:
    reads = {f"word{index}": ("here", value) for index, value in enumerate(values)}
    assert_adds_up(explanation("here", reads, bias=bias), top)


@given(st.lists(finite, min_size=1, max_size=30))
def test_each_figure_is_its_value_rounded_up_or_down(values: list[float]) -> None:
    book = ledger(explanation("here", {f"w{i}": ("here", value) for i, value in enumerate(values)}), 50)
    for word, figure in zip(book.shown, book.figures, strict=True):
        assert float(figure) == pytest.approx(word["contribution"], abs=1.001 * 10**-book.places)


def test_a_part_that_no_word_explains_is_its_own_line() -> None:
    book = ledger(CASES["cut"], 5)
    assert book.unattributed == "+0.50"
    assert "unattributed +0.50" in equation(book)
    assert ledger(REVIEW, 5).unattributed == ""


def test_overlapping_effects_are_not_called_a_sum() -> None:
    book = ledger(ablation(), 5)
    assert not book.sums
    assert book.rest == book.unattributed == ""
    assert equation(book) == book.logit


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_broken_figure_is_shown_as_it_is(value: float) -> None:
    book = ledger(explanation("a b", {"broken": ("a", value), "sound": ("b", 1.0)}), 5)
    assert any(str(value) in figure for figure in book.figures)
    assert 0 <= strength(value, book.peak) <= 1


@pytest.mark.parametrize(
    ("probability", "shown"),
    [(1.0, "100.0%"), (0.99999, ">99.9%"), (0.5, "50.0%"), (1e-9, "<0.1%"), (0.0, "0.0%")],
)
def test_an_uncertain_prediction_is_never_certain(probability: float, shown: str) -> None:
    assert percent(probability) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "–"), (True, "yes"), (1234567, "1,234,567"), (0.9311, "0.931"), (3e-8, "3.0e-08"), ("a", "a")],
)
def test_a_number_is_written_for_reading(value: object, shown: str) -> None:
    assert number(value) == shown


def test_nothing_is_ever_minus_zero() -> None:
    assert signed(-0.001, 2) == "+0.00"
