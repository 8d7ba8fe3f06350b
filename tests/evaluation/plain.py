"""A head that is linear in its words, for cases counted by hand."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from splade.models.heads import ReLUMLP
from splade.models.materialised import rows_of
from splade.models.state import CircuitState
from tests.mechanistic.draws import decide


def linear_head(weight_CV: Sequence[Sequence[float]], bias_C: Sequence[float] | None = None) -> ReLUMLP:
    """logits = weight · s + bias for every s ≥ 0."""
    classes, vocab = len(weight_CV), len(weight_CV[0])
    head = ReLUMLP(vocab, classes, vocab)
    with torch.no_grad():
        head.W_in.copy_(torch.eye(vocab))
        head.out.weight.copy_(torch.tensor(weight_CV))
        head.out.bias.copy_(torch.tensor(bias_C or [0.0] * classes))
    return head


def linear_state(
    weight_CV: Sequence[Sequence[float]],
    s_NV: Tensor | Sequence[Sequence[float]],
    bias_C: Sequence[float] | None = None,
) -> CircuitState:
    """The decision of such a head on some rows."""
    return decide(linear_head(weight_CV, bias_C), rows_of(torch.as_tensor(s_NV)[None]))
