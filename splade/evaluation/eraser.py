"""Do the words that an explainer names carry the decision? ERASER's two questions, at the bottleneck.

Words of a row are ranked by a score [P], largest first, ties by word id; removing one sets its s_j to 0. The
first k = max(1, ceil(fraction · A)) of A active words are named, and p is the probability of the row's class:

    comprehensiveness   p(s) - p(s without the named words)    large where they were needed
    sufficiency         p(s) - p(the named words alone)        small, or negative, where they are enough
    AOPC                the mean of either over all fractions

Signs count: a word that speaks against the class is named last. Give |score| to rank by size. A row without
active words loses nothing, and both its gaps are 0.

Sets of growing size are nested, so each word is projected once, into the smallest set that names it, and the
sets' projections are running sums: from the front of what stays, from the back of what is left.

Legend: N rows, P active pairs, K sizes or fractions, C classes, D head width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from splade.circuits.core import circuit_size
from splade.circuits.prediction import probabilities
from splade.evaluation.intervals import Interval, TextNumbers, intervals
from splade.models.state import CircuitState, SparseRows

FRACTIONS = (0.01, 0.05, 0.1, 0.2, 0.5)

Target = Literal["predicted", "gold"]


@dataclass(frozen=True)
class Erasure:
    """What naming one share of the active words shows."""

    fraction: float
    comprehensiveness: Interval
    sufficiency: Interval


@dataclass(frozen=True)
class Eraser:
    """Figures of one explainer for the `target` class of each of `rows` rows; `empty` had no active words."""

    explainer: str
    target: Target
    rows: int
    empty: int
    aopc_comprehensiveness: Interval
    aopc_sufficiency: Interval
    at: list[Erasure]


@dataclass(frozen=True)
class ErasureRows:
    """Both gaps [N, K] of every row, and its text [N], for tests that pair explainers on the same rows."""

    comprehensiveness_NK: NDArray[np.float64]
    sufficiency_NK: NDArray[np.float64]
    text_N: NDArray[np.int64]


class EraserFitter:
    """Accumulates one explainer's scores, batch by batch."""

    def __init__(
        self,
        explainer: str,
        target: Target,
        multi_label: bool = False,
        temperature: float = 1.0,
        fractions: Sequence[float] = FRACTIONS,
    ) -> None:
        self.explainer, self.target, self.fractions = explainer, target, sorted(fractions)
        self._multi_label, self._temperature = multi_label, temperature
        self._needed = [torch.empty(0, len(fractions), dtype=torch.double)]
        self._enough = [torch.empty(0, len(fractions), dtype=torch.double)]
        self._texts, self._empty = TextNumbers(), 0

    @torch.no_grad()
    def update(
        self, state: CircuitState, scores_P: Tensor, classes_N: Tensor, texts_N: Tensor | None = None
    ) -> None:
        """Count rows by what pairs score for one class a row; `texts_N` says which text a row belongs to."""
        alone_NKC, without_NKC = nested_logits(state, scores_P, circuit_sizes(state.rows, self.fractions))
        whole_N1 = self._probability(state.logits[:, None], classes_N)
        self._needed.append((whole_N1 - self._probability(without_NKC, classes_N)).cpu())
        self._enough.append((whole_N1 - self._probability(alone_NKC, classes_N)).cpu())
        self._texts.update(state.rows.n_rows, texts_N)
        self._empty += int((state.rows.active_N == 0).sum())

    def rows(self) -> ErasureRows:
        """What was measured of each row so far, in the order they came."""
        return ErasureRows(
            torch.cat(self._needed).numpy(), torch.cat(self._enough).numpy(), self._texts.result()
        )

    def result(self) -> Eraser:
        """The means of everything counted so far, smallest fractions first."""
        rows, K = self.rows(), len(self.fractions)
        gaps = (rows.comprehensiveness_NK, rows.sufficiency_NK)
        found = intervals(np.hstack([*gaps, *(gap.mean(1, keepdims=True) for gap in gaps)]), rows.text_N)
        at = [Erasure(*figures) for figures in zip(self.fractions, found[:K], found[K : 2 * K], strict=True)]
        needed, enough = found[2 * K :]
        return Eraser(self.explainer, self.target, len(rows.text_N), self._empty, needed, enough, at)

    def _probability(self, logits_NKC: Tensor, classes_N: Tensor) -> Tensor:
        """The probability [N, K] of each row's class."""
        found_NKC = probabilities(logits_NKC, self._multi_label, self._temperature)
        return found_NKC[torch.arange(len(classes_N), device=classes_N.device), :, classes_N]


def circuit_sizes(rows: SparseRows, fractions: Sequence[float]) -> Tensor:
    """max(1, ceil(fraction · A)) words of each row, [N, K]."""
    share_K = torch.tensor(fractions, dtype=torch.double, device=rows.row_P.device)
    return circuit_size(rows.active_N[:, None], share_K)


def ranks(rows: SparseRows, score_P: Tensor) -> Tensor:
    """Each pair's place [P] in its row, the highest score first, closed pairs last."""
    assert score_P.shape == rows.word_P.shape
    return rows.ranks(torch.where(rows.open_P, score_P, -torch.inf))


@torch.no_grad()
def nested_logits(state: CircuitState, score_P: Tensor, size_NK: Tensor) -> tuple[Tensor, Tensor]:
    """Logits [N, K, C] of each row's `size` highest words alone, and of the row without them.

    Sizes ascend along K.
    """
    rows, head = state.rows, state.head
    N, K = size_NK.shape
    smallest_P = (ranks(rows, score_P)[:, None] >= size_NK[rows.row_P]).sum(-1)  # K: no set names the word
    parts = _regrouped(rows, rows.row_P * (K + 1) + smallest_P, N * (K + 1))
    u = head.project(parts)
    u_KND = u.view(N, K + 1, u.shape[-1]).unbind(1)
    square_KN = head.square_norm(parts).view(N, K + 1).unbind(1)
    alone = head.rest(_running(u_KND[:-1]), _running(square_KN[:-1]))
    without = head.rest(_running(u_KND[:0:-1]).flip(1), _running(square_KN[:0:-1]).flip(1))
    return alone, without


def _regrouped(rows: SparseRows, group_P: Tensor, groups: int) -> SparseRows:
    """The same pairs as rows of `groups` groups."""
    order = torch.argsort(group_P, stable=True)
    place_P = torch.argsort(order)
    return replace(
        rows,
        row_P=group_P[order],
        word_P=rows.word_P[order],
        value_P=rows.value_P[order],
        logit_P=rows.logit_P[order],
        source_pair_Q=place_P[rows.source_pair_Q],
        n_rows=groups,
    )


def _running(parts: Sequence[Tensor]) -> Tensor:
    """Running sums of [N, ...] parts, stacked as [N, K, ...]; in order, so that they repeat to the bit."""
    return torch.stack(list(accumulate(parts)), 1)
