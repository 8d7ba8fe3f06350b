"""Subsets have the size asked for, the proportions of the whole, and lose no class."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splade.data.sampling import Marks, hold_out, sample, set_aside
from splade.errors import ConfigError

some_items = st.lists(st.frozensets(st.sampled_from("ABCD"), max_size=3), max_size=60)
seeds = st.integers(0, 2**32)


def classes(items: list[Marks]) -> set[str]:
    return {mark for marks in items for mark in marks}


def labels(text: str) -> list[Marks]:
    """One item a letter."""
    return [frozenset(letter) for letter in text]


@given(items=some_items, count=st.integers(0, 70), seed=seeds)
def test_the_parts_share_the_items_and_every_class_keeps_one(
    items: list[Marks], count: int, seed: int
) -> None:
    kept, aside = set_aside(items, count, random.Random(seed))
    assert sorted(kept + aside) == list(range(len(items)))
    assert (kept, aside) == (sorted(kept), sorted(aside))
    assert classes([items[i] for i in kept]) == classes(items)
    assert len(aside) <= count


@given(items=some_items, seed=seeds)
def test_exactly_the_count_goes_aside_where_it_can(items: list[Marks], seed: int) -> None:
    most = len(items) - len(classes(items))  # at most one item is pinned for each class
    for count in range(max(0, most) + 1):
        assert len(set_aside(items, count, random.Random(seed))[1]) == count


@given(numbers=st.lists(st.integers(1, 80), min_size=1, max_size=4), share=st.floats(0.05, 0.95), seed=seeds)
def test_each_class_is_set_aside_in_its_proportion(numbers: list[int], share: float, seed: int) -> None:
    items = labels("".join(letter * number for letter, number in zip("ABCD", numbers, strict=False)))
    count = round(share * len(items))
    _, aside = set_aside(items, count, random.Random(seed))
    taken = Counter(next(iter(items[i])) for i in aside)
    free = len(items) - len(numbers)  # one item of each class is pinned
    for letter, number in zip("ABCD", numbers, strict=False):
        expected = min(count, free) * (number - 1) / max(free, 1)
        assert abs(taken[letter] - expected) <= 1


@given(items=some_items, limit=st.integers(0, 60), seed=seeds)
def test_a_sample_has_its_size_and_every_class(items: list[Marks], limit: int, seed: int) -> None:
    limit = max(limit, len(classes(items)))  # so many always suffice
    chosen = sample(items, limit, seed)
    assert len(chosen) == min(limit, len(items))
    assert classes([items[i] for i in chosen]) == classes(items)


def test_a_refused_limit_names_one_that_works() -> None:
    with pytest.raises(ConfigError, match="set it to 3 or more"):
        sample(labels("AAABC"), 2, 0)
    assert len(sample(labels("AAABC"), 3, 0)) == 3


@given(
    items=some_items.filter(bool),
    data=st.data(),
    share=st.floats(0, 0.9),
    seed=seeds,
)
def test_items_with_one_key_stay_together(
    items: list[Marks], data: st.DataObject, share: float, seed: int
) -> None:
    keys = data.draw(st.lists(st.integers(0, 12), min_size=len(items), max_size=len(items)))
    kept, held = hold_out(items, keys, share, seed)
    assert sorted(kept + held) == list(range(len(items)))
    assert not {keys[i] for i in kept} & {keys[i] for i in held}
    assert classes([items[i] for i in kept]) == classes(items)
    assert held == [] or share > 0


@given(seed=seeds)
def test_a_frequent_key_stays_in_training(seed: int) -> None:
    keys = ["often"] * 90 + [str(i) for i in range(10)]
    _, held = hold_out(labels("AB" * 50), keys, 0.1, seed)
    assert 1 <= len(held) <= 10
    assert "often" not in {keys[i] for i in held}


def test_distinct_items_are_held_out_to_the_row() -> None:
    _, held = hold_out(labels("AAAB" * 50), range(200), 0.1, 0)
    assert len(held) == 20


def test_the_seed_decides() -> None:
    items = labels("AB" * 50)
    assert sample(items, 10, 1) == sample(items, 10, 1) != sample(items, 10, 2)
    assert hold_out(items, range(100), 0.1, 1) != hold_out(items, range(100), 0.1, 2)
