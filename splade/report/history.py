"""The part of a report that shows training, epoch by epoch.

A chart has lines (what was measured) and bounds (what training holds it to). Whatever was not written down
is not drawn; a chart without lines is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from markupsafe import Markup

from splade.render import html
from splade.render.charts import line_chart
from splade.report.sections import Results, part, section

Epoch = Mapping[str, Any]
Read = Callable[[Epoch], float | None]
Points = list[tuple[float, float]]

OUTSIDE_BOUND = 5.0  # % of activation that a grounded dictionary may spend on ungrounded words
_CONSTRAINTS = {"ce": "cross-entropy", "outside": "ungrounded"}
_WIDTH, _HEIGHT = 380, 200
_ABOUT = """## How training went

Each point is one epoch. A grey dashed line is a bound that training holds a figure to. The factor λ says
how hard it pulls: it grows while the bound is broken, and shrinks while it holds. Ungrounded is the share of
activation on words that the language model, as it was before training, does not rank among its top 100 where
they were read. The effective vocabulary says how many words, equally used, would carry the predictions as
widely."""
_MARK = "The upright line is where the warm-up ended and the bound on cross-entropy began."


class _Chart(NamedTuple):
    """What to read out of an epoch; an empty line still keeps its colour from the next."""

    unit: str
    lines: Mapping[str, Read]
    bounds: Mapping[str, Read] = {}
    log: bool = False


def history(results: Results) -> Markup:
    """Loss, score, cross-entropy, multipliers, words and grounding over the epochs."""
    epochs: Sequence[Epoch] = results.get("history") or []
    constrained = _constrained_from(epochs)
    charts = []
    for caption, chart in _charts(epochs, part(results, "settings").get("target_active")).items():
        lines = {name: _points(epochs, read) for name, read in chart.lines.items()}
        bounds = {name: _points(epochs, read) for name, read in chart.bounds.items()}
        if any(lines.values()):
            charts.append(_drawn(caption, chart, lines, bounds, constrained))
    about = _ABOUT if constrained is None else f"{_ABOUT} {_MARK}"
    return section(about, html.columns(charts)) if charts else Markup()


def _drawn(
    caption: str, chart: _Chart, lines: Mapping[str, Points], bounds: Mapping[str, Points], mark: float | None
) -> Markup:
    # A log scale would leave out a zero, which of active words is the worst of news.
    log = chart.log and all(y > 0 for points in lines.values() for _, y in points)
    unit = f"{chart.unit}, log scale" if log else chart.unit
    return line_chart(caption, lines, "epoch", unit, _WIDTH, _HEIGHT, bounds=bounds, log=log, mark=mark)


def _charts(epochs: Sequence[Epoch], target: float | None) -> dict[str, _Chart]:
    """The charts of a run whose budget is `target` active words, None where nobody said."""
    met = (name for epoch in epochs for name in _inner(epoch, "multipliers"))
    names = dict.fromkeys([*_CONSTRAINTS, *met])
    multipliers = {_CONSTRAINTS.get(name, name): _read("multipliers", name) for name in names}
    return {
        "Loss": _Chart("mean over the steps", {"training": _own("loss")}),
        "Score": _Chart("% on validation rows", _both(None, _percent(_read("validation", "score")))),
        "Cross-entropy": _Chart(
            "nats per row", _both(_read("terms", "ce"), _read("validation", "ce")), {"bound τ": _own("tau")}
        ),
        "Factor λ of each bound": _Chart("at the end of the epoch", multipliers, log=True),
        "Active words": _Chart(
            "per row",
            _both(_read("terms", "active"), _read("validation", "active")),
            {"target": lambda _: target},
            log=True,
        ),
        "Ungrounded": _Chart(
            "% of activation",
            _both(_percent(_read("terms", "outside")), _percent(_read("validation", "outside"))),
            {f"bound {OUTSIDE_BOUND:.0f} %": _outside_bound},
        ),
        "Effective vocabulary": _Chart(
            "words, validation rows", _both(None, _read("validation", "effective_vocabulary"))
        ),
        "Learning rate": _Chart("of the backbone, at the end of the epoch", {"training": _own("rate")}),
    }


def _both(training: Read | None, validation: Read) -> dict[str, Read]:
    return {"training": training or (lambda _: None), "validation": validation}


def _own(name: str) -> Read:
    return lambda epoch: epoch.get(name)


def _read(group: str, name: str) -> Read:
    return lambda epoch: _inner(epoch, group).get(name)


def _percent(read: Read) -> Read:
    def scaled(epoch: Epoch) -> float | None:
        value = read(epoch)
        return None if value is None else 100 * value

    return scaled


def _outside_bound(epoch: Epoch) -> float | None:
    """The bound, where it was in force."""
    return None if _inner(epoch, "multipliers").get("outside") is None else OUTSIDE_BOUND


def _inner(epoch: Epoch, group: str) -> Mapping[str, float | None]:
    return epoch.get(group) or {}


def _points(epochs: Sequence[Epoch], read: Read) -> Points:
    """(epoch counted from one, value), without the epochs that have no value."""
    values = ((number, read(epoch)) for number, epoch in enumerate(epochs, start=1))
    return [(float(number), float(value)) for number, value in values if value is not None]


def _constrained_from(epochs: Sequence[Epoch]) -> float | None:
    """Half-way between the warm-up and the epoch after it; None where it ended within an epoch or never."""
    phases = [epoch.get("phase") for epoch in epochs]
    for number, (before, after) in enumerate(pairwise(phases), start=1):
        if (before, after) == ("warm-up", "constrained"):
            return number + 0.5
    return None
