"""How sure a mean over texts is: percentile bootstrap, 95 %.

1. Whole texts are drawn with replacement, as many as there are; rows of one text (its labelled positions when
   tagging) come and go together.
2. A draw's mean is the sum of its rows' values over their number.
3. The interval lies between the 2.5th and the 97.5th percentile of the draws' means.

All figures of one call share their draws, and equal seeds draw alike. Texts are taken by ascending number, so
the order in which batches came changes nothing.

Legend: N rows, T texts, F figures, M draws.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from splade.data.encoding import Batch
from splade.evaluation.seeds import DRAWS, Difference
from splade.inference.rows import document_of_row

_TAILS = (0.025, 0.975)
_WEIGHTS_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class Interval:
    """A mean with its 95 % interval; zeros when there was nothing to average."""

    mean: float
    low: float
    high: float


def intervals(
    values_NF: ArrayLike, texts_N: ArrayLike | None = None, draws: int = DRAWS, seed: int = 0
) -> list[Interval]:
    """The mean of each column; without `texts_N` every row is a text."""
    sums_TF, rows_T = _by_text(values_NF, texts_N)
    if not len(rows_T):
        return [Interval(0.0, 0.0, 0.0) for _ in range(sums_TF.shape[1])]
    means_MF = _means(sums_TF, rows_T, draws, seed)
    bounds = np.quantile(means_MF, _TAILS, axis=0)
    columns = zip(sums_TF.sum(0) / rows_T.sum(), *bounds, strict=True)
    return [Interval(float(mean), float(low), float(high)) for mean, low, high in columns]


def paired_difference(
    first_N: ArrayLike,
    second_N: ArrayLike,
    texts_N: ArrayLike | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> Difference | None:
    """How much larger the first mean is on the same rows; None where they are not the same, or none."""
    first, second = np.asarray(first_N, dtype=np.float64), np.asarray(second_N, dtype=np.float64)
    if not len(first) or first.shape != second.shape:
        return None
    sums_TF, rows_T = _by_text((first - second)[:, None], texts_N)
    gaps_M = _means(sums_TF, rows_T, draws, seed)[:, 0]
    low, high = np.quantile(gaps_M, _TAILS)
    tail = min(int((gaps_M <= 0).sum()), int((gaps_M >= 0).sum()))
    p = min(1.0, 2 * (tail + 1) / (draws + 1))
    return Difference(float(sums_TF.sum() / rows_T.sum()), float(low), float(high), p, len(rows_T))


def text_of_row(batch: Batch) -> Tensor:
    """Which example each row of a batch belongs to, [N]."""
    example_B = torch.tensor(batch.indices, dtype=torch.long)
    document_N = document_of_row(batch)
    return example_B if document_N is None else example_B[document_N.cpu()]


class TextNumbers:
    """Collects the text of every row; rows that come without one are texts of their own."""

    def __init__(self) -> None:
        self._parts = [torch.empty(0, dtype=torch.long)]
        self._count = 0

    def update(self, rows: int, texts_N: Tensor | None = None) -> None:
        """Note the texts of a batch's rows."""
        own_N = torch.arange(self._count, self._count + rows)
        self._parts.append(own_N if texts_N is None else texts_N.cpu())
        self._count += rows

    def result(self) -> NDArray[np.int64]:
        """The text of every row [N] so far."""
        numbers: NDArray[np.int64] = torch.cat(self._parts).numpy()
        return numbers


def _by_text(
    values_NF: ArrayLike, texts_N: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sums [T, F] over the rows of each text, and how many rows [T] it has."""
    values = np.asarray(values_NF, dtype=np.float64)
    if texts_N is None:
        return values, np.ones(len(values))
    texts, slot_N = np.unique(np.asarray(texts_N), return_inverse=True)
    sums_TF = np.zeros((len(texts), values.shape[1]))
    np.add.at(sums_TF, slot_N, values)
    return sums_TF, np.bincount(slot_N, minlength=len(texts)).astype(np.float64)


def _means(
    sums_TF: NDArray[np.float64], rows_T: NDArray[np.float64], draws: int, seed: int
) -> NDArray[np.float64]:
    """The mean [M, F] of every draw."""
    drawn = _drawn(len(rows_T), draws, seed)
    return np.concatenate([often_mT @ sums_TF / (often_mT @ rows_T)[:, None] for often_mT in drawn])


def _drawn(texts: int, draws: int, seed: int) -> Iterator[NDArray[np.float64]]:
    """How often [m, T] each text is in each draw, a bounded number of draws at a time."""
    maker = np.random.default_rng(seed)
    at_once = max(1, _WEIGHTS_AT_ONCE // texts)
    for start in range(0, draws, at_once):
        m = min(at_once, draws - start)
        place_mT = maker.integers(0, texts, (m, texts)) + np.arange(m)[:, None] * texts
        yield np.bincount(place_mT.ravel(), minlength=m * texts).reshape(m, texts).astype(np.float64)
