"""Is every logit the sum it claims to be? Float64 recomputation of the decomposition, over a split."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from splade.mechanistic.attribution import Attribution, discrepancy, relative


@dataclass(frozen=True)
class Identity:
    """Gap between the logit, the float64 one and the model's, and the sum: relative, and absolute."""

    max_relative_residual: float
    mean_relative_residual: float
    max_abs_error: float
    mean_abs_error: float


class IdentityFitter:
    """Accumulates residuals batch by batch."""

    def __init__(self) -> None:
        self._relative: list[Tensor] = []
        self._absolute: list[Tensor] = []

    @torch.no_grad()
    def update(self, attribution: Attribution) -> None:
        """Count the rows of one attribution (`dla` or `path`)."""
        gap, scale = discrepancy(attribution)
        self._absolute.append(gap.flatten().cpu())
        self._relative.append(relative(gap, scale).flatten().cpu())

    def result(self) -> Identity:
        """The figures of everything counted so far; zeros when nothing was."""
        return Identity(*_max_and_mean(self._relative), *_max_and_mean(self._absolute))


def _max_and_mean(parts: list[Tensor]) -> tuple[float, float]:
    values = torch.cat(parts) if parts else torch.empty(0)
    return (float(values.max()), float(values.mean())) if len(values) else (0.0, 0.0)
