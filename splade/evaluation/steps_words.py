"""Fitters that an evaluation puts together from others: active words, ERASER, autoencoders, probes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from splade.data.encoding import Batch, buckets
from splade.data.rows import Sentences, Texts
from splade.evaluation.eraser import Eraser, EraserFitter, Target
from splade.evaluation.probes import Probes, probes
from splade.evaluation.spliced import Spliced, SpliceFitter
from splade.evaluation.steps import Look, sampled
from splade.inference.rows import EncodedRows
from splade.mechanistic.attribution import compute_attribution_tensor
from splade.mechanistic.sae import KINDS, decoder_inputs, train_sae
from splade.mechanistic.sign_flips import SignFlipFitter, SignFlips
from splade.models.lexical_sae import LexicalSAE
from splade.models.state import CircuitState

SAE_POSITIONS = 1 << 17  # of training text, at most
SAE_BATCH = 1024
SAE_PASSES, SAE_FEWEST_STEPS = 8, 200  # over these positions
_SAE_SEED = 0
PROBED = 4000  # training texts, at most


@dataclass(frozen=True)
class ActiveWords:
    """Words with an open gate: per text, or per labelled position when tagging.

    `sparsity` is the share of the vocabulary that is not active, on average.
    """

    mean: float
    median: float
    max: int
    sparsity: float


class ActiveWordsFitter:
    """Counts the active words of rows, batch by batch."""

    def __init__(self, vocab_size: int) -> None:
        self._vocab_size, self._active = vocab_size, [torch.empty(0)]

    def update(self, active_N: Tensor) -> None:
        """Count rows by their active words."""
        self._active.append(active_N.cpu())

    def result(self) -> ActiveWords:
        """The figures of everything counted so far."""
        counts_N = torch.cat(self._active)
        if not len(counts_N):
            return ActiveWords(0.0, 0.0, 0, 1.0)
        mean = float(counts_N.mean())
        return ActiveWords(mean, float(counts_N.median()), int(counts_N.max()), 1 - mean / self._vocab_size)


class ErasersFitter:
    """ERASER for the predicted classes, and for the gold ones where each row has one."""

    def __init__(self, multi_label: bool, temperature: float) -> None:
        targets: tuple[Target, ...] = ("predicted",) if multi_label else ("predicted", "gold")
        self._fitters = {target: EraserFitter("dla", target, multi_label, temperature) for target in targets}

    def update(self, look: Look) -> None:
        """Count a decided batch."""
        predicted = look.attribution.amount
        self._fitters["predicted"].update(look.state, predicted, look.predicted_N, look.text_N)
        if "gold" in self._fitters:
            gold_N = look.batch.labels_N
            amount_P = compute_attribution_tensor(look.state, gold_N).amount
            self._fitters["gold"].update(look.state, amount_P, gold_N, look.text_N)

    def result(self) -> list[Eraser]:
        """The figures of each target."""
        return [fitter.result() for fitter in self._fitters.values()]


class SignsFitter:
    """Counts the signs of a model's words by class."""

    def __init__(self, model: LexicalSAE) -> None:
        self._names, self._labels = model.lexicon.names, model.config.label_names
        self._fitter = SignFlipFitter(model.head)

    def update(self, state: CircuitState) -> None:
        """Count a decided batch."""
        self._fitter.update(state)

    def result(self) -> SignFlips:
        """The figures, with the words that flip most."""
        return self._fitter.result(self._names, self._labels)


class AutoencodersFitter:
    """Trains an autoencoder of each kind on `training` text only, then splices them into what it is shown."""

    def __init__(self, model: LexicalSAE, training: Texts | Sentences) -> None:
        rows = EncodedRows(training, model)
        batches = map(rows.batch, buckets(rows.lengths, 32, _SAE_SEED))
        h_NH = decoder_inputs(model, ((b.input_ids, b.attention_mask) for b in batches), SAE_POSITIONS)
        steps = max(SAE_FEWEST_STEPS, SAE_PASSES * len(h_NH) // SAE_BATCH)
        with torch.enable_grad():
            found = [train_sae(h_NH, kind, steps=steps, batch_size=SAE_BATCH) for kind in KINDS]
        self._fitters = [SpliceFitter(model, sae) for sae in found]

    def update(self, batch: Batch) -> None:
        """Count a batch under each autoencoder."""
        for fitter in self._fitters:
            fitter.update(batch)

    def result(self) -> list[Spliced]:
        """The figures of each kind."""
        return [fitter.result() for fitter in self._fitters]


class Asked:
    """A question that has its own way over the rows: it is answered when the result is."""

    def __init__(self, ask: Callable[[], Any]) -> None:
        self._ask = ask

    def result(self) -> Any:
        """The answer."""
        return self._ask()


def probe_words(model: LexicalSAE, training: Texts, test: Texts) -> Probes:
    """Probes fitted on training texts, on a seeded draw of them where there are many."""
    return probes(model, training.take(sampled(len(training), PROBED)), test)
