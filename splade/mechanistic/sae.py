"""The usual alternative to words, as a baseline: a sparse autoencoder trained after the fact on h.

    f = activation(W_enc (x - b_dec) + b_enc),   x̂ = W_dec f + b_dec,   x = (h - mean) / scale

1. `decoder_inputs` collects h at the positions of training texts.
2. `train_sae` fits one: `topk` keeps the k largest features; `jumprelu` learns a threshold for each, held to
   k on average. Features are unit vectors and the encoder starts as their transpose.
3. `splice` puts ĥ in the place of h in front of the vocabulary head.

Legend: N positions, n of them drawn, H width of h, F features, B documents, L positions of a batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from splade.errors import ConfigError, DataError
from splade.models.layers.activation import JumpReLU
from splade.models.lexical_sae import LexicalSAE

Kind = Literal["topk", "jumprelu"]
KINDS: tuple[Kind, ...] = ("topk", "jumprelu")

_POSITIONS_AT_ONCE = 1 << 12
_L0_WEIGHT = 0.1  # of jumprelu's relative distance from k, squared


class SparseAutoencoder(nn.Module):
    """h -> few features -> ĥ."""

    mean_H: Tensor
    scale: Tensor

    def __init__(self, kind: Kind, width: int, features: int, active: int) -> None:
        super().__init__()
        if kind not in KINDS:
            raise ConfigError(f"unknown kind of autoencoder '{kind}'; choose one of {', '.join(KINDS)}")
        if not 0 < active <= features:
            raise ConfigError(f"{active} active of {features} features is impossible; choose 1 to {features}")
        self.kind, self.active = kind, active
        self.W_dec_FH = nn.Parameter(torch.zeros(features, width))
        self.W_enc_FH = nn.Parameter(torch.zeros(features, width))
        self.b_enc_F = nn.Parameter(torch.zeros(features))
        self.b_dec_H = nn.Parameter(torch.zeros(width))
        self.gate = JumpReLU(features) if kind == "jumprelu" else None
        self.register_buffer("mean_H", torch.zeros(width))
        self.register_buffer("scale", torch.ones(()))

    @property
    def features(self) -> int:
        return len(self.W_dec_FH)

    def normalise(self, h: Tensor) -> Tensor:
        """x, centred and of mean square 1."""
        return (h.float() - self.mean_H) / self.scale

    def before(self, x: Tensor) -> Tensor:
        """What the activation is given, [..., F]."""
        return F.linear(x - self.b_dec_H, self.W_enc_FH, self.b_enc_F)

    def activate(self, pre: Tensor) -> Tensor:
        """Features [..., F], none below 0."""
        if self.gate is not None:
            opened: Tensor = self.gate(pre, self.gate.theta())
            return opened
        top = pre.topk(self.active, dim=-1)
        return torch.zeros_like(pre).scatter(-1, top.indices, torch.relu(top.values))

    def encode(self, h: Tensor) -> Tensor:
        """Features [..., F] of decoder inputs."""
        return self.activate(self.before(self.normalise(h)))

    def decode(self, f: Tensor) -> Tensor:
        """ĥ [..., H] of features."""
        return (f @ self.W_dec_FH + self.b_dec_H) * self.scale + self.mean_H

    def forward(self, h: Tensor) -> Tensor:
        """ĥ in h's precision, a bounded number of positions at a time."""
        chunks = torch.split(h.flatten(0, -2), _POSITIONS_AT_ONCE)
        return torch.cat([self.decode(self.encode(chunk)).to(h.dtype) for chunk in chunks]).view_as(h)

    @torch.no_grad()
    def start(self, x_NH: Tensor, generator: torch.Generator) -> None:
        """Random unit features, an encoder that is their transpose, thresholds that open `active`."""
        drawn = torch.randn(self.W_dec_FH.shape, generator=generator).to(x_NH.device)
        self.W_dec_FH.copy_(F.normalize(drawn, dim=1))
        self.W_enc_FH.copy_(self.W_dec_FH)
        if self.gate is not None:
            self.gate.calibrate(self.before(x_NH), self.active * len(x_NH))


