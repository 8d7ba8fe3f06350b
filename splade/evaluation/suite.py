"""The evaluation of a model on a split, in one pass: quality, identity, active words, dictionary honesty.

What words contribute is measured on each row's most probable class; quality is of tags and labels as they are
predicted.

Legend: B documents, L positions, N rows, C classes, K the frozen LM's words.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from splade.circuits.calibration import expected_calibration_error
from splade.circuits.prediction import probabilities
from splade.config.model import LexicalConfig
from splade.data.encoding import Batch, by_length
from splade.data.rows import Sentences, Texts
from splade.evaluation.completeness import Completeness, CompletenessFitter
from splade.evaluation.eraser import Eraser, EraserFitter, Target
from splade.evaluation.honesty import Honesty, HonestyFitter
from splade.evaluation.identity import Identity, IdentityFitter
from splade.evaluation.intervals import text_of_row
from splade.evaluation.removability import Removability, RemovabilityFitter
from splade.evaluation.separation import Separation, SeparationFitter
from splade.inference.rows import EncodedRows, decide
from splade.inference.scoring import LogitsFitter, Quality, quality
from splade.mechanistic.attribution import compute_attribution_tensor
from splade.models.dense import DenseModel
from splade.models.frozen import FrozenLM
from splade.models.lexical_sae import LexicalSAE
from splade.models.state import CircuitState


@dataclass(frozen=True)
class ActiveWords:
    """Words with an open gate: per text, or per labelled position when tagging.

    `sparsity` is the share of the vocabulary that is not active, on average.
    """

    mean: float
    median: float
    max: int
    sparsity: float


@dataclass(frozen=True)
class Evaluation:
    """Everything measured on one split of `rows` rows; a dense model has no words to measure.

    `ece` is the calibration error of the probabilities, `ece_uncalibrated` what it is without a temperature.
    """

    task: str
    rows: int
    quality: Quality
    ece: float
    ece_uncalibrated: float
    dla: Identity | None
    active_words: ActiveWords | None
    dictionary: Honesty | None
    completeness: list[Completeness] | None
    separation: Separation | None
    eraser: list[Eraser] | None
    removability: Removability | None
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values under their documented keys, without those that have none."""
        values = {key: value for key, value in asdict(self).items() if value is not None}
        quality = {key: value for key, value in values.pop("quality").items() if value not in (None, {})}
        return {"task": values.pop("task"), **quality, **values}


@torch.no_grad()
def evaluate(
    model: LexicalSAE | DenseModel,
    rows: Texts | Sentences,
    frozen: FrozenLM | None = None,
    batch_size: int = 32,
    advance: Callable[[int], None] = lambda _: None,
) -> Evaluation:
    """Measure a model on labelled rows; `frozen` is what grounding is measured against."""
    start = time.perf_counter()
    model.eval()
    encoded, config = EncodedRows(rows, model), model.config
    logits = LogitsFitter(encoded, len(config.label_names))
    words = _WordsFitter(model, encoded) if isinstance(model, LexicalSAE) else None
    for indices in by_length(encoded.lengths, batch_size):
        batch = encoded.batch(indices)
        top_BLK = None if frozen is None else frozen.top_words(batch.input_ids, batch.attention_mask)
        state = decide(model, batch, top_BLK)
        logits.update(batch, state.logits)
        if words is not None and isinstance(state, CircuitState):
            words.update(state, batch, top_BLK)
        advance(len(indices))
    logits_NC = logits.result()
    return Evaluation(
        task=config.task,
        rows=len(rows),
        quality=quality(config, encoded, logits_NC),
        ece=_calibration_error(config, encoded, logits_NC, config.temperature),
        ece_uncalibrated=_calibration_error(config, encoded, logits_NC, 1.0),
        dla=None if words is None else words.identity.result(),
        active_words=None if words is None else words.active(),
        dictionary=None if words is None else words.honesty.result(),
        completeness=None if words is None else words.completeness.result(),
        separation=None if words is None else words.separation.result(),
        eraser=None if words is None else [fitter.result() for fitter in words.eraser.values()],
        removability=None if words is None else words.removability.result(),
        seconds=time.perf_counter() - start,
    )


class _WordsFitter:
    """What is measured of a model's words."""

    def __init__(self, model: LexicalSAE, rows: EncodedRows) -> None:
        config = model.config
        targets: tuple[Target, ...] = ("predicted",) if config.multi_label else ("predicted", "gold")
        self.completeness = CompletenessFitter(rows, config)
        self.separation = SeparationFitter(model.lexicon.names, config.label_names)
        self.removability = RemovabilityFitter("dla", config.multi_label)
        self.eraser = {
            target: EraserFitter("dla", target, config.multi_label, config.temperature) for target in targets
        }
        self.honesty = HonestyFitter(model.lexicon, model.config.label_names)
        self.identity = IdentityFitter()
        self._vocab_size, self._active = model.lexicon.vocab_size, [torch.empty(0)]

    def update(self, state: CircuitState, batch: Batch, top_BLK: Tensor | None) -> None:
        """Count a decided batch."""
        predicted_N, text_N = state.logits.argmax(-1), text_of_row(batch)
        attribution = compute_attribution_tensor(state, predicted_N)
        self.separation.update(attribution)
        self.removability.update(state, attribution.amount, text_N)
        self.eraser["predicted"].update(state, attribution.amount, predicted_N, text_N)
        if "gold" in self.eraser:
            gold = compute_attribution_tensor(state, batch.labels_N)
            self.eraser["gold"].update(state, gold.amount, batch.labels_N, text_N)
        self.honesty.update(attribution, batch, top_BLK)
        self.identity.update(attribution)
        self.completeness.update(attribution, batch)
        self._active.append(state.rows.active_N.cpu())

    def active(self) -> ActiveWords:
        """How many words each row had."""
        counts_N = torch.cat(self._active)
        if not len(counts_N):
            return ActiveWords(0.0, 0.0, 0, 1.0)
        mean = float(counts_N.mean())
        return ActiveWords(mean, float(counts_N.median()), int(counts_N.max()), 1 - mean / self._vocab_size)


def _calibration_error(
    config: LexicalConfig, rows: EncodedRows, logits_NC: Tensor, temperature: float
) -> float:
    probability_NC = probabilities(logits_NC, config.multi_label, temperature)
    return expected_calibration_error(probability_NC, rows.labels_N)
