"""What each layer of the backbone adds to the logits, with the decision itself held fixed.

1. Decide the rows as ever. Hold what was decided: the words, the positions they were read at, W_eff, b_eff
   and the gate's tangent: s'(z) = s + gate'(z_K)·(z - z_K), which for the jump gates is z itself.
2. Put the state after layer k = 0..K at the end of the base model, through its final norm if it has one, and
   let the rest of the masked-LM head run: that gives z_k at every word that was read, so

    part_k = Σ_j W_eff[c, j]·s'_j(z_k),   logit_c = part_0 + Σ_k (part_k - part_{k-1}) + b_eff[c]   exactly.

3. Beside it, nothing held: layer k is left out (its input passes through) and everything is decided anew.

Legend: B documents, L positions, H hidden size, N rows, Q reads of words at positions, C classes, K layers.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from splade import kernels
from splade.mechanistic.attribution import compute_attribution_tensor
from splade.mechanistic.layer_stack import LayerStack
from splade.models.lexical_sae import LexicalSAE
from splade.models.state import CircuitState, SparseRows


@dataclass(frozen=True)
class ClassLayers:
    """Means over rows for one class: logit = embeddings + Σ layers + bias; `left_out` are logit falls."""

    label: str
    logit: float
    embeddings: float
    layers: list[float]
    bias: float
    left_out: list[float]


@dataclass(frozen=True)
class Layerwise:
    """Every class's layers over `rows` rows; the residual is relative to |logit| + Σ|parts| + |bias|."""

    rows: int
    max_relative_residual: float
    classes: list[ClassLayers]

    def to_dict(self) -> dict[str, Any]:
        """Plain values under their documented keys."""
        return asdict(self)


@dataclass(frozen=True)
class LayerParts:
    """The decided rows, and what embeddings and layers add to their logits [K + 1, N, C], in float64."""

    state: CircuitState
    parts_KNC: Tensor

    @property
    def total_NC(self) -> Tensor:
        """Σ parts + b_eff: the logits."""
        return self.parts_KNC.sum(0) + self.state.b_eff.double()

    @property
    def residual_NC(self) -> Tensor:
        """|logit - total| over |logit| + Σ|parts| + |b_eff|; 0/0 is 0."""
        logit_NC = self.state.logits.double()
        scale_NC = logit_NC.abs() + self.parts_KNC.abs().sum(0) + self.state.b_eff.double().abs()
        return (logit_NC - self.total_NC).abs() / torch.where(scale_NC > 0, scale_NC, 1.0)


@torch.no_grad()
def layer_parts(
    model: LexicalSAE,
    stack: LayerStack,
    input_ids: Tensor,
    attention_mask: Tensor,
    row_mask: Tensor | None = None,
) -> LayerParts:
    """Embeddings and layers of one batch; the model must be in evaluation mode."""
    state = model.decide(model.encode(input_ids, attention_mask, row_mask))
    at_Q, word_Q, row_Q = _reads(state.rows, input_ids.shape[1], row_mask)
    amount_QC = compute_attribution_tensor(state).by_read.double()
    backbone = model.backbone

    def logits_at(h_BLH: Tensor) -> Tensor:
        decoder_row_Q = model.lexicon.word_V[word_Q]
        return kernels.pair_logits(h_BLH.flatten(0, 1), backbone.E_VH, backbone.e_V, at_Q, decoder_row_Q)

    states = stack.states(input_ids, attention_mask)
    z_KQ = torch.stack([logits_at(stack.read_out(h, input_ids, attention_mask)) for h in states])
    s_Q, slope_Q = _tangent(model, z_KQ[-1], word_Q)
    ratio_KQ = 1 + (slope_Q / s_Q) * (z_KQ.double() - z_KQ[-1].double())
    read_KNC = amount_QC.new_zeros(len(states), state.rows.n_rows, amount_QC.shape[1])
    read_KNC.index_add_(1, row_Q, ratio_KQ[..., None] * amount_QC)
    return LayerParts(state, torch.cat([read_KNC[:1], read_KNC.diff(dim=0)]))


@torch.no_grad()
def left_out(
    model: LexicalSAE,
    stack: LayerStack,
    input_ids: Tensor,
    attention_mask: Tensor,
    row_mask: Tensor | None = None,
) -> Tensor:
    """Logits [K, N, C] of the model without each of its layers, everything after it decided anew."""
    logits = []
    for k in range(len(stack.layers)):
        with stack.without(k):
            logits.append(model.decide(model.encode(input_ids, attention_mask, row_mask)).logits)
    return torch.stack(logits)


class LayerwiseFitter:
    """Means over all rows, batch by batch."""

    def __init__(self, model: LexicalSAE) -> None:
        self.model, self.rows, self._residual = model, 0, 0.0
        self._stack: LayerStack | None = None
        self._sums: list[Tensor] = []

    @torch.no_grad()
    def update(self, input_ids: Tensor, attention_mask: Tensor, row_mask: Tensor | None = None) -> None:
        """Count a batch: K + 2 passes of the whole model and K + 1 of the masked-LM head."""
        self.model.eval()
        self._stack = self._stack or LayerStack.of(self.model.backbone, input_ids, attention_mask)
        batch = (self.model, self._stack, input_ids, attention_mask, row_mask)
        parts = layer_parts(*batch)
        logits_NC = parts.state.logits.double()
        fall_KNC = logits_NC - left_out(*batch).double()
        figures = (logits_NC, parts.state.b_eff.double(), parts.parts_KNC, fall_KNC)
        sums = [figure.sum(-2).cpu() for figure in figures]
        self._sums = [a + b for a, b in zip(self._sums, sums, strict=True)] if self._sums else sums
        self.rows += len(logits_NC)
        self._residual = max([self._residual, *parts.residual_NC.flatten().tolist()])

    def result(self) -> Layerwise:
        """The means of everything counted so far; no class when nothing was."""
        if not self.rows:
            return Layerwise(0, 0.0, [])
        logit_C, bias_C, parts_KC, fall_KC = (total / self.rows for total in self._sums)
        classes = [
            ClassLayers(
                label,
                logit=float(logit_C[c]),
                embeddings=float(parts_KC[0, c]),
                layers=parts_KC[1:, c].tolist(),
                bias=float(bias_C[c]),
                left_out=fall_KC[:, c].tolist(),
            )
            for c, label in enumerate(self.model.config.label_names)
        ]
        return Layerwise(self.rows, self._residual, classes)


# --- reads of words ---------------------------------------------------------------------------------------


def _reads(rows: SparseRows, length: int, row_mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """(flat position, dimension, row), [Q] each, of every read."""
    row_Q, word_Q = rows.row_P[rows.source_pair_Q], rows.word_P[rows.source_pair_Q]
    document_Q = row_Q if row_mask is None else row_mask.nonzero()[:, 0][row_Q]
    return document_Q * length + rows.source_position_Q, word_Q, row_Q


@torch.enable_grad()
def _tangent(model: LexicalSAE, z_Q: Tensor, word_Q: Tensor) -> tuple[Tensor, Tensor]:
    """The gate's value and slope [Q] at logits whose gates are open, in float64."""
    z_Q = z_Q.detach().requires_grad_()
    s_Q = model.gate(z_Q, model.gate.theta().detach()[word_Q])
    (slope_Q,) = torch.autograd.grad(s_Q.sum(), z_Q)
    return s_Q.detach().double(), slope_Q.double()
