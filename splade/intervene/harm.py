"""What removals are to bring down, as one number that every candidate can be tried on.

    PairGap        what a word does to a prediction, over pairs of texts that differ in it alone
    ProbeLeakage   how well a linear probe on s tells texts about a concept from others

Legend: N texts, V dimensions, A words active somewhere, F folds, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from torch import Tensor

from splade.circuits.prediction import probabilities
from splade.intervene.cached import Cached
from splade.models.lexical_sae import LexicalSAE

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FOLDS = 5


class Harm(Protocol):
    """Something that removals are to bring down."""

    def now(self) -> float:
        """How much of it is left."""

    def without_each(self, sets: Sequence[Sequence[int]]) -> list[float]:
        """How much would be left without the words of each set by itself."""

    def remove(self, ids: Sequence[int]) -> None:
        """Take words out for good."""

    def suspects(self, most: int) -> list[int]:
        """The words that carry most of it, each by itself."""


class PairGap:
    """|mean of P(label | first text) - P(label | second text)| over pairs of texts."""

    def __init__(self, model: LexicalSAE, pairs: Sequence[tuple[str, str]], label: int) -> None:
        self._texts = Cached.read(model, sides(pairs))
        self._label, self._temperature = label, model.config.temperature

    def now(self) -> float:
        return self._gap(self._texts.logits())

    def without_each(self, sets: Sequence[Sequence[int]]) -> list[float]:
        return [self._gap(logits_NC) for logits_NC in self._texts.without_each(sets)]

    def remove(self, ids: Sequence[int]) -> None:
        self._texts = self._texts.without(ids)

    def suspects(self, most: int) -> list[int]:
        words = self._telling()
        ranked = sorted(zip(self.without_each([[j] for j in words]), words, strict=True))
        now = self.now()
        return [j for gap, j in ranked[:most] if gap < now]

    def _telling(self) -> list[int]:
        """Words that tell a pair's texts apart: half of their activation is on one side only."""
        s_NV = self._texts.matrix()
        first_NV, second_NV = s_NV[: s_NV.shape[0] // 2], s_NV[s_NV.shape[0] // 2 :]
        both_V = np.asarray((first_NV + second_NV).sum(0))[0]
        apart_V = np.asarray(abs(first_NV - second_NV).sum(0))[0]
        return [int(j) for j in np.flatnonzero((both_V > 0) & (2 * apart_V >= both_V))]

    def _gap(self, logits_NC: Tensor) -> float:
        return abs(float(pair_gaps(logits_NC, self._label, self._temperature).mean()))


def sides(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """All first texts, then all second ones."""
    return [pair[side] for side in (0, 1) for pair in pairs]


def pair_gaps(logits_NC: Tensor, label: int, temperature: float = 1.0) -> Tensor:
    """P(label | first) - P(label | second) of each pair, of texts in the order of `sides`."""
    first_N, second_N = probabilities(logits_NC, False, temperature)[:, label].chunk(2)
    return first_N - second_N


class ProbeLeakage:
    """Area under the ROC curve of a probe that tells texts about a concept, each text out of its fold.

    It is 0.5 at the least, which is guessing. The probe is fitted anew after each removal; what one more word
    tells is taken from its weights.
    """

    def __init__(self, texts: Cached, about_N: NDArray[np.bool_], seed: int = 0) -> None:
        self._s_NV, self._about_N, self._seed = _scaled(texts.matrix()), about_N, seed
        self._fit()

    def now(self) -> float:
        return self._measure(self._score_N)

    def without_each(self, sets: Sequence[Sequence[int]]) -> list[float]:
        by_word = self._s_NV.tocsc()
        return [self._measure(self._score_N - self._told(by_word, ids)) for ids in sets]

    def remove(self, ids: Sequence[int]) -> None:
        kept_V = np.ones(self._s_NV.shape[1])
        kept_V[list(ids)] = 0
        self._s_NV = self._s_NV.multiply(kept_V).tocsr()
        self._s_NV.eliminate_zeros()
        self._fit()

    def suspects(self, most: int) -> list[int]:
        mean_V = self._weight_FV.mean(0)
        return [int(j) for j in np.argsort(-mean_V)[:most] if mean_V[j] > 0]

    def _measure(self, score_N: NDArray[np.float64]) -> float:
        return max(0.5, _area(score_N, self._about_N))  # below it a probe guesses too

    def _told(self, by_word: Any, ids: Sequence[int]) -> NDArray[np.float64]:
        """What some words add to the score of each text."""
        told_N = np.zeros(len(self._score_N))
        for j in ids:
            mine = slice(by_word.indptr[j], by_word.indptr[j + 1])
            texts = by_word.indices[mine]
            told_N[texts] += by_word.data[mine] * self._weight_FV[self._fold_N[texts], j]
        return told_N

    def _fit(self) -> None:
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import StratifiedKFold

        N, V = self._s_NV.shape
        self._fold_N, self._score_N = np.zeros(N, dtype=np.int64), np.zeros(N)
        self._weight_FV = np.zeros((_FOLDS, V))
        active_A = np.flatnonzero(self._s_NV.getnnz(axis=0))
        if not len(active_A):
            return
        s_NA = self._s_NV[:, active_A]
        folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=self._seed)
        for fold, (seen, held) in enumerate(folds.split(s_NA, self._about_N)):
            probe = LogisticRegression(class_weight="balanced", max_iter=1000)
            probe.fit(s_NA[seen], self._about_N[seen])
            self._fold_N[held] = fold
            self._score_N[held] = probe.decision_function(s_NA[held])
            self._weight_FV[fold, active_A] = probe.coef_[0]


def _scaled(s_NV: Any) -> Any:
    """Each word divided by its largest value."""
    most_V = s_NV.max(axis=0).toarray()[0]
    return s_NV.multiply(1 / np.where(most_V > 0, most_V, 1.0)).tocsr()


def _area(score_N: NDArray[np.float64], about_N: NDArray[np.bool_]) -> float:
    """Area under the ROC curve; a tie is half."""
    from scipy.stats import rankdata

    n, m = int(about_N.sum()), int((~about_N).sum())
    return float((rankdata(score_N)[about_N].sum() - n * (n + 1) / 2) / (n * m))
