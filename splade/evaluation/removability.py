"""Can the decision be taken away with the words that an explainer names? Flip rates, at the bottleneck.

The k words of a row with the highest scores go (s_j = 0), all of them where there are fewer, and the head
decides again. A row flips when its class changes, or, with several labels a text, its set of labels. A row
without active words cannot flip, and counts.

Legend: N rows, P active pairs, K numbers of words, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from splade.evaluation.eraser import nested_logits
from splade.evaluation.intervals import Interval, TextNumbers, intervals
from splade.models.state import CircuitState

KS = (1, 2, 3, 5, 10)


@dataclass(frozen=True)
class Flips:
    """The share of rows whose decision changes when `k` words go."""

    k: int
    rate: Interval


@dataclass(frozen=True)
class Removability:
    """Flip rates of one explainer over `rows` rows, fewest words first."""

    explainer: str
    rows: int
    at: list[Flips]


class RemovabilityFitter:
    """Accumulates one explainer's scores for the predicted class, batch by batch."""

    def __init__(self, explainer: str, multi_label: bool = False, ks: Sequence[int] = KS) -> None:
        self.explainer, self.ks = explainer, sorted(ks)
        self._multi_label = multi_label
        self._flipped = [torch.empty(0, len(ks), dtype=torch.bool)]
        self._texts = TextNumbers()

    @torch.no_grad()
    def update(self, state: CircuitState, scores_P: Tensor, texts_N: Tensor | None = None) -> None:
        """Count rows by what pairs score; `texts_N` says which text a row belongs to."""
        size_K = torch.tensor(self.ks, device=scores_P.device)
        _, without_NKC = nested_logits(state, scores_P, size_K.expand(state.rows.n_rows, -1))
        self._flipped.append(self._changed(state.logits[:, None], without_NKC).cpu())
        self._texts.update(state.rows.n_rows, texts_N)

    def rows(self) -> Tensor:
        """Which rows flip at which k, [N, K], in the order they came."""
        return torch.cat(self._flipped)

    def result(self) -> Removability:
        """The rates of everything counted so far."""
        flipped_NK = self.rows()
        rates = intervals(flipped_NK.double().numpy(), self._texts.result())
        at = [Flips(k, rate) for k, rate in zip(self.ks, rates, strict=True)]
        return Removability(self.explainer, len(flipped_NK), at)

    def _changed(self, whole_N1C: Tensor, without_NKC: Tensor) -> Tensor:
        if self._multi_label:
            return ((whole_N1C >= 0) != (without_NKC >= 0)).any(-1)
        return whole_N1C.argmax(-1) != without_NKC.argmax(-1)
