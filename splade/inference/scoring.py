"""What a model decides over a whole split: the logits of all rows, and how good the decisions they make are.

Legend: N rows of all examples, C classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from splade.circuits.decoding import decode
from splade.circuits.metrics import EntityScore, accuracy, entity_scores, label_scores, token_accuracy
from splade.circuits.prediction import decided
from splade.config.model import LexicalConfig
from splade.data.encoding import Batch, by_length
from splade.data.rows import Sentences
from splade.inference.rows import EncodedRows, decide
from splade.models.dense import DenseModel
from splade.models.lexical_sae import LexicalSAE


@dataclass(frozen=True)
class Quality:
    """How often the predictions are right.

    `f1` and `entities` when tagging. With several labels a text, `accuracy` is of whole sets of labels, `f1`
    counts all pairs of text and label, and `macro_f1` is the mean of `class_f1`, 0 for a class without rows.
    """

    accuracy: float
    recall: dict[str, float] = field(default_factory=dict)
    f1: float | None = None
    entities: dict[str, EntityScore] = field(default_factory=dict)
    macro_f1: float | None = None
    class_f1: dict[str, float] = field(default_factory=dict)

    @property
    def score(self) -> float:
        """The one figure to compare models by: F1 where there is one, else accuracy."""
        return self.accuracy if self.f1 is None else self.f1


class LogitsFitter:
    """Collects the logits of batches in any order and gives them in the order of the examples."""

    def __init__(self, rows: EncodedRows, classes: int) -> None:
        self._counts = [len(example.labels) for example in rows.examples]
        self._parts = [torch.empty(0, classes) for _ in self._counts]
        self._none = torch.empty(0, classes)

    def update(self, batch: Batch, logits: Tensor) -> None:
        """Note the logits [n, C] of a batch's rows."""
        counts = [self._counts[i] for i in batch.indices]
        for i, part in zip(batch.indices, torch.split(logits.detach().cpu(), counts), strict=True):
            self._parts[i] = part

    def result(self) -> Tensor:
        """Logits [N, C] of all rows."""
        return torch.cat([self._none, *self._parts])


@torch.no_grad()
def all_logits(
    model: LexicalSAE | DenseModel,
    rows: EncodedRows,
    batch_size: int = 32,
    advance: Callable[[int], None] = lambda _: None,
) -> Tensor:
    """Logits [N, C] of all rows, which `rows.labels_N` are the labels of."""
    model.eval()
    logits = LogitsFitter(rows, len(model.config.label_names))
    for indices in by_length(rows.lengths, batch_size):
        batch = rows.batch(indices)
        logits.update(batch, decide(model, batch, rows.top_words(batch)).logits)
        advance(len(indices))
    return logits.result()


def quality(config: LexicalConfig, rows: EncodedRows, logits_NC: Tensor) -> Quality:
    """How good the decisions are that these logits make."""
    if isinstance(rows.rows, Sentences):
        found_tags = predicted_tags(config, rows, logits_NC)
        scores = entity_scores(found_tags, rows.rows.tags)
        right = token_accuracy(found_tags, rows.rows.tags)
        return Quality(right, f1=scores["micro"].f1, entities=scores)
    return _quality_of_labels(config, decided(logits_NC, config.multi_label), rows.rows.label_ids())


def predicted_tags(config: LexicalConfig, rows: EncodedRows, logits_NC: Tensor) -> list[list[str]]:
    """A tag for every word of every sentence, decoded as the model predicts."""
    assert isinstance(rows.rows, Sentences)
    lengths = {source: len(words) for source, words in enumerate(rows.rows.words)}
    found = decode(rows.examples, logits_NC, lengths, config.label_names, config.decode)
    return [[config.label_names[tag] for tag in found[source]] for source in lengths]


def _quality_of_labels(config: LexicalConfig, found: list[list[int]], gold: list[list[int]]) -> Quality:
    names = config.label_names
    right = accuracy([sorted(ids) for ids in found], [sorted(ids) for ids in gold])
    micro, scores = label_scores(found, gold, len(names))
    recall = {name: score.recall for name, score in zip(names, scores, strict=True) if score.support}
    if not config.multi_label:
        return Quality(right, recall)
    class_f1 = {name: score.f1 for name, score in zip(names, scores, strict=True)}
    macro = sum(class_f1.values()) / len(class_f1)
    return Quality(right, recall, micro.f1, macro_f1=macro, class_f1=class_f1)
