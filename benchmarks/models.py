"""Models for benchmarks: the embedded one, and random ones of every backbone family at realistic shapes.

A random model needs no tokenizer: its words are called w0, w1, … and its texts are random ids. Where a text
has to be a string, it is its ids written out, which `Numbers` reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForMaskedLM, PreTrainedTokenizerBase

from splade.config.model import BackboneRecord, LexicalConfig
from splade.data.corpora import load_corpus
from splade.data.rows import Texts
from splade.models.backbone import Backbone
from splade.models.build import assemble, calibrate, lexicon_spec
from splade.models.frozen import FrozenLM
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
# the backbones that costs are measured on: family, and where its config class is not of that size
SIZES: dict[str, tuple[str, dict[str, object]]] = {
    "minilm": ("bert", {"hidden_size": 384, "intermediate_size": 1536, "num_hidden_layers": 6}),
    "bert-base": ("bert", {"num_hidden_layers": 12}),
    "modernbert-base": ("modernbert", {"num_hidden_layers": 22}),
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
    return _random(family, family, {**FAMILIES[family], **({} if not quick else _quick(family))})


def sized_backbone(size: str, quick: bool, length: int) -> Backbone:
    """A masked LM of one of `SIZES` with random weights, which takes texts of `length` tokens."""
    family, fields = SIZES[size]
    fields = {**FAMILIES[family], **fields, "max_position_embeddings": max(512, length)}
    return _random(family, size, {**fields, **_quick(family)} if quick else fields)


def _quick(family: str) -> dict[str, object]:
    return {**_QUICK, **_QUICK_OWN.get(family, {})}


def _random(family: str, name: str, fields: dict[str, object]) -> Backbone:
    config = AutoConfig.for_model(family, **{**_BASE, **_SPECIALS, **fields})
    backbone = Backbone(AutoModelForMaskedLM.from_config(config), name)
    if backbone.e_V is not None:
        torch.nn.init.normal_(backbone.e_V, std=0.3)
    return backbone.eval()


class Given(nn.Module):
    """Stands in for a backbone whose h is given, so that the vocabulary head can be run alone."""

    def __init__(self, h_BLH: Tensor, vocab_size: int) -> None:
        super().__init__()
        self.h_BLH = h_BLH
        H, device = h_BLH.shape[-1], h_BLH.device
        self.E_VH = nn.Parameter(torch.randn(vocab_size, H, device=device) * H**-0.5)
        self.e_V = nn.Parameter(torch.randn(vocab_size, device=device) * 0.3)
        self.vocab_size, self.name = vocab_size, "given"

    def forward(self, input_ids: Tensor, _attention_mask: Tensor) -> Tensor:
        """h of as many documents as are asked for."""
        return self.h_BLH[: len(input_ids)]


def head_alone(h_BLH: Tensor, vocab_size: int, words: int, classes: int = 5) -> LexicalSAE:
    """A model around `h_BLH` that opens about `words` words a document."""
    given = cast(Backbone, Given(h_BLH, vocab_size))
    labels = [f"class {c}" for c in range(classes)]
    config = config_of(given, honesty="free", label_names=labels)
    few = full_batch(vocab_size, min(2, len(h_BLH)), h_BLH.shape[1])
    return model_of(config, given, lexicon_of(config, vocab_size), few, words, h_BLH.device)


class Numbers:
    """Reads texts that are ids written out, as a tokenizer would."""

    pad_token_id = 1

    def __call__(self, texts: Sequence[str], max_length: int, **_: Any) -> dict[str, list[list[int]]]:
        return {"input_ids": [[int(n) for n in text.split()][:max_length] for text in texts]}


def full_batch(vocab_size: int, texts: int, length: int) -> Batch:
    """Random texts without padding."""
    ids_BL = torch.randint(FIRST_WORD, vocab_size, (texts, length))
    return ids_BL, torch.ones_like(ids_BL)


def to(batch: Batch, device: torch.device) -> Batch:
    """A batch on a device."""
    return batch[0].to(device), batch[1].to(device)


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


def review_texts(texts: int, joined: int = 1) -> list[str]:
    """Generated reviews, `joined` of them a text."""
    rows = load_corpus("reviews").train
    assert isinstance(rows, Texts)
    return [" ".join(rows.texts[k : k + joined]) for k in range(0, texts * joined, joined)]


def review_batch(tokenizer: PreTrainedTokenizerBase, texts: int, length: int, joined: int = 1) -> Batch:
    """Generated reviews, `joined` of them a text, cut at `length` tokens and padded."""
    reviews = review_texts(texts, joined)
    encoded = tokenizer(reviews, padding=True, truncation=True, max_length=length, return_tensors="pt")
    return encoded["input_ids"], encoded["attention_mask"]


def model_of(
    config: LexicalConfig,
    backbone: Backbone,
    lexicon: Lexicon,
    batch: Batch,
    words: int,
    device: torch.device | None = None,
) -> LexicalSAE:
    """A model with a random head, whose thresholds open about `words` words a row of `batch`."""
    device = device or torch.device("cpu")
    model, batch = assemble(config, backbone, lexicon, None).to(device), to(batch, device)
    if config.honesty == "licensed-static":
        lexicon.build_licences(backbone.E_VH.detach())
    if config.honesty == "licensed-contextual":
        model.frozen = FrozenLM.copy_of(backbone, lexicon)
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
