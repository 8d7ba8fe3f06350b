"""Who learns how fast: parameter groups, the schedule, and the precision of the forward pass."""

from __future__ import annotations

import torch
from torch import nn

from splade.config.schema import TrainingConfig
from splade.models.lexical_sae import LexicalSAE

GATE_RATE = 5  # times the head's rate: one step moves log θ by at most the rate
BACKBONE_RATE, AT_HIDDEN_SIZE = 2e-4, 384  # wider backbones learn slower: 5e-5 at 768


def optimizer(model: LexicalSAE, config: TrainingConfig) -> torch.optim.AdamW:
    """AdamW over backbone, head and gate, told apart by identity; thresholds, biases, norms do not decay."""
    head = [*model.head.parameters(), *model.pooling.parameters()]
    backbone = list(model.backbone.parameters())
    hidden_size = model.backbone.mlm.config.hidden_size
    rate = config.learning_rate or BACKBONE_RATE * (AT_HIDDEN_SIZE / hidden_size) ** 2
    groups = [
        {"params": [p for p in backbone if p.ndim > 1], "lr": rate},
        {"params": [p for p in backbone if p.ndim <= 1], "lr": rate, "weight_decay": 0.0},
        {"params": head, "lr": config.head_learning_rate},
        {
            "params": [*model.gate.parameters()],
            "lr": GATE_RATE * config.head_learning_rate,
            "weight_decay": 0.0,
        },
    ]
    return torch.optim.AdamW(groups, weight_decay=config.weight_decay, fused=True)


def schedule(
    optimizer: torch.optim.Optimizer, steps: int, warmup_fraction: float
) -> torch.optim.lr_scheduler.LambdaLR:
    """Linear rise over the warm-up, then linear fall to zero."""
    rise = max(1, round(steps * warmup_fraction))

    def factor(step: int) -> float:
        return min((step + 1) / rise, (steps - step) / max(steps - rise, 1))

    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """bf16 autocast, on when asked for, or by `auto` where the hardware multiplies bf16 faster."""
    wanted = precision == "bf16" or (precision == "auto" and _fast_bf16(device))
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=wanted)


def clip(parameters: list[nn.Parameter], largest: float = 1.0) -> None:
    """Scale the backbone's gradients down to a norm of at most `largest`."""
    torch.nn.utils.clip_grad_norm_(parameters, largest)


def _fast_bf16(device: torch.device) -> bool:
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    return device.type == "cpu" and bool(torch.cpu._is_avx512_bf16_supported())
