"""From rows of data to padded batches: the one shape both tasks have for a model.

1. Every text or sentence is tokenised once. A text is one example; a long sentence is several windows.
2. An example has one label (a text) or one label for each of its labelled positions (a sentence). Where texts
   have several labels, theirs is a row of ones and zeros.
3. Batches hold examples of similar length, padded to the longest of them.

Legend: B examples of a batch, L padded length, N labelled rows of a batch, C classes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from splade.data.files import short
from splade.data.rows import Sentences, Texts
from splade.data.tagging import OUTSIDE, align
from splade.errors import DataError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Label = int | list[float]  # a class, or ones where a text has the class

_POOL = 50  # batches whose examples are sorted by length together


@dataclass(frozen=True)
class Example:
    """One model input, and which row of the data it came from.

    When tagging, `positions[k]` labels the words `words[k]` of the sentence; both are None for a whole text.
    """

    input_ids: list[int]
    labels: Sequence[Label]
    source: int
    positions: list[int] | None = None
    words: list[list[int]] | None = None


@dataclass(frozen=True)
class Batch:
    """Padded examples; `labels_N` follows the order of rows, `indices` says which examples they are.

    With several labels a text, `labels_N` is [N, C], ones and zeros.
    """

    input_ids: Tensor
    attention_mask: Tensor
    row_mask: Tensor | None
    labels_N: Tensor
    indices: list[int]

    def to(self, device: torch.device) -> Batch:
        """The same batch on another device."""
        row_mask = None if self.row_mask is None else self.row_mask.to(device, non_blocking=True)
        return Batch(
            self.input_ids.to(device, non_blocking=True),
            self.attention_mask.to(device, non_blocking=True),
            row_mask,
            self.labels_N.to(device, non_blocking=True),
            self.indices,
        )


def encode(
    rows: Texts | Sentences, label_names: Sequence[str], tokenizer: PreTrainedTokenizerBase, max_length: int
) -> list[Example]:
    """Rows of either task as examples of at most `max_length` tokens."""
    if isinstance(rows, Texts):
        return _encode_texts(rows, len(label_names), tokenizer, max_length)
    ids = {name: i for i, name in enumerate(label_names)}
    unknown = next((tag for tags in rows.tags for tag in tags if tag not in ids), None)
    if unknown is not None:
        raise DataError(f"tag {short(unknown)} is not among the model's labels; remove the sentences with it")
    examples = []
    for source, words in enumerate(rows.words):
        tags = rows.tags[source] if rows.tags else [OUTSIDE] * len(words)
        for window in align(words, tokenizer, max_length=max_length).windows:
            read_at: dict[int, list[int]] = {}  # a piece over a space begins more than one word
            for position, word in zip(window.first_piece, window.word_index, strict=True):
                read_at.setdefault(position, []).append(word)
            positions = sorted(read_at)  # the order in which a row mask lists them
            chosen = [read_at[position] for position in positions]
            labels = [ids[tags[group[0]]] for group in chosen]
            examples.append(Example(window.input_ids, labels, source, positions, chosen))
    return examples


def _encode_texts(
    rows: Texts, classes: int, tokenizer: PreTrainedTokenizerBase, max_length: int
) -> list[Example]:
    if not rows.texts:
        return []
    encoded = tokenizer(rows.texts, truncation=True, max_length=max_length)["input_ids"]
    sets = [[float(c in ids) for c in range(classes)] for ids in map(set, rows.label_sets)]
    labels: Sequence[Label] = sets or rows.labels or [0] * len(rows.texts)
    return [
        Example(list(ids), [label], source)
        for source, (ids, label) in enumerate(zip(encoded, labels, strict=True))
    ]


def collate(examples: Sequence[Example], indices: Sequence[int], pad_id: int) -> Batch:
    """The examples at `indices` as one padded batch."""
    chosen = [examples[i] for i in indices]
    longest = max(len(example.input_ids) for example in chosen)
    input_ids = torch.full((len(chosen), longest), pad_id)
    attention_mask = torch.zeros_like(input_ids)
    row_mask = torch.zeros_like(input_ids, dtype=torch.bool)
    for row, example in enumerate(chosen):
        length = len(example.input_ids)
        input_ids[row, :length] = torch.tensor(example.input_ids)
        attention_mask[row, :length] = 1
        if example.positions is not None:
            row_mask[row, example.positions] = True
    labels_N = torch.tensor([label for example in chosen for label in example.labels])
    tagging = chosen[0].positions is not None
    return Batch(input_ids, attention_mask, row_mask if tagging else None, labels_N, list(indices))


def by_length(lengths: Sequence[int], batch_size: int) -> list[list[int]]:
    """Batches of indices, longest first, so that memory is asked for once and at the start."""
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    return [order[k : k + batch_size] for k in range(0, len(order), batch_size)]


def buckets(lengths: Sequence[int], batch_size: int, seed: int) -> Iterator[list[int]]:
    """One epoch of shuffled batches whose members have similar lengths."""
    rng = random.Random(seed)
    order = list(range(len(lengths)))
    rng.shuffle(order)
    batches = []
    for start in range(0, len(order), batch_size * _POOL):
        pool = sorted(order[start : start + batch_size * _POOL], key=lambda i: lengths[i])
        batches += [pool[k : k + batch_size] for k in range(0, len(pool), batch_size)]
    rng.shuffle(batches)
    yield from batches
