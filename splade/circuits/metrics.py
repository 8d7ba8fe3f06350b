"""Scores of predictions: accuracy and F1 of labels, and entities found by the rules of conlleval.

Legend: C classes, V vocabulary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from torch import Tensor

from splade.data.tagging import spans

_Counted = TypeVar("_Counted", bound=tuple[object, ...])


@dataclass(frozen=True)
class EntityScore:
    """Precision, recall and F1 of entities or labels; 0 where nothing was predicted or nothing was there."""

    precision: float
    recall: float
    f1: float
    support: int


def accuracy(predicted: Sequence[object], gold: Sequence[object]) -> float:
    """Share of equal pairs."""
    assert len(predicted) == len(gold)
    return sum(p == g for p, g in zip(predicted, gold, strict=True)) / max(len(gold), 1)


def entity_scores(
    predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]
) -> dict[str, EntityScore]:
    """Scores over all entities (`micro`) and of each type; an entity counts if span and type are right."""
    found, there = Counter(_entities(predicted)), Counter(_entities(gold))
    micro, scores = _scores(found, there)
    return {"micro": micro, **{kind: scores[kind] for kind in sorted(scores)}}


def label_scores(
    predicted: Sequence[Sequence[int]], gold: Sequence[Sequence[int]], classes: int
) -> tuple[EntityScore, list[EntityScore]]:
    """Scores over all pairs of a text and one of its labels (micro), and of each class."""
    found = Counter((row, c) for row, labels in enumerate(predicted) for c in labels)
    there = Counter((row, c) for row, labels in enumerate(gold) for c in labels)
    micro, scores = _scores(found, there)
    return micro, [scores.get(c, _score(0, 0, 0)) for c in range(classes)]


def effective_vocabulary(mass_CV: Tensor) -> Tensor:
    """exp(entropy) of each class's positive mass over words [C]; 1 where there is none."""
    share_CV = mass_CV / mass_CV.sum(1, keepdim=True).clamp(min=1e-30)
    entropy_C = -(share_CV * share_CV.clamp(min=1e-30).log()).sum(1)
    return entropy_C.exp()


def token_accuracy(predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> float:
    """Share of words with the right tag."""
    pairs = [(p, g) for ps, gs in zip(predicted, gold, strict=True) for p, g in zip(ps, gs, strict=True)]
    return accuracy([p for p, _ in pairs], [g for _, g in pairs])


def _entities(tag_lists: Sequence[Sequence[str]]) -> list[tuple[int, int, int, str]]:
    return [(row, *span) for row, tags in enumerate(tag_lists) for span in spans(tags)]


def _scores(found: Counter[_Counted], there: Counter[_Counted]) -> tuple[EntityScore, dict[Any, EntityScore]]:
    """Over all, and for each kind, which is the last part of what is counted."""
    of_kind = [_kinds(found & there), _kinds(found), _kinds(there)]
    micro = _score(*(counts.total() for counts in of_kind))
    kinds = of_kind[1].keys() | of_kind[2].keys()
    return micro, {kind: _score(*(counts[kind] for counts in of_kind)) for kind in kinds}


def _kinds(counted: Counter[_Counted]) -> Counter[object]:
    counts: Counter[object] = Counter()
    for one, n in counted.items():
        counts[one[-1]] += n
    return counts


def _score(right: int, n_found: int, n_there: int) -> EntityScore:
    precision, recall = right / max(n_found, 1), right / max(n_there, 1)
    f1 = 2 * precision * recall / (precision + recall) if right else 0.0
    return EntityScore(precision, recall, f1, n_there)
