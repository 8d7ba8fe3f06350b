"""Charts stay in their frame, with few round ticks, whatever the points are."""

import math
import re
from typing import Any
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


def drawn(points: dict[str, list[tuple[float, float]]], **options: Any) -> ElementTree.Element:
    chart = line_chart("caption", points, "x", "y", WIDTH, HEIGHT, **options)
    assert Document(chart).faults == []
    found = re.search(r"<svg.*?</svg>", chart, re.DOTALL)
    assert found is not None
    return ElementTree.fromstring(found.group())


def ticks(points: dict[str, list[tuple[float, float]]], end: str, **options: Any) -> list[str]:
    picture = drawn(points, **options)
    return [text.text or "" for text in picture.iter("text") if text.get("class") == f"tick {end}"]


def places(picture: ElementTree.Element, hue: int) -> list[tuple[float, float]]:
    """The points of the lines in one colour."""
    lines = [line for line in picture.iter("polyline") if line.get("class") == f"line s{hue}"]
    pairs = [pair.split(",") for line in lines for pair in (line.get("points") or "").split()]
    return [(float(x), float(y)) for x, y in pairs]


@given(series, series, st.booleans(), coordinate)
def test_every_mark_lies_in_the_frame(
    points: dict[str, list[tuple[float, float]]],
    bounds: dict[str, list[tuple[float, float]]],
    log: bool,
    mark: float,
) -> None:
    picture = drawn(points, bounds=bounds, log=log, mark=mark)
    for line in picture.iter("polyline"):
        for pair in (line.get("points") or "").split():
            x, y = map(float, pair.split(","))
            assert 0 <= x <= WIDTH
            assert 0 <= y <= HEIGHT
    assert len(ticks(points, "end", log=log)) <= 7


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([0.0, 1.0], ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        ([0.93, 0.971], ["0.93", "0.94", "0.95", "0.96", "0.97"]),
        ([12.5, 4017.0], ["1,000", "2,000", "3,000", "4,000"]),
        ([-2.5, 2.5], ["-2", "-1", "0", "1", "2"]),
        ([0.0, 3e-8], ["0", "1e-08", "2e-08", "3e-08"]),
        ([1.0, 1.0 + 1e-12], ["0.90", "0.95", "1.00", "1.05", "1.10"]),
    ],
)
def test_ticks_are_round(values: list[float], labels: list[str]) -> None:
    assert ticks({"a": list(enumerate(values))}, "end") == labels


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([0.00674, 148.4], ["0.01", "0.1", "1", "10", "100"]),
        ([30.0, 1000.0], ["50", "100", "200", "500", "1,000"]),
        ([1e-9, 1e9], ["1e-09", "1e-05", "0.1", "1,000", "1e+07"]),
        ([3.0, 4.2], ["3.0", "3.5", "4.0"]),
        ([2.0, 2.0], ["1", "2"]),
    ],
)
def test_ticks_of_a_log_scale_are_round(values: list[float], labels: list[str]) -> None:
    assert ticks({"a": list(enumerate(values))}, "end", log=True) == labels


def test_equal_factors_are_equally_far_apart_on_a_log_scale() -> None:
    heights = [y for _, y in places(drawn({"a": [(0, 0.5), (1, 5), (2, 50)]}, log=True), 0)]
    assert heights[0] - heights[1] == pytest.approx(heights[1] - heights[2], abs=0.2)


def test_what_is_not_positive_has_no_place_on_a_log_scale() -> None:
    assert len(places(drawn({"a": [(0, 1), (1, 0), (2, -1), (3, 2)]}, log=True), 0)) == 2


def test_a_bound_reaches_half_a_unit_to_either_side_and_no_further_than_the_axis() -> None:
    line = {"a": [(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]}
    (left, _), (middle, _), (right, _) = places(drawn(line), 0)
    found = places(drawn(line, bounds={"most": [(2.0, 2.0), (3.0, 2.0)]}), 5)
    assert [x for x, _ in found] == pytest.approx(
        [(left + middle) / 2, (middle + right) / 2, (middle + right) / 2, right], abs=0.1
    )
    whole = places(drawn({"a": [(1.0, 3.0)]}, bounds={"most": [(1.0, 2.0)]}), 5)
    assert whole[-1][0] - whole[0][0] == pytest.approx(right - left, abs=0.1)


def test_a_bound_beyond_the_lines_stretches_the_axis() -> None:
    assert ticks({"a": [(0, 1), (1, 2)]}, "end", bounds={"most": [(0, 10)]})[-1] == "10"


def test_bounds_alone_are_nothing_to_draw() -> None:
    assert "no data" in "".join(drawn({"a": []}, bounds={"most": [(0, 10)]}).itertext())


def test_a_series_without_points_keeps_its_colour_and_has_no_legend() -> None:
    chart = line_chart("caption", {"first": [], "second": [(0, 1), (1, 2)]}, "x", "y", WIDTH, HEIGHT)
    assert "first" not in chart
    assert places(drawn({"first": [], "second": [(0, 1), (1, 2)]}), 0) == []
    assert len(places(drawn({"first": [], "second": [(0, 1), (1, 2)]}), 1)) == 2


@pytest.mark.parametrize(("mark", "count"), [(None, 0), (1.5, 1), (0.0, 0), (9.0, 0), (math.nan, 0)])
def test_a_mark_stands_where_the_axis_has_it(mark: float | None, count: int) -> None:
    picture = drawn({"a": [(1.0, 1.0), (2.0, 2.0)]}, mark=mark)
    upright = [path for path in picture.iter("path") if re.search(r"V\d", path.get("d") or "")]
    assert len(upright) == count


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
