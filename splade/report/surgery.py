"""The part of a report that shows a word removed for good, before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from splade.render import html
from splade.render.text import label
from splade.report.comparison import Table
from splade.report.removal import course_charts, course_table, interval, listed
from splade.report.sections import Results, document, known, part, prose, section, share

_PAIRS = 2  # texts shown before and after


def surgery(results: Results, cause: str = "") -> Markup:
    """What a removal changed: figures, flipped predictions, and the same texts explained before and after."""
    measured = part(results, "surgery")
    removed = measured.get("removed") or []
    if not removed:
        return Markup()
    heading = f"""## Removing {listed(removed)}

{cause} A removed word is zero for every text from then on, so that no prediction can use it. It can be
undone. The gap is the difference that having the removed words in a text makes to the prediction."""
    compared = _compared(results.get("explanations"), results.get("explanations_after"))
    return section(heading, *_course(measured), _flips(measured), *compared)


def _course(measured: Results) -> list[Markup]:
    """Key figures, and how they came about word by word."""
    return [_figures(measured), course_charts(measured.get("curve") or []), _steps(measured)]


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
    return html.table("Step by step", *course_table(steps)) if len(steps) > 2 else Markup()


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


# --- the page of a study -------------------------------------------------------------------------------

_ABOUT = """A concept was to be taken out of a trained model. The words of the concept were confirmed by a
person. The words that follow them were chosen one by one: each for how much of the gap, or of what a linear
probe still reads of the concept, goes with it, and for the accuracy that this costs, on training and
validation texts. Every figure below is of rows that took no part in that, with 95 % intervals."""
_PROPOSED = """Nothing was removed yet. These words set rows of a group apart from the rows outside it: what
they contribute to the class at stake, on average over the classes of the rows, and how often they are active.
Whoever starts the same command with --confirm says which of them must not matter."""
_COURSE = """## Word by word

The gap is {gap} Leakage is the area under the ROC curve of a linear probe, fitted anew after each step, that
tells which texts are about the concept: 50 % is guessing. Words that are gone may leave the concept."""
_PAIRED = "the mean difference in probability between texts that name the concept and the same without it."
_GROUPED = "the mean difference between the false positive rate of a group and that of the rows outside it."
_GROUPS = """## By group

The share of a group's negatives that were called positive, and of its positives that were missed; background
is the rows outside the group. A dash stands for a rate that no row could have."""
_BESIDE = """## Other ways

Collateral is the share of decisions that changed on rows without the concept, which a removal should leave
alone. LEACE projects the activations so that no linear probe reads the concept in the rows it was fitted on;
what it leaves is no longer a sum of words that were read."""
_CERTIFICATE = """## The certificate

{verdict} The certificate stands beside this page, in certificate.html; the model is the folder model,
its hash begins with {hash}."""
_RATES = {"fpr": "False positives", "fnr": "False negatives"}


def surgery_tables(results: Results) -> dict[str, Table]:
    """The tables of the study under their titles, and what failed."""
    found = part(results, "parts")
    failed: list[list[object]] = [[name, why] for name, why in part(results, "failed").items()]
    return {
        "Words proposed": _proposed(found.get("proposals") or []),
        "Step by step": course_table(part(found, "curve").get("curve") or []),
        "By group": _by_group(part(found, "bias")),
        "Ways to remove a concept": _ways(found.get("removals") or []),
        "Failed": (["", "Why it stopped"], failed),
    }


def surgery_page(results: Results) -> str:
    """The study as one self-contained HTML document."""
    found, tables = part(results, "parts"), surgery_tables(results)

    def drawn(title: str) -> Markup:
        return html.table(title, *tables[title]) if tables[title][1] else Markup()

    course = part(found, "curve")
    sections = [
        section(_PROPOSED, drawn("Words proposed")),
        section(_ABOUT, _figures(course)) if course else Markup(),
        section(
            _COURSE.format(gap=_PAIRED if course.get("paired") else _GROUPED),
            course_charts(course.get("curve") or []),
            drawn("Step by step"),
        ),
        section(_GROUPS, drawn("By group")),
        section(_BESIDE, drawn("Ways to remove a concept")),
        _certified(part(found, "certificate")),
        section("## What did not run", drawn("Failed")),
    ]
    removed = course.get("removed") or []
    title = f"Removing {listed(removed)}" if removed else "Words that go with a group"
    return document(title, part(results, "data"), sections)


def _proposed(words: Sequence[Results]) -> Table:
    rows: list[list[object]] = [
        [
            label(word["word"]),
            label(word["group"]),
            f"{word['difference']:+.3f}",
            share(word["active_inside"]),
            share(word["active_outside"]),
        ]
        for word in words
    ]
    return ["Word", "Group", "Contribution more", "Active in the group", "Active outside"], rows


def _by_group(bias: Results) -> Table:
    """Two lines a group: before and after."""
    rows: list[list[object]] = []
    for index, group in enumerate(part(bias, "before").get("groups") or []):
        for when in ("before", "after"):
            found = bias[when]["groups"][index]
            rates = [interval(found[where][rate]) for rate in _RATES for where in ("inside", "background")]
            rows.append([label(group["group"]), when, found["inside"]["rows"], *rates])
    return ["Group", "", "Rows", *(name for rate in _RATES.values() for name in (rate, "Background"))], rows


def _ways(ways: Sequence[Results]) -> Table:
    rows: list[list[object]] = [
        [
            way["removal"],
            interval(way["accuracy"]),
            interval(way["leakage"]),
            interval(way["gap"]),
            interval(way["collateral"]["changed"]) if way["collateral"] else None,
            f"{way['present']:,.0f}",
        ]
        for way in ways
    ]
    return ["", "Accuracy", "Leakage", "Gap between groups", "Collateral", "Values a text"], rows


def _certified(found: Results) -> Markup:
    if not found:
        return Markup()
    verdict = "It holds: no attack moved a removed word." if found["holds"] else "It does not hold."
    return prose(_CERTIFICATE.format(verdict=verdict, hash=found["hash"][:12]))
