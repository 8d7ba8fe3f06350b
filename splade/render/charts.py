"""Line charts as inline SVG for a report page: classes of its style sheet, no style attribute, no script.

1. Points that are not finite, too large to scale, or below zero on a log scale, are left out.
2. Each axis spans its points and carries at most six round numbers.
3. Points are scaled into the frame; a series of one point is a dot.
4. A bound is a level that reaches half a unit of x to either side of each of its points.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from splade.render.html import render

_HUES = 5  # the style sheet's series classes s0..s4
_GREY = 5  # s5, for bounds
_TINY, _HUGE = 1e-300, 1e300
_TOP, _BOTTOM, _RIGHT, _DIGIT = 26, 44, 16, 7.2  # pixels
_INSET = 6  # pixels between the lowest level and the axis below it
_MOST_TICKS = 6

Points = Sequence[tuple[float, float]]


class _Axis(NamedTuple):
    low: float
    high: float
    ticks: list[float]
    labels: list[str]
    log: bool = False

    def scale(self, value: float, start: float, end: float) -> float:
        """Where a value lies between the pixels `start` and `end`."""
        low, high, value = (
            math.log10(number) if self.log else number for number in (self.low, self.high, value)
        )
        return round(start + (value - low) / (high - low) * (end - start), 1)


class _Frame(NamedTuple):
    x: _Axis
    y: _Axis
    left: float
    right: float
    bottom: float

    def place(self, points: Points) -> Points:
        return [(self.across(x), self.up(y)) for x, y in points]

    def across(self, x: float) -> float:
        return self.x.scale(x, self.left, self.right)

    def up(self, y: float) -> float:
        return self.y.scale(y, self.bottom - _INSET, _TOP)

    def ticks(self) -> dict[str, list[dict[str, object]]]:
        """The round numbers of both axes, each with its place."""
        return {
            "x_ticks": [{"at": self.across(t), "text": s} for t, s in _paired(self.x)],
            "y_ticks": [{"at": self.up(t), "text": s} for t, s in _paired(self.y)],
        }


def line_chart(
    caption: str,
    series: Mapping[str, Points],
    x_label: str,
    y_label: str,
    width: int = 640,
    height: int = 220,
    *,
    bounds: Mapping[str, Points] | None = None,
    log: bool = False,
    mark: float | None = None,
) -> Markup:
    """Each series as a line over common axes, with a legend; `log` is of y, `mark` an upright line.

    A series without points is not drawn, but its colour is not given to another.
    """
    lines = {name: _drawable(points, log) for name, points in series.items()}
    levels = {name: _drawable(points, log) for name, points in (bounds or {}).items()}
    levels = {name: points for name, points in levels.items() if points and any(lines.values())}
    frame = _frame([*lines.values()], [*levels.values()], width, height - _BOTTOM, log)
    drawn = [_line(name, i % _HUES, frame.place(points)) for i, (name, points) in enumerate(lines.items())]
    drawn += [_line(name, _GREY, frame.place(_steps(points, frame.x))) for name, points in levels.items()]
    return render(
        "chart.html",
        caption=caption,
        x_label=x_label,
        y_label=y_label,
        width=width,
        height=height,
        left=frame.left,
        right=frame.right,
        top=_TOP,
        bottom=frame.bottom,
        mark=frame.across(mark) if mark is not None and frame.x.low < mark < frame.x.high else None,
        lines=[line for line in drawn if line["points"]],
        **frame.ticks(),
    )


def _frame(
    lines: Sequence[Points], levels: Sequence[Points], width: float, bottom: float, log: bool
) -> _Frame:
    """Axes that span the lines, and upwards and downwards the bounds too."""
    xs = [x for points in lines for x, _ in points]
    ys = [y for points in (*lines, *levels) for _, y in points]
    x_axis = _axis(xs, whole=all(float(x).is_integer() for x in xs))
    y_axis = _log_axis(ys) if log else _axis(ys)
    left = 12 + _DIGIT * max(map(len, y_axis.labels), default=0)
    return _Frame(x_axis, y_axis, left, width - _RIGHT, bottom)


def _line(name: str, hue: int, points: Points) -> dict[str, object]:
    joined = " ".join(f"{x},{y}" for x, y in points)
    return {"name": name, "hue": hue, "points": joined, "single": points[0] if len(points) == 1 else None}


def _steps(points: Points, axis: _Axis) -> Points:
    """The level of a bound about each of its points, as far as the axis goes."""
    ends = [((x - 0.5, y), (x + 0.5, y)) for x, y in points if axis.low < x + 0.5 and x - 0.5 < axis.high]
    return [(min(max(x, axis.low), axis.high), y) for both in ends for x, y in both]


def _drawable(points: Points, log: bool) -> Points:
    least = _TINY if log else -_HUGE
    return [(x, y) for x, y in points if abs(x) < _HUGE and least < y < _HUGE]


def _axis(values: Sequence[float], whole: bool = False) -> _Axis:
    """From the lowest to the highest value, with round, perhaps whole, numbers between them."""
    if not values:
        return _Axis(0.0, 1.0, [], [])
    low, high = min(values), max(values)
    if high - low <= max(_TINY, 1e-9 * max(abs(low), abs(high))):
        low, high = low - (abs(low) / 10 or 0.5), high + (abs(high) / 10 or 0.5)
    step = max(_round_step((high - low) / 5), 1.0 if whole else 0.0)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    ticks = [index * step for index in range(first, last + 1)]
    decimals = max(0, -math.floor(math.log10(step)))
    plain = 1e-5 < step < 1e6
    return _Axis(low, high, ticks, [f"{t:,.{decimals}f}" if plain else f"{t:.3g}" for t in ticks])


def _log_axis(values: Sequence[float]) -> _Axis:
    """The same on a log scale: powers of ten, and 2 and 5 times them where there is room."""
    if not values:
        return _Axis(1.0, 10.0, [], [], log=True)
    low, high = min(values), max(values)
    if high <= low * (1 + 1e-9):
        low, high = low / 2, high * 2
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    fine = [f * 10.0**p for p in exponents for f in (1, 2, 5) if low <= f * 10.0**p <= high]
    powers = [10.0**p for p in exponents if low <= 10.0**p <= high]
    for ticks in (fine, powers[:: math.ceil(len(powers) / _MOST_TICKS) or 1]):
        if 2 <= len(ticks) <= _MOST_TICKS:
            return _Axis(low, high, ticks, [f"{t:,g}" for t in ticks], log=True)
    return _axis([low, high])._replace(log=True)


def _round_step(least: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is not below `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= 0.999 * least)


def _paired(axis: _Axis) -> list[tuple[float, str]]:
    return list(zip(axis.ticks, axis.labels, strict=True))
