"""One loop for both tasks: after pooling, or at labelled positions, everything is N rows (s, y).

1. The frozen LM, a copy of the backbone as it is now, says its top words for every text (grounded models).
2. Thresholds start where a few hundred texts open `target_active` words each.
3. Each step: rows -> head -> terms -> objective; AdamW; thresholds return to their domain.
4. After each epoch validation rows are scored, less what the epoch overspends of its budgets. The best epoch
   is restored at the end; `patience` epochs without a better one end training.

Legend: B documents, L positions, K = 100 words the frozen LM would say at a position.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from splade.circuits.objective import Objective, Terms
from splade.config.schema import ExperimentConfig
from splade.data.encoding import Batch, buckets
from splade.data.rows import Dataset
from splade.errors import TrainingError
from splade.inference.rows import EncodedRows, decide, document_of_row
from splade.models.build import calibrate
from splade.models.frozen import FrozenLM
from splade.models.lexical_sae import LexicalSAE
from splade.training import optim
from splade.training.progress import Progress
from splade.training.validation import Validation, validate

CALIBRATION_TEXTS = 256
DOUBLING = 0.02  # of validation score: what an epoch pays for twice its budget of words


@dataclass(frozen=True)
class Epoch:
    """Means over the steps of an epoch, and the validation rows' score at its end."""

    epoch: int
    loss: float
    terms: dict[str, float]
    multiplier: float | None
    validation: Validation | None
    seconds: float


@dataclass
class History:
    """All epochs, and which one the model was left at."""

    epochs: list[Epoch] = field(default_factory=list)
    best: int = -1
    frozen_seconds: float = 0.0


class Trainer:
    """Trains a freshly built model in place."""

    def __init__(
        self,
        model: LexicalSAE,
        dataset: Dataset,
        config: ExperimentConfig,
        progress: Progress,
        on_best: Callable[[LexicalSAE], None] = lambda _: None,
    ) -> None:
        """`on_best` is called with the model after every epoch that is the best so far."""
        self.model, self.config, self.settings = model, config, config.training
        self.progress, self.on_best = progress, on_best
        honesty = model.lexicon.honesty
        frozen = FrozenLM.copy_of(model.backbone, model.lexicon) if honesty == "grounded" else model.frozen
        self.train = EncodedRows(dataset.train, model, frozen)
        rows = dataset.validation
        self.validation = None if rows is None else EncodedRows(rows, model, frozen)
        steps = math.ceil(len(self.train) / self.settings.batch_size)
        self.objective = Objective(
            config.target_active, self.settings.sparsity_weight, 2 / (steps + 1), honesty == "grounded"
        )
        self.backbone_parameters = list(model.backbone.parameters())
        self.optimizer = optim.optimizer(model, self.settings)
        total = steps * self.settings.epochs
        self.schedule = optim.schedule(self.optimizer, total, self.settings.warmup_fraction)

    def run(self) -> History:
        """All epochs; the model ends as the best of them, in evaluation mode."""
        history, best, best_worth, improved = History(), None, -math.inf, 0
        history.frozen_seconds = self._ask_frozen()
        self._calibrate()
        for number in range(self.settings.epochs):
            epoch = self._epoch(number)
            history.epochs.append(epoch)
            self.progress.epoch(epoch.loss, epoch.terms, epoch.multiplier, epoch.validation)
            worth = self._worth(epoch)
            improved = number if worth > best_worth else improved
            if worth >= best_worth:  # of equals the later one, whose rate was lower
                best_worth, history.best = worth, number
                best = copy.deepcopy(self.model.state_dict())
                self.model.eval()
                self.on_best(self.model)
            if number - improved >= self.settings.patience:
                break
        assert best is not None
        self.model.load_state_dict(best)
        self.model.eval()
        return history

    def _ask_frozen(self) -> float:
        start = time.perf_counter()
        splits = [rows for rows in (self.train, self.validation) if rows is not None and rows.top]
        with self.progress.task("frozen LM reads", sum(len(rows) for rows in splits)) as advance:
            for rows in splits:
                with optim.autocast(self.train.device, self.settings.precision):
                    rows.fill(self.settings.batch_size, advance)
        return time.perf_counter() - start

    def _calibrate(self) -> None:
        first = list(buckets(self.train.lengths, self.settings.batch_size, self.config.seed))
        batches = [self.train.batch(first[k]) for k in range(min(len(first), self._calibration_batches()))]
        with optim.autocast(self.train.device, self.settings.precision):
            calibrate(
                self.model,
                [(b.input_ids, b.attention_mask, b.row_mask) for b in batches],
                self.config.target_active,
            )

    def _calibration_batches(self) -> int:
        return max(1, CALIBRATION_TEXTS // self.settings.batch_size)

    def _epoch(self, number: int) -> Epoch:
        start = time.perf_counter()
        self.model.train()
        self.model.backbone.train(self.settings.backbone_dropout)
        seed = self.config.seed * 10_007 + number
        sums: dict[str, Tensor] = {}
        total, steps = torch.zeros((), device=self.train.device), 0
        with self.progress.task(f"epoch {number + 1}/{self.settings.epochs}", len(self.train)) as advance:
            for indices in buckets(self.train.lengths, self.settings.batch_size, seed):
                loss, terms = self._step(self.train.batch(indices))
                total, steps = total + loss, steps + 1
                for name, value in terms.named().items():
                    sums[name] = sums.get(name, torch.zeros_like(value)) + value
                advance(len(indices))
        means = {name: float(value) / steps for name, value in sums.items()}
        self._refuse_nan(means)
        found = None if self.validation is None else validate(self.model, self.validation, 64)
        grounding = self.objective.grounding
        multiplier = None if grounding is None else float(grounding.value)
        return Epoch(number, float(total) / steps, means, multiplier, found, time.perf_counter() - start)

    def _step(self, batch: Batch) -> tuple[Tensor, Terms]:
        model, device = self.model, self.train.device
        top_BLK = self.train.top_words(batch)
        with optim.autocast(device, self.settings.precision):
            state = decide(model, batch, top_BLK)
        grounding_BLK = top_BLK if self.objective.grounding is not None else None
        terms = self.objective.terms(state, batch.labels_N, model.gate, grounding_BLK, document_of_row(batch))
        loss = self.objective.loss(terms)
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        optim.clip(self.backbone_parameters)
        self.optimizer.step()
        model.gate.clamp_()
        self.schedule.step()
        self.objective.update(terms)
        return loss.detach(), terms

    def _refuse_nan(self, means: dict[str, float]) -> None:
        broken = [name for name, value in means.items() if not math.isfinite(value)]
        if broken:
            raise TrainingError(
                f"the {broken[0]} term is {means[broken[0]]}: training stopped, the last good epoch is kept; "
                "lower training.learning_rate"
            )
        if not all(bool(p.isfinite().all()) for p in self.model.parameters()):
            raise TrainingError(
                "weights are not a number any more: training stopped, the last good epoch is kept; "
                "lower training.learning_rate"
            )

    def _worth(self, epoch: Epoch) -> float:
        """Validation score less what was overspent; without validation rows, later is better."""
        found = epoch.validation
        if found is None:
            return float(epoch.epoch)
        overspent = DOUBLING * math.log2(max(found.active / self.config.target_active, 1.0))
        if self.objective.grounding is not None and found.outside is not None:
            overspent += max(0.0, found.outside - self.objective.grounding.bound)
        return found.score - overspent
