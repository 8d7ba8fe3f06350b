"""The average of the weights over training, bias-corrected, which evaluation reads in their place.

w̄ ← w̄ + (1 - d) / (1 - d^t) · (w - w̄)      equals      (1 - d) Σ_i d^(t-i) w_i / (1 - d^t)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from splade.circuits.weighting import newest_share

LONGEST, SHORTEST = 1000, 10  # steps remembered


class WeightAverage:
    """An exponential average of parameters over the last tenth of `steps_total` steps, 1000 at most."""

    def __init__(self, parameters: Sequence[Tensor], steps_total: int) -> None:
        self.decay = 1 - 1 / max(SHORTEST, min(LONGEST, steps_total / 10))
        self.steps = 0
        self.weights = [parameter.detach().clone() for parameter in parameters]

    @torch.no_grad()
    def update(self, parameters: Sequence[Tensor]) -> None:
        """Take in the weights after a step."""
        self.steps += 1
        torch._foreach_lerp_(self.weights, list(parameters), newest_share(self.decay, self.steps))

    @torch.no_grad()
    def copy_to(self, parameters: Sequence[Tensor]) -> None:
        """Write the average into `parameters`; before the first update there is none."""
        if self.steps:
            torch._foreach_copy_(list(parameters), self.weights)

    def state_dict(self) -> dict[str, Any]:
        """The average itself, not a copy, and the steps in it."""
        return {"steps": self.steps, "weights": list(self.weights)}

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict()`."""
        self.steps = int(state["steps"])
        for own, saved in zip(self.weights, state["weights"], strict=True):
            own.copy_(saved)
