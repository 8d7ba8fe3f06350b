"""Scores of tokenizer pieces as scores of the words a reader sees.

1. The scores are brought to one per position.
2. The text is tokenised again for character offsets; its ids must be the ones the scores belong to.
3. Every position goes to the word of its characters, and each word sums its scores or keeps the largest.

Nothing is lost: what no word holds (spaces at the end that have a piece, special tokens) is one last entry
without text, present only when it is not zero. Words past the last token were not read and are left out; a
word that was read is present, with 0.0 when none of its pieces carries anything.

Legend: L positions, V vocabulary.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from torch import Tensor

from splade.attribution.tokens import tokenise
from splade.attribution.words import Span, assign, segment
from splade.errors import ConfigError, DataError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Method = Literal["sum", "max_abs"]


class WordSpan(NamedTuple):
    """A word as text[start:end] with its score."""

    start: int
    end: int
    text: str
    score: float


def aggregate_subword_attributions(
    token_ids: Sequence[int],
    attribution_scores: Tensor,
    tokenizer: PreTrainedTokenizerBase,
    text: str,
    method: Method = "sum",
) -> list[tuple[str, float]]:
    """(word, score) in reading order; the scores and methods are those of `span_contributions`."""
    found = span_contributions(token_ids, attribution_scores, tokenizer, text, method)
    return [(span.text, span.score) for span in found]


def span_contributions(
    token_ids: Sequence[int],
    attribution_scores: Tensor,
    tokenizer: PreTrainedTokenizerBase,
    text: str,
    method: Method = "sum",
) -> list[WordSpan]:
    """The words of `text` in reading order, with their places in it and their scores.

    `token_ids` are those of `tokenizer(text)`, special tokens included, truncated or padded at will. Scores:

    - [L], one per token id: the share of each position.
    - [L, V]: what each vocabulary word adds at each position; a position's score is the sum over V.
    - [V], one per vocabulary id: each position has the score of its own id, divided equally among the
      positions that hold it. Ids that are not in the text are not in the result.

    A vector with as many entries as token ids is read as [L]. "sum" keeps the total; "max_abs" gives each
    word the score of its piece of largest magnitude, with its sign.
    """
    if method not in _MERGE:
        raise ConfigError(f"no aggregation method {method!r}; use 'sum' or 'max_abs'")
    read, offsets = _align(list(token_ids), tokenizer, text)
    scores_L = _position_scores(list(token_ids), attribution_scores, read)
    spans, word_L = position_words(text, offsets)
    groups: list[list[float]] = [[] for _ in range(len(spans) + 1)]  # -1 is the last: what no word holds
    for word, score in zip(word_L, scores_L, strict=True):
        groups[word].append(score)
    *merged, rest = (_MERGE[method](group) for group in groups)
    words = [WordSpan(a, b, text[a:b], score) for (a, b), score in zip(spans, merged, strict=True)]
    return words if rest == 0 else [*words, WordSpan(len(text), len(text), "", rest)]


def position_words(text: str, offsets: Sequence[Span]) -> tuple[list[Span], list[int]]:
    """Spans of the words up to the last piece, and for each position the index of its word or -1."""
    spans = segment(text, before=max((end for _, end in offsets), default=0))
    return spans, assign(offsets, spans)


def _largest(scores: list[float]) -> float:
    """The first score of largest magnitude, with its sign."""
    return max(scores, key=abs, default=0.0)


_MERGE: dict[str, Callable[[list[float]], float]] = {"sum": math.fsum, "max_abs": _largest}


def _align(token_ids: list[int], tokenizer: PreTrainedTokenizerBase, text: str) -> tuple[slice, list[Span]]:
    """The positions that are not padding, and their character offsets."""
    read = _without_padding(token_ids, tokenizer.pad_token_id)
    tokens = tokenise(text, tokenizer, read.stop - read.start)
    if token_ids[read] != tokens.ids:
        raise DataError(
            "these token ids are not this text's under this tokenizer;"
            " pass tokenizer(text)['input_ids'] of the very text that was scored, special tokens included"
        )
    return read, tokens.offsets


def _without_padding(token_ids: list[int], pad_id: int | None) -> slice:
    """The positions between the padding at either end."""
    start, stop = 0, len(token_ids)
    while stop > start and token_ids[stop - 1] == pad_id:
        stop -= 1
    while start < stop and token_ids[start] == pad_id:
        start += 1
    return slice(start, stop)


def _position_scores(token_ids: list[int], scores: Tensor, read: slice) -> list[float]:
    """One score for each position in `read`, from any of the three shapes."""
    exact = scores.detach().double()
    length = len(token_ids)
    if exact.ndim in (1, 2) and exact.shape[0] == length:
        by_position = exact if exact.ndim == 1 else exact.sum(1)
        return list(map(float, by_position[read].tolist()))
    ids = token_ids[read]
    if exact.ndim == 1 and exact.shape[0] > max(ids, default=0):
        count, score_V = Counter(ids), exact.tolist()
        return [score_V[i] / count[i] for i in ids]
    raise DataError(
        f"scores of shape {tuple(scores.shape)} do not fit {length} token ids;"
        " pass one per token id [L], one per vocabulary id [V], or both [L, V]"
    )
