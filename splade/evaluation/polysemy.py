"""Word in context: do the senses of an expanded word tell its uses apart?

1. A pair of uses is covered when both targets are one token, the same one, and that word is expanded.
2. The model says 'same' when both uses take the same slot.
3. The baseline says 'same' when the word's raw logits at the two places differ by no more than a threshold,
   chosen on training pairs for the most right answers; single tokens of the dictionary, expanded or not.

Accuracies are over the covered pairs; always saying the commoner answer is given beside them.

Legend: n pairs, H width of h.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from splade.attribution.tokens import tokenise
from splade.data.encoding import Example, by_length, collate
from splade.data.wic import Use, WordPair
from splade.errors import ConfigError, DataError
from splade.models.layers.virtual_expander import VirtualExpander
from splade.models.lexical_sae import LexicalSAE
from splade.models.senses import meant


@dataclass(frozen=True)
class Polysemy:
    """Accuracies over `covered` of `pairs`, None where there is none; `tuned_on` pairs set the baseline."""

    pairs: int
    covered: int
    coverage: float
    accuracy: float | None
    majority: float | None
    baseline: float | None
    threshold: float
    tuned_on: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values under their documented keys."""
        return asdict(self)


@dataclass(frozen=True)
class _Placed:
    """A pair whose targets are the same token `word`, at a place of each sentence."""

    word: int
    same: bool
    sentences: tuple[list[int], list[int]]
    places: tuple[int, int]


def evaluate_polysemy(
    model: LexicalSAE, test: Sequence[WordPair], train: Sequence[WordPair], batch_size: int = 64
) -> Polysemy:
    """Word-in-context accuracy of an expanded model on `test`; `train` tunes the baseline only."""
    expander = model.expander
    if not isinstance(expander, VirtualExpander):
        raise ConfigError("this model has no senses to compare: expand it first")
    seen = _placed(model, train)
    if not seen:
        raise DataError("no training pair is of a single-token word, so the baseline has no threshold")
    threshold = best_threshold(*_differences(model, seen, batch_size))
    expanded = set(expander.word_K.tolist())
    covered = [pair for pair in _placed(model, test) if pair.word in expanded]
    accuracy = majority = baseline = None
    if covered:
        difference_n, same_n = _differences(model, covered, batch_size)
        baseline = _mean((difference_n <= threshold) == same_n)
        accuracy = _mean(_same_slot(model, expander, covered, batch_size) == same_n)
        majority = max(_mean(same_n), 1 - _mean(same_n))
    coverage = len(covered) / max(len(test), 1)
    return Polysemy(len(test), len(covered), coverage, accuracy, majority, baseline, threshold, len(seen))


def single_tokens(model: LexicalSAE, pairs: Sequence[WordPair]) -> list[int]:
    """The ids of the words, ascending, that stand as one and the same token in both uses of some pair."""
    return sorted({pair.word for pair in _placed(model, pairs)})


def best_threshold(difference_n: Tensor, same_n: Tensor) -> float:
    """The least threshold for which 'difference <= threshold' is 'same' most often."""
    ordered_n, order = difference_n.sort(stable=True)
    gain_n = torch.where(same_n[order], 1, -1).cumsum(0)
    last_n = torch.ones_like(gain_n, dtype=torch.bool)
    last_n[:-1] = ordered_n[1:] > ordered_n[:-1]  # equal differences fall on one side
    gain_n = torch.where(last_n, gain_n, -len(gain_n) - 1)
    best = int(gain_n.argmax())
    return float(ordered_n[best]) if int(gain_n[best]) > 0 else -1.0


def _placed(model: LexicalSAE, pairs: Sequence[WordPair]) -> list[_Placed]:
    """The pairs whose targets are one and the same token, a word of the dictionary."""
    dictionary = set(model.lexicon.words().tolist())
    placed = []
    for pair in pairs:
        (first, i), (second, k) = _place(model, pair.first), _place(model, pair.second)
        if min(i, k) >= 0 and first[i] == second[k] and first[i] in dictionary:
            placed.append(_Placed(first[i], pair.same, (first, second), (i, k)))
    return placed


def _place(model: LexicalSAE, use: Use) -> tuple[list[int], int]:
    """The tokens of a sentence, and which of them is the target: -1 if none is exactly that."""
    assert model.tokenizer is not None
    tokens = tokenise(use.text, model.tokenizer, model.config.max_length)
    target = use.text[use.start : use.end]
    for at, (start, end) in enumerate(tokens.offsets):
        # some tokenizers count the space before a word as a part of it
        if end == use.end and use.text[start:end].strip() == target:
            return tokens.ids, at
    return tokens.ids, -1


@torch.no_grad()
def _read(model: LexicalSAE, placed: list[_Placed], batch_size: int) -> tuple[Tensor, Tensor]:
    """h [n, H] at the first and at the second targets."""
    assert model.tokenizer is not None
    model.eval()
    sentences = [ids for pair in placed for ids in pair.sentences]
    places = torch.tensor([place for pair in placed for place in pair.places])
    examples = [Example(ids, [0], i) for i, ids in enumerate(sentences)]
    E_VH, pad_id = model.backbone.E_VH, int(model.tokenizer.pad_token_id or 0)
    h_nH = E_VH.new_empty(len(sentences), E_VH.shape[1])
    for indices in by_length([len(ids) for ids in sentences], batch_size):
        batch = collate(examples, indices, pad_id).to(E_VH.device)
        h_BLH = model.backbone(batch.input_ids, batch.attention_mask)
        h_nH[indices] = h_BLH[torch.arange(len(indices)), places[indices]]
    return h_nH[0::2], h_nH[1::2]


def _words(placed: list[_Placed], device: torch.device) -> Tensor:
    return torch.tensor([pair.word for pair in placed], device=device)


@torch.no_grad()
def _differences(model: LexicalSAE, placed: list[_Placed], batch_size: int) -> tuple[Tensor, Tensor]:
    """How far the word's logits at both places are apart [n], and the answers [n]."""
    first_nH, second_nH = _read(model, placed, batch_size)
    E_nH = model.backbone.E_VH[_words(placed, first_nH.device)]
    difference_n = ((first_nH - second_nH) * E_nH).sum(-1).abs().cpu()
    return difference_n, torch.tensor([pair.same for pair in placed])


@torch.no_grad()
def _same_slot(
    model: LexicalSAE, expander: VirtualExpander, placed: list[_Placed], batch_size: int
) -> Tensor:
    """Whether both uses take the same slot [n]."""
    word_n = _words(placed, model.backbone.E_VH.device)
    slots = [meant(expander, h_nH, word_n)[0] for h_nH in _read(model, placed, batch_size)]
    return (slots[0] == slots[1]).cpu()


def _mean(right_n: Tensor) -> float:
    return float(right_n.double().mean())
