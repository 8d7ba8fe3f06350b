"""The part of a report that shows training, epoch by epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from markupsafe import Markup

from splade.render import html
from splade.render.charts import line_chart
from splade.report.sections import Results, section

Epoch = Mapping[str, Any]
Read = Callable[[Epoch], float | None]

_WIDTH, _HEIGHT = 380, 200
_ABOUT = """## How training went

Each point is one epoch. The loss is cross-entropy plus what the budgets add to it. Ungrounded is the share of
activation on words that the language model, as it was before training, does not rank among its top 100 where
they were read; training holds it down."""


def _own(name: str) -> Read:
    return lambda epoch: epoch.get(name)


def _term(name: str) -> Read:
    return lambda epoch: (epoch.get("terms") or {}).get(name)


def _validation(name: str) -> Read:
    return lambda epoch: (epoch.get("validation") or {}).get(name)


_CHARTS: dict[str, tuple[str, dict[str, Read]]] = {
    "Loss": ("per step", {"loss": _own("loss"), "cross-entropy": _term("ce")}),
    "Score": ("validation rows", {"validation": _validation("score")}),
    "Active words": ("per row", {"training": _term("active"), "validation": _validation("active")}),
    "Ungrounded": ("share", {"training": _term("outside"), "validation": _validation("outside")}),
}


def history(results: Results) -> Markup:
    """Loss, score, active words and grounding over the epochs; a chart without points is left out."""
    epochs = results.get("history") or []
    charts = []
    for caption, (unit, lines) in _CHARTS.items():
        series = {name: _points(epochs, read) for name, read in lines.items()}
        series = {name: points for name, points in series.items() if points}
        if series:
            charts.append(line_chart(caption, series, "epoch", unit, _WIDTH, _HEIGHT))
    return section(_ABOUT, html.columns(charts)) if charts else Markup()


def _points(epochs: list[Epoch], read: Read) -> list[tuple[float, float]]:
    """(epoch counted from one, value), without the epochs that have no value."""
    values = ((number, read(epoch)) for number, epoch in enumerate(epochs, start=1))
    return [(float(number), float(value)) for number, value in values if value is not None]
