"""Scores of the words a decision was made from: one [P] for each explainer, from one forward pass.

    dla, ablation, path       the exact algebra of `mechanistic/attribution.py`
    gradient_x_input          s_j ∂logit/∂s_j; for the ReLU head it equals dla and is no second opinion
    integrated_gradients      s_j mean_t ∂logit/∂s_j at t·s, midpoints of `steps`; tends to path
    attention                 s_j times what the last layer gives to the positions the word was read at
    random                    for scale

Legend: N rows, P active (row, word) pairs, Q shares of pairs by input position, B documents, L positions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from splade.evaluation.explainers.attention import Recorded
from splade.evaluation.explainers.questions import Settings
from splade.mechanistic.attribution import Method, compute_attribution_tensor
from splade.models.state import CircuitState


@dataclass(frozen=True)
class Decided:
    """A decided batch of texts and the class to explain of each; `recorded` only for attention."""

    state: CircuitState
    classes_N: Tensor
    attention_mask: Tensor
    recorded: Recorded | None = None


Scorer = Callable[[Decided, Settings], Tensor]


def exact(decided: Decided, _settings: Settings, method: Method = "dla") -> Tensor:
    """The model's own contributions [P]."""
    with torch.no_grad():
        return compute_attribution_tensor(decided.state, decided.classes_N, method).amount


def gradient_x_input(decided: Decided, _settings: Settings) -> Tensor:
    """Value times gradient at s."""
    return decided.state.rows.value_P.detach() * _gradient(decided, 1.0)


def integrated_gradients(decided: Decided, settings: Settings) -> Tensor:
    """Value times the mean gradient between the empty text and s."""
    steps = settings.ig_steps
    total_P = torch.zeros_like(decided.state.rows.value_P)
    for step in range(steps):
        total_P += _gradient(decided, (step + 0.5) / steps)
    return decided.state.rows.value_P.detach() * total_P / steps


def attention(decided: Decided, _settings: Settings) -> Tensor:
    """Value times the attention that the positions it was read at receive."""
    assert decided.recorded is not None
    rows, received_BL = decided.state.rows, decided.recorded.received(decided.attention_mask)
    row_Q = rows.row_P[rows.source_pair_Q]
    mass_Q = received_BL[row_Q, rows.source_position_Q] * rows.source_share_Q
    mass_P = torch.zeros_like(rows.value_P).index_add(0, rows.source_pair_Q, mass_Q.to(rows.value_P.dtype))
    return rows.value_P * mass_P


def random(decided: Decided, settings: Settings) -> Tensor:
    """Seeded noise."""
    maker = torch.Generator().manual_seed(settings.seed)
    value_P = decided.state.rows.value_P
    return torch.rand(len(value_P), generator=maker).to(value_P.device)


def _gradient(decided: Decided, t: float) -> Tensor:
    """∂logit/∂s [P] at t·s, by autograd through the head."""
    state = decided.state
    with torch.enable_grad():
        value_P = (state.rows.value_P.detach() * t).requires_grad_()
        logits_NC = state.head(state.rows.with_values(value_P))
        explained = logits_NC.gather(-1, decided.classes_N[:, None]).sum()
        [slope_P] = torch.autograd.grad(explained, value_P)
    return slope_P


BOTTLENECK: dict[str, Scorer] = {
    "dla": exact,
    "ablation": partial(exact, method="ablation"),
    "path": partial(exact, method="path"),
    "gradient_x_input": gradient_x_input,
    "integrated_gradients": integrated_gradients,
    "attention": attention,
    "random": random,
}
