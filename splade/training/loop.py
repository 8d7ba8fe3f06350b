"""One loop for both tasks and every recipe: after pooling, or at labelled positions, all is N rows (s, y).

1. The frozen LM, a copy of the backbone as it is now, says its top words for every text (grounded models).
2. Thresholds start where a few hundred texts open `target_active` words each.
3. Warm-up: cross-entropy and what the recipe always weighs. Cross-entropy on held-out rows is noted; its 25th
   percentile becomes τ. Then the constrained objective, whose λ is moved by rows of the same kind.
4. After each epoch validation rows are scored with the averaged weights, less what the epoch overspends of
   its budgets. The best epoch that ended in the second phase (of all, if none did) is restored at the end;
   `patience` epochs without a better one end training, but not before the second phase.
5. Every so many steps all of this is written down, so that a killed run continues bit for bit.

Legend: B documents, L positions, N rows, K = 100 words the frozen LM would say at a position.
"""

from __future__ import annotations

import copy
import itertools
import math
import random
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from splade.circuits.geco import smoothing_floor, threshold
from splade.circuits.objective import Dials, Objective, Terms
from splade.circuits.prediction import class_weights, prediction_loss
from splade.circuits.recipes import Recipe, find_recipe
from splade.config.schema import ExperimentConfig
from splade.data.encoding import Batch, buckets
from splade.data.rows import Dataset
from splade.errors import TrainingError
from splade.inference.rows import EncodedRows, decide, document_of_row
from splade.models.build import calibrate
from splade.models.dense import DenseModel
from splade.models.frozen import FrozenLM
from splade.models.lexical_sae import LexicalSAE
from splade.training import anchor, optim
from splade.training.checkpoint import Checkpoints, flatten, restore_rng, rng_state, unflatten
from splade.training.history import Epoch, History, Position
from splade.training.progress import Progress
from splade.training.tau import bound_of
from splade.training.validation import validate

CALIBRATION_TEXTS = 256
DOUBLING = 0.02  # of validation score: what an epoch pays for twice its budget of words
WATCH_EVERY, SELDOM = 8, 32  # steps between looks at held-out rows: at least, and in long epochs
LOOKS = 16  # at held-out rows in the warm-up
SHORTEST_WARMUP = 4  # steps, so that a quartile means something
SLACK = 0.05  # τ above the cross-entropy that the warm-up reached
VALIDATION_BATCH = 64

Model = LexicalSAE | DenseModel


