"""The backward passes of binary gates on a GPU: one program in place of twenty small steps.

    z's gradient      a jump: where the gate is open;       a step: the slope
    θ's gradient      a jump: minus max(z, 0) · the slope;  a step: minus the slope

The slope is that of σ((z - θ)/ε), 0 outside its window; there no infinity is multiplied by it.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 256


@triton.jit(do_not_specialize=["P", "epsilon", "window"])
def _backward(  # type: ignore[no-untyped-def]
    grad, z, theta, grad_z, grad_theta, P, epsilon, window, JUMP: tl.constexpr, BP: tl.constexpr
):
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    inside = p < P
    g = tl.load(grad + p, mask=inside, other=0.0).to(tl.float32)
    z_p = tl.load(z + p, mask=inside, other=0.0).to(tl.float32)
    margin = z_p - tl.load(theta + p, mask=inside, other=0.0).to(tl.float32)
    share = tl.sigmoid(margin / epsilon)
    near = tl.abs(margin) <= window
    slope = tl.where(near, share * (1 - share) / epsilon, 0.0)
    if JUMP:
        height = tl.where(slope > 0, tl.maximum(z_p, 0.0), 0.0)
        tl.store(grad_z + p, tl.where(margin > 0, g, 0.0), mask=inside)
        tl.store(grad_theta + p, -g * height * slope, mask=inside)
    else:
        tl.store(grad_z + p, g * slope, mask=inside)
        tl.store(grad_theta + p, -g * slope, mask=inside)


def backward(
    grad_P: Tensor, z_P: Tensor, theta_P: Tensor, epsilon: float, truncate: float, jump: bool
) -> tuple[Tensor, Tensor]:
    """The gradients of logits and thresholds, of pairs alike in shape."""
    grad_P, z_P, theta_P = (x.contiguous() for x in (grad_P, z_P, theta_P))
    grad_z, grad_theta = torch.empty(2, z_P.numel(), dtype=torch.float32, device=z_P.device)
    if P := z_P.numel():
        _backward[(triton.cdiv(P, BLOCK),)](
            grad_P, z_P, theta_P, grad_z, grad_theta, P, epsilon, truncate * epsilon, JUMP=jump, BP=BLOCK
        )
    return grad_z.view_as(z_P), grad_theta.view_as(z_P)
