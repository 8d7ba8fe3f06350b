"""How few words a position may keep: the score and the words left at each k of `topk_per_position`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from splade.data.encoding import by_length
from splade.data.rows import Sentences, Texts
from splade.inference.rows import EncodedRows, decide
from splade.inference.scoring import LogitsFitter, quality
from splade.models.lexical_sae import LexicalSAE

KS = (1, 2, 5, 10, 20, 50, 100, 200)


@dataclass(frozen=True)
class TopK:
    """A model that keeps k words a position (0: all): accuracy or F1, and mean active words of a row.

    `sparsity` is the share of the vocabulary that is not active.
    """

    k: int
    score: float
    active: float
    sparsity: float


@torch.no_grad()
def sweep(
    model: LexicalSAE,
    rows: Texts | Sentences,
    ks: Sequence[int] = KS,
    batch_size: int = 32,
    advance: Callable[[int], None] = lambda _: None,
) -> list[TopK]:
    """Measure the model at every k; it is left with the k it had."""
    model.eval()
    encoded, before = EncodedRows(rows, model), model.config.topk_per_position
    try:
        return [_measure(model, encoded, k, batch_size, advance) for k in ks]
    finally:
        model.config.topk_per_position = before


def _measure(
    model: LexicalSAE, rows: EncodedRows, k: int, batch_size: int, advance: Callable[[int], None]
) -> TopK:
    model.config.topk_per_position = k
    logits = LogitsFitter(rows, len(model.config.label_names))
    active, count = 0.0, 0
    for indices in by_length(rows.lengths, batch_size):
        batch = rows.batch(indices)
        state = decide(model, batch)
        logits.update(batch, state.logits)
        active += float(state.rows.active_N.sum())
        count += state.rows.n_rows
        advance(len(indices))
    mean = active / max(count, 1)
    score = quality(model.config, rows, logits.result()).score
    return TopK(k, score, mean, 1 - mean / model.lexicon.vocab_size)
