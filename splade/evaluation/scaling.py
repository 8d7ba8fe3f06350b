"""Scaling metrics: what the gate costs the language model and the head, and how few words do the work.

1. Language model: some words of each text are hidden. At these positions the loss of the true token under
   softmax(s), a closed word standing at logit 0, beside its loss under softmax(z). Licences do not enter: a
   hidden position is no text, so nothing is licensed there.
2. Head: the loss with s = relu(z) in place of the gate, all else the same, and KL(that ‖ the model).
3. Ablation sparsity: (Σ|a| / √Σa²)² over a row's words, from 1, one word does it all, to how many there are.
   `a` is the effect of each word's removal on the predicted class, and beside it the word's contribution.

Legend: B documents, L positions, N rows or hidden positions, n of them at once, P active pairs, C classes,
V dimensions, W decoder rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from splade.circuits.prediction import prediction_loss
from splade.data.encoding import Batch
from splade.data.tokens import Frame
from splade.inference.rows import decide
from splade.mechanistic.attribution import Method, compute_attribution_tensor
from splade.models.layers.activation import DReLU
from splade.models.lexical_sae import LexicalSAE
from splade.models.state import CircuitState, SparseRows

HIDDEN_SHARE = 0.15
_ELEMENTS_AT_ONCE = 1 << 24  # of what is as wide as the vocabulary


@dataclass(frozen=True)
class Scaling:
    """Means over `hidden` positions and over `rows` rows; losses in nats, None where nothing was counted."""

    hidden: int
    lm_loss: float | None
    lm_loss_gated: float | None
    rows: int
    head_loss: float | None
    head_loss_relu: float | None
    head_kl: float | None
    ablation_sparsity: float | None
    contribution_sparsity: float | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values under their documented keys."""
        return asdict(self)


class ScalingFitter:
    """Accumulates the metrics batch by batch; which words are hidden depends on the seed and the order."""

    def __init__(self, model: LexicalSAE, seed: int = 0) -> None:
        assert model.tokenizer is not None
        self.model, self._mask_id = model, Frame.of(model.tokenizer).mask
        self._generator = torch.Generator().manual_seed(seed)
        self._hidden = self._rows = 0
        self._lm, self._head, self._sparsity = [0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0]

    @torch.no_grad()
    def update(self, batch: Batch, state: CircuitState) -> None:
        """Count a batch and the model's decision of it: one more pass to guess, one with the plain ReLU."""
        self.model.eval()
        losses_N = self._guess(batch)
        self._hidden += len(losses_N[0])
        self._lm = [
            total + float(loss_N.double().sum()) for total, loss_N in zip(self._lm, losses_N, strict=True)
        ]
        relu_NC = torch.cat([part.logits for part in plain_relu(self.model, batch)])
        n_rows = len(relu_NC)
        figures = (
            prediction_loss(state.logits, batch.labels_N),
            prediction_loss(relu_NC, batch.labels_N),
            divergence(relu_NC, state.logits, batch.labels_N.ndim > 1).mean() if n_rows else torch.zeros(()),
        )
        self._head = [total + float(mean) * n_rows for total, mean in zip(self._head, figures, strict=True)]
        self._rows += n_rows
        methods: tuple[Method, Method] = ("ablation", "dla")
        for i, method in enumerate(methods):
            amount_P = compute_attribution_tensor(state, state.logits.argmax(-1), method).amount
            self._sparsity[i] += float(ablation_sparsity(state.rows, amount_P).sum())

    def _guess(self, batch: Batch) -> tuple[Tensor, Tensor]:
        ids_BL, hidden_BL = hide(self.model, batch, self._mask_id, self._generator)
        h_NH = self.model.backbone(ids_BL, batch.attention_mask)[hidden_BL]
        return guess_losses(self.model, h_NH, batch.input_ids[hidden_BL])

    def result(self) -> Scaling:
        """The means of everything counted so far."""
        lm = [_mean(total, self._hidden) for total in self._lm]
        head = [_mean(total, self._rows) for total in self._head]
        sparsity = [_mean(total, self._rows) for total in self._sparsity]
        return Scaling(
            hidden=self._hidden,
            lm_loss=lm[0],
            lm_loss_gated=lm[1],
            rows=self._rows,
            head_loss=head[0],
            head_loss_relu=head[1],
            head_kl=head[2],
            ablation_sparsity=sparsity[0],
            contribution_sparsity=sparsity[1],
        )


# --- the language model -----------------------------------------------------------------------------------


