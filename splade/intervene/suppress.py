"""Words of a model by name, and their removal while a block runs.

Legend: V dimensions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from torch import Tensor

from splade.errors import DataError
from splade.models.lexical_sae import LexicalSAE

if TYPE_CHECKING:
    from splade.inference import Explanation, Prediction
    from splade.inference.reading import Input


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


@contextlib.contextmanager
def masked(model: LexicalSAE, ids: Sequence[int], keep: bool) -> Iterator[LexicalSAE]:
    """The model with `ids` removed, or with them back, while the block runs."""
    before_V = model.lexicon.keep_V.clone()
    model.lexicon.keep_V[list(ids)] = keep
    try:
        yield model
    finally:
        model.lexicon.keep_V.copy_(before_V)


class SuppressedModel:
    """A model without some words; its weights and mask are as before afterwards.

    As a context manager it lends the model itself. As a wrapper it answers like the model and like a
    `Predictor`, each call being such a block.
    """

    def __init__(self, model: LexicalSAE, words: Sequence[str]) -> None:
        self.model, self.ids = model, word_ids(model, words)
        self._blocks: list[contextlib.AbstractContextManager[LexicalSAE]] = []

    def __enter__(self) -> LexicalSAE:
        self._blocks.append(masked(self.model, self.ids, keep=False))
        return self._blocks[-1].__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._blocks.pop().__exit__(kind, problem, traceback)

    def __call__(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Activations and soft gates [B, L, V], as of the model."""
        with self as model:
            found: tuple[Tensor, Tensor] = model(input_ids, attention_mask)
        return found

    def predict(self, texts: Sequence[Input]) -> list[Prediction]:
        """One prediction a text."""
        from splade.inference import Predictor

        with self as model:
            return Predictor(model).predict(texts)

    def explain(self, texts: Sequence[Input]) -> list[Explanation]:
        """One explanation a text."""
        from splade.inference import Predictor

        with self as model:
            return Predictor(model).explain(texts)
