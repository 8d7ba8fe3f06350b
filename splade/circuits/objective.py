"""What training minimises: the recipe's terms, weighed, under the constraints CE <= τ and outside <= 5 %.

1. A `Scene` is one decided batch with what the terms read of it; attributions are made when read.
2. `terms` evaluates the terms that the phase asks for; `loss` weighs them.
3. `observe` moves the multipliers: of grounding by each step, of cross-entropy by rows like those τ is from.

Legend: B documents, L positions, N rows, P active (row, word) pairs, Q reads, V vocabulary, C classes,
K words the frozen LM would say at a position.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from splade.circuits import losses
from splade.circuits.core import circuit_logits, circuit_mask
from splade.circuits.geco import Multiplier, relaxation
from splade.circuits.prediction import prediction_loss
from splade.circuits.recipes import Recipe
from splade.circuits.trackers import Centroids, Frequencies
from splade.circuits.weighting import Scales, Uncertainty
from splade.mechanistic.attribution import compute_attribution_tensor
from splade.models.dense import DenseState
from splade.models.layers.activation import Gate
from splade.models.state import CircuitState, SparseRows

OUTSIDE_BOUND = 0.05  # of activation mass, by specification
TEMPERATURE = 0.1  # of the soft circuit mask, relative to its threshold
SOFTNESS = 0.1  # of the sigmoid count of words: activations above it count as one
DEAD = 0.1  # times the circuit's share: words active in a smaller share of rows are dead

Terms = dict[str, Tensor]


@dataclass(frozen=True)
class Dials:
    """The settings that terms and constraints read."""

    target_active: float
    circuit_fraction: float
    label_smoothing: float = 0.0
    sparsity_weight: float = 1.0
    anchor_weight: float = 0.0


class Scene:
    """One decided batch as the terms see it; `gold` are class ids [N], or rows of 0 and 1 [N, C]."""

    def __init__(self, objective: Objective, state: CircuitState, gold: Tensor, gate: Gate) -> None:
        self.objective, self.state, self.gold, self.gate = objective, state, gold, gate

    @property
    def rows(self) -> SparseRows:
        return self.state.rows

    @cached_property
    def theta_P(self) -> Tensor:
        """The threshold of each pair."""
        return self.gate.theta_at(self.rows.by_word)

    @cached_property
    def explained_NC(self) -> Tensor:
        """Of rows of 0 and 1: the gold classes, and where there is none the most probable one."""
        likely_N = self.state.logits.argmax(-1)
        likely_NC = torch.nn.functional.one_hot(likely_N, self.gold.shape[1]).to(self.gold)
        return torch.where(self.gold.any(-1, keepdim=True), self.gold, likely_NC)

    @cached_property
    def labels_N(self) -> Tensor:
        """One explained class a row; of several, the first."""
        return self.gold if self.gold.ndim == 1 else self.explained_NC.argmax(-1)

    @cached_property
    def attribution_P(self) -> Tensor:
        """What each word adds to the explained class, or classes, with gradient."""
        if self.gold.ndim == 1:
            return compute_attribution_tensor(self.state, self.gold).amount
        every_PC = compute_attribution_tensor(self.state).amount
        return (every_PC * self.explained_NC[self.rows.row_P]).sum(-1)

    @cached_property
    def circuit_NC(self) -> Tensor:
        """Logits of the soft circuit."""
        fraction = self.objective.dials.circuit_fraction
        mask_P = circuit_mask(self.rows, self.attribution_P, fraction, TEMPERATURE)
        return circuit_logits(self.state, mask_P)


def _completeness_ce(scene: Scene) -> Tensor:
    return prediction_loss(scene.circuit_NC, scene.gold, scene.objective.dials.label_smoothing)


def _completeness_kl(scene: Scene) -> Tensor:
    return losses.completeness_kl(scene.state.logits, scene.circuit_NC, several=scene.gold.ndim == 2)


def _separation_cosine(scene: Scene) -> Tensor:
    centroids = scene.objective.centroids
    return losses.separation_cosine(centroids.mixed(scene.rows, scene.attribution_P, scene.labels_N))


def _separation_contrastive(scene: Scene) -> Tensor:
    objective, centroids = scene.objective, scene.objective.centroids
    similarity_NC = losses.cosine_to(scene.rows, scene.attribution_P, centroids.value())
    triplets = losses.separation_contrastive(
        similarity_NC, scene.labels_N, centroids.present_C, objective.margin
    )
    return triplets + losses.margin_drift(objective.margin)


def _sharpness(scene: Scene) -> Tensor:
    return losses.sharpness(scene.rows, scene.attribution_P)


def _df_flops(scene: Scene) -> Tensor:
    return losses.df_flops(scene.rows)


def _l1_l0(scene: Scene) -> Tensor:
    return losses.l1(scene.rows) + losses.l0_proxy(scene.rows, SOFTNESS)


def _gate_l0(scene: Scene) -> Tensor:
    gate = scene.gate
    return losses.gate_l0(scene.rows, scene.theta_P, gate.epsilon, gate.truncate)


def _word_budget(scene: Scene) -> Tensor:
    # z is detached: the budget moves thresholds and leaves the words' logits to the task
    opened_P = scene.gate.opened(scene.rows.logit_P.detach(), scene.theta_P)
    return losses.excess_words(scene.rows, opened_P, scene.objective.dials.target_active)


def _frequency(scene: Scene) -> Tensor:
    dead_V = scene.objective.frequencies.value() < DEAD * scene.objective.dials.circuit_fraction
    log_theta_P = scene.theta_P.clamp(min=1e-2).log()
    return losses.frequency(log_theta_P, scene.rows.word_P, dead_V)


TERMS: dict[str, Callable[[Scene], Tensor]] = {
    "completeness_ce": _completeness_ce,
    "completeness_kl": _completeness_kl,
    "separation_cosine": _separation_cosine,
    "separation_contrastive": _separation_contrastive,
    "sharpness": _sharpness,
    "df_flops": _df_flops,
    "l1_l0": _l1_l0,
    "gate_l0": _gate_l0,
    "word_budget": _word_budget,
    "frequency": _frequency,
}
_OF_CIRCUITS = ("separation_cosine", "separation_contrastive")


class Objective:
    """A recipe at work: trackers, multipliers and learned weights, with the state that a checkpoint needs."""

    def __init__(
        self,
        recipe: Recipe,
        dials: Dials,
        classes: int,
        vocab_size: int,
        steps_per_epoch: float,
        looks_per_epoch: float,
        grounded: bool,
    ) -> None:
        """Grounding is observed at every step, the accuracy constraint `looks_per_epoch` times."""
        self.recipe, self.dials, self.vocab_size = recipe, dials, vocab_size
        self.accuracy_step = 2 / (looks_per_epoch + 1)
        self.grounding = Multiplier(OUTSIDE_BOUND, 2 / (steps_per_epoch + 1)) if grounded else None
        self.accuracy: Multiplier | None = None  # of CE <= τ, from the end of the warm-up on
        self.margin = nn.Parameter(torch.tensor(losses.MARGIN))
        self.uncertainty = Uncertainty(list(recipe.terms)) if recipe.weighing == "uncertainty" else None
        self.scales = Scales()
        self.centroids = Centroids(classes, vocab_size)
        self.frequencies = Frequencies(vocab_size)
        self.class_weights_C: Tensor | None = None
        self._constants: dict[float, Tensor] = {}
        self._scene: Scene | None = None  # of the last terms, until they are remembered

    def to(self, device: torch.device) -> Objective:
        """The same objective with its state on another device."""
        self.margin.data = self.margin.data.to(device)
        self._constants = {}
        for multiplier in (self.grounding, self.accuracy):
            if multiplier is not None:
                multiplier.to(device)
        self.centroids.to(device)
        self.frequencies.to(device)
        if self.uncertainty is not None:
            self.uncertainty.to(device)
        if self.class_weights_C is not None:
            self.class_weights_C = self.class_weights_C.to(device)
        return self

    def parameters(self) -> Sequence[nn.Parameter]:
        """What the objective itself learns."""
        learned = [self.margin] if "separation_contrastive" in self.recipe.terms else []
        return learned if self.uncertainty is None else [*learned, *self.uncertainty.parameters()]

    @property
    def constrained(self) -> bool:
        """Whether the second phase has begun."""
        return self.accuracy is not None

    def constrain(self, tau: float) -> None:
        """Begin the second phase, in which CE <= τ."""
        self.accuracy = Multiplier(tau, self.accuracy_step).to(self.margin.device)

    def terms(
        self,
        state: CircuitState | DenseState,
        gold: Tensor,
        gate: Gate | None,
        top_BLK: Tensor | None = None,
        rows_per: Tensor | None = None,
    ) -> Terms:
        """The unweighted terms of a decided batch that this phase weighs, and the count of active words."""
        smoothing = self.dials.label_smoothing
        found = {"ce": prediction_loss(state.logits, gold, smoothing, self.class_weights_C)}
        if gate is None or isinstance(state, DenseState):
            return found
        found["active"] = state.rows.active_N.mean().detach()
        if self.grounding is not None and top_BLK is not None:
            outside_Q = losses.outside_top_words(state.rows, *places(state.rows, top_BLK, rows_per))
            found["outside"] = losses.outside_share(state.rows, outside_Q)
        scene = Scene(self, state, gold, gate)
        wanted = [*self.recipe.always, *(self.recipe.terms if self.constrained else ())]
        found |= {name: TERMS[name](scene) for name in wanted}
        self._scene = scene
        return found

    @torch.no_grad()
    def remember(self) -> None:
        """Take the batch of the last terms into the averages: once its backward pass keeps a GPU busy."""
        scene, self._scene = self._scene, None
        if scene is None:
            return
        if any(name in _OF_CIRCUITS for name in self.recipe.terms):
            self.centroids.update(scene.rows, scene.attribution_P.detach(), scene.labels_N)
        if "frequency" in self.recipe.terms:
            self.frequencies.update(scene.rows)

    def loss(self, terms: Terms) -> Tensor:
        """The weighted sum."""
        # one product of vectors: every small operation keeps a GPU waiting for the host
        weighed = [(terms["ce"], self._weight_of_ce())]
        for name, weight in self.recipe.always.items():
            weighed.append((terms[name], self._constant(self.dials.sparsity_weight * weight)))
        if self.grounding is not None and "outside" in terms:
            weighed.append((terms["outside"], self.grounding.value))
        if "anchor" in terms:
            weighed.append((terms["anchor"], self._constant(self.dials.anchor_weight)))
        chosen = {name: terms[name] for name in self.recipe.terms} if self.constrained else {}
        if self.uncertainty is None:
            scaled = self.scales(chosen)
            weighed += [(term, self._constant(self.recipe.terms[name])) for name, term in scaled.items()]
        elif chosen:
            weighed.append((self.uncertainty(chosen), self._constant(1.0)))
        term_K, weight_K = (torch.stack(column) for column in zip(*weighed, strict=True))
        return (term_K * weight_K.to(term_K)).sum()

    def _weight_of_ce(self) -> Tensor:
        return self._constant(1.0) if self.accuracy is None else self.accuracy.value + self.recipe.keep

    def _constant(self, value: float) -> Tensor:
        """A number where the terms are, written there once."""
        if value not in self._constants:
            self._constants[value] = torch.full((), value, device=self.margin.device)
        return self._constants[value]

    def observe(self, terms: Terms) -> None:
        """Move the multiplier of grounding by what this step showed."""
        if self.grounding is not None and "outside" in terms:
            self.grounding.update(terms["outside"])

    def observe_accuracy(self, ce: Tensor, active: Tensor) -> None:
        """Move the multiplier of CE <= τ by rows of the kind that τ was taken from."""
        if self.accuracy is None:
            return
        relax = relaxation(active, self.dials.target_active, self.vocab_size) if self.recipe.relax else None
        self.accuracy.update(ce, relax)

    def multipliers(self) -> dict[str, float]:
        """λ of every constraint that holds now."""
        named = {"ce": self.accuracy, "outside": self.grounding}
        return {name: float(one.value) for name, one in named.items() if one is not None}

    def state_dict(self) -> dict[str, Any]:
        """Everything that has changed since the start, as tensors and plain values."""
        return {
            "grounding": None if self.grounding is None else self.grounding.state_dict(),
            "accuracy": None if self.accuracy is None else self.accuracy.state_dict(),
            "margin": self.margin.detach().clone(),
            "uncertainty": None if self.uncertainty is None else dict(self.uncertainty.state_dict()),
            "scales": self.scales.state_dict(),
            "centroids": self.centroids.state_dict(),
            "frequencies": self.frequencies.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state_dict()`."""
        if self.grounding is not None:
            self.grounding.load_state_dict(state["grounding"])
        if state["accuracy"] is not None:
            self.constrain(1.0)
            assert self.accuracy is not None
            self.accuracy.load_state_dict(state["accuracy"])
        self.margin.data.copy_(state["margin"])
        if self.uncertainty is not None:
            self.uncertainty.load_state_dict(state["uncertainty"])
        self.scales.load_state_dict(state["scales"])
        self.centroids.load_state_dict(state["centroids"])
        self.frequencies.load_state_dict(state["frequencies"])


def places(rows: SparseRows, top_BLK: Tensor, document_N: Tensor | None) -> tuple[Tensor, Tensor]:
    """`top_BLK` flattened to [B·L, K], and the place in it that each read [Q] of `rows` has.

    `document_N` names the document of each row; None where row n is document n.
    """
    row_Q = rows.row_P[rows.source_pair_Q]
    document_Q = row_Q if document_N is None else document_N[row_Q]
    return top_BLK.flatten(0, 1), document_Q * top_BLK.shape[1] + rows.source_position_Q
