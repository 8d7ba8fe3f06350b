"""The [B, L, V] tensors of the research interface: plain to read, and as large as they look.

Legend: B documents, L positions, V dimensions (the decoder's W words, then further senses of some),
H hidden size, N = B·L positions, K licensed words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from splade.models.pooling import one_source
from splade.models.state import SparseRows

if TYPE_CHECKING:
    from splade.models.lexical_sae import LexicalSAE
    from splade.models.lexicon import Lexicon


def allowed(model: LexicalSAE, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
    """Which words [B, L, V] may be a reason at each position, before any edit."""
    lexicon = model.lexicon
    may_BLV = lexicon.valid(input_ids, attention_mask)[..., None] & lexicon.dictionary_V
    if not lexicon.licensed_only:
        return may_BLV
    W, device = lexicon.decoder_rows, may_BLV.device
    licence_BLK = model.licence(input_ids, attention_mask)
    places_BLW = torch.zeros(
        *input_ids.shape, W + 1, dtype=torch.bool, device=device
    )  # the last takes the -1
    licensed_BLW = places_BLW.scatter_(-1, licence_BLK % (W + 1), True)[..., :-1]
    return may_BLV & licensed_BLW[..., lexicon.word_V]


def word_logits(h_LH: Tensor, E_WH: Tensor, e_W: Tensor | None, lexicon: Lexicon, may_LV: Tensor) -> Tensor:
    """z = h Eᵀ + e in float32, -inf where a word may not be a reason; every sense has its word's."""
    z_LV = nn.functional.linear(h_LH, E_WH, e_W).float()
    if lexicon.vocab_size > lexicon.decoder_rows:
        z_LV = z_LV[..., lexicon.word_V]
    return torch.where(may_LV, z_LV, float("-inf"))


def activations(model: LexicalSAE, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
    """(s, soft gate), each [B, L, V]."""
    backbone, gate, lexicon = model.backbone, model.gate, model.lexicon
    h_BLH = backbone(input_ids, attention_mask)
    valid_BL = lexicon.valid(input_ids, attention_mask)
    senses = model.expander(h_BLH, valid_BL)
    may_BLV = allowed(model, input_ids, attention_mask)
    if k := model.topk():
        with torch.no_grad():
            z_BLV = word_logits(h_BLH, backbone.E_VH, backbone.e_V, lexicon, may_BLV)
            s_BLV = senses.route_all(gate(z_BLV.nan_to_num(float("-inf")), gate.theta()))
            may_BLV &= _largest(s_BLV, k)
    # what must not count is cut before the product too: in a backward pass, 0·NaN is NaN
    h_BLH = h_BLH.masked_fill(~valid_BL[..., None], 0.0)
    E_WH = backbone.E_VH.masked_fill(~lexicon.kept_words()[:, None], 0.0)
    z_BLV = word_logits(h_BLH, E_WH, backbone.e_V, lexicon, may_BLV & lexicon.keep_V)
    s_BLV = senses.route_all(gate(z_BLV, gate.theta())) * lexicon.scale_V
    return s_BLV, senses.route_all(gate.probability(z_BLV))


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
