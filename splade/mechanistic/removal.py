"""What happens when several words go at once: interactions, and the smallest set that flips a prediction.

    interaction_jk = logit(s) - logit(s without j) - logit(s without k) + logit(s without j and k)

Counterfactuals are found in three steps, every candidate re-evaluated exactly by the head:

1. Greedy: remove the word that lowers the margin of the prediction most, until the prediction changes.
2. Prune: give back every word without which the prediction stays changed.
3. Prove: try all smaller sets, smallest first, while their number stays within a budget.

Legend: A active words of one row, M sets of words, D head width, C classes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

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
    """One row's head with words taken out: u - Σ s_j W_in[j]."""

    def __init__(self, state: CircuitState, row: int) -> None:
        rows, head = state.rows, state.head
        mine = (rows.row_P == row) & (rows.value_P > 0)
        self.head = head
        self.words_A, value_A = rows.word_P[mine], rows.value_P[mine]
        self.part_AD = value_A[:, None] * head.projection()[self.words_A]
        self.square_A = value_A**2
        self.u_D, self.square = self.part_AD.sum(0), self.square_A.sum()

    def __len__(self) -> int:
        return len(self.words_A)

    def without(self, sets_Mk: Tensor) -> Tensor:
        """Logits [M, C] after the words at `sets_Mk` (indices into the active words) are gone."""
        logits = [
            self.head.rest(
                self.u_D - self.part_AD[chunk].sum(1), (self.square - self.square_A[chunk].sum(1)).clamp(min=0)
            )
            for chunk in torch.split(sets_Mk, _SETS_AT_ONCE)
        ]
        return torch.cat(logits)

    def indices(self, sets: Iterable[tuple[int, ...]], size: int) -> Tensor:
        flat = list(itertools.chain.from_iterable(sets))
        return torch.tensor(flat, dtype=torch.long, device=self.words_A.device).view(-1, size)


@torch.no_grad()
def interactions(state: CircuitState, row: int, label: int, words: list[int]) -> Tensor:
    """Pairwise interactions [k, k] of some active words of a row for one class; the diagonal is 0."""
    model = _Row(state, row)
    place = {word: i for i, word in enumerate(model.words_A.tolist())}
    at = [place[word] for word in words]
    whole = model.without(torch.zeros(1, 0, dtype=torch.long, device=state.logits.device))
    single = model.without(model.indices(((i,) for i in at), 1))[:, label]
    pairs = model.without(model.indices(itertools.product(at, at), 2))[:, label].view(len(at), len(at))
    matrix: Tensor = whole[0, label] - single[:, None] - single[None, :] + pairs
    return matrix.fill_diagonal_(0.0)


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
