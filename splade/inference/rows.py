"""One split as a model sees it: tokenised once, with what the frozen LM would say at every position.

Legend: B examples of a batch, L positions, N rows, C classes, K = 100 words the frozen LM would say at a
position.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import overload

import torch
from torch import Tensor

from splade.data.encoding import Batch, by_length, collate, encode
from splade.data.rows import Sentences, Texts
from splade.models.dense import DenseModel, DenseState
from splade.models.frozen import FrozenLM, TopWords
from splade.models.lexical_sae import LexicalSAE
from splade.models.state import CircuitState


class EncodedRows:
    """Examples of one split; `top_words` answers for the frozen LM, or None without one."""

    def __init__(
        self, rows: Texts | Sentences, model: LexicalSAE | DenseModel, frozen: FrozenLM | None = None
    ) -> None:
        assert model.tokenizer is not None
        if model.config.multi_label and isinstance(rows, Texts) and rows.labels:
            rows = Texts(rows.texts, label_sets=rows.label_ids())
        self.rows = rows
        self.examples = encode(rows, model.config.label_names, model.tokenizer, model.config.max_length)
        self.lengths = [len(example.input_ids) for example in self.examples]
        self.pad_id = int(model.tokenizer.pad_token_id or 0)
        self.device = model.backbone.E_VH.device
        documents = [example.input_ids for example in self.examples]
        self.top = None if frozen is None else TopWords(frozen, documents)

    def __len__(self) -> int:
        return len(self.examples)

    @cached_property
    def labels_N(self) -> Tensor:
        """The labels of all rows in the examples' order: ids, or ones and zeros [N, C]."""
        return torch.tensor([label for example in self.examples for label in example.labels])

    def batch(self, indices: Sequence[int]) -> Batch:
        """The examples at `indices` on the model's device."""
        batch = collate(self.examples, indices, self.pad_id)
        return (_pinned(batch) if self.device.type == "cuda" else batch).to(self.device)

    def fill(self, batch_size: int, advance: Callable[[int], None]) -> None:
        """Ask the frozen LM once for every text."""

        def tensors(indices: Sequence[int]) -> tuple[Tensor, Tensor]:
            batch = self.batch(indices)
            return batch.input_ids, batch.attention_mask

        if self.top is not None:
            self.top.fill(by_length(self.lengths, batch_size), tensors, advance)

    def top_words(self, batch: Batch) -> Tensor | None:
        """The frozen LM's words [B, L, K] at the positions of a batch."""
        if self.top is None:
            return None
        return self.top.batch(batch.indices, batch.input_ids, batch.attention_mask)


def _pinned(batch: Batch) -> Batch:
    """The batch in memory from which a device copies while the host goes on."""
    row_mask = None if batch.row_mask is None else batch.row_mask.pin_memory()
    return replace(
        batch,
        input_ids=batch.input_ids.pin_memory(),
        attention_mask=batch.attention_mask.pin_memory(),
        row_mask=row_mask,
        labels_N=batch.labels_N.pin_memory(),
    )


@overload
def decide(model: LexicalSAE, batch: Batch, top_BLK: Tensor | None = None) -> CircuitState: ...


@overload
def decide(model: DenseModel, batch: Batch, top_BLK: Tensor | None = None) -> DenseState: ...


def decide(
    model: LexicalSAE | DenseModel, batch: Batch, top_BLK: Tensor | None = None
) -> CircuitState | DenseState:
    """One forward pass over either task."""
    if isinstance(model, DenseModel):
        return model.decide(model.encode(batch.input_ids, batch.attention_mask, batch.row_mask))
    licence = top_BLK if model.lexicon.honesty == "licensed-contextual" else None
    return model.decide(model.encode(batch.input_ids, batch.attention_mask, batch.row_mask, licence))


def document_of_row(batch: Batch) -> Tensor | None:
    """The document of each row when tagging; None where rows are documents."""
    return None if batch.row_mask is None else batch.row_mask.nonzero()[:, 0]
