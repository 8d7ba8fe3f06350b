"""From logits at labelled positions to one tag a word, of a whole sentence at once.

1. Each word gets the logits of the row that labels it, whichever window that row stands in. A word without
   any piece is outside for certain.
2. `independent`: the most probable tag of each word. `valid`: the most probable tags of the sentence among
   those in which I-X only follows B-X or I-X.
3. Most sentences are valid as they are. The others are solved together by Viterbi's algorithm, padded with
   words that are outside, which any tag may precede.

A word's logits and its log-probabilities differ by a number that is the same for all its tags, and so do
those of a whole sentence: decoding by logits is decoding by probabilities, at any temperature.

Legend: R rows of all examples, W words, S sentences, C tags.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor

from splade.data.encoding import Example
from splade.data.tagging import OUTSIDE

Decode = Literal["independent", "valid"]

_SENTENCES_AT_ONCE = 256


def decode(
    examples: Sequence[Example],
    logits_RC: Tensor,
    lengths: Mapping[int, int],
    names: Sequence[str],
    how: Decode = "valid",
) -> dict[int, list[int]]:
    """One tag id for each of the `lengths[s]` words of sentence s; `logits_RC` follow the examples' rows."""
    silent_1C = torch.tensor([[0.0 if name == OUTSIDE else -torch.inf for name in names]])
    logits_TC = torch.cat([logits_RC.detach().double().cpu(), silent_1C.double()])  # row -1 has no piece
    row_of = {source: [-1] * length for source, length in lengths.items()}
    row = 0
    for example in examples:
        for words in example.words or ():
            for word in words:
                row_of[example.source][word] = row
            row += 1
    scores = [logits_TC[rows] for rows in row_of.values()]
    found = best_valid(scores, names) if how == "valid" else [s_WC.argmax(-1).tolist() for s_WC in scores]
    return dict(zip(row_of, found, strict=True))


def best_valid(scores: Sequence[Tensor], names: Sequence[str]) -> list[list[int]]:
    """The valid tags of largest summed score for each sentence [W, C]."""
    may_follow_CC = transitions(names)
    found: list[list[int]] = [s_WC.argmax(-1).tolist() for s_WC in scores]
    outside = names.index(OUTSIDE)
    broken = [
        i
        for i, tags in enumerate(found)
        if tags and not bool(may_follow_CC[[outside, *tags[:-1]], tags].all())  # a beginning is as after O
    ]
    broken.sort(key=lambda i: len(found[i]))
    for start in range(0, len(broken), _SENTENCES_AT_ONCE):
        some = broken[start : start + _SENTENCES_AT_ONCE]
        for i, tags in zip(some, _viterbi([scores[i] for i in some], may_follow_CC, outside), strict=True):
            found[i] = tags
    return found


def transitions(names: Sequence[str]) -> Tensor:
    """Which tag [C, C] (column) may follow which (row)."""
    return torch.tensor([[_may_follow(before, tag) for tag in names] for before in names])


def _may_follow(before: str, tag: str) -> bool:
    return not tag.startswith("I-") or before in (f"B-{tag[2:]}", tag)


def _viterbi(scores: Sequence[Tensor], may_follow_CC: Tensor, outside: int) -> list[list[int]]:
    lengths = [len(s_WC) for s_WC in scores]
    barred_CC = torch.where(may_follow_CC, 0.0, -torch.inf).double()
    padding_C = torch.full((len(barred_CC),), -torch.inf, dtype=torch.double)
    padding_C[outside] = 0.0
    score_SWC = padding_C.repeat(len(scores), max(lengths), 1)
    for s, s_WC in enumerate(scores):
        score_SWC[s, : len(s_WC)] = s_WC
    best_SC = score_SWC[:, 0] + barred_CC[outside]
    came_from = []
    for word in range(1, max(lengths)):
        best_SC, before_SC = (best_SC[:, :, None] + barred_CC).max(1)
        best_SC = best_SC + score_SWC[:, word]
        came_from.append(before_SC)
    path = [best_SC.argmax(-1)]
    for before_SC in reversed(came_from):
        path.append(before_SC.gather(1, path[-1][:, None])[:, 0])
    tags_SW = torch.stack(path[::-1], 1).tolist()
    return [tags[:length] for tags, length in zip(tags_SW, lengths, strict=True)]
