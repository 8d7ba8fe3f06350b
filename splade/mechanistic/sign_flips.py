"""How often a word argues for a class in one text and against it in another: the signs of W_eff[c, j].

1. In every row where word j is active, W_eff[c, j] has the sign of the contribution, because s_j > 0.
2. Positive and negative signs are counted for each class and word; exact zeros count as neither.
3. A word flips for a class when both signs were seen. Its minority is the share of the rarer one: 0 is a word
   that always argues the same way, 0.5 one whose direction only the context decides.

Of two classes that exclude each other a word may argue for both, a little and more; the sign of one class's
weight is what is counted, not which class gains.

Legend: N rows, P active pairs, C classes, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from splade.mechanistic.attribution import compute_attribution_tensor
from splade.models.heads import Head
from splade.models.state import CircuitState

_LEAST = 2  # rows a word must be active in before it can flip


@dataclass(frozen=True)
class FlippingWord:
    """A word's signs for one class, over the rows where it was active."""

    word: str
    label: str
    positive: int
    negative: int
    minority: float


@dataclass(frozen=True)
class SignFlips:
    """Words active in two rows or more, and the share of them that flip: for any class, and for each.

    `mean_minority` is the share of signs, over all these words and classes, that are the rarer one of theirs.
    """

    rows: int
    words: int
    share: float
    by_class: dict[str, float]
    mean_minority: float
    most: list[FlippingWord]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


class SignFlipFitter:
    """Counts signs batch by batch."""

    def __init__(self, head: Head) -> None:
        C, V, device = head.classes, head.vocab_size, head.W_in.device
        self.rows = 0
        self._active_V = torch.zeros(V, dtype=torch.long, device=device)
        self._positive_CV = torch.zeros(C, V, dtype=torch.long, device=device)
        self._negative_CV = torch.zeros_like(self._positive_CV)

    @torch.no_grad()
    def update(self, state: CircuitState) -> None:
        """Count a batch of decided rows."""
        rows = state.rows
        self.rows += rows.n_rows
        word_P = rows.word_P[rows.open_P]
        sign_CP = compute_attribution_tensor(state).amount[rows.open_P].T.sign()
        self._active_V += torch.bincount(word_P, minlength=rows.vocab_size)
        self._positive_CV.index_add_(1, word_P, (sign_CP > 0).long())
        self._negative_CV.index_add_(1, word_P, (sign_CP < 0).long())

    def counts(self) -> tuple[Tensor, Tensor]:
        """Rows with a positive and with a negative weight, [C, V] each."""
        return self._positive_CV.clone(), self._negative_CV.clone()

    def result(self, names: Sequence[str], labels: Sequence[str], most: int = 20) -> SignFlips:
        """What was counted so far; `most` words that flip are named, the largest minority first."""
        ids_W = (self._active_V >= _LEAST).nonzero()[:, 0]
        positive_CW, negative_CW = self._positive_CV[:, ids_W], self._negative_CV[:, ids_W]
        fewer_CW = torch.minimum(positive_CW, negative_CW)
        flips_CW, seen_CW = fewer_CW > 0, positive_CW + negative_CW
        per_class = [_share(int(flips_W.sum()), len(ids_W)) for flips_W in flips_CW]
        return SignFlips(
            rows=self.rows,
            words=len(ids_W),
            share=_share(int(flips_CW.any(0).sum()), len(ids_W)),
            by_class=dict(zip(labels, per_class, strict=True)),
            mean_minority=_share(int(fewer_CW.sum()), int(seen_CW.sum())),
            most=self._named(ids_W, fewer_CW, names, labels, most),
        )

    def _named(
        self, ids_W: Tensor, fewer_CW: Tensor, names: Sequence[str], labels: Sequence[str], most: int
    ) -> list[FlippingWord]:
        """Flipping (word, class) pairs by minority; where it is equal, those seen more often come first."""
        found = []
        for c, w in fewer_CW.nonzero().tolist():
            j = int(ids_W[w])
            positive, negative = int(self._positive_CV[c, j]), int(self._negative_CV[c, j])
            minority = min(positive, negative) / (positive + negative)
            found.append(FlippingWord(names[j], labels[c], positive, negative, minority))
        found.sort(key=lambda f: (-f.minority, -(f.positive + f.negative), f.word, f.label))
        return found[:most]


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
