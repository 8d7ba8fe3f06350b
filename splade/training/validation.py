"""Validation rows after an epoch: right answers, active words, mass outside the frozen LM's words."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from splade.circuits.losses import outside_share, outside_top_words
from splade.circuits.metrics import accuracy, entity_scores
from splade.circuits.objective import places
from splade.data.encoding import by_length, stitch
from splade.data.rows import Sentences
from splade.inference.rows import EncodedRows, decide, document_of_row
from splade.models.lexical_sae import LexicalSAE


@dataclass(frozen=True)
class Validation:
    """Accuracy or entity F1, mean active words a row, and the share of s outside the frozen LM's words."""

    score: float
    active: float
    outside: float | None


@torch.no_grad()
def validate(model: LexicalSAE, rows: EncodedRows, batch_size: int) -> Validation:
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


def _score(model: LexicalSAE, rows: EncodedRows, found: list[list[int]]) -> float:
    if isinstance(rows.rows, Sentences):
        tags = stitch(rows.examples, found, rows.rows, model.config.label_names)
        return entity_scores(tags, rows.rows.tags)["micro"].f1
    return accuracy([labels[0] for labels in found], rows.rows.labels)
