"""Tables and the page of a study: plain dicts in, rows or markup out.

Each kind of study has its tables, by title; the page shows the same ones with what they mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

from splade.render import html
from splade.render.ledger import percent
from splade.report.comparison import Table
from splade.report.sections import Results, amount, document, part, section, share

Rows = list[list[object]]

_EXPLAINED = {
    "bottleneck": ("Words the decision was made from, removed exactly", "dla"),
    "inputs": ("Words of the text, masked or deleted", "ours"),
}
_PEOPLE = ["explainer", "words", "signs agree", "share of mass", "on labelled words", "occurrences"]
_PLANTED = ["explainer", "precision", "one", "several", "AUC", "followed", "texts", "passes", "ms a text"]
_ABSENT = "does not apply"


@dataclass(frozen=True)
class _Shaded:
    """A share in percent, which a page shades by its size."""

    value: float

    def __str__(self) -> str:
        return percent(self.value)


def explainer_tables(rows: Sequence[Results]) -> dict[str, Table]:
    """Both tables of `compare`, each with what its explainers cost as multiples of the model's own sum."""
    columns = ["explainer", "removal", "comprehensiveness", "sufficiency", "flips", "passes", "ms a text"]
    found = {}
    for table, (title, own) in _EXPLAINED.items():
        chosen = [row for row in rows if row["table"] == table]
        reference = next((row["cost"] for row in chosen if row["explainer"] == own and row["cost"]), None)
        if chosen:
            cells = [_explained(row, reference) for row in chosen]
            found[title] = ([*columns, f"passes over {own}", f"time over {own}"], cells)
    return found


def study_tables(results: Results) -> dict[str, Table]:
    """The tables of a study under their titles, and what failed."""
    failed = [[name, why] for name, why in part(results, "failed").items()]
    return {**_KINDS[results["kind"]].tables(results), "Failed": (["", "Why it stopped"], failed)}


def study_page(results: Results) -> str:
    """The study as one self-contained HTML document."""
    kind = _KINDS[results["kind"]]
    tables = [
        html.table(title, columns, [[_drawn(cell) for cell in row] for row in rows])
        for title, (columns, rows) in study_tables(results).items()
        if rows
    ]
    environment = part(results, "environment").items()
    machine = [[name, str(value)] for name, value in environment if value is not None]
    sections = [
        section(kind.about, *tables),
        section("## Where it ran", html.table("Measured on", ["Name", "Value"], machine)),
    ]
    return document(kind.title, part(results, "data"), sections)


def _drawn(cell: object) -> object:
    if not isinstance(cell, _Shaded):
        return cell
    return Markup('<span class="w p{}">{}</span>').format(round(10 * cell.value), str(cell))


# --- explainers ----------------------------------------------------------------------------------------


def _explained(row: Results, reference: Results | None) -> list[object]:
    """One explainer's line; one that could not run says why."""
    faithfulness, cost = row.get("faithfulness"), row.get("cost")
    if not faithfulness or not cost:
        return [row["explainer"], row["removal"], row["note"], *[None] * 6]
    gaps = [_interval(faithfulness[f"aopc_{name}"]) for name in ("comprehensiveness", "sufficiency")]
    costs = [cost["forward_passes"], cost["milliseconds"]]
    flips = f"{faithfulness['flip_rate']['mean']:.0%}"
    shown = [f"{costs[0]:,.0f}", f"{costs[1]:,.1f}"]
    return [row["explainer"], row["removal"], *gaps, flips, *shown, *_multiples(costs, reference)]


def _multiples(costs: Sequence[float], reference: Results | None) -> list[str | None]:
    """Costs over those of the model's own sum; none where it was not measured, or costs nothing."""
    own = [reference["forward_passes"], reference["milliseconds"]] if reference else [0.0, 0.0]
    return [f"{value / base:,.1f}" if base else None for value, base in zip(costs, own, strict=True)]


def _interval(found: Results) -> str:
    return f"{found['mean']:.2f} ({found['low']:.2f} .. {found['high']:.2f})"


