"""Constraints by dual ascent: a multiplier grows while its constraint is broken, shrinks while it holds."""

from __future__ import annotations

import math

import torch
from torch import Tensor


class Multiplier:
    """λ = exp(ℓ) for one constraint `value <= bound`; ℓ follows the smoothed, relative violation.

    ℓ ← clip(ℓ + step · (EMA(value) / bound - 1), ±limit), the violation itself clipped to [-1, 1] so that one
    bad batch cannot decide. State stays on the device: an update waits for nothing.
    """

    def __init__(
        self, bound: float, step: float, start: float = 1.0, smoothing: float = 0.9, limit: float = 5.0
    ) -> None:
        assert min(bound, step, start) > 0
        self.bound, self.step, self.smoothing, self.limit = bound, step, smoothing, limit
        self.log_value = torch.tensor(math.log(start))
        self.mean: Tensor | None = None

    @property
    def value(self) -> Tensor:
        """λ."""
        return self.log_value.exp()

    @torch.no_grad()
    def update(self, observed: Tensor) -> None:
        """Take one observation of the constrained value."""
        observed = observed.detach()
        self.mean = observed if self.mean is None else torch.lerp(observed, self.mean, self.smoothing)
        violation = (self.mean / self.bound - 1).clamp(-1, 1)
        moved = self.log_value.to(violation.device) + self.step * violation
        self.log_value = moved.clamp(-self.limit, self.limit)
