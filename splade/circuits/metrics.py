"""Scores of predictions: accuracy of labels, and entities found by the rules of conlleval."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from splade.data.tagging import spans


@dataclass(frozen=True)
class EntityScore:
    """Precision, recall and F1 of entities; 0 where nothing was predicted or nothing was there."""

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
    found = Counter(_entities(predicted))
    there = Counter(_entities(gold))
    kinds = sorted({kind for *_, kind in there} | {kind for *_, kind in found})
    scores = {"micro": _score(found, there)}
    for kind in kinds:
        scores[kind] = _score(_only(found, kind), _only(there, kind))
    return scores


def token_accuracy(predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> float:
    """Share of words with the right tag."""
    pairs = [(p, g) for ps, gs in zip(predicted, gold, strict=True) for p, g in zip(ps, gs, strict=True)]
    return accuracy([p for p, _ in pairs], [g for _, g in pairs])


_Entities = Counter[tuple[int, int, int, str]]


def _entities(tag_lists: Sequence[Sequence[str]]) -> list[tuple[int, int, int, str]]:
    return [(row, *span) for row, tags in enumerate(tag_lists) for span in spans(tags)]


def _only(entities: _Entities, kind: str) -> _Entities:
    return Counter({entity: n for entity, n in entities.items() if entity[-1] == kind})


def _score(found: _Entities, there: _Entities) -> EntityScore:
    right, n_found, n_there = (found & there).total(), found.total(), there.total()
    precision, recall = right / max(n_found, 1), right / max(n_there, 1)
    f1 = 2 * precision * recall / (precision + recall) if right else 0.0
    return EntityScore(precision, recall, f1, n_there)
