"""Zeroing the embeddings of words: what earlier designs called removal, an option under its own name.

It guarantees nothing, which is why a removal is a mask (`suppress_token_globally`) and this is no edit of
the journal:

- The rows of a word are zeroed in the input embeddings, and in the decoder with its bias. Where both are one
  matrix, as in most masked LMs, the backbone now reads a hole wherever the word stands, so that the logits of
  every other word move in those texts; `others_moved` measures it.
- Its own logit becomes 0, below every positive threshold; further training of the backbone moves it again.
- The rows are lost unless the returned `Erasure` is kept: `restore_embedding` puts them back bit for bit.
  The saved model does not know that it was erased.

Legend: K erased rows of the decoder, N rows, V dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from splade.errors import ConfigError
from splade.intervene.edits import model_hash
from splade.intervene.leakage import encoded
from splade.intervene.suppress import word_ids
from splade.models.lexical_sae import LexicalSAE
from splade.models.state import SparseRows


@dataclass(frozen=True)
class Erasure:
    """What was erased: words, decoder rows, the model's hash on either side, and the rows as they were."""

    words: list[str]
    rows: list[int]
    hash_before: str
    hash_after: str
    kept: list[Tensor] = field(repr=False, compare=False)


@dataclass(frozen=True)
class Moved:
    """What an erasure does to the other words of some texts.

    `before` is how many (text, word) pairs were active; `opened` and `closed` are pairs that became active
    and ceased to be, `moved` those active on both sides with another value. `change` is Σ |Δs| as a share of
    Σ s before, `changed` how many decisions differ.
    """

    texts: int
    before: int
    moved: int
    opened: int
    closed: int
    change: float
    changed: int


@torch.no_grad()
def erase_embedding(model: LexicalSAE, words: Sequence[str]) -> Erasure:
    """Zero the embedding and decoder rows of words, all spellings and senses of them, in place."""
    ids_K = torch.unique(model.lexicon.word_V.cpu()[word_ids(model, words)])
    before = model_hash(model)
    kept = [table[ids_K].clone() for table in _tables(model)]
    for table in _tables(model):
        table[ids_K] = 0
    return Erasure(list(words), ids_K.tolist(), before, model_hash(model), kept)


@torch.no_grad()
def restore_embedding(model: LexicalSAE, erasure: Erasure) -> None:
    """Put the rows of an erasure back; refused unless the model is as the erasure left it."""
    if model_hash(model) != erasure.hash_after:
        raise ConfigError("the model changed since the erasure: take back what came after it first")
    for table, rows in zip(_tables(model), erasure.kept, strict=True):
        table[erasure.rows] = rows


@torch.no_grad()
def others_moved(model: LexicalSAE, words: Sequence[str], texts: Sequence[str]) -> Moved:
    """Erase words, see what became of the others in some texts, and put the rows back."""
    ids = torch.tensor(word_ids(model, words), device=model.backbone.E_VH.device)
    before = list(_read(model, texts, ids))
    erasure = erase_embedding(model, words)
    try:
        after = list(_read(model, texts, ids))
    finally:
        restore_embedding(model, erasure)
    was = moved = opened = closed = changed = 0
    whole = change = 0.0
    for (first, first_N), (second, second_N) in zip(before, after, strict=True):
        s_NV, now_NV = first.dense(), second.dense()
        was += int((s_NV > 0).sum())
        moved += int(((s_NV > 0) & (now_NV > 0) & (s_NV != now_NV)).sum())
        opened += int(((s_NV == 0) & (now_NV > 0)).sum())
        closed += int(((s_NV > 0) & (now_NV == 0)).sum())
        whole += float(s_NV.sum())
        change += float((now_NV - s_NV).abs().sum())
        changed += int((first_N != second_N).sum())
    return Moved(len(texts), was, moved, opened, closed, change / whole if whole else 0.0, changed)


def _tables(model: LexicalSAE) -> list[Tensor]:
    """Input embeddings, decoder rows and decoder bias; the first two may be one matrix."""
    backbone = model.backbone
    inputs = backbone.mlm.get_input_embeddings().weight
    assert isinstance(inputs, Tensor)
    return [table for table in (inputs, backbone.E_VH, backbone.e_V) if table is not None]


def _read(model: LexicalSAE, texts: Sequence[str], ids: Tensor) -> Iterator[tuple[SparseRows, Tensor]]:
    """Batches of rows without the words `ids`, and the most probable class [N] of each row with them."""
    for _, rows in encoded(model, texts):
        yield rows.without(ids), model.decide(rows).logits.argmax(-1)
