"""The page of a removal certificate: a verdict, its reasons, the attempts to break it, and what is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from splade.render import html
from splade.render.text import label
from splade.report.sections import Results, known, part, prose, section, share

_HOLDS = """## Removed

The words are 0 for every input. Whatever was tried to raise them, no value differed from 0."""
_BROKEN = """## Not removed

An attempt moved a removed word. Do not rely on this model before the cause is found."""
_ATTACKS = """## Attempts to bring the words back

First the input embeddings were moved along the gradient of the words' logits, {steps} steps, which took the
mean logit from {before:.1f} to {after:.1f}. Then hidden states that no text would give were put in front of
the decoder. Each attempt was also made on the model without the removal: the last column says how many words
it opened there. Where it opened none, the attempt by itself shows little."""
_QUALITY = "## What it costs\n\nThe same {rows:,} rows, decided with the words and without them."
_LEAKAGE = """## What the other words still tell

Of {texts:,} texts {containing:,} contain a removed word. A linear probe guesses which, from the activations
of texts it was not fitted on. An area of 0.5 is guessing, 1 is knowing; in brackets the 95 % interval."""
_STILL = "The concept can still be read: the words are gone, what they stand for is not."
_GONE = "The probe does no better than guessing."
_NO_LEAKAGE = """## What the other words still tell

This was not measured. Give labelled texts, of which at least ten contain a removed word and ten do not."""
_NEAREST = """## Words that are near and still in use

Cosine of their rows in the {decoder} decoder with that of a removed word."""
_CLOSURE = """## Words that might go too

Proposals for a person to decide on; nothing of this was done. A word is here because it is a form of a
removed word, lies near one in the decoder, or is mostly read where one is read."""


def certificate_page(certificate: Results) -> str:
    """A certificate as one self-contained HTML document."""
    words = ", ".join(f"“{label(word)}”" for word in certificate["words"][:6])
    more = len(certificate["words"]) - 6
    title = f"Certificate of removal: {words}" + (f" and {more} more" if more > 0 else "")
    parts = [
        _verdict(certificate),
        prose(f"## Why they cannot come back\n\n{certificate['argument']}"),
        _attacks(certificate),
        _quality(part(certificate, "measured")),
        _leakage(part(certificate, "leakage")),
        _near(certificate),
        _closure(certificate["proposals"]),
        prose("## What this does not say\n\n" + "\n".join(f"- {text}" for text in certificate["caveats"])),
        _journal(certificate["edits"]),
    ]
    return html.page(title, [found for found in parts if found], certificate["backbone"])


def _verdict(certificate: Results) -> Markup:
    attempts = _attempts(certificate)
    checked = sum(attempt["checked"] for attempt in attempts)
    count = sum(attempt["not_zero"] for attempt in attempts)
    figures = {"Values looked at": checked, "Values that are not 0": count}
    names = zip(certificate["names"], certificate["ids"], strict=True)
    rows = [
        ["Model hash (sha256)", certificate["model_hash"]],
        ["Words", ", ".join(label(word) for word in certificate["words"])],
        ["Dimensions", ", ".join(f"{label(name)} ({j})" for name, j in names)],
    ]
    table = html.table("What was certified", ["", ""], rows)
    return section(_BROKEN if count else _HOLDS, known(figures), table)


def _attempts(certificate: Results) -> list[Mapping[str, Any]]:
    return [certificate["search"]["attempt"], *certificate["hostile"]]


def _attacks(certificate: Results) -> Markup:
    search = certificate["search"]
    text = _ATTACKS.format(steps=search["steps"], before=search["logit_before"], after=search["logit_after"])
    rows = [
        [
            _kind(attempt["kind"]),
            attempt["checked"],
            attempt["not_zero"],
            f"{attempt['opened_without']} of {attempt['ids']}",
        ]
        for attempt in _attempts(certificate)
    ]
    columns = ["Attempt", "Values looked at", "Not 0", "Dimensions open without the removal"]
    return section(text, html.table("Attempts", columns, rows))


def _kind(kind: str) -> str:
    named = {"along the word": "hidden states along the word, times a million"}
    return kind if kind == "gradient search" else named.get(kind, f"hidden states of {kind}")


def _quality(measured: Results) -> Markup:
    if not measured:
        return Markup()
    figures = {
        "Accuracy before": share(measured["accuracy_before"]),
        "Accuracy after": share(measured["accuracy_after"]),
        "Predictions that changed": f"{measured['changed']:,} of {measured['rows']:,}",
    }
    return section(_QUALITY.format(rows=measured["rows"]), known(figures))


def _leakage(found: Results) -> Markup:
    if not found:
        return prose(_NO_LEAKAGE)
    figures = {f"Area {when}": _area(found[when]) for when in ("before", "after")}
    rows = [(label(entry["word"]), entry["weight"]) for entry in found["probe_words"]]
    told = html.bars("Words that tell of it most, by their weight in the probe", rows) if rows else Markup()
    text = _LEAKAGE.format(texts=found["texts"], containing=found["containing"])
    verdict = _STILL if found["after"]["interval"][0] > 0.5 else _GONE
    return section(f"{text} {verdict}", known(figures), told)


def _area(probe: Mapping[str, Any]) -> str:
    low, high = probe["interval"]
    return f"{probe['auc']:.3f} ({low:.3f} to {high:.3f})"


def _near(certificate: Results) -> Markup:
    rows = [(label(entry["word"]), entry["cosine"]) for entry in certificate["nearest"]]
    decoder = "pretrained" if certificate["pretrained"] else "model's own"
    return section(_NEAREST.format(decoder=decoder), html.bars("Nearest words", rows)) if rows else Markup()


def _closure(proposals: Sequence[Mapping[str, Any]]) -> Markup:
    rows = [
        [
            label(proposal["word"]),
            "yes" if proposal["inflection"] else "",
            f"{proposal['nearness']:.2f}",
            share(proposal["read"]),
        ]
        for proposal in proposals
    ]
    columns = ["Word", "Form of it", "Cosine", "Read at the same place"]
    return section(_CLOSURE, html.table("Proposals", columns, rows)) if rows else Markup()


def _journal(edits: Sequence[Mapping[str, Any]]) -> Markup:
    rows = [
        [
            number,
            edit["action"] if edit["factor"] is None else f"scale by {edit['factor']:g}",
            ", ".join(label(word) for word in edit["words"]),
            label(edit["reason"]),
            edit["time"],
            edit["hash_before"][:12],
            edit["hash_after"][:12],
        ]
        for number, edit in enumerate(edits, 1)
    ]
    columns = ["Number", "Edit", "Words", "Reason", "Time", "Hash before", "Hash after"]
    return section("## The journal", html.table("All edits of this model", columns, rows))