def _faithfulness(results: Results) -> dict[str, Table]:
    found = part(results, "parts")
    tables = explainer_tables(_rows(found, "explainer "))
    sums = part(found, "sums of integrated gradients")
    shown = [[sums["steps"], sums["mean"], sums["max"]]] if sums else []
    tables["What the sums of integrated gradients leave out"] = (["steps", "mean", "largest"], shown)
    people = [_agreed(row) for row in [*found.get("people", []), *_rows(found, "people ")]]
    tables["Signs of words as people gave them"] = (_PEOPLE, people)
    tables["Planted words found"] = (_PLANTED, [_planted(row) for row in _rows(found, "planted ")])
    return tables


def _rows(found: Results, start: str) -> list[Results]:
    """The rows of all parts whose name begins so."""
    return [row for name, rows in found.items() if name.startswith(start) for row in rows]


def _agreed(row: Results) -> list[object]:
    agreed, named = row.get("agreed"), [row["explainer"], row["view"]]
    if not agreed:
        return [*named, row["note"] or "no labelled word", None, None, None]
    return [*named, *(_interval(agreed[key]) for key in ("words", "mass", "coverage")), agreed["occurrences"]]


def _planted(row: Results) -> list[object]:
    """Precision in all texts, where one word decides, and where several do; the share that is followed."""
    found, followed = row.get("found"), share(row["followed"])
    if not found:
        return [row["explainer"], row["note"], None, None, None, followed, None, None, None]
    apart = [_interval(row[key]["precision"]) if row[key] else None for key in ("alone", "together")]
    costs = [f"{row['forward_passes']:,.0f}", f"{row['milliseconds']:,.1f}"]
    gaps = [_interval(found["precision"]), *apart, _interval(found["auc"])]
    return [row["explainer"], *gaps, followed, found["texts"], *costs]


def _long_context(results: Results) -> dict[str, Table]:
    cells = [cell for cells in part(results, "parts").values() for cell in cells]
    lengths = sorted({cell["length"] for cell in cells})
    columns = ["depth", *(f"{length:,} tokens" for length in lengths)]
    by_depth: dict[float, list[Results]] = {}
    for cell in sorted(cells, key=lambda cell: cell["length"]):
        by_depth.setdefault(cell["depth"], []).append(cell)
    depths = sorted(by_depth.items())
    rows: Rows = [[f"{depth:.0%}", *map(_right, found)] for depth, found in depths]
    shares: Rows = [[f"{depth:.0%}", *map(_needle, found)] for depth, found in depths]
    cut: Rows = [[f"{depth:.0%}", *(share(cell["cut"]) for cell in found)] for depth, found in depths]
    first = next(iter(by_depth.values()), [])  # what these say is the same at every depth
    for key, told in (("accuracy_without", "no needle"), ("accuracy_alone", "the needle alone")):
        rows += [[told, *(_Shaded(cell[key]["mean"]) for cell in first)]] if first else []
    return {
        "Predicted as the needle says": (columns, rows),
        "The needle's share of what speaks for the class, and of the words read": (columns, shares),
        "Texts cut before the needle": (columns, cut if any(cell["cut"] for cell in cells) else []),
    }


def _right(cell: Results) -> _Shaded:
    return _Shaded(cell["accuracy"]["mean"])


def _needle(cell: Results) -> str | None:
    if not cell["share"]:
        return None
    return f"{share(cell['share']['mean'])} of {share(cell['word_share']['mean'])}"


# --- systems side by side ------------------------------------------------------------------------------


def _sota(results: Results) -> dict[str, Table]:
    columns = ["", "Accuracy", "Active words", "Grounded", "Residual", "Passes", "ms a text", "What it is"]
    systems = dict(part(results, "parts"))
    systems |= {f"baseline with {found['kind']}": found for found in systems.pop("autoencoders", [])}
    return {"Systems": (columns, [[name, *_system(found)] for name, found in systems.items()])}


def _system(found: Results) -> Iterator[object]:
    residual, cost = found.get("residual"), part(found, "cost")
    yield _accuracy(found["accuracy"])
    yield _spread(found.get("words"), amount) or _ABSENT
    yield _spread(found.get("grounding"), share) or _ABSENT
    yield f"{residual['mean']:.0e}" if residual else _ABSENT
    yield amount(cost.get("forward_passes")) or _ABSENT
    yield amount(cost.get("milliseconds"), 1) or _ABSENT
    yield found["note"]


