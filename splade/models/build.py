"""From a config and a backbone to a model: the wiring, and the thresholds' start from data.

Legend: B documents, L positions, V dimensions, N rows of one text.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from splade.config.model import LexicalConfig, SensesRecord
from splade.errors import DataError
from splade.models.backbone import Backbone
from splade.models.frozen import FrozenLM
from splade.models.heads import HEADS
from splade.models.layers.activation import GATES, DReLU
from splade.models.layers.virtual_expander import VirtualExpander
from splade.models.lexical_sae import LexicalSAE
from splade.models.lexicon import Lexicon, LexiconSpec
from splade.models.materialised import allowed, word_logits
from splade.models.pooling import POOLINGS, AttentionPooling

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_SAMPLED_LOGITS = 1 << 22


def lexicon_spec(config: LexicalConfig) -> LexiconSpec:
    """The part of a config that decides the dictionary."""
    return LexiconSpec(config.honesty, config.language, config.stop_df)


def assemble(
    config: LexicalConfig, backbone: Backbone, lexicon: Lexicon, tokenizer: PreTrainedTokenizerBase | None
) -> LexicalSAE:
    """A model with fresh gate, pooling and head."""
    V = backbone.vocab_size
    gate = DReLU(V, saturate=True) if config.gate_saturate else GATES[config.gate](V)
    if not gate.fixed_width:
        gate.epsilon = config.gate_epsilon
    pooling = POOLINGS[config.pooling](V)
    head = HEADS[config.head](V, len(config.label_names), config.width)
    model = LexicalSAE(config, backbone, lexicon, gate, pooling, head, tokenizer)
    if config.senses is not None:
        add_senses(model, config.senses)
    return model


@torch.no_grad()
def add_senses(model: LexicalSAE, record: SensesRecord) -> None:
    """Give words a dimension for each sense, with threshold, head row and query of the word."""
    E_VH = model.backbone.E_VH
    expander = VirtualExpander(record.token_ids, record.num_senses, *E_VH.shape).to(E_VH.device)
    word_V = expander.word_V
    model.lexicon.expand(word_V, expander.sense_V)
    model.gate.raw_V = nn.Parameter(model.gate.raw_V[word_V])
    model.head.W_in = nn.Parameter(model.head.W_in[word_V])
    model.head.vocab_size = len(word_V)
    if isinstance(model.pooling, AttentionPooling):
        model.pooling.query_V = nn.Parameter(model.pooling.query_V[word_V])
    if model.frozen is not None:
        model.frozen = FrozenLM(model.frozen.backbone, model.lexicon)
    model.config.senses, model.expander = record, expander


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
    samples, rows, sampled = [], 0, 0
    for logits_NV in itertools.chain.from_iterable(_row_logits(model, *batch) for batch in batches):
        rows += len(logits_NV)
        samples.append(logits_NV[logits_NV.isfinite()])
        sampled += len(samples[-1])
        if sampled >= _SAMPLED_LOGITS:
            break
    if not sampled:
        raise DataError("no text holds a word, so thresholds cannot be set: check the text column")
    model.gate.calibrate(torch.cat(samples), rows * words_per_row)
    model.config.gate_epsilon = model.gate.epsilon
    model.train(was_training)


def _row_logits(
    model: LexicalSAE, input_ids: Tensor, attention_mask: Tensor, row_mask: Tensor | None
) -> Iterator[Tensor]:
    """Logits [N, V] that the gates would see, text by text; -inf where a word may not be a reason."""
    h_BLH = model.backbone(input_ids, attention_mask)
    for b in range(len(input_ids)):
        text = slice(b, b + 1)
        may_LV = allowed(model, input_ids[text], attention_mask[text])[0]
        senses = model.expander(h_BLH[b], model.lexicon.valid(input_ids[b], attention_mask[b]))
        may_LV &= senses.route_all(torch.ones(may_LV.shape, device=may_LV.device)) > 0
        backbone = model.backbone
        z_LV = word_logits(h_BLH[b], backbone.E_VH, backbone.e_V, model.lexicon, may_LV)
        yield z_LV.amax(0, keepdim=True) if row_mask is None else z_LV[row_mask[b].bool()]
