"""Charts stay in their frame, with few round ticks, whatever the points are."""

import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splade.render.charts import line_chart
from tests.render.documents import Document

WIDTH, HEIGHT = 640, 220
coordinate = st.floats(allow_nan=True, allow_infinity=True)
series = st.dictionaries(
    st.text(max_size=8), st.lists(st.tuples(coordinate, coordinate), max_size=8), max_size=8
)


def drawn(points: dict[str, list[tuple[float, float]]]) -> ElementTree.Element:
    chart = line_chart("caption", points, "x", "y", WIDTH, HEIGHT)
    assert Document(chart).faults == []
    found = re.search(r"<svg.*?</svg>", chart, re.DOTALL)
    assert found is not None
    return ElementTree.fromstring(found.group())


def ticks(points: dict[str, list[tuple[float, float]]], end: str) -> list[str]:
    return [text.text or "" for text in drawn(points).iter("text") if text.get("class") == f"tick {end}"]


@given(series)
def test_every_mark_lies_in_the_frame(points: dict[str, list[tuple[float, float]]]) -> None:
    picture = drawn(points)
    for line in picture.iter("polyline"):
        for pair in (line.get("points") or "").split():
            x, y = map(float, pair.split(","))
            assert 0 <= x <= WIDTH
            assert 0 <= y <= HEIGHT
    assert len(ticks(points, "end")) <= 7


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([0.0, 1.0], ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        ([0.93, 0.971], ["0.93", "0.94", "0.95", "0.96", "0.97"]),
        ([12.5, 4017.0], ["1,000", "2,000", "3,000", "4,000"]),
        ([-2.5, 2.5], ["-2", "-1", "0", "1", "2"]),
        ([0.0, 3e-8], ["0", "1e-08", "2e-08", "3e-08"]),
        ([1.0, 1.0 + 1e-12], ["0.6", "0.8", "1.0", "1.2", "1.4"]),
    ],
)
def test_ticks_are_round(values: list[float], labels: list[str]) -> None:
    assert ticks({"a": list(enumerate(values))}, "end") == labels


def test_whole_values_have_whole_ticks() -> None:
    points = {"loss": [(1.0, 0.5), (2.0, 0.25), (3.0, 0.125)]}
    assert ticks(points, "middle")[:3] == ["1", "2", "3"]


def test_one_point_is_a_dot() -> None:
    picture = drawn({"a": [(1.0, 0.5)]})
    assert len(list(picture.iter("circle"))) == 1
    assert ticks({"a": [(1.0, 0.5)]}, "middle")[:1] == ["1"]


@pytest.mark.parametrize("points", [{}, {"a": []}, {"a": [(0.0, math.nan)]}, {"a": [(math.inf, 1.0)]}])
def test_nothing_to_draw_is_said(points: dict[str, list[tuple[float, float]]]) -> None:
    assert "no data" in "".join(drawn(points).itertext())


def test_a_broken_point_leaves_the_others() -> None:
    picture = drawn({"a": [(0.0, 1.0), (1.0, math.nan), (2.0, 3.0)]})
    (line,) = picture.iter("polyline")
    assert len((line.get("points") or "").split()) == 2


def test_names_are_escaped() -> None:
    chart = line_chart("<b>", {"</svg><script>\u202e": [(0, 0), (1, 1)]}, "<i>", "<u>")
    assert Document(chart).faults == []
    assert "<script" not in chart
    assert "\u202e" not in chart
