"""The evaluation of a model on a split, in one pass: quality, identity, active words, dictionary honesty."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from splade.circuits.metrics import EntityScore, accuracy, entity_scores, token_accuracy
from splade.data.encoding import by_length, stitch
from splade.data.rows import Sentences, Texts
from splade.evaluation.honesty import Honesty, HonestyFitter
from splade.evaluation.identity import Identity, IdentityFitter
from splade.inference.rows import EncodedRows, decide
from splade.mechanistic.attribution import compute_attribution_tensor
from splade.models.frozen import FrozenLM
from splade.models.lexical_sae import LexicalSAE


@dataclass(frozen=True)
class Quality:
    """How often the predictions are right; entity figures only when tagging."""

    accuracy: float
    recall: dict[str, float] = field(default_factory=dict)
    f1: float | None = None
    entities: dict[str, EntityScore] = field(default_factory=dict)


@dataclass(frozen=True)
class ActiveWords:
    """Words with an open gate: per text, or per labelled position when tagging."""

    mean: float
    median: float
    max: int


@dataclass(frozen=True)
class Evaluation:
    """Everything measured on one split of `rows` rows."""

    task: str
    rows: int
    quality: Quality
    dla: Identity
    active_words: ActiveWords
    dictionary: Honesty
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values under their documented keys."""
        values = asdict(self)
        quality = {key: value for key, value in values.pop("quality").items() if value not in (None, {})}
        return {"task": values.pop("task"), **quality, **values}


@torch.no_grad()
def evaluate(
    model: LexicalSAE,
    rows: Texts | Sentences,
    frozen: FrozenLM | None = None,
    batch_size: int = 32,
    advance: Callable[[int], None] = lambda _: None,
) -> Evaluation:
    """Measure a model on labelled rows; `frozen` is what grounding is measured against."""
    start = time.perf_counter()
    model.eval()
    encoded = EncodedRows(rows, model)
    honesty, identity = HonestyFitter(model.lexicon, model.config.label_names), IdentityFitter()
    found: list[list[int]] = [[] for _ in encoded.examples]
    active = [torch.empty(0)]
    for indices in by_length(encoded.lengths, batch_size):
        batch = encoded.batch(indices)
        top_BLK = None if frozen is None else frozen.top_words(batch.input_ids, batch.attention_mask)
        state = decide(model, batch, top_BLK)
        attribution = compute_attribution_tensor(state, state.logits.argmax(-1))
        honesty.update(attribution, batch, top_BLK)
        identity.update(attribution)
        active.append(state.rows.active_N.cpu())
        labels = iter(state.logits.argmax(-1).tolist())
        for i in indices:
            found[i] = [next(labels) for _ in encoded.examples[i].labels]
        advance(len(indices))
    return Evaluation(
        task=model.config.task,
        rows=len(rows),
        quality=_quality(encoded, found, model.config.label_names),
        dla=identity.result(),
        active_words=_active(torch.cat(active)),
        dictionary=honesty.result(),
        seconds=time.perf_counter() - start,
    )


def _active(counts_N: torch.Tensor) -> ActiveWords:
    if not len(counts_N):
        return ActiveWords(0.0, 0.0, 0)
    return ActiveWords(float(counts_N.mean()), float(counts_N.median()), int(counts_N.max()))


def _quality(encoded: EncodedRows, found: list[list[int]], names: list[str]) -> Quality:
    rows = encoded.rows
    if isinstance(rows, Sentences):
        tags = stitch(encoded.examples, found, rows, names)
        scores = entity_scores(tags, rows.tags)
        micro = scores.pop("micro")
        return Quality(token_accuracy(tags, rows.tags), f1=micro.f1, entities={"micro": micro, **scores})
    predicted = [labels[0] for labels in found]
    pairs = list(zip(predicted, rows.labels, strict=True))
    recall = {
        name: accuracy([p for p, g in pairs if g == c], [g for _, g in pairs if g == c])
        for c, name in enumerate(names)
        if c in rows.labels
    }
    return Quality(accuracy(predicted, rows.labels), recall)
