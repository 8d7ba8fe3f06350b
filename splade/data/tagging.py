"""Tag schemes, and words aligned with a tokenizer's pieces.

1. Any of IOB1, BIO, BIOES and BILOU is read into spans by the rules of conlleval, and written as BIO.
2. The words of a sentence are joined by single spaces and tokenised as one text.
3. A piece belongs to the first word its characters overlap, which holds for every kind of fast tokenizer.
4. A sentence longer than the model's limit is covered by overlapping windows; a word is labelled in the
   window that shows most of its surroundings.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from splade.errors import ConfigError, DataError, ModelError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Scheme = Literal["BIO", "IOB1", "BIOES", "BILOU"]
Span = tuple[int, int, str]

OUTSIDE = "O"
_STARTS, _GOES_ON, _ENDS, _SINGLE = "B", "I", "EL", "SU"


@dataclass(frozen=True)
class Window:
    """One model input: `first_piece[k]` is the position in `input_ids` that labels word `word_index[k]`."""

    input_ids: list[int]
    first_piece: list[int]
    word_index: list[int]


@dataclass(frozen=True)
class Alignment:
    """A sentence as text, its words' character spans in it, and the windows that label each word once.

    `silent` are the words without any piece (only control characters, say); no window holds them.
    """

    text: str
    word_spans: list[tuple[int, int]]
    windows: list[Window]
    silent: list[int]


def parse_tag(tag: str) -> tuple[str, str]:
    """Prefix and entity type of a tag; ("O", "") for the outside tag."""
    prefix, _, kind = tag.partition("-")
    if tag == OUTSIDE or (kind and len(prefix) == 1 and prefix in "BIELSU"):
        return prefix, kind
    shown = tag if len(tag) <= 40 else tag[:40] + "…"
    raise DataError(f"tag {shown!r} is not BIO, IOB1, BIOES or BILOU; write O, B-TYPE or I-TYPE")


def spans(tags: Sequence[str]) -> list[Span]:
    """Entities as (first word, word after the last, type), by the rules of conlleval."""
    found: list[Span] = []
    start, current = 0, ""
    for position, tag in enumerate(tags):
        prefix, kind = parse_tag(tag)
        if current and (kind != current or prefix in _STARTS + _SINGLE):
            found.append((start, position, current))
            current = ""
        if kind and not current:
            start, current = position, kind
        if kind and prefix in _ENDS + _SINGLE:
            found.append((start, position + 1, kind))
            current = ""
    if current:
        found.append((start, len(tags), current))
    return found


def to_bio(tags: Sequence[str]) -> list[str]:
    """The same entities as BIO; no scheme needs naming, since no two of them read one tag differently."""
    bio = [OUTSIDE] * len(tags)
    for start, end, kind in spans(tags):
        bio[start:end] = [f"B-{kind}"] + [f"I-{kind}"] * (end - start - 1)
    return bio


def detect_scheme(tag_lists: Iterable[Sequence[str]]) -> Scheme:
    """The scheme a corpus is written in; BIO where the tags fit several."""
    prefixes: set[str] = set()
    opened_by: set[str] = set()
    for tags in tag_lists:
        previous = ""
        for tag in tags:
            prefix, kind = parse_tag(tag)
            prefixes.add(prefix)
            if kind and kind != previous:
                opened_by.add(prefix)
            previous = kind
    if prefixes & set("ES") and prefixes & set("LU"):
        raise DataError("the tags mix BIOES (E-, S-) with BILOU (L-, U-); convert them to BIO")
    if prefixes & set("ES"):
        return "BIOES"
    if prefixes & set("LU"):
        return "BILOU"
    return "IOB1" if _GOES_ON in opened_by and _STARTS not in opened_by else "BIO"


def align(
    words: Sequence[str], tokenizer: PreTrainedTokenizerBase, *, max_length: int, overlap: int = 64
) -> Alignment:
    """Every word that has a piece, labelled in exactly one window of at most `max_length` pieces.

    Neighbouring windows share at least `overlap` pieces, or half a window where that is less.
    """
    text, word_spans = _join(words)
    before, pieces, offsets, after = _tokenise(text, tokenizer)
    room = max_length - len(before) - len(after)
    if room < 1:
        raise ConfigError(
            f"a length of {max_length} has no room for words beside the special tokens; raise it"
        )
    extent = _extents(word_spans, offsets)
    starts = _window_starts(len(pieces), room, min(overlap, room // 2))
    owned: list[list[int]] = [[] for _ in starts]
    for word, (first, last) in extent.items():
        owned[_best_window(first, last, starts, room, len(pieces))].append(word)
    windows = [
        Window(
            before + pieces[start : start + room] + after,
            [extent[word][0] - start + len(before) for word in members],
            members,
        )
        for start, members in zip(starts, owned, strict=True)
        if members
    ]
    return Alignment(text, word_spans, windows, [i for i in range(len(words)) if i not in extent])


def _join(words: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """The words with one space between them, and where each lies."""
    word_spans, position = [], 0
    for word in words:
        word_spans.append((position, position + len(word)))
        position += len(word) + 1
    return " ".join(words), word_spans


def _tokenise(
    text: str, tokenizer: PreTrainedTokenizerBase
) -> tuple[list[int], list[int], list[tuple[int, int]], list[int]]:
    """Special ids before, the text's ids and their character offsets, special ids after."""
    if not tokenizer.is_fast:
        raise ModelError("tagging needs a fast tokenizer, which has character offsets; save a tokenizer.json")
    encoded = tokenizer(
        text,
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
        truncation=False,
        padding=False,
        verbose=False,  # windows keep to the limit; the warning about a long text would mislead
    )
    ids, offsets = list(encoded["input_ids"]), [(int(a), int(b)) for a, b in encoded["offset_mapping"]]
    added = [bool(m) and a == b for m, (a, b) in zip(encoded["special_tokens_mask"], offsets, strict=True)]
    first = next((i for i, special in enumerate(added) if not special), len(ids))
    last = next((i for i in range(len(ids), first, -1) if not added[i - 1]), first)
    return ids[:first], ids[first:last], offsets[first:last], ids[last:]


def _extents(word_spans: list[tuple[int, int]], offsets: list[tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """For each word with pieces: the first of them, and the last."""
    extent: dict[int, tuple[int, int]] = {}
    word = 0
    for piece, (start, end) in enumerate(offsets):
        while word < len(word_spans) and word_spans[word][1] <= start:
            word += 1
        reached = word  # a piece may span a space, and so several words
        while reached < len(word_spans) and word_spans[reached][0] < end:
            if word_spans[reached][1] > max(start, word_spans[reached][0]) and end > start:
                extent[reached] = (extent.get(reached, (piece, piece))[0], piece)
            reached += 1
    return extent


def _window_starts(length: int, room: int, overlap: int) -> list[int]:
    """Evenly spaced window starts that cover `length` pieces and overlap by at least `overlap`."""
    if length <= room:
        return [0]
    steps = -(-(length - room) // (room - overlap))
    return [i * (length - room) // steps for i in range(steps + 1)]


def _best_window(first: int, last: int, starts: list[int], room: int, length: int) -> int:
    """The window that holds the word's first piece with most pieces on its poorer side.

    The ends of the sentence count as unlimited surroundings, since nothing is cut there.
    """

    def surroundings(k: int) -> int:
        left = first - starts[k] if starts[k] else length
        end = starts[k] + room
        right = end - 1 - last if end < length else length
        return min(left, right)

    return max(range(bisect_right(starts, first - room), bisect_right(starts, first)), key=surroundings)
