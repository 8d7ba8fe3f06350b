"""From a config and a backbone to a model: the wiring, and the thresholds' start from data.

Legend: B documents, L positions, W dictionary words, N sampled rows.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from splade.config.model import LexicalConfig
from splade.models.backbone import Backbone
from splade.models.frozen import FrozenLM
from splade.models.heads import HEADS
from splade.models.layers.activation import GATES
from splade.models.lexical_sae import LexicalSAE
from splade.models.lexicon import Lexicon, LexiconSpec
from splade.models.pooling import POOLINGS

_SAMPLED_LOGITS = 1 << 22


def lexicon_spec(config: LexicalConfig) -> LexiconSpec:
    """The part of a config that decides the dictionary."""
    return LexiconSpec(config.honesty, config.language, config.stop_df)


def assemble(
    config: LexicalConfig, backbone: Backbone, lexicon: Lexicon, tokenizer: PreTrainedTokenizerBase | None
) -> LexicalSAE:
    """A model with fresh gate, pooling and head."""
    V = backbone.vocab_size
    gate = GATES[config.gate](V)
    gate.epsilon = config.gate_epsilon
    pooling = POOLINGS[config.pooling](V)
    head = HEADS[config.head](V, len(config.label_names), config.width)
    return LexicalSAE(config, backbone, lexicon, gate, pooling, head, tokenizer)


def build(
    config: LexicalConfig,
    backbone: Backbone,
    tokenizer: PreTrainedTokenizerBase,
    document_frequency_V: Tensor | None = None,
) -> LexicalSAE:
    """A model ready for training; licences come from the pretrained decoder."""
    lexicon = Lexicon.from_tokenizer(
        tokenizer, backbone.vocab_size, lexicon_spec(config), document_frequency_V
    )
    model = assemble(config, backbone, lexicon, tokenizer)
    if config.honesty == "licensed-static":
        lexicon.build_licences(backbone.E_VH.detach())
    if config.honesty == "licensed-contextual":
        model.frozen = FrozenLM.copy_of(backbone, lexicon)
    return model


@torch.no_grad()
def calibrate(
    model: LexicalSAE, batches: Iterable[tuple[Tensor, Tensor, Tensor | None]], words_per_row: int
) -> None:
    """Set θ and ε so that about `words_per_row` words open, from (input_ids, mask, row_mask) batches."""
    was_training = model.training
    model.eval()
    samples, rows = [], 0
    for input_ids, attention_mask, row_mask in batches:
        logits_NW = _row_logits(model, input_ids, attention_mask, row_mask)
        rows += len(input_ids) if row_mask is None else len(logits_NW)
        samples.append(logits_NW[logits_NW.isfinite()])
        if sum(map(len, samples)) >= _SAMPLED_LOGITS:
            break
    model.gate.calibrate(torch.cat(samples), rows * words_per_row)
    model.config.gate_epsilon = model.gate.epsilon
    model.train(was_training)


def _row_logits(
    model: LexicalSAE, input_ids: Tensor, attention_mask: Tensor, row_mask: Tensor | None
) -> Tensor:
    """Logits that the gates would see: [B, W] pooled for documents, [N, ...] raw for positions."""
    h_BLH = model.backbone(input_ids, attention_mask)
    valid_BL = model.lexicon.valid(input_ids, attention_mask)
    rows = valid_BL if row_mask is None else row_mask.bool()
    E_VH, e_V = model._decoder_rows(None, h_BLH)
    if model.lexicon.honesty.startswith("licensed"):
        licence_NK = model._licence(input_ids, attention_mask, None)[rows]
        word_NK = licence_NK.clamp(min=0)
        z_NK: Tensor = torch.einsum("nh,nkh->nk", h_BLH[rows].to(E_VH.dtype), E_VH[word_NK]).float()
        z_NK = z_NK + e_V[word_NK]
        return z_NK.masked_fill(licence_NK < 0, float("-inf"))
    words_W = model.lexicon.words()
    E_WH, e_W = E_VH[words_W], e_V[words_W]
    if row_mask is not None:
        z_NW: Tensor = (h_BLH[rows].to(E_WH.dtype) @ E_WH.T).float()
        return z_NW + e_W
    pooled = [
        (h[v].to(E_WH.dtype) @ E_WH.T).float().amax(0) for h, v in zip(h_BLH, rows, strict=True) if v.any()
    ]
    return torch.stack(pooled) + e_W
