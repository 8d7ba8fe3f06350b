"""What a run remembers: its epochs, which one was best, and how far it has come."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import torch
from torch import Tensor

from splade.training.validation import Validation


@dataclass(frozen=True)
class Epoch:
    """Means over the steps of an epoch, and the validation rows' score at its end."""

    epoch: int
    phase: str
    loss: float
    terms: dict[str, float]
    tau: float | None
    multipliers: dict[str, float]
    validation: Validation | None
    rate: float
    seconds: float


@dataclass
class History:
    """All epochs, and which one the model was left at."""

    epochs: list[Epoch] = field(default_factory=list)
    best: int = -1
    frozen_seconds: float = 0.0


@dataclass
class Position:
    """How far a run has come: what a checkpoint holds beside weights, optimiser and objective."""

    epoch: int = 0
    batches: int = 0  # of this epoch that are done
    steps: int = 0
    improved: int = 0
    best_worth: float = -math.inf
    best: int = -1
    best_constrained: bool = False
    noted: list[float] = field(default_factory=list)  # cross-entropy of held-out rows in the warm-up
    tau: float | None = None
    sums: dict[str, Tensor] = field(default_factory=dict)  # of this epoch, over its batches
    epochs: list[Epoch] = field(default_factory=list)

    def add(self, values: Mapping[str, Tensor]) -> None:
        """Count one batch of the epoch."""
        found = {name: value.detach().float() for name, value in values.items()}
        for name, value in found.items():
            if name not in self.sums:  # a term may begin within an epoch
                self.sums |= {name: torch.zeros_like(value), f"{name}.n": torch.zeros_like(value)}
        counts = [f"{name}.n" for name in found]
        sums = torch._foreach_add([self.sums[name] for name in found], list(found.values()))
        ones = torch._foreach_add([self.sums[name] for name in counts], 1)
        self.sums |= dict(zip([*found, *counts], [*sums, *ones], strict=True))

    def means(self) -> dict[str, float]:
        """The epoch so far."""
        names = [name for name in self.sums if not name.endswith(".n")]
        return {name: float(self.sums[name] / self.sums[f"{name}.n"]) for name in names}

    def next_epoch(self) -> None:
        """Begin another."""
        self.epoch, self.batches, self.sums = self.epoch + 1, 0, {}

    def state_dict(self) -> dict[str, Any]:
        """Plain values and tensors."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {**values, "epochs": [asdict(epoch) for epoch in self.epochs]}

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Position:
        """The position that `state_dict` wrote."""
        epochs = []
        for raw in state["epochs"]:
            found = raw["validation"]
            epochs.append(Epoch(**{**raw, "validation": None if found is None else Validation(**found)}))
        return cls(**{**state, "epochs": epochs})
