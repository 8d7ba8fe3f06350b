"""The parts of a report that any run has: results, exactness, explanations, cost. Plain dicts in, markup out.

A part whose figures are missing is empty, and an empty part is left out of the page.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from splade.render import html
from splade.render.ledger import percent
from splade.render.text import label

Results = Mapping[str, Any]

_MOST_EXPLANATIONS = 8
_SCORES = {"accuracy": "Accuracy", "f1": "F1", "token_accuracy": "Token accuracy"}
_ROUNDING = 1e-5  # a residual below it is that of single precision
_SUM = """## The sum of the words

Each logit was computed twice: by the model, and in double precision as the bias plus the contributions of
its words. The residual is what is left between the two, relative to the size of the terms."""
_EXACT = "Here it is rounding, not approximation: nothing was sampled, and no baseline was chosen."
_INEXACT = "Here it is more than rounding: the contributions do not sum to the logit."


def section(text: str, *parts: Markup) -> Markup:
    """A text with its heading, then the parts that are not empty; empty when all of them are."""
    kept = [part for part in parts if part]
    return Markup("\n").join([prose(text), *kept]) if kept else Markup()


def prose(text: str) -> Markup:
    """Paragraphs and lists whose lines are wrapped in the source."""
    return html.prose(re.sub(r"(?<!\n)\n *(?!\n|- )", " ", text))


def document(title: str, results: Results, sections: Sequence[Markup]) -> str:
    """The page of a run: the sections that are not empty, under its title and its data."""
    return html.page(title, [section for section in sections if section], _data(results))


def known(values: Mapping[str, object]) -> Markup:
    """Key figures without those that are None; empty when none is left."""
    left = {name: value for name, value in values.items() if value is not None}
    return html.facts(left) if left else Markup()


def share(value: float | None) -> str | None:
    """A share in percent, None for what was not measured."""
    return None if value is None or math.isnan(value) else percent(value)


def amount(value: float | None, decimals: int = 0, unit: str = "") -> str | None:
    """A figure with fixed decimals and its unit, None for what was not measured."""
    return None if value is None or math.isnan(value) else f"{value:,.{decimals}f}{unit}"


def part(results: Results, name: str) -> Results:
    """A nested dict of the results, empty when it is missing."""
    return results.get(name) or {}


def overview(results: Results) -> Markup:
    """What was learned from how much, how well, and how well a simple model does on the same rows."""
    rows, model, words = (part(results, name) for name in ("rows", "model", "active_words"))
    reference = part(results, "reference")
    scores = {name: share(results.get(key)) for key, name in _SCORES.items()}
    figures = {
        **scores,
        f"{label(reference.get('model') or 'Reference')} instead": share(reference.get("score")),
        "Active words per prediction": amount(words.get("mean"), 1),
        "Largest residual": part(results, "dla").get("max_relative_residual"),
        "Training rows": rows.get("train"),
        "Test rows": rows.get("test"),
        "Backbone": model.get("backbone"),
        "Parameters": model.get("parameters"),
    }
    return known(figures)


def entities(results: Results) -> Markup:
    """Precision, recall and F1 of each entity type of a tagger."""
    found = part(results, "entities")
    if not found:
        return Markup()
    columns = ["precision", "recall", "f1", "support"]
    rows = [[name, *(figures.get(column) for column in columns)] for name, figures in found.items()]
    return html.table(
        "Entities, counted as seqeval does", ["Type", "Precision", "Recall", "F1", "Count"], rows
    )


def exactness(results: Results) -> Markup:
    """How far logits and the sums of their words are apart."""
    names = {
        "max_relative_residual": "Largest residual",
        "mean_relative_residual": "Mean residual",
        "max_abs_error": "Largest absolute error",
        "mean_abs_error": "Mean absolute error",
    }
    measured = part(results, "dla")
    largest = measured.get("max_relative_residual")
    verdict = "" if largest is None else _EXACT if largest < _ROUNDING else _INEXACT
    return section(f"{_SUM} {verdict}", known({name: measured.get(key) for key, name in names.items()}))


def explanations(found: Sequence[Results] | None, heading: str, top: int = 10) -> Markup:
    """The first few explanations, one card each, under their heading."""
    cards = [html.explanation(data, top) for data in (found or [])[:_MOST_EXPLANATIONS]]
    return section(heading, *cards)


def cost(results: Results) -> Markup:
    """Time, and the machine it was measured on."""
    timing, environment = part(results, "timing"), part(results, "environment")
    times = known(
        {
            "Training": amount(timing.get("train_seconds"), 0, " s"),
            "Evaluation": amount(timing.get("evaluate_seconds"), 0, " s"),
            "Prediction, per text": amount(timing.get("predict_ms_per_text"), 1, " ms"),
            "Prediction with explanation, per text": amount(timing.get("explain_ms_per_text"), 1, " ms"),
        }
    )
    machine = [
        [name.replace("_", " "), str(value)] for name, value in environment.items() if value is not None
    ]
    table = html.table("Measured on", ["Name", "Value"], machine) if machine else Markup()
    return section("## What it costs", times, table)


def _data(results: Results) -> str:
    """The line under a title: the data, its size, how the dictionary is kept."""
    rows, honesty = part(results, "rows"), part(results, "model").get("honesty")
    counts = ", ".join(f"{count:,} {name}" for name, count in rows.items() if count is not None)
    told = [f"{counts} rows" if counts else "", f"{honesty} dictionary" if honesty else ""]
    return " · ".join(text for text in [str(results.get("dataset") or ""), *told] if text)
