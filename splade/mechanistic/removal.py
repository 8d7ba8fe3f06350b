"""What happens when several words go at once: interactions, and the smallest set that flips a prediction.

    interaction_jk = logit(s) - logit(s without j) - logit(s without k) + logit(s without j and k)

Counterfactuals are found in three steps, every candidate re-evaluated exactly by the head:

1. Greedy: remove the word that lowers the margin of the prediction most, until the prediction changes.
2. Prune: give back every word without which the prediction stays changed.
3. Prove: try all smaller sets, smallest first, as long as there are no more than `budget` of a size.

Legend: A active words of one row, M sets of k words, m of them at once, D head width, C classes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from splade.errors import ConfigError
from splade.models.state import CircuitState

_SETS_AT_ONCE = 1 << 13


@dataclass(frozen=True)
class Counterfactual:
    """The words (ids) whose removal changes the prediction from `before` to `after`; none if nothing does.

    All sets of up to `searched` words were tried and none of them changes it, so the answer is `minimal`
    when `searched` is one less than its size (or, without an answer, when every word was tried).
    """

    words: list[int]
    before: int
    after: int
    searched: int
    minimal: bool


class _Row:
    """One row's head over what is left of its words: u = Σ s_j W_in[j] over the words that stay."""

    def __init__(self, state: CircuitState, row: int) -> None:
        rows, W_VD = state.rows, state.head.projection()
        mine_P = (rows.row_P == row) & rows.open_P
        self.head = state.head
        self.words_A, value_A = rows.word_P[mine_P], rows.value_P[mine_P].to(W_VD.dtype)
        self.part_AD, self.square_A = value_A[:, None] * W_VD[self.words_A], value_A**2

    def __len__(self) -> int:
        return len(self.words_A)

    def without(self, sets_Mk: Tensor) -> Tensor:
        """Logits [M, C] after the words at `sets_Mk` (indices into the active words) are gone."""
        logits = []
        with torch.autocast(self.square_A.device.type, enabled=False):
            for chunk_mk in torch.split(sets_Mk, _SETS_AT_ONCE):
                stay_mA = self.square_A.new_ones(len(chunk_mk), len(self)).scatter_(1, chunk_mk, 0.0)
                logits.append(self.head.rest(stay_mA @ self.part_AD, stay_mA @ self.square_A))
        return torch.cat(logits)

    def indices(self, sets: Iterable[tuple[int, ...]], size: int) -> Tensor:
        flat = list(itertools.chain.from_iterable(sets))
        return torch.tensor(flat, dtype=torch.long, device=self.words_A.device).view(-1, size)


@torch.no_grad()
def interactions(state: CircuitState, row: int, label: int, words: list[int]) -> Tensor:
    """Pairwise interactions [k, k] of some active words of a row for one class; the diagonal is 0."""
    model = _Row(state, row)
    place = {word: i for i, word in enumerate(model.words_A.tolist())}
    missing = [word for word in words if word not in place]
    if missing:
        raise ConfigError(f"word {missing[0]} is not active in row {row}: choose among its active words")
    at_k = model.indices(((place[word],) for word in words), 1)
    i, j = torch.triu_indices(len(words), len(words), 1, device=at_k.device)
    whole = model.without(at_k.new_zeros(1, 0))[0, label]
    single_k = model.without(at_k)[:, label]
    both = model.without(torch.cat([at_k[i], at_k[j]], 1))[:, label]
    matrix = single_k.new_zeros(len(words), len(words))
    matrix[i, j] = matrix[j, i] = whole - single_k[i] - single_k[j] + both
    return matrix


@torch.no_grad()
def counterfactual(state: CircuitState, row: int = 0, budget: int = 100_000) -> Counterfactual:
    """The smallest set of words whose removal changes the prediction of a row."""
    model = _Row(state, row)
    before = int(state.logits[row].argmax())
    found = _prune(model, _greedy(model, before), before)
    most = len(found) - 1 if found else len(model)
    searched = 0
    for size in range(1, most + 1):
        if math.comb(len(model), size) > budget:
            break
        sets = model.indices(itertools.combinations(range(len(model)), size), size)
        flips = (model.without(sets).argmax(-1) != before).nonzero()[:, 0]
        if len(flips):
            found, most = sets[flips[0]].tolist(), size - 1
            break
        searched = size
    after = int(model.without(model.indices([tuple(found)], len(found)))[0].argmax()) if found else before
    return Counterfactual(model.words_A[found].tolist(), before, after, searched, searched == most)


def _greedy(model: _Row, before: int) -> list[int]:
    """Indices of words removed one after the other until the prediction changes; none if it never does."""
    gone: list[int] = []
    left = list(range(len(model)))
    while left:
        logits = model.without(model.indices(((*gone, i) for i in left), len(gone) + 1))
        others = logits.clone()
        others[:, before] = float("-inf")
        margin = logits[:, before] - others.amax(-1)
        best = int(margin.argmin())
        gone.append(left.pop(best))
        if int(logits[best].argmax()) != before:
            return gone
    return []


def _prune(model: _Row, gone: list[int], before: int) -> list[int]:
    for word in list(gone):
        rest = [i for i in gone if i != word]
        if rest and int(model.without(model.indices([tuple(rest)], len(rest)))[0].argmax()) != before:
            gone = rest
    return gone
