"""One split as the loop sees it: tokenised once, with what the frozen LM would say at every position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from splade.circuits.losses import outside_share, outside_top_words
from splade.circuits.metrics import accuracy, entity_scores
from splade.circuits.objective import places
from splade.data.encoding import Batch, by_length, collate, encode, stitch
from splade.data.rows import Sentences, Texts
from splade.models.frozen import FrozenLM, TopWords
from splade.models.lexical_sae import LexicalSAE
from splade.models.state import CircuitState
from splade.training.optim import autocast


class TrainingRows:
    """Examples of one split; `top_words` answers from the frozen LM's cache, or None without a frozen LM."""

    def __init__(self, rows: Texts | Sentences, model: LexicalSAE, frozen: FrozenLM | None) -> None:
        assert model.tokenizer is not None
        config = model.config
        self.rows = rows
        self.examples = encode(rows, config.label_names, model.tokenizer, config.max_length)
        self.lengths = [len(example.input_ids) for example in self.examples]
        self.pad_id = int(model.tokenizer.pad_token_id or 0)
        self.device = model.backbone.E_VH.device
        documents = [example.input_ids for example in self.examples]
        self.top = None if frozen is None else TopWords(frozen, documents)

    def __len__(self) -> int:
        return len(self.examples)

    def batch(self, indices: Sequence[int]) -> Batch:
        """The examples at `indices` on the model's device."""
        return collate(self.examples, indices, self.pad_id).to(self.device)

    def fill(self, batch_size: int, precision: str, advance: Callable[[int], None]) -> None:
        """Ask the frozen LM once for every text."""

        def tensors(indices: Sequence[int]) -> tuple[Tensor, Tensor]:
            batch = self.batch(indices)
            return batch.input_ids, batch.attention_mask

        if self.top is not None:
            with autocast(self.device, precision):
                self.top.fill(by_length(self.lengths, batch_size), tensors, advance)

    def top_words(self, batch: Batch) -> Tensor | None:
        """The frozen LM's words [B, L, 100] at the positions of a batch."""
        if self.top is None:
            return None
        return self.top.batch(batch.indices, batch.input_ids, batch.attention_mask)


def decide(model: LexicalSAE, batch: Batch, top_BLK: Tensor | None) -> CircuitState:
    """One forward pass over either task."""
    licence = top_BLK if model.lexicon.honesty == "licensed-contextual" else None
    return model.decide(model.encode(batch.input_ids, batch.attention_mask, batch.row_mask, licence))


def document_of_row(batch: Batch) -> Tensor | None:
    """The document of each row when tagging; None where rows are documents."""
    return None if batch.row_mask is None else batch.row_mask.nonzero()[:, 0]


@dataclass(frozen=True)
class Validation:
    """Accuracy or entity F1, mean active words a row, and the share of s outside the frozen LM's words."""

    score: float
    active: float
    outside: float | None


@torch.no_grad()
def validate(model: LexicalSAE, rows: TrainingRows, batch_size: int) -> Validation:
    """Score a split with the model as it would predict."""
    model.eval()
    found: list[list[int]] = [[] for _ in rows.examples]
    total = active = outside = 0.0
    for indices in by_length(rows.lengths, batch_size):
        batch = rows.batch(indices)
        top_BLK = rows.top_words(batch)
        state = decide(model, batch, top_BLK)
        labels = iter(state.logits.argmax(-1).tolist())
        for i in indices:
            found[i] = [next(labels) for _ in rows.examples[i].labels]
        active += float(state.rows.active_N.sum())
        total += state.rows.n_rows
        if top_BLK is not None:
            outside_Q = outside_top_words(state.rows, *places(state.rows, top_BLK, document_of_row(batch)))
            outside += float(outside_share(state.rows, outside_Q)) * state.rows.n_rows
    return Validation(
        _score(model, rows, found), active / max(total, 1), outside / max(total, 1) if rows.top else None
    )


def _score(model: LexicalSAE, rows: TrainingRows, found: list[list[int]]) -> float:
    if isinstance(rows.rows, Sentences):
        tags = stitch(rows.examples, found, rows.rows, model.config.label_names)
        return entity_scores(tags, rows.rows.tags)["micro"].f1
    return accuracy([labels[0] for labels in found], rows.rows.labels)
