"""What a model reads of an input: its tokens, and the words a person sees at each of them.

1. A text is tokenised whole and cut at the model's limit; the cut is flagged.
2. A sentence of a tagging model is covered by windows instead, so nothing of it is cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from splade.attribution.span_aggregation import position_words
from splade.attribution.tokens import tokenise
from splade.attribution.words import segment
from splade.data.encoding import Example
from splade.data.tagging import align
from splade.errors import DataError
from splade.inference.explanation import Place

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Input = str | Sequence[str]  # a text, or a sentence as words


@dataclass(frozen=True)
class Reading:
    """A model input; `word_of[l]` is the index in `places` of the word at position l, or -1.

    When tagging, `rows[k]` are the words that row k of the model labels; None for a whole text.
    """

    source: int
    text: str
    example: Example
    places: list[Place]
    word_of: list[int]
    rows: list[list[int]] | None = None
    truncated: bool = False

    @property
    def row_places(self) -> list[Place | None]:
        """The place that each row decides: a word when tagging, None for the whole text."""
        return [None] if self.rows is None else [self.places[words[0]] for words in self.rows]


def read_text(source: int, text: Input, tokenizer: PreTrainedTokenizerBase, max_length: int) -> Reading:
    """A document as one input."""
    text = _clean(text, source) if isinstance(text, str) else " ".join(split_words(text, source))
    tokens = tokenise(text, tokenizer, max_length)
    spans, word_of = position_words(text, tokens.offsets)
    places = [Place(a, b, text[a:b]) for a, b in spans]
    return Reading(source, text, Example(tokens.ids, [0], source), places, word_of, truncated=tokens.cut)


def read_sentence(
    source: int, words: list[str], tokenizer: PreTrainedTokenizerBase, max_length: int
) -> Iterator[Reading]:
    """A sentence as one or several windows; words without any piece are in none of them."""
    alignment = align(words, tokenizer, max_length=max_length)
    places = [Place(a, b, alignment.text[a:b]) for a, b in alignment.word_spans]
    for window in alignment.windows:
        word_of = [-1] * len(window.input_ids)
        rows: dict[int, list[int]] = {}
        for position, word in zip(window.first_piece, window.word_index, strict=True):
            rows.setdefault(position, []).append(word)
            word_of[position] = rows[position][0]
        positions = sorted(rows)
        groups = [rows[position] for position in positions]
        example = Example(window.input_ids, [0] * len(groups), source, positions, groups)
        yield Reading(source, alignment.text, example, places, word_of, groups)


def split_words(sentence: Input, source: int) -> list[str]:
    """The words of a sentence; a plain text is split as a reader would."""
    if isinstance(sentence, str):
        text = _clean(sentence, source)
        return [text[a:b] for a, b in segment(text)]
    if not isinstance(sentence, Sequence):
        raise DataError(f"text {source + 1} is {type(sentence).__name__}, not text: leave it out or write ''")
    return [_clean(word, source) for word in sentence]


def _clean(text: str, source: int) -> str:
    """The text without NULs; half a surrogate pair, which no tokenizer takes, is refused."""
    if not isinstance(text, str):
        raise DataError(f"text {source + 1} holds a word that is {type(text).__name__}, not text")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DataError(
            f"text {source + 1} holds half a surrogate pair; write the character in full"
        ) from None
    return text.replace("\0", "")
