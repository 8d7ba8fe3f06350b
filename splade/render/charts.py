"""Line charts as inline SVG for a report page: classes of its style sheet, no style attribute, no script.

1. Points that are not finite, or too large to scale, are left out.
2. Each axis spans its points and carries at most six round numbers.
3. Points are scaled into the frame; a series of one point is a dot.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from splade.render.html import render

_HUES = 6  # the style sheet's series classes s0..s5
_TINY, _HUGE = 1e-300, 1e300
_TOP, _BOTTOM, _RIGHT, _DIGIT = 26, 44, 16, 7.2  # pixels

Points = Sequence[tuple[float, float]]


class _Axis(NamedTuple):
    low: float
    high: float
    ticks: list[float]
    labels: list[str]


def line_chart(
    caption: str,
    series: Mapping[str, Points],
    x_label: str,
    y_label: str,
    width: int = 640,
    height: int = 220,
) -> Markup:
    """Each series as a line over common axes, with a legend."""
    kept = {name: [p for p in points if _drawable(p)] for name, points in series.items()}
    xs, ys = ([p[i] for points in kept.values() for p in points] for i in (0, 1))
    x_axis, y_axis = _axis(xs, whole=all(float(x).is_integer() for x in xs)), _axis(ys)
    left, right = 12 + _DIGIT * max(map(len, y_axis.labels), default=0), width - _RIGHT
    bottom = height - _BOTTOM

    def place(point: tuple[float, float]) -> tuple[float, float]:
        return _scale(point[0], x_axis, left, right), _scale(point[1], y_axis, bottom, _TOP)

    return render(
        "chart.html",
        caption=caption,
        x_label=x_label,
        y_label=y_label,
        width=width,
        height=height,
        left=left,
        right=right,
        bottom=bottom,
        x_ticks=_placed(x_axis, left, right),
        y_ticks=_placed(y_axis, bottom, _TOP),
        lines=[
            _line(name, index % _HUES, [place(point) for point in points])
            for index, (name, points) in enumerate(kept.items())
        ],
    )


def _line(name: str, hue: int, points: Points) -> dict[str, object]:
    joined = " ".join(f"{x},{y}" for x, y in points)
    return {"name": name, "hue": hue, "points": joined, "single": points[0] if len(points) == 1 else None}


def _drawable(point: tuple[float, float]) -> bool:
    return all(abs(value) < _HUGE for value in point)


def _axis(values: Sequence[float], whole: bool = False) -> _Axis:
    """From the lowest to the highest value, with round, perhaps whole, numbers between them."""
    if not values:
        return _Axis(0.0, 1.0, [], [])
    low, high = min(values), max(values)
    if high - low <= max(_TINY, 1e-9 * max(abs(low), abs(high))):
        low, high = low - (abs(low) / 2 or 0.5), high + (abs(high) / 2 or 0.5)
    step = max(_round_step((high - low) / 5), 1.0 if whole else 0.0)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    ticks = [index * step for index in range(first, last + 1)]
    decimals = max(0, -math.floor(math.log10(step)))
    plain = 1e-5 < step < 1e6
    return _Axis(low, high, ticks, [f"{t:,.{decimals}f}" if plain else f"{t:.3g}" for t in ticks])


def _round_step(least: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is not below `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= 0.999 * least)


def _scale(value: float, axis: _Axis, start: float, end: float) -> float:
    return round(start + (value - axis.low) / (axis.high - axis.low) * (end - start), 1)


def _placed(axis: _Axis, start: float, end: float) -> list[dict[str, object]]:
    marks = zip(axis.ticks, axis.labels, strict=True)
    return [{"at": _scale(tick, axis, start, end), "text": text} for tick, text in marks]
