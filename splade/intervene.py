"""Words taken out of a model: for good, or while a block runs.

A removed word's activation is exactly 0 for every input, because the keep mask is applied with `where` at the
one place where activations are made. Nothing else moves: the backbone and its embeddings are not touched, so
under max pooling every other word keeps its value to the bit. Inflections and neighbours of a removed word
stay; whoever wants the concept gone must name them too.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

import torch

from splade.errors import DataError
from splade.models.lexical_sae import LexicalSAE


def word_ids(model: LexicalSAE, words: Sequence[str]) -> list[int]:
    """Every id whose surface is one of the words, whatever its case and word mark."""
    if isinstance(words, str):
        raise DataError(f"give a list of words, not one word: ['{words}']")
    found: list[int] = []
    for word in words:
        ids = model.lexicon.ids(word)
        if not ids:
            raise DataError(f"'{word}' is not one word of this vocabulary: name the pieces it splits into")
        found += ids
    return sorted(set(found))


@torch.no_grad()
def suppress_token_globally(model: LexicalSAE, words: Sequence[str]) -> list[int]:
    """Remove words for good; the mask is saved with the model and holds under further training."""
    ids = word_ids(model, words)
    model.lexicon.keep_V[ids] = False
    return ids


class SuppressedModel:
    """A model without some words while the block runs; its weights and mask are as before afterwards."""

    def __init__(self, model: LexicalSAE, words: Sequence[str]) -> None:
        self.model, self.ids = model, word_ids(model, words)

    def __enter__(self) -> LexicalSAE:
        self._before = self.model.lexicon.keep_V.clone()
        self.model.lexicon.keep_V[self.ids] = False
        return self.model

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.model.lexicon.keep_V.copy_(self._before)
