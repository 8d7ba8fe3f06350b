"""Tiny random models for tests: real architectures, real tokenizers, no files and no network.

1. `tiny_tokenizer(kind)`: WordPiece, byte-level BPE or Unigram over the words of `SENTENCES`, some of which
   are split into pieces. Cached; treat it as read-only.
2. `tiny_backbone(family, vocab, seed)`: a random masked LM with spread-out logits and decoder biases.
3. `tiny_model(...)`: a `LexicalSAE` in evaluation mode. Its thresholds are calibrated on `SENTENCES` and
   differ from word to word, so that some words are open and some are not; its head has biases.
4. `tiny_batch(model, texts)`: (input_ids, attention_mask) of some texts, padded.
5. `tiny_rows(...)`: random sparse rows, one of them empty; `Sizes`: what shapes torch makes inside a block.

The decoder of a tiny model has `PADDED_ROWS` more rows than its tokenizer has pieces, as real ones often do.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Sequence

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import AutoConfig, AutoModelForMaskedLM, PreTrainedTokenizerFast

from splade.config.model import BackboneRecord, LexicalConfig
from splade.models.backbone import Backbone
from splade.models.build import build, calibrate
from splade.models.lexical_sae import LexicalSAE
from splade.models.materialised import rows_of
from splade.models.state import SparseRows

PADDED_ROWS = 3
MAX_LENGTH = 64

SENTENCES = (
    "the film was a charming and clever comedy",
    "a slow and tedious film, without a single clever scene",
    "Muslim and muslim readers liked the charming story.",
    "muslim families visited Paris in the slow summer",
    "Paris was lovely; the hotel staff were friendly and helpful!",
    "the battery died after two days and the screen was broken",
    "a helpful, friendly and quick reply from the support team",
    "unreliable service: the parcel was late, wet and broken",
    "they scored twice in the final and won the cup",
    "Berlin and London voted on the new budget in March",
)
# words that the WordPiece and Unigram vocabularies do not hold whole
SPLIT = {"unreliable": ("un", "reliable"), "charming": ("charm", "ing"), "friendly": ("friend", "ly")}

FAMILIES = (
    "bert",
    "distilbert",
    "roberta",
    "albert",
    "electra",
    "deberta-v2",
    "modernbert",
    "mpnet",
    "xlm-roberta",
)
TOKENIZER_OF = {
    "bert": "wordpiece",
    "distilbert": "wordpiece",
    "electra": "wordpiece",
    "roberta": "bpe",
    "modernbert": "bpe",
    "mpnet": "bpe",
    "albert": "unigram",
    "deberta-v2": "unigram",
    "xlm-roberta": "unigram",
}
_BERT_SPECIALS = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
_ROBERTA_SPECIALS = {
    "cls_token": "<s>",
    "pad_token": "<pad>",
    "sep_token": "</s>",
    "unk_token": "<unk>",
    "mask_token": "<mask>",
}
_COMMON = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "initializer_range": 0.3,
}
_OWN = {
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48},
    "albert": {"embedding_size": 16},
    "electra": {"embedding_size": 16},
    "deberta-v2": {"legacy": True, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    "modernbert": {"reference_compile": False, "global_attn_every_n_layers": 2, "local_attention": 16},
}


def _words() -> list[str]:
    pre = pre_tokenizers.BertPreTokenizer()
    return sorted({word for text in SENTENCES for word, _ in pre.pre_tokenize_str(text)})


def _characters() -> list[str]:
    return sorted({ch for word in _words() for ch in word})


def _wordpiece() -> Tokenizer:
    starts = [SPLIT[w][0] if w in SPLIT else w for w in _words()]
    rest = ["##" + pieces[1] for pieces in SPLIT.values()]
    vocab = [*_BERT_SPECIALS.values(), "[unused0]", *_characters(), *(f"##{ch}" for ch in _characters())]
    ids = {piece: j for j, piece in enumerate(dict.fromkeys([*vocab, *starts, *rest]))}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def _bpe() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=520,
        special_tokens=list(_ROBERTA_SPECIALS.values()),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    starts = ["muslim muslim", "Muslim Muslim", "Paris Paris"]
    tokenizer.train_from_iterator([*SENTENCES, *SENTENCES, *starts, *starts], trainer)
    return tokenizer


def _unigram() -> Tokenizer:
    counts = Counter(w for text in SENTENCES for w in text.replace(",", " ,").replace(".", " .").split())
    pieces = [(special, 0.0) for special in _ROBERTA_SPECIALS.values()]
    for word, count in sorted(counts.items()):
        first, *rest = SPLIT.get(word, (word,))
        pieces += [(f"▁{first}", count - 10.0), *((piece, -10.0) for piece in rest)]
    pieces += [("muslim", -11.0), ("▁", -12.0), *((ch, -14.0) for ch in _characters())]
    unique = list(dict.fromkeys(piece for piece, _ in pieces))
    score = dict(reversed(pieces))
    tokenizer = Tokenizer(models.Unigram([(piece, score[piece]) for piece in unique], unk_id=3))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer


_MAKERS = {"wordpiece": _wordpiece, "bpe": _bpe, "unigram": _unigram}
TOKENIZER_KINDS = tuple(_MAKERS)


@functools.cache
def tiny_tokenizer(kind: str = "wordpiece") -> PreTrainedTokenizerFast:
    """A fast tokenizer of one kind: 'wordpiece', 'bpe' or 'unigram'; shared between tests, so read-only."""
    inner = _MAKERS[kind]()
    specials = _BERT_SPECIALS if kind == "wordpiece" else _ROBERTA_SPECIALS
    start, end = specials["cls_token"], specials["sep_token"]
    inner.post_processor = processors.TemplateProcessing(
        single=f"{start} $A {end}",
        pair=f"{start} $A {end} $B:1 {end}:1",
        special_tokens=[(start, inner.token_to_id(start)), (end, inner.token_to_id(end))],
    )
    return PreTrainedTokenizerFast(tokenizer_object=inner, model_max_length=MAX_LENGTH, **specials)


def tiny_config(family: str, vocab: int, **changes: object):
    """The config of a tiny masked LM; `changes` override single fields."""
    tokenizer = tiny_tokenizer(TOKENIZER_OF[family])
    offset = 2 if tokenizer.pad_token_id == 1 else 0  # positions are counted from padding + 1 there
    fields = {
        **_COMMON,
        "vocab_size": vocab,
        "max_position_embeddings": MAX_LENGTH + offset,
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.cls_token_id,
        "eos_token_id": tokenizer.sep_token_id,
        "cls_token_id": tokenizer.cls_token_id,
        "sep_token_id": tokenizer.sep_token_id,
        **_OWN.get(family, {}),
        **changes,
    }
    return AutoConfig.for_model(family, **fields)


def tiny_backbone(family: str = "bert", vocab: int = 120, seed: int = 0, **changes: object) -> Backbone:
    """A random masked LM in evaluation mode, with random decoder biases where it has any."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        mlm = AutoModelForMaskedLM.from_config(tiny_config(family, vocab, **changes)).eval()
        backbone = Backbone(mlm, f"tiny-{family}")
        if backbone.e_V is not None:
            torch.nn.init.normal_(backbone.e_V, std=0.3)
    return backbone


