"""Constraints by dual ascent: a multiplier grows while its constraint is broken, shrinks while it holds.

    minimise Σ terms subject to CE <= τ,      λ = exp(ℓ),      ℓ ← ℓ + step · (EMA(CE) / τ - 1)

Each constraint has a multiplier of its own; τ comes from a warm-up on cross-entropy alone (`threshold`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, distributed

from splade.errors import TrainingError

FEWEST = 4  # observations in a warm-up whose quartile means something
LEAST_BOUND = 1e-3  # a bound at 0 has no relative violation


class Multiplier:
    """λ = exp(ℓ) for one constraint `value <= bound`; ℓ follows the smoothed, relative violation.

    ℓ ← clip(ℓ + step · (EMA(value) / bound - 1), ±limit), the violation itself clipped to [-1, 1] so that one
    bad batch cannot decide. State stays on the device: an update waits for nothing. `bound` may be set anew.
    """

    def __init__(
        self, bound: float, step: float, start: float = 1.0, smoothing: float = 0.9, limit: float = 5.0
    ) -> None:
        assert min(bound, step, start) > 0
        self.bound, self.step, self.smoothing, self.limit = bound, step, smoothing, limit
        self.log_value = torch.tensor(math.log(start))
        self.mean: Tensor | None = None

    def to(self, device: torch.device) -> Multiplier:
        """Move to a device, so that no step waits for λ to be copied there."""
        self.log_value = self.log_value.to(device)
        self.mean = None if self.mean is None else self.mean.to(device)
        return self

    @property
    def value(self) -> Tensor:
        """λ."""
        return self.log_value.exp()

    @torch.no_grad()
    def update(self, observed: Tensor, relax: Tensor | None = None) -> None:
        """Take one observation of the constrained value, its bound multiplied by `relax` this once."""
        observed = mean_over_processes(observed.detach())
        yields = 1.0 if relax is None else mean_over_processes(relax.detach().to(observed))
        mean = observed if self.mean is None else self.mean.to(observed)
        self.mean = torch.lerp(observed, mean, self.smoothing)
        violation = (self.mean / (self.bound * yields) - 1).clamp(-1, 1)
        moved = torch.add(self.log_value.to(violation.device), violation, alpha=self.step)
        self.log_value = moved.clamp(-self.limit, self.limit)

    def state_dict(self) -> dict[str, Any]:
        """A copy of what has changed since the start, the bound included; `mean` is None before an update."""
        mean = None if self.mean is None else self.mean.clone()
        return {"log_value": self.log_value.clone(), "mean": mean, "bound": self.bound}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict()`."""
        self.bound = float(state["bound"])
        self.log_value = state["log_value"].clone()
        self.mean = None if state["mean"] is None else state["mean"].clone()


def mean_over_processes(values: Tensor) -> Tensor:
    """The mean of `values` over all processes of a distributed run; elsewhere `values`."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return values
    total = values.clone()
    distributed.all_reduce(total)
    return total / distributed.get_world_size()


def threshold(warmup_ce: Sequence[float], slack: float, floor: float) -> float:
    """τ = max((1 + slack) · 25th percentile of the warm-up's cross-entropies, floor), and above 0."""
    if len(warmup_ce) < FEWEST:
        raise TrainingError(
            f"the warm-up gave {len(warmup_ce)} looks at cross-entropy and {FEWEST} are needed to bound it; "
            "raise training.warmup_fraction or training.epochs"
        )
    quartile = float(torch.tensor(warmup_ce, dtype=torch.float64).quantile(0.25))
    return max(quartile * (1 + slack), floor, LEAST_BOUND)


def smoothing_floor(label_smoothing: float, classes: int) -> float:
    """The least cross-entropy that smoothed labels allow: their own entropy."""
    share_C = torch.full((classes,), label_smoothing / classes, dtype=torch.float64)
    share_C[0] += 1 - label_smoothing
    return float(torch.special.entr(share_C).sum())


def relaxation(active: Tensor, target: float, vocab_size: int) -> Tensor:
    """1 + ½ · clip(log(active / target) / log(V / target), 0, 1): how far τ yields while words are many."""
    if target >= vocab_size:
        return torch.ones_like(active)
    excess = torch.log(active / target) / math.log(vocab_size / target)
    return 1 + 0.5 * excess.clamp(0, 1)
