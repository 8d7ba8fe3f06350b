"""The words of a text as a reader sees them, and the word each tokenizer piece belongs to.

1. Every character is replaced by one letter for its class; punctuation stays itself. Positions do not move.
2. One regular expression reads the words off that string: runs of letters, digits and their marks, with inner
   apostrophes; single ideographs and kana; whole emoji; punctuation, repeats of one character together.
3. A piece belongs to the word of its first character in any word, a piece of white space to the next word.

Scripts written without spaces other than Chinese and Japanese (Thai, say) give one word per run of letters.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from itertools import takewhile

Span = tuple[int, int]

_SPACE, _LETTER, _IDEOGRAPH, _MARK, _FORMAT, _JOINER, _EMOJI, _FLAG, _TONE = " acmfjert"

_WORD = re.compile(
    r"""a[mfj]*(?:['’＇׳״]?a[mfj]*)*               # letters, digits; apostrophes and geresh inside
      | c[mfj]*                                    # one ideograph or kana
      | rr?[mfj]*                                  # a flag: two regional indicators
      | [et][mft]*(?:j[^acmfjrt\ ][mft]*)*[mfj]*   # an emoji, with those joined to it
      | ([^fj\ ])\1*[mfj]*                         # punctuation, or a mark that nothing carries
    """,
    re.VERBOSE,
)
_ONE_CHARACTER_WORDS = (  # of these ranges only letters and numbers count
    (0x3005, 0x30FF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F),
    (0x1AFF0, 0x1B16F),
    (0x20000, 0x3FFFF),
)
_ZERO_WIDTH_SPACE, _ZERO_WIDTH_JOINER = "\u200b", "\u200d"


def segment(text: str, before: int | None = None) -> list[Span]:
    """Character spans of the words that begin before `before`: disjoint, ascending.

    They cover every character but whitespace, control characters, the zero width space, and invisible format
    characters that follow no word.
    """
    limit = len(text) if before is None else before
    found = (match.span() for match in _WORD.finditer(text.translate(_CLASSES)))
    return list(takewhile(lambda span: span[0] < limit, found))


def assign(offsets: Sequence[Span], spans: Sequence[Span]) -> list[int]:
    """For each piece the index of its word in `spans`; -1 for special tokens, whose offsets are (0, 0).

    A piece without a character of any word, such as a line end or the mark of a space that a tokenizer split
    off, belongs to the next word, and to none (-1) if no word follows.
    """
    ends = [end for _, end in spans]
    owners = []
    for start, end in offsets:
        word = bisect_right(ends, start)
        owners.append(word if end > 0 and word < len(spans) else -1)
    return owners


class _Classes(dict[int, str]):
    """The class of each character met so far, for `str.translate`."""

    def __missing__(self, code: int) -> str:
        self[code] = found = _class_of(code)
        return found


def _class_of(code: int) -> str:
    """One ASCII letter or a space for the character's class; punctuation is a class of its own."""
    char, category = chr(code), unicodedata.category(chr(code))
    if char.isspace() or category == "Cc" or char == _ZERO_WIDTH_SPACE:
        return _SPACE
    if 0x1F1E6 <= code <= 0x1F1FF:
        return _FLAG
    if 0x1F3FB <= code <= 0x1F3FF:
        return _TONE
    if category == "So" or 0x1F000 <= code <= 0x1FAFF:  # emoji newer than Python's tables have no category
        return _EMOJI
    if category[0] in "LN":
        alone = any(first <= code <= last for first, last in _ONE_CHARACTER_WORDS)
        return _IDEOGRAPH if alone else _LETTER
    if category == "Cf":
        return _JOINER if char == _ZERO_WIDTH_JOINER else _FORMAT
    return _MARK if category[0] == "M" else char


_CLASSES = _Classes()
