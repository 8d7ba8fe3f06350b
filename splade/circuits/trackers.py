"""Running averages of training: each accumulates by `update` and is read, bias-corrected, by `value`.

    total ← decay · total + (1 - decay) · observed,   weight ← decay · weight + (1 - decay),   total / weight

Legend: N rows, P (row, word) pairs, V vocabulary, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from splade.models.state import SparseRows


class _Average:
    """An exponential average and the weight it has gathered; 0 where it has gathered none."""

    def __init__(self, total: Tensor, weight: Tensor, decay: float) -> None:
        assert 0 <= decay < 1
        self.total, self.weight, self.decay = total, weight, decay

    def value(self) -> Tensor:
        """The bias-corrected average."""
        return _corrected(self.total, self.weight)

    def state_dict(self) -> dict[str, Tensor]:
        """A copy of all that the average knows."""
        return {"total": self.total.clone(), "weight": self.weight.clone()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Continue from `state_dict()`, on this average's own device."""
        assert state["total"].shape == self.total.shape, "the average of another model"
        self.total = state["total"].to(self.total.device, copy=True)
        self.weight = state["weight"].to(self.weight.device, copy=True)

    def _mixed(self, observed: Tensor, decay: Tensor) -> tuple[Tensor, Tensor]:
        """Total and weight after `observed`; where `decay` is 1 they stay as they were."""
        total = torch.lerp(observed, self.total, decay)
        return total, torch.lerp(torch.ones_like(self.weight), self.weight, decay)


class Centroids(_Average):
    """The mean attribution [V] of each class, over the batches that had rows of it."""

    def __init__(self, classes: int, vocab_size: int, decay: float = 0.9) -> None:
        super().__init__(torch.zeros(classes, vocab_size), torch.zeros(classes, 1), decay)

    @property
    def present_C(self) -> Tensor:
        """Classes that have had a row."""
        return self.weight[:, 0] > 0

    def to(self, device: torch.device | str) -> Centroids:
        """Move to a device."""
        self.total, self.weight = self.total.to(device), self.weight.to(device)
        return self

    @torch.no_grad()
    def update(self, rows: SparseRows, attribution_P: Tensor, labels_N: Tensor) -> None:
        """Take one batch: row n is of class `labels_N[n]`."""
        self.total, self.weight = self._mixed(*self._means(rows, attribution_P, labels_N))

    def mixed(self, rows: SparseRows, attribution_P: Tensor, labels_N: Tensor) -> Tensor:
        """What `value` would be after `update`, the batch entering with its gradient; changes nothing."""
        return _corrected(*self._mixed(*self._means(rows, attribution_P, labels_N)))

    def _means(self, rows: SparseRows, attribution_P: Tensor, labels_N: Tensor) -> tuple[Tensor, Tensor]:
        """The batch's mean attribution of each class [C, V], and each class's decay [C, 1]."""
        # not bincount, which makes the host wait for the largest label
        count_C = torch.zeros(len(self.total), dtype=torch.long, device=labels_N.device)
        count_C1 = count_C.scatter_add_(0, labels_N, torch.ones_like(labels_N))[:, None]
        place = (labels_N[rows.row_P], rows.word_P)
        sum_CV = torch.zeros_like(self.total).index_put(
            place, attribution_P.to(self.total.dtype), accumulate=True
        )
        return sum_CV / count_C1.clamp(min=1), torch.where(count_C1 > 0, self.decay, 1.0)


class Frequencies(_Average):
    """The share of rows in which each word [V] is active."""

    def __init__(self, vocab_size: int, decay: float = 0.99) -> None:
        super().__init__(torch.zeros(vocab_size), torch.zeros(()), decay)

    def to(self, device: torch.device | str) -> Frequencies:
        """Move to a device."""
        self.total, self.weight = self.total.to(device), self.weight.to(device)
        return self

    @torch.no_grad()
    def update(self, rows: SparseRows) -> None:
        """Take one batch; one without rows shows nothing."""
        if rows.n_rows == 0:
            return
        count_V = rows.word_counts()
        decay = torch.full_like(self.weight, self.decay)
        self.total, self.weight = self._mixed(count_V / rows.n_rows, decay)


def _corrected(total: Tensor, weight: Tensor) -> Tensor:
    return total / torch.where(weight > 0, weight, 1.0)
