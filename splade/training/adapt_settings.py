"""The settings of masked-LM training, and its optimiser."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from splade.errors import ConfigError
from splade.models.backbone import Backbone
from splade.training import optim

PRETRAINING_RATE = 6e-4  # at a hidden size of 384; wider encoders learn slower: 1.5e-4 at 768


@dataclass(frozen=True)
class Settings:
    """How to train; `lengths` count special tokens, and each has a share of the tokens."""

    model: str
    data: str
    lengths: tuple[int, ...]
    shares: tuple[float, ...]
    steps: int | None = None
    seconds: float | None = None
    tokens_per_step: int = 16_384
    rate: float = 0.25
    learning_rate: float | None = None
    warmup_steps: int = 100
    weight_decay: float = 0.01
    joined: bool = True
    compile: bool = False
    seed: int = 0
    checkpoint_seconds: float = 300.0
    checkpoint_steps: int | None = None

    def check(self, longest: int, added: int) -> None:
        """Refuse what cannot be trained with an encoder of `longest` positions, `added` of them special."""
        first, last = (self.lengths or (0,))[0], (self.lengths or (0,))[-1]
        fitting = len(self.shares) == len(self.lengths) and all(share > 0 for share in self.shares)
        rules = {
            f"the lengths rise within {added + 1} to {longest}": (
                added < first and last <= longest and list(self.lengths) == sorted(set(self.lengths))
            ),
            f"there are {len(self.lengths)} shares above 0, one for each length": fitting,
            f"a step has the tokens of a window, {last}, or more": self.tokens_per_step >= last,
            "the masked share is from 0.01 to 0.5": 0.01 <= self.rate <= 0.5,
            "a number of steps or seconds above 0 is given": (self.steps or self.seconds or 0) > 0,
        }
        broken = next((rule for rule, kept in rules.items() if not kept), None)
        if broken:
            raise ConfigError(f"adapt needs that {broken}; see lexical-sae adapt --help")


def optimizer(backbone: Backbone, settings: Settings) -> torch.optim.AdamW:
    """AdamW; biases and norms do not decay."""
    hidden_size = backbone.mlm.config.hidden_size
    rate = settings.learning_rate or PRETRAINING_RATE * (optim.AT_HIDDEN_SIZE / hidden_size) ** 2
    groups = [
        {"params": [p for p in backbone.parameters() if p.ndim > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in backbone.parameters() if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, rate, betas=(0.9, 0.98), eps=1e-6, fused=True)
