"""The evaluation of a model on a split: quality first, then every question about its words, each on its own.

1. One pass over all rows decides them. Quality and calibration come first; the steps that share the pass
   follow, then those that sample rows for passes of their own.
2. Each result is handed to `on_step` as soon as it is there, so that what fails or is killed later loses
   nothing. A step that fails says why under `problems`.

What words contribute is measured on each row's most probable class; quality is of tags and labels as they are
predicted.

Legend: N rows, C classes.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from splade.circuits.calibration import expected_calibration_error
from splade.circuits.prediction import probabilities
from splade.config.model import LexicalConfig
from splade.data.encoding import by_length
from splade.data.rows import Sentences, Texts
from splade.evaluation.completeness import Completeness, CompletenessFitter
from splade.evaluation.eraser import Eraser
from splade.evaluation.honesty import Honesty, HonestyFitter
from splade.evaluation.identity import Identity, IdentityFitter
from splade.evaluation.probes import Probes
from splade.evaluation.removability import Removability, RemovabilityFitter
from splade.evaluation.scaling import Scaling, ScalingFitter
from splade.evaluation.separation import Separation, SeparationFitter
from splade.evaluation.spliced import Spliced
from splade.evaluation.steps import Look, OnStep, Record, Step, plain, sampled
from splade.evaluation.steps_words import (
    ActiveWords,
    ActiveWordsFitter,
    Asked,
    AutoencodersFitter,
    ErasersFitter,
    SignsFitter,
    probe_words,
)
from splade.inference.rows import EncodedRows, decide
from splade.inference.scoring import LogitsFitter, Quality, quality
from splade.mechanistic.layerwise import Layerwise, LayerwiseFitter
from splade.mechanistic.sign_flips import SignFlips
from splade.models.dense import DenseModel
from splade.models.frozen import FrozenLM
from splade.models.lexical_sae import LexicalSAE

LAYERWISE_SAMPLE = 64
SCALING_SAMPLE = 128
SAE_SAMPLE = 512
FITTED = ("sae", "probes")
_SAMPLED_AT_ONCE = 16

Watch = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]


@contextmanager
def _unwatched(name: str, total: int) -> Iterator[Callable[[int], None]]:  # noqa: ARG001
    yield lambda _: None


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
    seconds: float
    step_seconds: dict[str, float]
    problems: dict[str, str]
    dla: Identity | None = None
    active_words: ActiveWords | None = None
    dictionary: Honesty | None = None
    completeness: list[Completeness] | None = None
    separation: Separation | None = None
    eraser: list[Eraser] | None = None
    removability: Removability | None = None
    sign_flips: SignFlips | None = None
    layerwise: Layerwise | None = None
    scaling: Scaling | None = None
    sae: list[Spliced] | None = None
    probes: Probes | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values under their documented keys, without those that have none."""
        values = {key: value for key, value in plain(self).items() if value is not None}
        return {"task": values.pop("task"), **_given(values.pop("quality")), **values}


def steps_of(
    model: LexicalSAE,
    rows: EncodedRows,
    training: Texts | Sentences | None = None,
    fitted: Collection[str] = FITTED,
) -> list[Step[Any]]:
    """The questions about a model's words, in the order in which they are answered."""
    config, names = model.config, model.config.label_names
    steps: list[Step[Any]] = [
        Step("dla", IdentityFitter, lambda f, look: f.update(look.attribution)),
        Step(
            "active_words",
            lambda: ActiveWordsFitter(model.lexicon.vocab_size),
            lambda f, look: f.update(look.state.rows.active_N),
        ),
        Step(
            "dictionary",
            lambda: HonestyFitter(model.lexicon, names),
            lambda f, look: f.update(look.attribution, look.batch, look.top_BLK),
        ),
        Step(
            "completeness",
            lambda: CompletenessFitter(rows, config),
            lambda f, look: f.update(look.attribution, look.batch),
        ),
        Step(
            "separation",
            lambda: SeparationFitter(model.lexicon.names, names),
            lambda f, look: f.update(look.attribution),
        ),
        Step(
            "eraser",
            lambda: ErasersFitter(config.multi_label, config.temperature),
            lambda f, look: f.update(look),
        ),
        Step(
            "removability",
            lambda: RemovabilityFitter("dla", config.multi_label),
            lambda f, look: f.update(look.state, look.attribution.amount, look.text_N),
        ),
        Step("sign_flips", lambda: SignsFitter(model), lambda f, look: f.update(look.state)),
        *_sampled_steps(model),
    ]
    return steps if training is None else steps + _fitted_steps(model, rows, training, fitted)


