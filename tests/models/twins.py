"""What tests of the model share: a decision of some texts, and the gradients of one."""

from __future__ import annotations

import torch
from torch import Tensor

from splade.models.lexical_sae import LexicalSAE
from splade.models.state import CircuitState
from tests.tiny import SENTENCES, tiny_batch


def decide(model: LexicalSAE, texts: tuple[str, ...] = SENTENCES) -> CircuitState:
    return model.decide(model.encode(*tiny_batch(model, texts)))


def gradients(model: LexicalSAE, h_BLH: Tensor, logits: Tensor) -> dict[str, Tensor]:
    leaves = {"h": h_BLH, "E": model.backbone.E_VH, "e": model.backbone.e_V, "theta": model.gate.raw_V}
    leaves |= dict(model.head.named_parameters()) | dict(model.pooling.named_parameters())
    leaves |= dict(model.expander.named_parameters())
    weight = torch.linspace(-1, 1, logits.numel()).view_as(logits)
    found = torch.autograd.grad((logits * weight).sum() + logits.square().sum(), list(leaves.values()))
    return dict(zip(leaves, found, strict=True))
