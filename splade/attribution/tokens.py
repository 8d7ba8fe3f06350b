"""A text as token ids with character offsets, cut to a length without touching the shared tokenizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from splade.errors import ModelError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class Tokens(NamedTuple):
    """Ids, the characters each stands for ((0, 0) for special tokens), and whether text was cut off."""

    ids: list[int]
    offsets: list[tuple[int, int]]
    cut: bool


def tokenise(text: str, tokenizer: PreTrainedTokenizerBase, length: int) -> Tokens:
    """The text in at most `length` tokens; the special tokens at its end are kept."""
    if not tokenizer.is_fast:
        raise ModelError("words need a fast tokenizer, which has offsets; save a tokenizer.json")
    encoded = tokenizer(
        text,
        return_offsets_mapping=True,
        truncation=False,  # cut here instead: a truncation setting stays on a tokenizer that others may share
        padding=False,
        verbose=False,
    )
    ids, offsets = list(encoded["input_ids"]), [(int(a), int(b)) for a, b in encoded["offset_mapping"]]
    end = len(ids)
    while end and offsets[end - 1] == (0, 0):
        end -= 1
    over = max(0, len(ids) - length)
    kept = max(0, end - over)
    return Tokens(ids[:kept] + ids[end:], offsets[:kept] + offsets[end:], over > 0)
