"""Heads: small functions from sparse words to class logits that have an exact local linear form.

A head is split where it is linear for certain: u = W_inᵀ s (a sum over active words only), then `rest`, which
sees u [N, D] and ‖s‖² [N]. Removing a word is u - s_j W_in[j], so exact ablation never touches V.

    ReLU MLP   logits = W2 relu(u + b1) + b2
    B-cos      each layer x -> |cos(x, w)|^(B-1) · ŵᵀx with unit rows ŵ, B = 2, no bias; cos := 0 at x = 0

Heads always run in float32 (float64 after `.double()`), outside autocast; their small matrix products are
summed in float64 and rounded once, whatever the GPU does to float32 products elsewhere.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from splade import kernels
from splade.models.state import Linearisation, SparseRows


class Head(nn.Module, ABC):
    """s -> logits, with its linearisation at s."""

    name: str
    W_in: nn.Parameter  # [V, D]

    def __init__(self, vocab_size: int, classes: int, width: int = 256) -> None:
        super().__init__()
        self.vocab_size, self.classes, self.width = vocab_size, classes, width

    def projection(self) -> Tensor:
        """The first matrix [V, D] as it multiplies s."""
        return self.W_in

    def project(self, rows: SparseRows) -> Tensor:
        """u = W_inᵀ s, [N, D], over active words only."""
        with _full_precision(rows.value_P):
            amount_P = rows.value_P.to(self.W_in.dtype)
            return kernels.row_sums(amount_P, self.projection(), rows.by_row, rows.by_word, rows.bounds_N1)

    def square_norm(self, rows: SparseRows) -> Tensor:
        """‖s‖² [N]."""
        return rows.sum_by_row(rows.value_P.to(self.W_in.dtype) ** 2)

    def forward(self, rows: SparseRows) -> Tensor:
        """Logits [N, C]."""
        with _full_precision(rows.value_P):
            return self.rest(self.project(rows), self.square_norm(rows))

    @abstractmethod
    def rest(self, u_ND: Tensor, square_norm_N: Tensor) -> Tensor:
        """Logits [..., C] from u [..., D] and ‖s‖² [...]."""

    @abstractmethod
    def linearise(self, rows: SparseRows) -> Linearisation:
        """The exact local form at `rows`: W_eff and b_eff."""

    @abstractmethod
    def path(self, rows: SparseRows) -> Linearisation:
        """The average of W_eff along the straight path from the empty text to s, in closed form."""


class ReLUMLP(Head):
    """W2 relu(W_inᵀ s + b1) + b2."""

    name = "relu_mlp"

    def __init__(self, vocab_size: int, classes: int, width: int = 256) -> None:
        super().__init__(vocab_size, classes, width)
        self.W_in = nn.Parameter(torch.randn(vocab_size, width) * 0.02)
        self.b1 = nn.Parameter(torch.zeros(width))
        self.out = nn.Linear(width, classes)

    def forward(self, rows: SparseRows) -> Tensor:
        return self._decide(self.project(rows))  # ‖s‖² is not made: this head does not see it

    def rest(self, u_ND: Tensor, square_norm_N: Tensor) -> Tensor:  # noqa: ARG002
        return self._decide(u_ND)

    def _decide(self, u_ND: Tensor) -> Tensor:
        with _full_precision(u_ND):
            return _affine(torch.relu(u_ND + self.b1), self.out.weight, self.out.bias)

    def linearise(self, rows: SparseRows) -> Linearisation:
        with _full_precision(rows.value_P):
            on_ND = (self.project(rows) + self.b1 > 0).to(self.W_in.dtype)
            return self._mixed(on_ND, _affine(on_ND * self.b1, self.out.weight, self.out.bias))

    def path(self, rows: SparseRows) -> Linearisation:
        """Along t·s a unit switches at most once, at t = -b1/u, so the share of [0, 1] it is on is exact."""
        with _full_precision(rows.value_P):
            u_ND = self.project(rows)
            switch_ND = -self.b1 / torch.where(u_ND == 0, 1.0, u_ND)
            starts_on, ends_on = self.b1 > 0, u_ND + self.b1 > 0
            share_ND = torch.where(ends_on, torch.where(starts_on, 1.0, 1 - switch_ND), 0.0)
            share_ND = torch.where(starts_on & ~ends_on, switch_ND, share_ND)
            empty_C = _affine(torch.relu(self.b1), self.out.weight, self.out.bias)
            return self._mixed(share_ND, empty_C.expand(len(u_ND), -1))

    def _mixed(self, share_ND: Tensor, bias_NC: Tensor) -> Linearisation:
        return Linearisation(self.W_in, share_ND[:, None, :] * self.out.weight, bias_NC)


class BCos(Head):
    """A stack of B-cos layers (B = 2): homogeneous of degree 1, dynamic-linear at every depth."""

    name = "bcos"

    def __init__(self, vocab_size: int, classes: int, width: int = 256, depth: int = 2) -> None:
        super().__init__(vocab_size, classes, width)
        assert depth >= 2
        self.depth = depth
        self.W_in = nn.Parameter(torch.randn(vocab_size, width))
        sizes = [width] * (depth - 1) + [classes]
        self.weights = nn.ParameterList(nn.Parameter(torch.randn(b, a)) for a, b in itertools.pairwise(sizes))

    def projection(self) -> Tensor:
        return F.normalize(self.W_in, dim=0)

    def rest(self, u_ND: Tensor, square_norm_N: Tensor) -> Tensor:
        with _full_precision(u_ND):
            x = u_ND * _cosine(u_ND, square_norm_N).abs()
            for weight in self.weights:
                linear = _product(x, F.normalize(weight.to(x.dtype), dim=1).T)
                x = linear * _cosine(linear, x.square().sum(-1)).abs()
            return x

    def linearise(self, rows: SparseRows) -> Linearisation:
        with _full_precision(rows.value_P):
            u_ND = self.project(rows)
            scale = _cosine(u_ND, self.square_norm(rows)).abs()
            x, mix = u_ND * scale, torch.diag_embed(scale)
            for weight in self.weights:
                unit = F.normalize(weight, dim=1)
                linear = _product(x, unit.T)
                scale = _cosine(linear, x.square().sum(-1)).abs()
                x, mix = linear * scale, _product(scale[..., None] * unit, mix)
            return Linearisation(self.projection(), mix, torch.zeros_like(x))

    def path(self, rows: SparseRows) -> Linearisation:
        """The stack is homogeneous of degree 1, so the average gradient along t·s is the gradient at s.

        In float64: a word's share through u and its share through ‖s‖ can cancel.
        """
        with _full_precision(rows.value_P), torch.enable_grad():
            u_ND = self.project(rows).detach().double().requires_grad_()
            square_N = self.square_norm(rows).detach().double().requires_grad_()
            logits_NC = self.rest(u_ND, square_N)
            slopes = [
                torch.autograd.grad(logits_NC[:, c].sum(), (u_ND, square_N), retain_graph=True)
                for c in range(self.classes)
            ]
        mix_NCD = torch.stack([by_u for by_u, _ in slopes], dim=1)
        square_NC = torch.stack([2 * by_square for _, by_square in slopes], dim=1)
        bias_NC = self.W_in.new_zeros(square_NC.shape)
        return Linearisation(self.projection(), mix_NCD, bias_NC, square_NC)


def _cosine(linear: Tensor, square_norm: Tensor) -> Tensor:
    """cos(x, w) for unit w, from wᵀx [..., D] and ‖x‖² [...]; 0 at x = 0, where its gradient is 0 too."""
    positive = square_norm > 0
    norm = torch.where(positive, square_norm, 1.0).sqrt()
    return torch.where(positive[..., None], linear / norm[..., None], 0.0)


def _product(a: Tensor, b: Tensor) -> Tensor:
    """a @ b, summed in float64: a GPU may be set to round float32 products to 10 bits."""
    return (a.double() @ b.double()).to(a.dtype)


def _affine(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x Wᵀ + b, summed in float64: a logit whose terms cancel keeps its digits."""
    return (x.double() @ weight.double().T + bias.double()).to(x.dtype)


def _full_precision(tensor: Tensor) -> torch.autocast:
    return torch.autocast(tensor.device.type, enabled=False)


HEADS: dict[str, type[Head]] = {head.name: head for head in (ReLUMLP, BCos)}
