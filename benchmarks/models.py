"""Models for benchmarks: the embedded one, and random ones of every backbone family at realistic shapes.

A random model needs no tokenizer: its words are called w0, w1, … and its texts are random ids.
"""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForMaskedLM, PreTrainedTokenizerBase

from splade.config.model import BackboneRecord, LexicalConfig
from splade.data.corpora import load_corpus
from splade.data.rows import Texts
from splade.models.backbone import Backbone
from splade.models.build import assemble, calibrate, lexicon_spec
from splade.models.lexical_sae import LexicalSAE
from splade.models.lexicon import Lexicon

Batch = tuple[Tensor, Tensor]  # (input_ids, attention_mask)

FIRST_WORD = 10  # smaller ids are special tokens
LABELS = {
    "classification": [f"class {letter}" for letter in "abcde"],
    "tagging": ["O", *(f"{mark}-{kind}" for kind in ("PER", "LOC", "ORG", "MISC") for mark in "BI")],
}

_BASE = {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072, "num_hidden_layers": 4}
_SPECIALS = {"pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 3, "cls_token_id": 2, "sep_token_id": 3}
# where the config class is not of base size, or has another name for a size, or another vocabulary
FAMILIES: dict[str, dict[str, object]] = {
    "bert": {},
    "distilbert": {"n_layers": 4},
    "roberta": {},
    "albert": {"embedding_size": 128},
    "electra": {"hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024},
    "deberta-v2": {"legacy": True, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    "modernbert": {"intermediate_size": 1152, "reference_compile": False},
    "mpnet": {},
    "xlm-roberta": {"vocab_size": 250_002},
}
_QUICK = {
    "hidden_size": 32,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "vocab_size": 800,
}
_QUICK_OWN = {
    "distilbert": {"dim": 32, "n_heads": 2, "hidden_dim": 64, "n_layers": 1},
    "albert": {"embedding_size": 16},
    "electra": {"embedding_size": 16},
}


def random_backbone(family: str, quick: bool) -> Backbone:
    """A masked LM with random weights and random decoder biases."""
    fields = {**_BASE, **_SPECIALS, **FAMILIES[family]}
    if quick:
        fields |= {**_QUICK, **_QUICK_OWN.get(family, {})}
    backbone = Backbone(AutoModelForMaskedLM.from_config(AutoConfig.for_model(family, **fields)), family)
    if backbone.e_V is not None:
        torch.nn.init.normal_(backbone.e_V, std=0.3)
    return backbone.eval()


def lexicon_of(
    config: LexicalConfig, vocab_size: int, tokenizer: PreTrainedTokenizerBase | None = None
) -> Lexicon:
    """A tokenizer's lexicon; without one, every id from `FIRST_WORD` on is a whole word."""
    if tokenizer is not None:
        return Lexicon.from_tokenizer(tokenizer, vocab_size, lexicon_spec(config))
    names = [f"w{j}" for j in range(vocab_size)]
    return Lexicon(names, [True] * vocab_size, range(FIRST_WORD), [], lexicon_spec(config))


def random_batch(vocab_size: int, texts: int, length: int) -> Batch:
    """Random texts, from a quarter of `length` to all of it, padded."""
    ids_BL = torch.randint(FIRST_WORD, vocab_size, (texts, length))
    lengths_B = torch.randint(length // 4, length + 1, (texts,))
    mask_BL = (torch.arange(length) < lengths_B[:, None]).long()
    return ids_BL.where(mask_BL.bool(), 1), mask_BL


def review_batch(tokenizer: PreTrainedTokenizerBase, texts: int, length: int, joined: int = 1) -> Batch:
    """Generated reviews, `joined` of them a text, cut at `length` tokens and padded."""
    rows = load_corpus("reviews").train
    assert isinstance(rows, Texts)
    reviews = [" ".join(rows.texts[k : k + joined]) for k in range(0, texts * joined, joined)]
    encoded = tokenizer(reviews, padding=True, truncation=True, max_length=length, return_tensors="pt")
    return encoded["input_ids"], encoded["attention_mask"]


def model_of(
    config: LexicalConfig, backbone: Backbone, lexicon: Lexicon, batch: Batch, words: int
) -> LexicalSAE:
    """A model with a random head, whose thresholds open about `words` words a row of `batch`."""
    model = assemble(config, backbone, lexicon, None)
    if config.honesty == "licensed-static":
        lexicon.build_licences(backbone.E_VH.detach())
    rows = lexicon.valid(*batch) if config.task == "tagging" else None
    calibrate(model, [(*batch, rows)], words)
    with torch.no_grad():  # a fresh head has no biases and hardly any weights, so a sum would be too easy
        for name, parameter in model.head.named_parameters():
            if parameter.dim() == 1:
                parameter.normal_(std=0.2)
            elif name == "W_in":
                parameter.normal_(std=0.5)
    return model.eval()


def config_of(backbone: Backbone, **fields: object) -> LexicalConfig:
    """A config with the labels of its task."""
    task = str(fields.get("task", "classification"))
    record = BackboneRecord(name=backbone.name)
    return LexicalConfig.model_validate({"label_names": LABELS[task], "backbone": record, **fields})
