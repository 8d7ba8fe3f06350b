"""What every explainer is asked, and what it costs to answer.

A question is a text and the class predicted of it; the number to explain is that class's logit. All
explainers of input words see the same words, and words that are gone look the same to all of them.

Legend: M variants of a text, W words of a text, C classes.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal

import torch
from torch import Tensor

from splade.data.encoding import Batch, Example, by_length, collate
from splade.errors import ConfigError
from splade.inference.reading import Input, Reading, read_text
from splade.models.lexical_sae import LexicalSAE
from splade.models.state import CircuitState

Removal = Literal["mask", "deletion"]


class UnavailableError(ConfigError):
    """An explainer that cannot run here; the message says what it lacks."""


@dataclass(frozen=True)
class Question:
    """A text as the model reads it, and the class whose logit is to be explained."""

    reading: Reading
    label: int

    @property
    def words(self) -> int:
        return len(self.reading.places)

    def by_word(self, scores_L: Sequence[float]) -> list[float]:
        """Scores of positions summed over words; what no word holds is left out."""
        scores = [0.0] * (self.words + 1)  # the last, -1, takes what no word holds
        for word, score in zip(self.reading.word_of, scores_L, strict=True):
            scores[word] += score
        return scores[:-1]


@dataclass(frozen=True)
class Settings:
    """How much each explainer may ask; the defaults are those of the comparison that is published."""

    ig_steps: int = 50
    gradient_shap_samples: int = 50
    lime_samples: int = 5000
    shap_evaluations: int = 500
    removal: Removal = "mask"
    batch_size: int = 32
    seed: int = 0


class Meter:
    """Wall time inside the block, and texts (rows of all batches) that went through the model's backbone.

    The frozen LM that contextual licences ask is in the time, not in the passes.
    """

    def __init__(self, model: LexicalSAE) -> None:
        self._base = model.backbone.mlm.base_model
        self._device = model.backbone.E_VH.device
        self.passes, self.seconds = 0, 0.0

    def __enter__(self) -> Meter:
        self._handle = self._base.register_forward_hook(self._count)
        self._start = self._now()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.seconds += self._now() - self._start
        self._handle.remove()

    def _count(self, _module: object, _inputs: object, output: Any) -> None:
        self.passes += len(output[0])

    def _now(self) -> float:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return time.perf_counter()


def package(name: str) -> Any:
    """A module of the extra `explainers`."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        top = name.partition(".")[0]
        raise UnavailableError(f'needs {top}: pip install "lexical-sae[explainers]"') from error


def ask(model: LexicalSAE, texts: Sequence[Input], batch_size: int = 32) -> list[Question]:
    """The most probable class of every text."""
    if model.tokenizer is None or model.config.task != "classification":
        raise ConfigError("explainers are compared on texts: give a classification model with its tokenizer")
    limit = model.config.max_length
    readings = [read_text(i, text, model.tokenizer, limit) for i, text in enumerate(texts)]
    logits_NC = logits_of(model, [list(r.example.input_ids) for r in readings], batch_size)
    return [Question(r, int(c)) for r, c in zip(readings, logits_NC.argmax(-1), strict=True)]


def keeping(question: Question, keep_MW: Tensor, removal: Removal, model: LexicalSAE) -> list[list[int]]:
    """Token ids of a text with some of its words: the others' pieces are masked, or are not there at all.

    What no word holds (special tokens) always stays.
    """
    if removal == "mask":
        return masking(question, keep_MW, model).tolist()
    ids_L, mask_id = torch.tensor(question.reading.example.input_ids), mask_token(model)
    return [ids_L[keep_L].tolist() or [mask_id] for keep_L in _by_position(question, keep_MW)]


def masking(question: Question, keep_MW: Tensor, model: LexicalSAE) -> Tensor:
    """Token ids [M, L] of a text with some of its words, the others' pieces masked."""
    ids_L = torch.tensor(question.reading.example.input_ids)
    return torch.where(_by_position(question, keep_MW), ids_L, mask_token(model))


def _by_position(question: Question, keep_MW: Tensor) -> Tensor:
    """Which positions [M, L] are kept with some of the words."""
    always_M1 = torch.ones(len(keep_MW), 1, dtype=torch.bool)
    return torch.cat([keep_MW, always_M1], 1)[:, question.reading.word_of]


def mask_token(model: LexicalSAE) -> int:
    """The id of the mask token."""
    found = None if model.tokenizer is None else model.tokenizer.mask_token_id
    if found is None:
        raise UnavailableError(
            "this tokenizer has no mask token: give the one that the masked LM was trained with"
        )
    return int(found)


def decide(
    model: LexicalSAE, questions: Sequence[Question], settings: Settings
) -> Iterator[tuple[list[int], Batch, CircuitState]]:
    """Batches of decided questions, with the places of these among all."""
    examples = [question.reading.example for question in questions]
    pad_id = _pad_id(model)
    for indices in by_length([len(example.input_ids) for example in examples], settings.batch_size):
        batch = collate(examples, indices, pad_id).to(model.backbone.E_VH.device)
        with torch.no_grad():
            state = model.decide(model.encode(batch.input_ids, batch.attention_mask))
        yield indices, batch, state


@torch.no_grad()
def logits_of(model: LexicalSAE, inputs: Tensor | Sequence[Sequence[int]], batch_size: int) -> Tensor:
    """Class logits [M, C] of token ids, on the CPU, in the order of the inputs; a tensor has no padding."""
    if isinstance(inputs, Tensor):
        ids_ML = inputs.to(model.backbone.E_VH.device)
        parts = [ids_ML[i : i + batch_size] for i in range(0, len(ids_ML), batch_size)]
        return (
            torch.cat([model.decide(model.encode(x, torch.ones_like(x))).logits for x in parts]).float().cpu()
        )
    examples = [Example(list(ids), [0], i) for i, ids in enumerate(inputs)]
    logits_MC = torch.zeros(len(inputs), len(model.config.label_names))
    pad_id = _pad_id(model)
    for indices in by_length([len(ids) for ids in inputs], batch_size):
        batch = collate(examples, indices, pad_id).to(model.backbone.E_VH.device)
        state = model.decide(model.encode(batch.input_ids, batch.attention_mask))
        logits_MC[indices] = state.logits.float().cpu()
    return logits_MC


def _pad_id(model: LexicalSAE) -> int:
    return int(getattr(model.tokenizer, "pad_token_id", 0) or 0)
