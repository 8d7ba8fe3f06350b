"""Is every logit the sum it claims to be? Float64 recomputation of the decomposition, over a split."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from splade.mechanistic.attribution import Attribution, exact_logits, residual


@dataclass(frozen=True)
class Identity:
    """Gap between the float64 logit and the sum: relative to |logit| + Σ|a| + |b|, and absolute."""

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
        rows, classes_N = attribution.state.rows, attribution.classes
        assert classes_N is not None
        exact_N = exact_logits(attribution.state).gather(1, classes_N[:, None])[:, 0]
        total_N = rows.sum_by_row(attribution.amount.double()) + attribution.bias.double()
        self._absolute.append((exact_N - total_N).abs())
        self._relative.append(residual(attribution))

    def result(self) -> Identity:
        """The figures of everything counted so far; zeros when nothing was."""
        relative, absolute = (torch.cat([torch.zeros(0), *map(_cpu, p)]) for p in (self._relative, self._absolute))
        if not len(relative):
            return Identity(0.0, 0.0, 0.0, 0.0)
        return Identity(
            float(relative.max()), float(relative.mean()), float(absolute.max()), float(absolute.mean())
        )


def _cpu(values: Tensor) -> Tensor:
    return values.double().cpu()
