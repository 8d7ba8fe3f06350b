"""Untrusted text made fit to show, and cut into the pieces that carry a contribution.

1. `visible` replaces what a reader cannot see (control, bidi and zero-width characters) by its escape.
2. `pieces` cuts a text along its spans and marks the few that carry most of the total.
3. `excerpt` keeps the neighbourhood of those marks when a text is too long to show.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

# ZWJ and ZWNJ (U+200D, U+200C) stay: emoji and Persian need them and they cannot reorder a line.
_UNSEEN = re.compile(
    "[\\x00-\\x09\\x0b-\\x1f\\x7f-\\x9f\\xad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f"
    "\\ufeff\\ufff9-\\ufffb\\ufffe\\uffff\\ud800-\\udfff\\U000e0000-\\U000e007f]"
)
_CARRIED = 2 / 3  # the marked words carry at least this share of the total magnitude ...
_MOST_MARKS = 10  # ... unless that takes more words than a reader takes in


class Piece(NamedTuple):
    """A stretch of the input text; `contribution` is None between words."""

    text: str
    contribution: float | None = None
    strong: bool = False
    focus: bool = False


def visible(text: str) -> str:
    """Show every character that would act on the display instead of appearing in it; line ends stay."""
    text = text.replace("\r\n", "\n")
    return _UNSEEN.sub(lambda found: found.group().encode("unicode_escape").decode("ascii"), text)


def label(text: object, most: int = 60) -> str:
    """One line of visible text, shortened in the middle when it is longer than a label may be."""
    line = str(text)
    if len(line) > most:
        line = f"{line[: most // 2]}…{line[len(line) - most // 2 + 1 :]}"
    return visible(line).replace("\n", "\\n")


def pieces(data: Mapping[str, Any]) -> list[Piece]:
    """Cut `data["text"]` along `data["spans"]`; joined, the pieces are the text again."""
    text, row = data["text"], data.get("row")
    strong, cut, cursor = _strong(data["spans"]), [], 0
    for index, span in enumerate(data["spans"]):
        start, end = max(span["start"], cursor), min(span["end"], len(text))
        if start >= end:
            continue
        if start > cursor:
            cut.append(Piece(text[cursor:start]))
        focus = row is not None and row["start"] < end and start < row["end"]
        cut.append(Piece(text[start:end], span["contribution"], index in strong, focus))
        cursor = end
    return [*cut, Piece(text[cursor:])] if cursor < len(text) else cut


def excerpt(cut: Sequence[Piece], limit: int, around: int) -> list[Piece]:
    """Keep all of a text up to `limit` characters, else its opening and `around` characters by each mark."""
    if sum(len(piece.text) for piece in cut) <= limit:
        return list(cut)
    chunks = [chunk for piece in cut for chunk in _chunks(piece, around)]
    anchored = [index == 0 or chunk.strong or chunk.focus for index, chunk in enumerate(chunks)]
    backwards = _near(chunks[::-1], anchored[::-1], around)[::-1]
    kept = [a or b for a, b in zip(_near(chunks, anchored, around), backwards, strict=True)]
    shown: list[Piece] = []
    for index, chunk in enumerate(chunks):
        if kept[index]:
            shown.append(chunk)
        elif index == 0 or kept[index - 1]:
            shown.append(Piece(" … "))
    return shown


def _strong(spans: Sequence[Mapping[str, Any]]) -> set[int]:
    """Indices of the fewest spans that carry most of the total magnitude."""
    order = sorted(range(len(spans)), key=lambda i: -abs(spans[i]["contribution"]))
    wanted, marked = _CARRIED * sum(abs(span["contribution"]) for span in spans), set()
    for index in order[:_MOST_MARKS]:
        if wanted <= 0:
            break
        marked.add(index)
        wanted -= abs(spans[index]["contribution"])
    return marked


def _chunks(piece: Piece, size: int) -> list[Piece]:
    if piece.contribution is not None:
        return [piece._replace(text=label(piece.text, size)) if len(piece.text) > size else piece]
    return [Piece(piece.text[at : at + size]) for at in range(0, len(piece.text), size)]


def _near(chunks: Sequence[Piece], anchored: Sequence[bool], around: int) -> list[bool]:
    """Which chunks begin within `around` characters after an anchored one."""
    near, distance = [], around + 1
    for chunk, anchor in zip(chunks, anchored, strict=True):
        distance = 0 if anchor else distance + len(chunk.text)
        near.append(distance <= around)
    return near
