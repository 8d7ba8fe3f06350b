"""The words that argue most for a class over some texts, and which ids of a vocabulary are whole words.

1. `get_clean_vocab_mask`: ids whose piece begins a word, has a letter and more than one character, and is no
   special token. Function words are whole words too.
2. `get_top_tokens`: mean contribution to a class over texts (over labelled words when tagging), of concept
   words or, with `spans`, of the words of the texts. A word counts 0 where it does not appear.

The mask is for reading, not for deciding: what it hides still counts in every logit.

Legend: V ids of a tokenizer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from splade.errors import DataError
from splade.inference.predictor import Predictor
from splade.models.lexical_sae import LexicalSAE
from splade.models.lexicon import Lexicon, LexiconSpec, normalise

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_AT_ONCE = 256  # texts whose explanations are held together


def get_clean_vocab_mask(tokenizer: PreTrainedTokenizerBase) -> Tensor:
    """Which ids [V] of a tokenizer are whole words of two characters or more."""
    lexicon = Lexicon.from_tokenizer(tokenizer, len(tokenizer), LexiconSpec(honesty="free"))
    long_V = torch.tensor([len(name) > 1 for name in lexicon.names])
    return lexicon.dictionary_V & lexicon.begins_V & long_V


def get_top_tokens(
    model: LexicalSAE,
    texts: Sequence[str],
    target: str,
    top_k: int = 20,
    clean_vocab: bool = True,
    spans: bool = False,
) -> list[tuple[str, float]]:
    """(word, mean contribution to the class `target`), largest first.

    `clean_vocab` leaves out concept words that are pieces of words; spans are whole words anyway.
    """
    if not texts:
        raise DataError("there are no texts: give those that the words shall be ranked on")
    predictor, total, count = Predictor(model), defaultdict[str, float](float), 0
    shown = _shown(model, clean_vocab)
    for start in range(0, len(texts), _AT_ONCE):
        for explanation in predictor.explain(texts[start : start + _AT_ONCE], target=target):
            count += 1
            if spans:
                for span in explanation.spans:
                    total[normalise(span.text)] += span.contribution
            else:
                for word in explanation.words:
                    if shown[word.id]:
                        total[word.word] += word.contribution
    total.pop("", None)  # what was read past the last word
    ranked = sorted(total, key=lambda word: (-total[word], word))
    return [(word, total[word] / count) for word in ranked[:top_k]]


def _shown(model: LexicalSAE, clean_vocab: bool) -> list[bool]:
    """Which dimensions of a model may be named; senses are as their word."""
    lexicon = model.lexicon
    if not clean_vocab:
        return [True] * lexicon.vocab_size
    assert model.tokenizer is not None
    clean_W = torch.zeros(lexicon.decoder_rows, dtype=torch.bool)
    clean_V = get_clean_vocab_mask(model.tokenizer)
    clean_W[: len(clean_V)] = clean_V
    shown: list[bool] = clean_W[lexicon.word_V.cpu()].tolist()
    return shown
