"""A model with a backbone, thresholds and a head, small enough to train in a moment, and settings for it."""

from __future__ import annotations

from typing import get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from splade.models.layers.activation import DReLU
from splade.training.optim import Kind, Optimiser, OptimiserSettings

SETTINGS = OptimiserSettings(learning_rate=1e-4, head_learning_rate=1e-2, weight_decay=0.1)
KINDS: tuple[Kind, ...] = get_args(Kind)
AVERAGING = [
    OptimiserSettings(kind="adamw-cosine", weight_ema=True, centralise=True, learning_rate=1e-2),
    OptimiserSettings(kind="schedule-free", learning_rate=1e-2),
]
EVERY = [*AVERAGING, OptimiserSettings(learning_rate=1e-2)]


class Small(nn.Module):
    """A backbone, thresholds and a head, small enough to train in a moment."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.backbone = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 6))
            self.gate = DReLU(6)
            self.head = nn.Linear(6, 3)

    def forward(self, x_NI: Tensor) -> Tensor:
        logits: Tensor = self.head(self.gate(self.backbone(x_NI), self.gate.theta()))
        return logits


def batch_loss(model: nn.Module, number: int) -> Tensor:
    maker = torch.Generator().manual_seed(number)
    x_NI = torch.randn(16, 4, generator=maker)
    return F.cross_entropy(model(x_NI), x_NI[:, :3].argmax(1))


def train(optimiser: Optimiser, model: nn.Module, steps: range) -> None:
    for number in steps:
        optimiser.backward(batch_loss(model, number))
        optimiser.step()


def weights(model: nn.Module) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in model.parameters()]


def same(first: list[Tensor], second: list[Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