def hide(model: LexicalSAE, batch: Batch, mask_id: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """(ids with some of the text's tokens masked, which [B, L]); the choice does not depend on the device."""
    chance_BL = torch.rand(batch.input_ids.shape, generator=generator).to(batch.input_ids.device)
    valid_BL = model.lexicon.valid(batch.input_ids, batch.attention_mask)
    hidden_BL = valid_BL & (chance_BL < HIDDEN_SHARE)
    return batch.input_ids.masked_fill(hidden_BL, mask_id), hidden_BL


@torch.no_grad()
def guess_losses(model: LexicalSAE, h_NH: Tensor, true_N: Tensor) -> tuple[Tensor, Tensor]:
    """The losses [N] of the true tokens under softmax(z) and under softmax(s), over decoder rows."""
    at_once = max(1, _ELEMENTS_AT_ONCE // model.lexicon.vocab_size)
    plain, gated = [true_N.new_zeros(0, dtype=torch.float)], [true_N.new_zeros(0, dtype=torch.float)]
    for h_nH, true_n in zip(torch.split(h_NH, at_once), torch.split(true_N, at_once), strict=True):
        z_nW = F.linear(h_nH, model.backbone.E_VH, model.backbone.e_V).float()
        plain.append(F.cross_entropy(z_nW, true_n, reduction="none"))
        gated.append(F.cross_entropy(_gated(model, h_nH, z_nW), true_n, reduction="none"))
    return torch.cat(plain), torch.cat(gated)


def _gated(model: LexicalSAE, h_nH: Tensor, z_nW: Tensor) -> Tensor:
    """s at positions as logits of decoder rows [n, W]: that of the sense meant, 0 where closed."""
    lexicon = model.lexicon
    everywhere_n = torch.ones(len(h_nH), dtype=torch.bool, device=h_nH.device)
    s_nV = model.gate(z_nW[:, lexicon.word_V], model.gate.theta())
    s_nV = model.expander(h_nH, everywhere_n).route_all(s_nV)
    s_nV = torch.where(lexicon.dictionary_V & lexicon.keep_V, s_nV, 0.0)
    if k := model.topk():
        order = torch.sort(s_nV, dim=-1, descending=True, stable=True).indices
        s_nV = s_nV.scatter(-1, order[:, k:], 0.0)
    return torch.zeros_like(z_nW).index_add_(1, lexicon.word_V, s_nV)


# --- the head ---------------------------------------------------------------------------------------------


@contextmanager
def _without_gate(model: LexicalSAE) -> Iterator[None]:
    """Inside, s = relu(z)."""
    gate = model.gate
    model.gate = DReLU(len(gate.raw_V)).to(gate.raw_V.device).train(gate.training)
    try:
        yield
    finally:
        model.gate = gate


@torch.no_grad()
def plain_relu(model: LexicalSAE, batch: Batch) -> Iterator[CircuitState]:
    """The decisions of a batch with s = relu(z), a few documents at a time: half the vocabulary is active."""
    pooled = batch.row_mask is None and model.pooling.has_shortcut and not model.topk()
    places = 1 if pooled else batch.input_ids.shape[1]
    at_once = max(1, _ELEMENTS_AT_ONCE // (places * model.lexicon.vocab_size))
    for start in range(0, len(batch.input_ids), at_once):
        part = slice(start, start + at_once)
        row_mask = None if batch.row_mask is None else batch.row_mask[part]
        ids, mask = batch.input_ids[part], batch.attention_mask[part]
        with _without_gate(model):
            state = decide(model, replace(batch, input_ids=ids, attention_mask=mask, row_mask=row_mask))
        yield state


def divergence(from_NC: Tensor, to_NC: Tensor, multi_label: bool) -> Tensor:
    """KL(p ‖ q) [N] of the probabilities that logits stand for; its mean over classes where each is apart."""
    if not multi_label:
        log_p_NC, log_q_NC = from_NC.log_softmax(-1), to_NC.log_softmax(-1)
        return (log_p_NC.exp() * (log_p_NC - log_q_NC)).sum(-1)
    yes_NC = from_NC.sigmoid() * (F.logsigmoid(from_NC) - F.logsigmoid(to_NC))
    no_NC = (-from_NC).sigmoid() * (F.logsigmoid(-from_NC) - F.logsigmoid(-to_NC))
    return (yes_NC + no_NC).mean(-1)


# --- few words --------------------------------------------------------------------------------------------


def ablation_sparsity(rows: SparseRows, amount_P: Tensor) -> Tensor:
    """(L1 / L2)² of each row's amounts [N], in float64; 0 for a row of zeros."""
    amount_P = amount_P.double().abs()
    # by its largest, so that small amounts have squares too
    largest_N = amount_P.new_zeros(rows.n_rows).scatter_reduce(0, rows.row_P, amount_P, "amax")
    amount_P = amount_P / torch.where(largest_N > 0, largest_N, 1.0)[rows.row_P]
    square_N = rows.sum_by_row(amount_P.square())
    return rows.sum_by_row(amount_P).square() / torch.where(square_N > 0, square_N, 1.0)


def _mean(total: float, count: int) -> float | None:
    return total / count if count else None