def _honesty(results: Results) -> dict[str, Table]:
    variants = part(results, "parts")
    words = ["", "Accuracy", "Active words", "Grounded", "anywhere", "In the text", "Effective vocabulary"]
    erased = ["", "Code words", "Comprehensiveness", "Sufficiency", "Agree with people", "Which code words"]
    return {
        "What the dictionary says": (words, [[name, *_words(found)] for name, found in variants.items()]),
        "What erasing says": (erased, [[name, *_alarm(found)] for name, found in variants.items()]),
    }


def _words(found: Results) -> list[object]:
    shares = [_spread(found[key], share) for key in ("grounding100", "grounding100_anywhere", "in_input")]
    vocabulary = _spread(found["effective_vocabulary"], amount)
    return [_accuracy(found["accuracy"]), _spread(found["words"], amount), *shares, vocabulary]


def _alarm(found: Results) -> list[object]:
    words = [
        f"{word['word']} for {word['label']} ({percent(word['share'])} of it, active in {word['active']:,} "
        f"texts, written in {word['occurs']:,})"
        for word in found["code_words"]
    ]
    gaps = [_interval(found[name]) for name in ("comprehensiveness", "sufficiency")]
    people = part(found, "people")
    agreed = share(people["words"]["mean"]) if people else _ABSENT
    return [len(words), *gaps, agreed, "; ".join(words)]


# --- figures -------------------------------------------------------------------------------------------


def _accuracy(found: Results) -> str:
    """Mean over seeds with their spread, and the interval over rows."""
    return f"{_spread(found, share)} ({100 * found['low']:.1f} .. {100 * found['high']:.1f})"


def _spread(found: Results | None, show: Callable[[float], str | None]) -> str | None:
    """A mean over seeds, ± their standard deviation where there are several."""
    if found is None:
        return None
    mean, sd = show(found["mean"]), found["sd"]
    return mean if sd is None else f"{mean} ± {show(sd)}"


class _Kind(NamedTuple):
    title: str
    about: str
    tables: Callable[[Results], dict[str, Table]]


_KINDS = {
    "faithfulness": _Kind(
        "Explainers side by side",
        """Every explainer was asked about the same test texts and the same predicted classes.
Comprehensiveness is what the class loses without the words that an explainer ranks highest, sufficiency what
it loses with these alone, flips how often the prediction changes without them; means over 1, 5, 10, 20 and
50 % of the words, with 95 % intervals. Passes are texts through the backbone. Planted words decide the label
by construction: precision is the share of them among as many words ranked highest, of a second model that was
trained on such texts, in those that it follows: it is right, and changes its mind when praise and blame are
exchanged.""",
        _faithfulness,
    ),
    "long_context": _Kind(
        "A sentence in a long text",
        """A test text that decides is hidden among sentences that judge nothing, after a share of them: its
depth. Below the depths stand the same filler without it, which is what the model says anyway, and the needle
by itself. Of the positive contributions to the predicted class, the needle's share is given beside its share
of the words that were read: equal shares mean that it is read like any other sentence. Texts longer than the
model reads are cut.""",
        _long_context,
    ),
    "sota": _Kind(
        "Systems side by side",
        """One line for each system, trained on the same rows with the same budget. Accuracy is of the test
rows, with a 95 % interval over them. Grounded is the share of the contributions on words that the language
model, as it was before training, ranks among its top 100 where they were read. The residual is the largest
between a logit and the sum of its words. Passes and milliseconds are those of predicting with the sum of
words.""",
        _sota,
    ),
    "honesty": _Kind(
        "What keeps words honest",
        """The same data under every honesty mode, and a model made to collapse: a free dictionary, and a
recipe that presses activations towards nothing. A code word carries a tenth of a class or more, and is active
in at least five times as many texts as it is written in: it signals the class, whatever the text says.
ERASER's figures ask whether the words named carry the decision. Code words do, so these figures cannot tell
them from reasons. Effective vocabulary is the mean over predicted classes; it grows with the number of
texts.""",
        _honesty,
    ),
}
