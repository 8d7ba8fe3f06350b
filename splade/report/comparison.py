"""Tables and the page of an experiment of several runs: plain dicts in, rows or markup out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from markupsafe import Markup

from splade.render import html
from splade.render.ledger import percent
from splade.report.sections import Results, part, section

Table = tuple[list[str], list[list[object]]]

_TITLES = {
    "experiment": "One model, several seeds",
    "tagging": "A tagger, several seeds",
    "ablation": "Recipes side by side",
    "heads": "Heads side by side",
    "datasets": "Datasets side by side",
}
_SHARES = {"Score", "ECE", "Grounded"}
_FIGURES = {
    "ECE": "ece",
    "Active words": "active_words.mean",
    "Grounded": "dictionary.grounding100",
    "Residual": "dla.max_relative_residual",
    "Seconds": "timing.train_seconds",
}
_ABOUT = """Each line is one system. Figures are of {split} rows, as mean ± standard deviation over the seeds
{seeds}; a dash stands for what was not measured. Grounded is the share of the contributions on words that the
language model, as it was before training, ranks among its top 100 where they were read. The residual is the
largest between a logit and the sum of its words; the seconds are those of training."""
_TESTED = """## Are the differences real?

Each system against {reference}, with the same data and budget. Over seeds: a paired t-test. Over rows: a
paired bootstrap of the measured rows, which says nothing about another training run. Intervals cover 95 %."""


def summary_table(results: Results) -> Table:
    """A line for each variant: what it was measured on, its score and the figures that all of them have."""
    variants = part(results, "variants")
    names = [name for name, key in _FIGURES.items() if any(_spread(v, key) for v in variants.values())]
    columns = ["", "Data", "Runs", "Metric", "Score", *names]
    rows = []
    for name, variant in variants.items():
        score = _shown(_spread(variant, str(variant.get("metric"))), "Score")
        figures = [_shown(_spread(variant, _FIGURES[column]), column) for column in names]
        told = [variant.get("dataset"), variant.get("runs"), variant.get("metric"), score]
        rows.append([name, *told, *figures])
    return columns, rows


def paired_table(results: Results) -> Table:
    """A line for each paired test."""
    columns = ["", "Against", "Metric", "Over", "Pairs", "Difference", "95 % interval", "p"]
    rows = [row for comparison in results.get("comparisons") or [] for row in _tests(comparison)]
    return columns, rows


def failures(results: Results) -> Table:
    """What did not run, and why."""
    variants = part(results, "variants").items()
    return ["", "Why it stopped"], [[name, v["error"]] for name, v in variants if v.get("error")]


def comparison_page(results: Results) -> str:
    """The experiment as one self-contained HTML document."""
    variants = part(results, "variants").values()
    split = next((v["measured_on"] for v in variants if "measured_on" in v), "test")
    seeds = ", ".join(str(seed) for seed in results.get("seeds") or [])
    tested, failed = paired_table(results), failures(results)
    sections = [
        section(_ABOUT.format(split=split, seeds=seeds), html.table("Results", *summary_table(results))),
        _table(_TESTED.format(reference=results.get("reference")), "Paired tests", tested),
        _table("## What did not run", "Failures", failed),
        _machine(results),
    ]
    title = _TITLES.get(str(results.get("kind")), "Experiment")
    return html.page(title, [found for found in sections if found], str(results.get("name") or ""))


def _table(heading: str, caption: str, table: Table) -> Markup:
    return section(heading, html.table(caption, *table)) if table[1] else Markup()


def _machine(results: Results) -> Markup:
    rows = [[name, str(value)] for name, value in part(results, "environment").items() if value is not None]
    return (
        section("## Where it ran", html.table("Measured on", ["Name", "Value"], rows)) if rows else Markup()
    )


def _spread(variant: Results, key: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = part(variant, "summary").get(key) or {}
    return found


def _shown(spread: Mapping[str, Any], column: str) -> str | None:
    """Mean ± standard deviation, shares in percent; of a residual its size is enough."""
    if not spread:
        return None
    mean, sd = spread["mean"], spread["sd"]
    if column == "Residual":
        return f"{mean:.0e}"
    shown, factor = (percent(mean), 100) if column in _SHARES else (f"{mean:,.1f}", 1)
    return shown if sd is None else f"{shown} ± {factor * sd:,.1f}"


def _tests(comparison: Results) -> Iterator[list[object]]:
    names = [comparison["variant"], comparison["against"], comparison["metric"]]
    for over in ("seeds", "rows"):
        if found := comparison.get(f"over_{over}"):
            interval = f"{_points(found['low'])} to {_points(found['high'])}"
            yield [*names, over, found["n"], _points(found["difference"]), interval, found["p"]]


def _points(difference: float) -> str:
    """A difference of scores in percentage points."""
    return f"{100 * difference:+.1f}"