def _fitted_steps(
    model: LexicalSAE, rows: EncodedRows, training: Texts | Sentences, fitted: Collection[str]
) -> list[Step[Any]]:
    """Those that learn from training rows."""
    autoencoders = functools.partial(AutoencodersFitter, model, training)
    steps: list[Step[Any]] = [Step("sae", autoencoders, lambda f, look: f.update(look.batch), SAE_SAMPLE)]
    if isinstance(training, Texts) and isinstance(rows.rows, Texts):
        probed = functools.partial(probe_words, model, training, rows.rows)
        steps.append(Step("probes", lambda: Asked(probed), lambda *_: None, sample=0))
    return [step for step in steps if step.name in fitted]


def _sampled_steps(model: LexicalSAE) -> list[Step[Any]]:
    """Those that cost more passes than one."""
    return [
        Step(
            "layerwise",
            lambda: LayerwiseFitter(model),
            lambda f, look: f.update(look.batch.input_ids, look.batch.attention_mask, look.batch.row_mask),
            LAYERWISE_SAMPLE,
        ),
        Step(
            "scaling",
            lambda: ScalingFitter(model),
            lambda f, look: f.update(look.batch, look.state),
            SCALING_SAMPLE,
        ),
    ]


@torch.no_grad()
def evaluate(
    model: LexicalSAE | DenseModel,
    rows: Texts | Sentences,
    frozen: FrozenLM | None = None,
    batch_size: int = 32,
    watch: Watch = _unwatched,
    on_step: OnStep = lambda *_: None,
    training: Texts | Sentences | None = None,
    fitted: Collection[str] = FITTED,
) -> Evaluation:
    """Measure a model on labelled rows; `frozen` is what grounding is measured against.

    Given training rows, what is `fitted` on them is measured too: autoencoders and probes. `on_step` gets a
    name and plain values; those of "quality" are several keys. `watch` shows a task of so many examples.
    """
    start = time.perf_counter()
    model.eval()
    encoded, record = EncodedRows(rows, model), Record(on_step)
    steps = steps_of(model, encoded, training, fitted) if isinstance(model, LexicalSAE) else []
    shared = [step for step in steps if step.sample is None]
    record.begin(shared)
    with watch("evaluation", len(encoded)) as advance:
        logits_NC = _pass(model, encoded, frozen, batch_size, record, shared, advance)
    scored = quality(model.config, encoded, logits_NC)
    ece, raw = (_ece(model.config, encoded, logits_NC, t) for t in (model.config.temperature, 1.0))
    said: dict[str, Any] = {"ece": ece, "ece_uncalibrated": raw}
    on_step("quality", {"task": model.config.task, **_given(plain(scored)), **said})
    record.finish(shared)
    for step in steps:
        if isinstance(model, LexicalSAE) and step.sample is not None:
            _sample(model, encoded, record, step, watch)
    return Evaluation(
        task=model.config.task,
        rows=len(rows),
        quality=scored,
        **said,
        seconds=time.perf_counter() - start,
        step_seconds=record.seconds,
        problems=record.problems,
        **record.found,
    )


def _pass(
    model: LexicalSAE | DenseModel,
    rows: EncodedRows,
    frozen: FrozenLM | None,
    batch_size: int,
    record: Record,
    steps: Sequence[Step[Any]],
    advance: Callable[[int], None],
) -> Tensor:
    """The logits [N, C] of all rows; the steps see every batch on the way."""
    logits = LogitsFitter(rows, len(model.config.label_names))
    for indices in by_length(rows.lengths, batch_size):
        batch = rows.batch(indices)
        if isinstance(model, LexicalSAE):
            top_BLK = None if frozen is None else frozen.top_words(batch.input_ids, batch.attention_mask)
            look = Look(model, batch, top_BLK)
            logits.update(batch, look.state.logits)
            record.look(steps, look)
        else:
            logits.update(batch, decide(model, batch).logits)
        advance(len(indices))
    return logits.result()


def _sample(model: LexicalSAE, rows: EncodedRows, record: Record, step: Step[Any], watch: Watch) -> None:
    """A step's own passes over its sample."""
    chosen = sampled(len(rows), step.sample or 0)
    record.begin([step])
    with watch(step.name, len(chosen)) as advance:
        for places in by_length([rows.lengths[i] for i in chosen], _SAMPLED_AT_ONCE):
            record.look([step], Look(model, rows.batch([chosen[place] for place in places])))
            advance(len(places))
    record.finish([step])


def _given(values: dict[str, Any]) -> dict[str, Any]:
    """The parts of quality that were measured."""
    return {key: value for key, value in values.items() if value not in (None, {})}


def _ece(config: LexicalConfig, rows: EncodedRows, logits_NC: Tensor, temperature: float) -> float:
    probability_NC = probabilities(logits_NC, config.multi_label, temperature)
    return expected_calibration_error(probability_NC, rows.labels_N)
