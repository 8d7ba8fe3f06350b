"""The part of a report that asks whether the words mean what they say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from splade.render import html
from splade.report.sections import Results, amount, known, part, prose, section, share

_MOST_CHARTS = 4  # classes drawn; more of them make a table
_ABOUT = """## Do the words mean what they say?

Training could turn words into code: fire one odd word for every complaint, and the sums would still be
exact. So the words are checked against the language model as it was before training.

- Grounded: the share of the contributions that falls on words which that model ranks among its top
  100 at the very place where they were read.
- Grounded anywhere: the same, when it is enough that the word ranks there at any place in the text.
- In the text: the share that falls on words which stand in the text themselves.
- Effective vocabulary: how many words, equally used, would carry a class as widely. It grows with
  the number of texts, so both are shown."""
_ALARM = """A code word would carry a tenth or more of a class, and be active five times as often as it
occurs in the texts."""


def honesty(results: Results) -> Markup:
    """Grounding, vocabulary per class, the words that carry each class, and alarms."""
    measured = part(results, "dictionary")
    if not measured:
        return Markup()
    figures = known(
        {
            "Grounded": share(measured.get("grounding100")) or "not measured",
            "Grounded anywhere": share(measured.get("grounding100_anywhere")) or "not measured",
            "In the text": share(measured.get("in_input")),
            "Words in the dictionary": measured.get("size"),
        }
    )
    return section(_ABOUT, figures, _classes(measured), reasons(measured), _alarms(measured))


def reasons(measured: Results) -> Markup:
    """The words that carry most of each class: bars for a few classes, a table for many."""
    found: Mapping[str, Sequence[Mapping[str, Any]]] = part(measured, "top_reasons")
    if not found:
        return Markup()
    if len(found) > _MOST_CHARTS:
        rows = [[name, ", ".join(_named(word) for word in words)] for name, words in found.items()]
        return html.table("Words that carry each class", ["Class", "Words, largest first"], rows)
    return html.columns(
        [
            html.bars(f"What speaks for {name}", [(_named(w), w["share"]) for w in words], unit="share")
            for name, words in found.items()
        ]
    )


def _named(word: Mapping[str, Any]) -> str:
    return f"{word['word']} (function word)" if word.get("function_word") else str(word["word"])


def _classes(measured: Results) -> Markup:
    """Texts, effective vocabulary and function words of each class."""
    sizes, texts, closed = (
        part(measured, key) for key in ("effective_vocabulary", "texts", "function_words")
    )
    if not sizes:
        return Markup()
    rows = [
        [name, texts.get(name), _whole(size), ", ".join(map(str, closed.get(name) or [])) or "none"]
        for name, size in sizes.items()
    ]
    columns = ["Predicted class", "Texts", "Effective vocabulary", "Function words among the ten largest"]
    return html.table("Each class", columns, rows)


def _whole(size: float | None) -> int | None:
    return None if amount(size) is None or size is None else round(size)


def _alarms(measured: Results) -> Markup:
    """The code words found, or that there are none; empty when nobody looked."""
    found = measured.get("code_words")
    if found is None:
        return Markup()
    if not found:
        return prose(f"No code words were found. {_ALARM}")
    rows = [
        [w["word"], w.get("label"), share(w.get("share")), w.get("active"), w.get("occurs")] for w in found
    ]
    columns = ["Word", "Class", "Share", "Active in texts", "Occurs in texts"]
    return Markup("\n").join([prose(_ALARM), html.table("Code words", columns, rows)])
