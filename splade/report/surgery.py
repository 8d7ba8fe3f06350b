"""The part of a report that shows a word removed for good, before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from splade.render import html
from splade.render.text import label
from splade.report.sections import Results, known, part, section, share

_PAIRS = 2  # texts shown before and after


def surgery(results: Results, cause: str = "") -> Markup:
    """What a removal changed: figures, flipped predictions, and the same texts explained before and after."""
    measured = part(results, "surgery")
    removed = measured.get("removed") or []
    if not removed:
        return Markup()
    heading = f"""## Removing {_listed(removed)}

{cause} A removed word is zero for every text from then on, so that no prediction can use it. It can be
undone. The gap is the difference that having the removed words in a text makes to the prediction."""
    compared = _compared(results.get("explanations"), results.get("explanations_after"))
    return section(heading, _figures(measured), _steps(measured), _flips(measured), *compared)


def _figures(measured: Results) -> Markup:
    flipped, texts = measured.get("flipped"), measured.get("texts")
    return known(
        {
            "Gap before": share(measured.get("gap_before")),
            "Gap after": share(measured.get("gap_after")),
            "Accuracy before": share(measured.get("accuracy_before")),
            "Accuracy after": share(measured.get("accuracy_after")),
            "Predictions that changed": flipped if None in (flipped, texts) else f"{flipped:,} of {texts:,}",
        }
    )


def _steps(measured: Results) -> Markup:
    """What each further removal did, where there were several."""
    steps = measured.get("steps") or []
    rows = [
        [
            ("then " if number > 1 else "") + _listed(step["removed"]) or "nothing",
            share(step.get("gap")),
            share(step.get("accuracy")),
            step.get("flipped"),
        ]
        for number, step in enumerate(steps)
    ]
    columns = ["Removed", "Gap", "Accuracy", "Predictions changed"]
    return html.table("Step by step", columns, rows) if len(rows) > 2 else Markup()


def _listed(words: Sequence[str], most: int = 6) -> str:
    """The first words in quotation marks, and how many more there are."""
    shown = ", ".join(f"“{label(word)}”" for word in words[:most])
    return shown + (f" and {len(words) - most} more" if len(words) > most else "")


def _flips(measured: Results) -> Markup:
    """Texts whose prediction changed."""
    rows = [
        [
            label(example["text"], 200),
            _verdict(example, "before"),
            _verdict(example, "after"),
        ]
        for example in measured.get("examples") or []
    ]
    return html.table("Predictions that changed", ["Text", "Before", "After"], rows) if rows else Markup()


def _verdict(example: Mapping[str, Any], when: str) -> str:
    probability = share(example.get(f"probability_{when}"))
    return f"{label(example[when])} {probability or ''}".strip()


def _compared(before: Sequence[Results] | None, after: Sequence[Results] | None) -> list[Markup]:
    """Cards of the texts that the removal moved most, each before and after."""
    later = {data["text"]: data for data in after or []}
    pairs = [(data, later[data["text"]]) for data in before or [] if data["text"] in later]
    moved = [pair for pair in pairs if _moved(*pair) > 0]
    cards: list[Markup] = []
    for old, new in sorted(moved, key=lambda pair: -_moved(*pair))[:_PAIRS]:
        cards += [_titled("Before", old), _titled("After", new)]
    return cards


def _moved(old: Results, new: Results) -> float:
    """How far the probability of the first prediction fell or rose."""
    kept = new["probabilities"].get(old["prediction"], 0.0)
    return abs(float(old["probability"]) - float(kept))


def _titled(when: str, data: Results) -> Markup:
    return Markup("\n").join([html.prose(f"### {when}"), html.explanation(data, top=6)])