@torch.no_grad()
def decoder_inputs(
    model: LexicalSAE, batches: Iterable[tuple[Tensor, Tensor]], limit: int = 1 << 20
) -> Tensor:
    """h [N, H] at the text of (input_ids, attention_mask) batches, the first `limit` positions.

    Give training texts, in random order where they are more than the limit holds.
    """
    model.eval()
    parts, count = [], 0
    for input_ids, attention_mask in batches:
        valid_BL = model.lexicon.valid(input_ids, attention_mask)
        parts.append(model.backbone(input_ids, attention_mask)[valid_BL].float()[: limit - count])
        count += len(parts[-1])
        if count == limit:
            break
    return torch.cat(parts) if parts else model.backbone.E_VH.new_empty(0, model.backbone.E_VH.shape[1])


def train_sae(
    h_NH: Tensor,
    kind: Kind = "topk",
    features: int | None = None,
    active: int = 32,
    steps: int = 4000,
    batch_size: int = 4096,
    learning_rate: float = 3e-3,
    seed: int = 0,
) -> SparseAutoencoder:
    """Fit `features` (8·H by default) features to training positions, about `active` of them at each.

    Repeats bit for bit with its seed, and leaves the global random state alone.
    """
    if not len(h_NH) or not bool(h_NH.isfinite().all()):
        raise DataError("no finite position to train an autoencoder on; give it texts with words in them")
    generator = torch.Generator().manual_seed(seed)
    H = h_NH.shape[1]
    sae = SparseAutoencoder(kind, H, 8 * H if features is None else features, active).to(h_NH.device)
    sae.mean_H.copy_(h_NH.float().mean(0))
    sae.scale.copy_((h_NH.float() - sae.mean_H).square().mean().sqrt().clamp(min=1e-6))
    drawn_n = torch.randint(len(h_NH), (_POSITIONS_AT_ONCE // 4,), generator=generator)
    sae.start(sae.normalise(h_NH[drawn_n.to(h_NH.device)]), generator)
    optimiser = torch.optim.Adam(sae.parameters(), lr=learning_rate)
    decay = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: min(1.0, 5 * (1 - step / steps)))
    for _ in range(steps):
        at_n = torch.randint(len(h_NH), (batch_size,), generator=generator).to(h_NH.device)
        loss = _loss(sae, sae.normalise(h_NH[at_n]))
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()
        decay.step()
        with torch.no_grad():
            sae.W_dec_FH.copy_(F.normalize(sae.W_dec_FH, dim=1))
    return sae.requires_grad_(False).eval()


def _loss(sae: SparseAutoencoder, x_nH: Tensor) -> Tensor:
    """Mean square of what is left, and for jumprelu how far the features at a position are from k."""
    pre_nF = sae.before(x_nH)
    loss = (x_nH - sae.activate(pre_nF) @ sae.W_dec_FH - sae.b_dec_H).square().mean()
    if sae.gate is None:
        return loss
    l0 = sae.gate.opened(pre_nF, sae.gate.theta()).sum(-1).mean()
    return loss + _L0_WEIGHT * (l0 / sae.active - 1).square()


@contextmanager
def splice(model: LexicalSAE, sae: SparseAutoencoder) -> Iterator[None]:
    """Inside, the model reads ĥ wherever it read h; afterwards it is bit for bit what it was."""
    backbone = model.backbone
    own, before = backbone.forward, vars(backbone).get("forward")

    def forward(input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        reconstructed: Tensor = sae(own(input_ids, attention_mask))
        return reconstructed

    backbone.forward = forward  # type: ignore[method-assign]
    try:
        yield
    finally:
        if before is None:
            del backbone.forward
        else:
            backbone.forward = before  # type: ignore[method-assign]
