"""One deciding sentence in a long text: is it still read, and is it still the reason?

1. Filler sentences are drawn until a text has a length in tokens, and the needle is put after a share of
   them, its depth. Text i has the same filler at all depths.
2. A text longer than the model reads is cut, as in prediction. The needle is then there, partly, or cut
   off.
3. Counted are texts whose prediction is the needle's label, beside the same filler without a needle (what
   the model says anyway) and the needle alone (what it can say at best).
4. The needle's share of the positive contributions to the predicted class, through provenance, beside its
   share of the words that were read: equal shares mean that the needle is read like any other sentence.

A text in which nothing speaks for its class has no share, and neither has one without any word of the
needle.

Legend: N needles.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from splade.errors import ConfigError, DataError
from splade.evaluation.explainers.inputs import ours
from splade.evaluation.explainers.questions import Question, Settings, ask
from splade.evaluation.intervals import Interval, intervals
from splade.models.lexical_sae import LexicalSAE

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class NeedleCell:
    """Texts of about `length` tokens with the needle at one depth.

    `tokens` is how many there are on average, before any cut; `truncated`, `partly` and `cut` are shares of
    texts: cut somewhere, within the needle, and before it. `share` and `word_share` are None where no needle
    was read.
    """

    length: int
    depth: float
    texts: int
    tokens: float
    accuracy: Interval
    accuracy_without: Interval
    accuracy_alone: Interval
    share: Interval | None
    word_share: Interval | None
    truncated: float
    partly: float
    cut: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


class Hidden(NamedTuple):
    """A text, where its needle stands in it, and how many tokens it has."""

    text: str
    start: int
    end: int
    tokens: int


class _Filler(NamedTuple):
    """Sentences with how many tokens each has."""

    sentences: list[str]
    tokens: list[int]


def needle(
    model: LexicalSAE,
    sentences: Sequence[str],
    labels: Sequence[int],
    filler: Sequence[str],
    lengths: Sequence[int],
    depths: Sequence[float],
    batch_size: int = 8,
    seed: int = 0,
    advance: Callable[[int], None] = lambda _: None,
) -> list[NeedleCell]:
    """Every length at every depth; `labels` are those of the `sentences` that are hidden, class ids."""
    _check(model, sentences, labels, filler, lengths, depths)
    tokenizer = model.tokenizer
    assert tokenizer is not None
    model.eval()
    sizes = _sizes(tokenizer, filler)
    material = _Filler(
        *map(list, zip(*[(s, n) for s, n in zip(filler, sizes, strict=True) if n], strict=True))
    )
    alone = _right(ask(model, sentences, batch_size), labels)
    cells = []
    for length in lengths:
        drawn = [
            _draw(material, length - n, seed + i)
            for i, n in enumerate(_sizes(tokenizer, sentences, special=True))
        ]
        bare = [" ".join(material.sentences[j] for j in chosen) for chosen in drawn]
        without = _right(ask(model, bare, batch_size), labels)
        for depth in depths:
            texts = [hide(tokenizer, s, material, at, depth) for s, at in zip(sentences, drawn, strict=True)]
            cells.append(_cell(model, texts, labels, length, depth, (without, alone), batch_size))
            advance(len(texts))
    return cells


def hide(
    tokenizer: PreTrainedTokenizerBase, sentence: str, filler: _Filler, drawn: Sequence[int], depth: float
) -> Hidden:
    """The needle behind the drawn sentences that end within a share `depth` of the filler's tokens."""
    ends = np.cumsum([0, *(filler.tokens[j] for j in drawn)])
    before = int(np.abs(ends - depth * ends[-1]).argmin())
    parts = [filler.sentences[j] for j in drawn]
    start = len(" ".join([*parts[:before], ""]))
    text = " ".join([*parts[:before], sentence, *parts[before:]])
    return Hidden(text, start, start + len(sentence), _sizes(tokenizer, [text], special=True)[0])


def _cell(
    model: LexicalSAE,
    texts: Sequence[Hidden],
    labels: Sequence[int],
    length: int,
    depth: float,
    beside: tuple[ArrayLike, ArrayLike],
    batch_size: int,
) -> NeedleCell:
    questions = ask(model, [hidden.text for hidden in texts], batch_size)
    scores = ours(model, questions, Settings(batch_size=batch_size))
    shares = [_shares(*found) for found in zip(questions, scores, texts, strict=True)]
    found = [both for both in shares if both is not None]
    share, word_share = intervals(np.array(found)) if found else (None, None)
    read = [q.reading.places[-1].end if q.reading.places else 0 for q in questions]
    cut = [end <= hidden.start for end, hidden in zip(read, texts, strict=True)]
    short = [end < hidden.end for end, hidden in zip(read, texts, strict=True)]
    return NeedleCell(
        length=length,
        depth=depth,
        texts=len(texts),
        tokens=float(np.mean([hidden.tokens for hidden in texts])),
        accuracy=_interval(_right(questions, labels)),
        accuracy_without=_interval(beside[0]),
        accuracy_alone=_interval(beside[1]),
        share=share,
        word_share=word_share,
        truncated=float(np.mean([question.reading.truncated for question in questions])),
        partly=float(np.mean(short) - np.mean(cut)),
        cut=float(np.mean(cut)),
    )


def _shares(question: Question, scores: Sequence[float], hidden: Hidden) -> tuple[float, float] | None:
    """The needle's share of positive contributions and of words."""
    places = question.reading.places
    inside_W = np.array([hidden.start < p.end and p.start < hidden.end for p in places], dtype=bool)
    mass_W = np.clip(scores, 0, None)
    if not inside_W.any() or not mass_W.sum():
        return None
    return float(mass_W[inside_W].sum() / mass_W.sum()), float(inside_W.mean())


def _draw(filler: _Filler, room: int, seed: int) -> list[int]:
    """Sentences in a drawn order, over and over, as long as one still fits into `room` tokens."""
    order = list(range(len(filler.sentences)))
    random.Random(seed).shuffle(order)
    drawn: list[int] = []
    least = min(filler.tokens)
    while room >= least:
        for j in order:
            if filler.tokens[j] <= room:
                drawn.append(j)
                room -= filler.tokens[j]
    return drawn


def _right(questions: Sequence[Question], labels: Sequence[int]) -> list[float]:
    return [float(question.label == label) for question, label in zip(questions, labels, strict=True)]


def _interval(values: ArrayLike) -> Interval:
    return intervals(np.asarray(values)[:, None])[0]


def _sizes(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], special: bool = False) -> list[int]:
    """Tokens of texts, on request with the special tokens around them."""
    encoded = tokenizer(list(texts), add_special_tokens=special, truncation=False, verbose=False)
    return [len(ids) for ids in encoded["input_ids"]]


def _check(
    model: LexicalSAE,
    sentences: Sequence[str],
    labels: Sequence[int],
    filler: Sequence[str],
    lengths: Sequence[int],
    depths: Sequence[float],
) -> None:
    """Refuse what cannot be asked."""
    if model.config.multi_label:
        raise ConfigError("a needle decides one class: give a model with one label a text")
    if not sentences or len(sentences) != len(labels):
        raise DataError("give at least one needle, and one label for each")
    if not any(sentence.strip() for sentence in filler):
        raise DataError("there is no filler to hide a needle in: give at least one sentence")
    if not lengths or min(lengths) < 1:
        raise ConfigError("needle.lengths are numbers of tokens from 1: give at least one")
    if not depths or min(depths) < 0 or max(depths) > 1:
        raise ConfigError("needle.depths are shares of the filler from 0 to 1: give at least one")
