"""Seeded, stratified subsets of labelled items.

1. An item is the set of marks it carries (a text: its class; a sentence: its entity types).
2. For every mark one item is kept for certain, so that no subset loses a class.
3. The other items are ordered by their rarest mark, shuffled within it, and every n-th is set aside.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence

from splade.errors import ConfigError

Marks = frozenset[str]


def set_aside(items: Sequence[Marks], count: int, rng: random.Random) -> tuple[list[int], list[int]]:
    """Positions kept and positions set aside, each ascending.

    Exactly `count` items go aside, or all that can go while every mark keeps an item.
    """
    order = list(range(len(items)))
    rng.shuffle(order)
    pinned = _one_per_mark(items, order)
    frequency = Counter(mark for marks in items for mark in marks)
    rarest = [min((frequency[mark], mark) for mark in marks) if marks else (0, "") for marks in items]
    free = sorted((i for i in order if i not in pinned), key=lambda i: rarest[i])
    count = min(count, len(free))
    start = rng.randrange(len(free) or 1)
    aside = sorted(free[(k * len(free) + start) // count] for k in range(count))
    chosen = set(aside)
    return [i for i in range(len(items)) if i not in chosen], aside


def sample(items: Sequence[Marks], limit: int, seed: int) -> list[int]:
    """Positions of `limit` items in the proportions of all of them, every mark among them."""
    kept, _ = set_aside(items, max(0, len(items) - limit), random.Random(seed))
    if len(kept) > limit:
        raise ConfigError(
            f"a limit of {limit} training rows leaves a class without any; set it to {len(kept)} or more"
        )
    return kept


def hold_out(
    items: Sequence[Marks], keys: Sequence[Hashable], share: float, seed: int
) -> tuple[list[int], list[int]]:
    """Positions for training and for validation; items with equal keys stay together.

    Keys with more items than validation is to have stay in training.
    """
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for position, key in enumerate(keys):
        groups[key].append(position)
    members = [group for group in groups.values() if len(group) <= max(1, share * len(items))]
    marks = [frozenset[str]().union(*(items[i] for i in group)) for group in members]
    count = max(1, round(share * len(members))) if share else 0
    _, aside = set_aside(marks, count, random.Random(seed))
    held = {i for group in aside for i in members[group]}
    return [i for i in range(len(items)) if i not in held], sorted(held)


def _one_per_mark(items: Sequence[Marks], order: list[int]) -> set[int]:
    """The first item in `order` that carries each mark."""
    first: dict[str, int] = {}
    for position in order:
        for mark in items[position]:
            first.setdefault(mark, position)
    return set(first.values())
