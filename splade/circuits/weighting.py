"""How terms of different size are added: learned uncertainties, or division by their own running size.

Uncertainty    Σ_k exp(-s_k) · L_k + s_k,      s_k learned (Kendall, Gal and Cipolla 2018)
Scales         L_k / max(EMA|L_k|, 1e-3)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from splade.circuits.geco import mean_over_processes

LEAST_SCALE = 1e-3
LIMIT = 5.0  # of |s|: a term that reaches 0 would otherwise take a weight without bound


class Uncertainty(nn.Module):
    """Learned weights exp(-s) of named terms; for a constant L the optimum is exp(-s) = 1/L.

    s = 5·tanh(raw / 5) stays within ±5 and keeps a gradient there.
    """

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self.names = tuple(names)
        self.raw_K = nn.Parameter(torch.zeros(len(self.names)))

    def s_K(self) -> Tensor:
        """s [K], in the order of `names`."""
        return LIMIT * torch.tanh(self.raw_K / LIMIT)

    def weights(self) -> dict[str, Tensor]:
        """exp(-s) by name, detached."""
        return dict(zip(self.names, torch.exp(-self.s_K().detach()).unbind(), strict=True))

    def forward(self, terms: Mapping[str, Tensor]) -> Tensor:
        """The weighted sum of the terms that are there."""
        s_K = self.s_K()
        s = torch.stack([s_K[self.names.index(name)] for name in terms])
        return (torch.exp(-s) * torch.stack([*terms.values()]) + s).sum()


class Scales:
    """Divides each named term by the running mean of its size, so that all terms are of size 1.

    The mean takes in a value before dividing it, so nothing larger than 1 / (1 - smoothing) comes out.
    """

    def __init__(self, smoothing: float = 0.95) -> None:
        assert 0 <= smoothing < 1
        self.smoothing = smoothing
        self.means: dict[str, Tensor] = {}
        self.counts: dict[str, int] = {}

    def __call__(self, terms: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The terms over their sizes, after taking these in; no gradient reaches the sizes."""
        if not terms:
            return {}
        term_K = torch.stack([*terms.values()])
        scaled_K = term_K / self._observe(list(terms), term_K.detach().abs())
        return dict(zip(terms, scaled_K.unbind(), strict=True))

    @torch.no_grad()
    def _observe(self, names: Sequence[str], size_K: Tensor) -> Tensor:
        """Take in the sizes [K] of named terms; what to divide each by."""
        sizes = mean_over_processes(size_K).unbind()
        for name in names:
            self.counts[name] = self.counts.get(name, 0) + 1
        shares = [newest_share(self.smoothing, self.counts[name]) for name in names]
        means = [self.means.get(name, size).to(size) for name, size in zip(names, sizes, strict=True)]
        self.means |= dict(zip(names, torch._foreach_lerp(means, list(sizes), shares), strict=True))
        return torch.stack([self.means[name] for name in names]).clamp(min=LEAST_SCALE)

    def state_dict(self) -> dict[str, Any]:
        """A copy of the sizes and how many values each has taken in."""
        return {
            "means": {name: mean.clone() for name, mean in self.means.items()},
            "counts": dict(self.counts),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict()`."""
        self.means = {name: mean.clone() for name, mean in state["means"].items()}
        self.counts = {name: int(count) for name, count in state["counts"].items()}


def newest_share(smoothing: float, count: int) -> float:
    """The weight of the newest of `count` values in their bias-corrected exponential average."""
    return (1 - smoothing) / (1 - smoothing**count)
