"""The course of a removal: accuracy, gap and leakage against the number of words gone, drawn and listed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from splade.render import html
from splade.render.charts import line_chart
from splade.render.ledger import percent
from splade.render.text import label
from splade.report.comparison import Table
from splade.report.sections import Results

_FIGURES = {"gap": "Gap", "accuracy": "Accuracy", "leakage": "Leakage"}
_WIDTH = 420


def interval(found: Mapping[str, Any] | None) -> str | None:
    """A share with its 95 % interval, None for what was not measured."""
    if found is None:
        return None
    return f"{percent(found['mean'])} ({percent(found['low'])} to {percent(found['high'])})"


def listed(words: Sequence[str], most: int = 6) -> str:
    """The first words in quotation marks, and how many more there are."""
    shown = ", ".join(f"“{label(word)}”" for word in words[:most])
    return shown + (f" and {len(words) - most} more" if len(words) > most else "")


def course_table(points: Sequence[Results]) -> Table:
    """A line for each step, with the figures that were measured."""
    figures = _measured(points)
    rows: list[list[object]] = [
        [
            ("then " if number > 1 else "") + listed(point["removed"]) or "nothing",
            *(interval(point[name]) for name in figures),
            point.get("changed"),
        ]
        for number, point in enumerate(points)
    ]
    return ["Removed", *(_FIGURES[name] for name in figures), "Predictions changed"], rows


def course_charts(points: Sequence[Results]) -> Markup:
    """Each figure against the number of words removed, its interval in grey."""
    if len(points) < 3:
        return Markup()
    return html.columns([_chart(points, name) for name in _measured(points)])


def _chart(points: Sequence[Results], name: str) -> Markup:
    def series(key: str) -> list[tuple[float, float]]:
        return [(float(point["words"]), float(point[name][key])) for point in points]

    title = _FIGURES[name]
    caption = f"{title} as words go, with the 95 % interval"
    bounds = {"from": series("low"), "to": series("high")}
    return line_chart(caption, {title: series("mean")}, "words removed", "", width=_WIDTH, bounds=bounds)


def _measured(points: Sequence[Results]) -> list[str]:
    """The figures that every point has."""
    return [name for name in _FIGURES if points and all(point.get(name) for point in points)]