class Trainer:
    """Trains a freshly built model in place."""

    def __init__(
        self,
        model: Model,
        dataset: Dataset,
        config: ExperimentConfig,
        progress: Progress,
        on_best: Callable[[Model], None] = lambda _: None,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        """`on_best` is called with the model after every epoch that is the best so far."""
        self.model, self.config, self.settings = model, config, config.training
        self.progress, self.on_best, self.checkpoints = progress, on_best, checkpoints
        self.recipe: Recipe = find_recipe(config.recipe)
        self.frozen = self._frozen()
        self.train = EncodedRows(dataset.train, model, self.frozen)
        rows = dataset.validation
        self.validation = None if rows is None else EncodedRows(rows, model, self.frozen)
        assert self.settings.batch_size is not None
        self.batch_size = self.settings.batch_size
        batches = math.ceil(len(self.train) / self.batch_size)
        self.steps_per_epoch = math.ceil(batches / self.settings.gradient_accumulation_steps)
        self.total_steps = self.steps_per_epoch * self.settings.epochs
        self.warmup_steps = self._warmup_steps()
        self.watch_every = min(SELDOM, max(WATCH_EVERY, self.steps_per_epoch // SELDOM))
        self.objective = self._objective(dataset)
        self.optimiser = optim.Optimiser(model, self._rates(), self.total_steps, self.objective.parameters())
        held_out = range(0 if self.validation is None else len(self.validation))
        self.look_order = random.Random(config.seed).sample(held_out, len(held_out))  # files may be sorted
        self.at = Position()
        self.best: dict[str, Tensor] | None = None

    def run(self) -> History:
        """All epochs; the model ends as the best of them, in evaluation mode."""
        frozen_seconds = self._ask_frozen()
        if not self._resume():
            self._start()
        while self.at.epoch < self.settings.epochs:
            self._finish(self._epoch())
            if not self._warming() and self.at.epoch - 1 - self.at.improved >= self.settings.patience:
                break
        assert self.best is not None
        self.model.load_state_dict(self.best)
        self.model.eval()
        return History(self.at.epochs, self.at.best, frozen_seconds)

    # --- before the first step -------------------------------------------------------------------------

    def _frozen(self) -> FrozenLM | None:
        if isinstance(self.model, DenseModel):
            return None
        if self.model.lexicon.honesty == "grounded" or self.settings.anchor_weight:
            return FrozenLM.copy_of(self.model.backbone, self.model.lexicon)
        return self.model.frozen

    def _warmup_steps(self) -> int:
        steps = round(self.total_steps * self.settings.warmup_fraction)
        if self.recipe.constrained and steps < SHORTEST_WARMUP and self.settings.target_accuracy is None:
            if not self.recipe.keep:
                raise TrainingError(
                    f"a warm-up of {steps} steps is too short to set the bound on cross-entropy: raise "
                    "training.warmup_fraction or training.epochs, or give training.target_accuracy"
                )
            return self.total_steps + 1  # too few rows for a second phase: CE is minimised throughout
        return steps

    def _objective(self, dataset: Dataset) -> Objective:
        settings, model = self.settings, self.model
        dials = Dials(
            self.config.target_active,
            settings.sparsity_target,
            settings.label_smoothing,
            settings.sparsity_weight,
            settings.anchor_weight,
        )
        grounded = isinstance(model, LexicalSAE) and model.lexicon.honesty == "grounded"
        words = model.lexicon.vocab_size if isinstance(model, LexicalSAE) else 1
        classes = len(dataset.label_names)
        steps = self.steps_per_epoch
        looks = steps / self.watch_every
        objective = Objective(self.recipe, dials, classes, words, steps, looks, grounded)
        if settings.class_weights != "none":
            labels = [label for example in self.train.examples for label in example.labels]
            objective.class_weights_C = class_weights(labels, classes, settings.class_weights)
        return objective.to(self.train.device)

    def _rates(self) -> optim.OptimiserSettings:
        settings, recipe = self.settings, self.recipe
        assert not isinstance(settings.learning_rate, str)  # found by now
        return optim.OptimiserSettings(
            kind=recipe.optimiser,
            weight_ema=recipe.weight_ema,
            centralise=recipe.centralise,
            learning_rate=settings.learning_rate,
            head_learning_rate=settings.head_learning_rate,
            weight_decay=settings.weight_decay,
            rate_warmup_fraction=settings.rate_warmup_fraction,
            precision=settings.precision,
        )

    def trial_step(self) -> Callable[[float], float]:
        """For a range test: one step at the rate given; returns the loss before it."""
        self._ask_frozen()
        self._start()
        self._learn()
        batches = list(buckets(self.train.lengths, self.batch_size, self.config.seed))
        left = itertools.cycle(batches)

        def step(rate: float) -> float:
            self.optimiser.hold(rate)
            loss = self.objective.loss(self._terms(self.train.batch(next(left))))
            self.optimiser.backward(loss)
            self.objective.remember()
            self.optimiser.step()
            return float(loss.detach())

        return step

    def _ask_frozen(self) -> float:
        start = time.perf_counter()
        splits = [rows for rows in (self.train, self.validation) if rows is not None and rows.top]
        with self.progress.task("frozen LM reads", sum(len(rows) for rows in splits)) as advance:
            for rows in splits:
                with optim.autocast(self.train.device, self.settings.precision):
                    rows.fill(self.batch_size, advance)
        return time.perf_counter() - start

    def _start(self) -> None:
        """Thresholds from data, and surrogates as wide as the recipe has them."""
        if isinstance(self.model, DenseModel):
            return
        self.model.gate.truncate = self.recipe.window
        first = list(buckets(self.train.lengths, self.batch_size, self.config.seed))
        chosen = first[: max(1, CALIBRATION_TEXTS // self.batch_size)]
        batches = [self.train.batch(indices) for indices in chosen]
        with optim.autocast(self.train.device, self.settings.precision):
            inputs = [(b.input_ids, b.attention_mask, b.row_mask) for b in batches]
            calibrate(self.model, inputs, self.config.target_active)

    # --- an epoch --------------------------------------------------------------------------------------

    def _epoch(self) -> Epoch:
        start = time.perf_counter()
        self._learn()
        batches = list(
            buckets(self.train.lengths, self.batch_size, self.config.seed * 10_007 + self.at.epoch)
        )
        size = self.settings.gradient_accumulation_steps
        name = f"epoch {self.at.epoch + 1}/{self.settings.epochs}"
        with self.progress.task(name, len(batches)) as advance:
            advance(self.at.batches)
            while self.at.batches < len(batches):
                group = batches[self.at.batches : self.at.batches + size]
                self._step(group)
                self.at.batches += len(group)
                advance(len(group))
                self._write_down()
        means = self.at.means()
        self._refuse_nan(means)
        loss = means.pop("loss")
        with self.optimiser.averaged():
            found = None
            if self.validation is not None:
                smoothing = self.settings.label_smoothing
                found = validate(self.model, self.validation, VALIDATION_BATCH, smoothing)
        return Epoch(
            epoch=self.at.epoch,
            phase="constrained" if self.objective.constrained else "warm-up",
            loss=loss,
            terms=means,
            tau=self.at.tau,
            multipliers=self.objective.multipliers(),
            validation=found,
            rate=self.optimiser.rate,
            seconds=time.perf_counter() - start,
        )

    def _learn(self) -> None:
        """Training mode: near misses of the gates are kept; the checkpoint's dropout only if asked for."""
        self.model.train()
        self.model.backbone.train(self.settings.backbone_dropout)

    def _step(self, group: list[list[int]]) -> None:
        """One optimiser step over the batches of a group."""
        seen: list[Terms] = []
        for indices in group:
            terms = self._terms(self.train.batch(indices))
            loss = self.objective.loss(terms)
            self.optimiser.backward(loss / len(group) if len(group) > 1 else loss)
            self.objective.remember()
            self.at.add({"loss": loss, **terms})
            seen.append({name: term.detach() for name, term in terms.items()})
        self.optimiser.step()
        self.at.steps += 1
        means = seen[0] if len(seen) == 1 else _means(seen)
        self.objective.observe(means)
        if self.recipe.constrained:
            self._watch(means)

    def _terms(self, batch: Batch) -> Terms:
        top_BLK = self.train.top_words(batch)
        with optim.autocast(self.train.device, self.settings.precision):
            state = decide(self.model, batch, top_BLK)
        terms = self.objective.terms(state, batch.labels_N, self.model.gate, top_BLK, document_of_row(batch))
        if self.settings.anchor_weight and self.frozen is not None:
            with optim.autocast(self.train.device, self.settings.precision):
                terms["anchor"] = anchor.drift(self.model.backbone, self.frozen, batch)
        return terms

    def _watch(self, terms: Terms) -> None:
        """Look at held-out rows: in the warm-up for τ, after it for λ."""
        every = self.watch_every if self.objective.constrained else max(1, self.warmup_steps // LOOKS)
        look, off = divmod(self.at.steps, every)
        if self.objective.constrained:
            if not off:
                self.objective.observe_accuracy(*self._held_out(terms, look))
            return
        if not off:
            self.at.noted.append(float(self._held_out(terms, look)[0]))
        if self.at.steps >= self.warmup_steps:
            self.at.tau = self._tau()
            self.objective.constrain(self.at.tau)

    def _tau(self) -> float:
        # several labels: each class is a choice between two
        classes = 2 if self.model.config.multi_label else len(self.model.config.label_names)
        if self.settings.target_accuracy is not None:
            return bound_of(self.settings.target_accuracy, classes)
        floor = max(smoothing_floor(self.settings.label_smoothing, classes), 1e-2)
        return threshold(self.at.noted, SLACK, floor)

    @torch.no_grad()
    def _held_out(self, terms: Terms, look: int) -> tuple[Tensor, Tensor]:
        """Cross-entropy and active words of the next few validation rows, or else of this step's."""
        if self.validation is None:
            return terms["ce"], terms["active"]
        count, size = len(self.validation), min(self.batch_size, len(self.validation))
        # counted in looks: counted in steps, a size that divides the rows would show the same few each time
        batch = self.validation.batch([self.look_order[(look * size + i) % count] for i in range(size)])
        self.model.eval()
        with optim.autocast(self.train.device, self.settings.precision):
            state = decide(self.model, batch, self.validation.top_words(batch))
        self._learn()
        smoothing, weights_C = self.settings.label_smoothing, self.objective.class_weights_C
        assert state.rows is not None  # dense models have no second phase
        return prediction_loss(state.logits, batch.labels_N, smoothing, weights_C), state.rows.active_N.mean()

    # --- after an epoch --------------------------------------------------------------------------------

    def _finish(self, epoch: Epoch) -> None:
        """Rank the epoch, and keep its averaged weights if it is the best so far."""
        self.at.epochs.append(epoch)
        self.progress.epoch(epoch)
        worth, constrained = self._worth(epoch), self.objective.constrained
        first = constrained and not self.at.best_constrained  # like is compared with like
        if first or worth > self.at.best_worth:
            self.at.improved = epoch.epoch
        if first or worth >= self.at.best_worth:  # of equals the later one, whose rate was lower
            self.at.best_worth, self.at.best, self.at.best_constrained = worth, epoch.epoch, constrained
            with self.optimiser.averaged():
                self.best = copy.deepcopy(self.model.state_dict())
                self.model.eval()
                self.on_best(self.model)
        self.at.next_epoch()

    def _warming(self) -> bool:
        """Whether a second phase is still to come, which patience must not prevent."""
        coming = self.recipe.constrained and self.warmup_steps < self.total_steps
        return coming and not self.objective.constrained

    def _worth(self, epoch: Epoch) -> float:
        """Validation score less what was overspent; without validation rows, later is better."""
        found = epoch.validation
        if found is None:
            return float(epoch.epoch)
        overspent = 0.0
        if found.active is not None and "word_budget" in self.recipe.always:
            overspent += DOUBLING * math.log2(max(found.active / self.config.target_active, 1.0))
        if self.objective.grounding is not None and found.outside is not None:
            overspent += max(0.0, found.outside - self.objective.grounding.bound)
        return found.score - overspent

    def _refuse_nan(self, means: dict[str, float]) -> None:
        kept = "" if self.at.best < 0 else ", the last good epoch is kept"
        broken = [name for name, value in means.items() if not math.isfinite(value)]
        broken.sort(key=lambda name: name == "loss")  # a sum of the others
        finite = torch.stack([parameter.isfinite().all() for parameter in self.model.parameters()]).all()
        if not broken and bool(finite):
            return
        cause = (
            f"the {broken[0]} term is {means[broken[0]]}" if broken else "weights are not a number any more"
        )
        raise TrainingError(f"{cause}: training stopped{kept}; lower training.learning_rate")

    # --- checkpoints -----------------------------------------------------------------------------------

    def _write_down(self) -> None:
        every = self.settings.checkpoint_every
        if self.checkpoints is None or not every or self.at.steps % every:
            return
        self._refuse_nan(self.at.means())
        tensors, values = flatten(self._state())
        self.checkpoints.save(self.at.steps, tensors, values)

    def _state(self) -> dict[str, Any]:
        gate = self.model.gate
        return {
            "config": self.config.model_dump(mode="json"),
            "model": dict(self.model.state_dict()),
            "gate": None if gate is None else {"epsilon": gate.epsilon, "truncate": gate.truncate},
            "optimiser": self.optimiser.state_dict(),
            "objective": self.objective.state_dict(),
            "position": self.at.state_dict(),
            "best": self.best,
            "rng": rng_state(),
        }

    def _resume(self) -> bool:
        """Continue from the newest checkpoint; False where there is none."""
        saved = None if self.checkpoints is None else self.checkpoints.latest()
        if saved is None:
            return False
        state = unflatten(saved.tensors, saved.values)
        self._require_same(state["config"], saved.path)
        device = self.train.device
        try:
            self.model.load_state_dict(state["model"])
        except RuntimeError:
            raise TrainingError(
                f"{saved.path} is of another version of this package: leave out --resume"
            ) from None
        if state["gate"] is not None:
            assert isinstance(self.model, LexicalSAE)
            self.model.gate.epsilon, self.model.gate.truncate = state["gate"].values()
            self.model.config.gate_epsilon = self.model.gate.epsilon
        self.objective.load_state_dict(state["objective"])
        self.objective.to(device)
        self.optimiser.load_state_dict(state["optimiser"])
        self.at = Position.of(state["position"])
        self.at.sums = {name: value.to(device) for name, value in self.at.sums.items()}
        self.best = state["best"]
        restore_rng(state["rng"])
        self.progress.line(f"continuing at step {self.at.steps} of {self.total_steps} from {saved.path}")
        return True

    def _require_same(self, config: dict[str, Any], path: object) -> None:
        now = self.config.model_dump(mode="json")
        changed = [key for key in now if now[key] != config.get(key)]
        if changed:
            raise TrainingError(
                f"{path} was made with another {changed[0]}: use the settings of then, or leave out --resume"
            )


def _means(seen: list[Terms]) -> Terms:
    return {name: torch.stack([terms[name] for terms in seen]).mean() for name in seen[0]}
