"""Do classes have reasons of their own? The circuit of each class, and how alike those of two classes are.

1. A class's centroid is the mean contribution of every word to it, over the rows predicted as it.
2. Of the A words that are active in any of these rows, the max(1, ceil(fraction · A)) with the largest |mean|
   are the class's circuit, ties broken by word id.
3. Two classes are compared by the cosine of their centroids, and by the Jaccard overlap of their circuits;
   0/0 is 0 in both.

Classes that were never predicted have no centroid and are left out.

Legend: N rows, P active pairs, C classes, V vocabulary, F fractions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from splade.circuits.core import circuit_size
from splade.evaluation.completeness import FRACTIONS
from splade.mechanistic.attribution import Attribution

SHOWN = 10


@dataclass(frozen=True)
class CircuitWord:
    """A word's mean contribution to a class."""

    word: str
    mean: float


@dataclass(frozen=True)
class ClassCircuit:
    """The first words of a class's circuit, out of `active` words of the `rows` rows predicted as it."""

    label: str
    rows: int
    active: int
    words: list[CircuitWord]


@dataclass(frozen=True)
class Overlap:
    """Jaccard overlap of circuits of one size, over all pairs of classes."""

    fraction: float
    mean_jaccard: float
    max_jaccard: float


@dataclass(frozen=True)
class Separation:
    """How alike classes are; without two classes there are no pairs to compare.

    `closest` are the two labels whose centroids are most alike.
    """

    mean_cosine: float | None
    max_cosine: float | None
    closest: list[str]
    jaccard: list[Overlap]
    circuits: list[ClassCircuit]


class SeparationFitter:
    """Accumulates attributions to the predicted class, batch by batch, in float64."""

    def __init__(
        self, names: Sequence[str], label_names: Sequence[str], fractions: Sequence[float] = FRACTIONS
    ) -> None:
        self._names, self._label_names, self._fractions = names, label_names, fractions
        C, V = len(label_names), len(names)
        self._sum_CV = torch.zeros(C, V, dtype=torch.double)
        self._active_CV = torch.zeros(C, V, dtype=torch.bool)
        self._rows_C = torch.zeros(C, dtype=torch.long)

    @torch.no_grad()
    def update(self, attribution: Attribution) -> None:
        """Count the rows of one attribution to predicted classes."""
        rows = attribution.state.rows
        assert attribution.classes is not None
        assert rows.vocab_size == len(self._names)
        self._rows_C += torch.bincount(attribution.classes, minlength=len(self._rows_C)).cpu()
        key_P = (attribution.classes[rows.row_P] * rows.vocab_size + rows.word_P).cpu()
        self._sum_CV.view(-1).index_add_(0, key_P, attribution.amount.double().cpu())
        self._active_CV.view(-1)[key_P[rows.open_P.cpu()]] = True

    def result(self) -> Separation:
        """The figures of everything counted so far."""
        seen_C = self._rows_C.nonzero()[:, 0]
        mean_CV = self._sum_CV[seen_C] / self._rows_C[seen_C, None]
        active_CV = self._active_CV[seen_C]
        rank_CV = _ranks(mean_CV, active_CV)
        parts = zip(seen_C.tolist(), mean_CV, active_CV.sum(1).tolist(), rank_CV, strict=True)
        circuits = [self._circuit(*part) for part in parts]
        if len(circuits) < 2:
            return Separation(None, None, [], [], circuits)
        one, other = torch.triu_indices(len(circuits), len(circuits), 1)
        unit_CV = F.normalize(mean_CV, dim=1)
        cosine = (unit_CV @ unit_CV.T)[one, other]
        best = int(cosine.argmax())
        closest = [circuits[int(one[best])].label, circuits[int(other[best])].label]
        overlaps = [_overlap(rank_CV, active_CV, fraction) for fraction in self._fractions]
        return Separation(float(cosine.mean()), float(cosine.max()), closest, overlaps, circuits)

    def _circuit(self, c: int, mean_V: Tensor, active: int, rank_V: Tensor) -> ClassCircuit:
        first = rank_V.argsort()[: min(SHOWN, active)].tolist()
        words = [CircuitWord(self._names[j], float(mean_V[j])) for j in first]
        return ClassCircuit(self._label_names[c], int(self._rows_C[c]), active, words)


def class_circuits(rank_CV: Tensor, active_CV: Tensor, fraction: float) -> Tensor:
    """Which words [C, V] are in the circuit of each class."""
    k_C = circuit_size(active_CV.sum(1), fraction)
    return active_CV & (rank_CV < k_C[:, None])


def _ranks(mean_CV: Tensor, active_CV: Tensor) -> Tensor:
    """Each word's place by descending |mean| in its class, active words first."""
    size_CV = torch.where(active_CV, mean_CV.abs(), -1.0)
    order_CV = size_CV.argsort(dim=1, descending=True, stable=True)
    return order_CV.argsort(dim=1)


def _overlap(rank_CV: Tensor, active_CV: Tensor, fraction: float) -> Overlap:
    circuit_CV = class_circuits(rank_CV, active_CV, fraction).double()
    both_CC, size_C = circuit_CV @ circuit_CV.T, circuit_CV.sum(1)
    either_CC = size_C[:, None] + size_C - both_CC
    one, other = torch.triu_indices(len(size_C), len(size_C), 1)
    jaccard = (both_CC / either_CC.clamp(min=1))[one, other]
    return Overlap(fraction, float(jaccard.mean()), float(jaccard.max()))
