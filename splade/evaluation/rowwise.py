"""What a model gets right row by row, for tests that pair two models on the same rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from splade.circuits.prediction import decided
from splade.data.rows import Sentences, Texts
from splade.data.tagging import spans
from splade.evaluation.seeds import Count
from splade.inference.rows import EncodedRows
from splade.inference.scoring import all_logits, predicted_tags
from splade.models.dense import DenseModel
from splade.models.lexical_sae import LexicalSAE


def row_counts(model: LexicalSAE | DenseModel, rows: Texts | Sentences) -> list[Count]:
    """(right, found, there) of every row: labels of a text, entities of a sentence."""
    encoded = EncodedRows(rows, model)
    logits_NC = all_logits(model, encoded)
    if isinstance(rows, Texts):
        chosen = decided(logits_NC, model.config.multi_label)
        return [_count(found, ids) for found, ids in zip(chosen, rows.label_ids(), strict=True)]
    tags = predicted_tags(model.config, encoded, logits_NC)
    return [_count(spans(found), spans(gold)) for found, gold in zip(tags, rows.tags, strict=True)]


def _count(found: Iterable[Hashable], there: Iterable[Hashable]) -> Count:
    f, t = set(found), set(there)
    return len(f & t), len(f), len(t)