def tiny_labels(task: str, classes: int) -> list[str]:
    """Label names: BIO tags when tagging, letters otherwise."""
    kinds = ("PER", "LOC", "ORG", "MISC")
    tags = ["O", *(f"{prefix}-{kind}" for kind in kinds for prefix in "BI")]
    return tags[:classes] if task == "tagging" else [f"class {letter}" for letter in "abcdefghij"[:classes]]


def tiny_model(
    family: str = "bert",
    honesty: str = "grounded",
    gate: str = "jumprelu",
    pooling: str = "max",
    head: str = "relu_mlp",
    classes: int = 3,
    task: str = "classification",
    seed: int = 0,
    topk: int = 0,
    opened: int = 8,
) -> LexicalSAE:
    """A random `LexicalSAE` in evaluation mode, with about `opened` words open in a text of `SENTENCES`."""
    tokenizer = tiny_tokenizer(TOKENIZER_OF[family])
    backbone = tiny_backbone(family, len(tokenizer) + PADDED_ROWS, seed)
    config = LexicalConfig(
        task=task,
        label_names=tiny_labels(task, classes),
        backbone=BackboneRecord(name=backbone.name),
        honesty=honesty,
        gate=gate,
        pooling=pooling,
        head=head,
        width=16,
        topk_per_position=topk,
        max_length=MAX_LENGTH,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed + 1)
        model = build(config, backbone, tokenizer)
        batch = tiny_batch(model)
        calibrate(model, [(*batch, batch[1].bool() if task == "tagging" else None)], opened)
        _roughen(model)
    return model.eval()


@torch.no_grad()
def _roughen(model: LexicalSAE) -> None:
    """Undo the zeros and constants of a fresh model, so that no term of it is idle."""
    model.gate.raw_V.add_(torch.randn_like(model.gate.raw_V) * 0.05)
    model.gate.clamp_()
    for name, parameter in model.head.named_parameters():
        if parameter.dim() == 1:
            parameter.normal_(std=0.2)
        elif name == "W_in":
            parameter.normal_(std=0.5)
    for parameter in model.pooling.parameters():
        parameter.normal_(std=0.3)


def tiny_batch(model: LexicalSAE, texts: Sequence[str] = SENTENCES) -> tuple[Tensor, Tensor]:
    """(input_ids, attention_mask) of `texts`, padded to the longest."""
    batch = model.tokenizer(
        list(texts), padding=True, truncation=True, max_length=MAX_LENGTH, return_tensors="pt"
    )
    return batch["input_ids"], batch["attention_mask"]


def tiny_rows(n_rows: int = 4, vocab: int = 30, density: float = 0.3, seed: int = 0) -> SparseRows:
    """Random positive activations, each read where its row stands; the last row is empty."""
    maker = torch.Generator().manual_seed(seed)
    s_NV = torch.rand(n_rows, vocab, generator=maker) + 0.1
    s_NV *= torch.rand(n_rows, vocab, generator=maker) < density
    s_NV[-1] = 0
    return rows_of(s_NV[None])


class Sizes(TorchDispatchMode):
    """Records the shape of every tensor that an operation returns, backward passes included."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: list[tuple[int, ...]] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.shapes += [tuple(leaf.shape) for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
        return result

    @property
    def largest(self) -> int:
        """The most elements that one tensor had."""
        return max((math.prod(shape) for shape in self.shapes), default=0)
