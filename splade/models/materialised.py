"""The [B, L, V] tensors of the research interface: plain to read, and as large as they look.

Legend: B documents, L positions, V vocabulary, H hidden size, N = B·L positions, K licensed words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from splade.models.pooling import one_source
from splade.models.state import SparseRows

if TYPE_CHECKING:
    from splade.models.lexical_sae import LexicalSAE


def allowed(model: LexicalSAE, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
    """Which words [B, L, V] may be a reason at each position, before any edit."""
    lexicon = model.lexicon
    may_BLV = lexicon.valid(input_ids, attention_mask)[..., None] & lexicon.dictionary_V
    if not lexicon.licensed_only:
        return may_BLV
    B, L, V = may_BLV.shape
    licence_BLK = model.licence(input_ids, attention_mask)
    slots_BLS = torch.zeros(B, L, V + 1, dtype=torch.bool, device=may_BLV.device)  # the last takes the -1
    return may_BLV & slots_BLS.scatter_(-1, licence_BLK % (V + 1), True)[..., :-1]


def word_logits(h_LH: Tensor, E_VH: Tensor, e_V: Tensor | None, may_LV: Tensor) -> Tensor:
    """z = h Eᵀ + e in float32, -inf where a word may not be a reason."""
    return torch.where(may_LV, nn.functional.linear(h_LH, E_VH, e_V).float(), float("-inf"))


def activations(model: LexicalSAE, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
    """(s, soft gate), each [B, L, V]."""
    backbone, gate, keep_V = model.backbone, model.gate, model.lexicon.keep_V
    h_BLH = backbone(input_ids, attention_mask)
    may_BLV = allowed(model, input_ids, attention_mask)
    if k := model.topk():
        with torch.no_grad():
            z_BLV = word_logits(h_BLH, backbone.E_VH, backbone.e_V, may_BLV).nan_to_num(float("-inf"))
            may_BLV &= _largest(gate(z_BLV, gate.theta()), k)
    # what must not count is cut before the product too: in a backward pass, 0·NaN is NaN
    h_BLH = h_BLH.masked_fill(~model.lexicon.valid(input_ids, attention_mask)[..., None], 0.0)
    E_VH = backbone.E_VH.masked_fill(~keep_V[:, None], 0.0)
    z_BLV = word_logits(h_BLH, E_VH, backbone.e_V, may_BLV & keep_V)
    return gate(z_BLV, gate.theta()), gate.probability(z_BLV)


def rows_of(sparse_BLV: Tensor) -> SparseRows:
    """The non-zero entries of activations as rows, one a position."""
    sparse_NV = sparse_BLV.flatten(0, 1)
    row_P, word_P = sparse_NV.nonzero(as_tuple=True)
    value_P = sparse_NV[row_P, word_P]
    return one_source(row_P, word_P, value_P, value_P, row_P, *sparse_NV.shape)


def _largest(s_BLV: Tensor, k: int) -> Tensor:
    """Which entries are among their position's k largest, ties broken by word id."""
    ranked = torch.sort(s_BLV, dim=-1, descending=True, stable=True).indices[..., :k]
    return torch.zeros_like(s_BLV, dtype=torch.bool).scatter_(-1, ranked, True)
