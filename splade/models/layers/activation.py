"""Gates: which word logits count. Each is monotone in z with a threshold θ >= 0 per word, in float32.

    JumpReLU       z·1[z > θ],        θ = exp(log θ)
    DReLU          relu(z - θ),       optionally log1p of it
    GatedJumpReLU  relu(z)·1[z > θ]

A binary gate has no gradient, so θ learns through a sigmoid surrogate of width ε:
∂s/∂θ = -max(z, 0)·σ'((z - θ)/ε)/ε, cut to zero outside |z - θ| <= truncate·ε so that the backward pass
stays sparse. The gradient to z passes only where the gate is open.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from splade import kernels


class _Jump(torch.autograd.Function):
    """z·1[z > θ] forward; straight-through surrogate for θ backward."""

    @staticmethod
    def forward(ctx, z, theta, epsilon, truncate):  # type: ignore[no-untyped-def]
        is_open = z > theta
        ctx.save_for_backward(z, theta, is_open)
        ctx.epsilon, ctx.truncate = epsilon, truncate
        return torch.where(is_open, z, 0.0)

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        z, theta, is_open = ctx.saved_tensors
        if kernels.has_surrogates(grad, z, theta):
            return *kernels.jump_backward(grad, z, theta, ctx.epsilon, ctx.truncate), None, None
        slope = _sigmoid_slope(z - theta, ctx.epsilon, ctx.truncate)
        height = torch.where(slope > 0, z, 0.0).clamp(min=0)  # no 0·∞ where z is infinite
        return torch.where(is_open, grad, 0.0), -grad * height * slope, None, None


class _Step(torch.autograd.Function):
    """1[z > θ] forward; derivative of σ((z - θ)/ε) backward."""

    @staticmethod
    def forward(ctx, z, theta, epsilon, truncate):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(z, theta)
        ctx.epsilon, ctx.truncate = epsilon, truncate
        return (z > theta).float()

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        z, theta = ctx.saved_tensors
        if kernels.has_surrogates(grad, z, theta):
            return *kernels.step_backward(grad, z, theta, ctx.epsilon, ctx.truncate), None, None
        slope = grad * _sigmoid_slope(z - theta, ctx.epsilon, ctx.truncate)
        return slope, -slope, None, None


def _sigmoid_slope(margin: Tensor, epsilon: float, truncate: float) -> Tensor:
    p = torch.sigmoid(margin / epsilon)
    return torch.where(margin.abs() <= truncate * epsilon, p * (1 - p) / epsilon, 0.0)


class Gate(nn.Module, ABC):
    """A per-word threshold; subclasses say how a logit above it becomes an activation."""

    name: str
    initial_threshold: float
    fixed_width = False

    def __init__(self, vocab_size: int, epsilon: float = 0.2, truncate: float = 4.0) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.truncate = truncate
        self.raw_V = nn.Parameter(torch.empty(vocab_size, dtype=torch.float32))
        self.set_threshold(self.initial_threshold)

    def theta(self) -> Tensor:
        """θ [V], never negative."""
        return self._positive(self.raw_V)

    def theta_at(self, by_word: kernels.Order) -> Tensor:
        """θ of each pair's word."""
        return self._positive(kernels.take(self.raw_V, by_word))

    def _positive(self, raw: Tensor) -> Tensor:
        return raw.clamp(min=0)

    @torch.no_grad()
    def set_threshold(self, value: float) -> None:
        """Give every word the same threshold."""
        self.raw_V.fill_(max(value, 0.0))

    @torch.no_grad()
    def calibrate(self, logits: Tensor, opened: int, softness: float = 0.1) -> None:
        """Set θ so that `opened` of the sampled `logits` open (positive ones), and ε = softness·std."""
        z = logits.float().flatten()
        opened = max(1, min(len(z), opened))
        edge = z.topk(min(len(z), opened + 1)).values[opened - 1 :]
        self.set_threshold(float(edge.mean()))
        if not self.fixed_width:
            self.epsilon = max(softness * float(z.std(unbiased=False)), 1e-3)

    @torch.no_grad()
    def clamp_(self) -> None:
        """Bring θ back to its domain after an optimiser step."""
        self.raw_V.clamp_(min=0)

    def floor(self) -> Tensor:
        """The least logit [V] that can matter: θ, or in training the lower edge of the surrogate."""
        theta = self.theta().detach()
        return theta - self.truncate * self.epsilon if self.training else theta

    @abstractmethod
    def forward(self, z: Tensor, theta: Tensor) -> Tensor:
        """Activations of logits `z` under thresholds `theta` (broadcastable), in float32."""

    def opened(self, z: Tensor, theta: Tensor) -> Tensor:
        """1[z > θ] with a surrogate gradient: the summand of an exact count of active words."""
        result: Tensor = _Step.apply(z.float(), theta, self.epsilon, self.truncate)  # type: ignore[no-untyped-call]
        return result

    def probability(self, z: Tensor) -> Tensor:
        """σ((z - θ)/ε) [..., V], the soft gate of the tensor interface."""
        return torch.sigmoid((z.float() - self.theta()) / self.epsilon)


class JumpReLU(Gate):
    """z·1[z > θ], θ = exp(raw)."""

    name = "jumprelu"
    initial_threshold = 1.0

    def _positive(self, raw: Tensor) -> Tensor:
        return raw.exp()

    @torch.no_grad()
    def set_threshold(self, value: float) -> None:
        self.raw_V.fill_(math.log(max(value, 1e-2)))

    @torch.no_grad()
    def clamp_(self) -> None:
        """exp is positive already."""

    def forward(self, z: Tensor, theta: Tensor) -> Tensor:
        s: Tensor = _Jump.apply(z.float(), theta, self.epsilon, self.truncate)  # type: ignore[no-untyped-call]
        return s


class GatedJumpReLU(Gate):
    """relu(z)·1[z > θ], θ stored as itself and surrogate of unit width."""

    name = "gated_jumprelu"
    initial_threshold = 1.0
    fixed_width = True

    def __init__(self, vocab_size: int, epsilon: float = 1.0, truncate: float = 4.0) -> None:
        super().__init__(vocab_size, epsilon, truncate)

    def forward(self, z: Tensor, theta: Tensor) -> Tensor:
        s: Tensor = _Jump.apply(z.float(), theta, self.epsilon, self.truncate)  # type: ignore[no-untyped-call]
        return s


class DReLU(Gate):
    """relu(z - θ), with log1p saturation on request; differentiable in θ without a surrogate."""

    name = "drelu"
    initial_threshold = 0.0

    def __init__(
        self, vocab_size: int, epsilon: float = 0.2, truncate: float = 4.0, saturate: bool = False
    ) -> None:
        super().__init__(vocab_size, epsilon, truncate)
        self.saturate = saturate

    def forward(self, z: Tensor, theta: Tensor) -> Tensor:
        s = torch.relu(z.float() - theta)
        return torch.log1p(s) if self.saturate else s


GATES: dict[str, type[Gate]] = {gate.name: gate for gate in (JumpReLU, DReLU, GatedJumpReLU)}
