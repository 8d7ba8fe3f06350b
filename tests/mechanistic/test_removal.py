"""Interactions and counterfactuals are what brute force over the head finds, and say how far they looked."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from splade.errors import ConfigError
from splade.mechanistic.removal import counterfactual, interactions
from splade.models.heads import HEADS
from splade.models.state import CircuitState
from tests.mechanistic.draws import NAMES, SEEDS, C, decide, draw_head, draw_state
from tests.tiny import tiny_rows

SMALL = 12  # words at most, so that every set can be tried


def small_state(name: str, seed: int, density: float = 0.5) -> CircuitState:
    return decide(draw_head(name, seed, vocab=SMALL).double(), tiny_rows(2, SMALL, density, seed))


def without(state: CircuitState, words: tuple[int, ...]) -> torch.Tensor:
    """The logits of row 0 after the words are gone, from the whole head."""
    return decide(state.head, state.rows.without(torch.tensor(words, dtype=torch.long))).logits[0]


def words_of(state: CircuitState, row: int = 0) -> list[int]:
    return state.rows.word_P[state.rows.row_P == row].tolist()


def smallest_flip(state: CircuitState) -> int | None:
    """The size of the smallest set whose removal changes the prediction of row 0, by trying all."""
    words, before = words_of(state), int(state.logits[0].argmax())
    for size in range(1, len(words) + 1):
        for chosen in itertools.combinations(words, size):
            if int(without(state, chosen).argmax()) != before:
                return size
    return None


@given(NAMES, SEEDS, st.integers(0, C - 1))
def test_interactions_are_those_of_brute_force(name: str, seed: int, label: int) -> None:
    state = draw_state(name, seed, double=True)
    words = words_of(state)[:4][::-1]
    found = interactions(state, 0, label, words)
    assert torch.equal(found, found.T)
    assert not found.diagonal().any()
    for (i, j), (k, m) in itertools.combinations(enumerate(words), 2):
        gap = state.logits[0] - without(state, (j,)) - without(state, (m,)) + without(state, (j, m))
        torch.testing.assert_close(found[i, k], gap[label])


def test_words_of_a_linear_head_do_not_interact() -> None:
    state = draw_state("relu_mlp")
    with torch.no_grad():
        state.head.b1.fill_(1e4)  # every unit stays on
    found = interactions(decide(state.head, state.rows), 0, 0, words_of(state))
    assert found.abs().max() < 0.05


def test_an_inactive_word_has_no_interactions_to_ask_for() -> None:
    state = draw_state("relu_mlp")
    absent = next(j for j in range(24) if j not in words_of(state))
    with pytest.raises(ConfigError, match=f"word {absent} is not active in row 0"):
        interactions(state, 0, 0, [*words_of(state), absent])


@given(NAMES, SEEDS)
def test_a_counterfactual_is_the_smallest_set_that_flips(name: str, seed: int) -> None:
    state = small_state(name, seed)
    found, size = counterfactual(state), smallest_flip(state)
    assert found.minimal
    assert found.before == int(state.logits[0].argmax())
    assert len(found.words) == (size or 0)
    assert set(found.words) <= set(words_of(state))
    assert int(without(state, tuple(found.words)).argmax()) == found.after
    assert (found.after != found.before) == (size is not None)
    assert found.searched == (len(words_of(state)) if size is None else size - 1)


@given(NAMES, SEEDS, st.integers(0, 30))
def test_a_small_budget_never_claims_more_than_was_tried(name: str, seed: int, budget: int) -> None:
    state = small_state(name, seed)
    found, size = counterfactual(state, budget=budget), smallest_flip(state)
    whole = len(words_of(state))
    assert found.searched < (size or whole + 1)
    if found.words:
        assert int(without(state, tuple(found.words)).argmax()) == found.after != found.before
        assert len(found.words) >= size
    if found.minimal:
        assert len(found.words) == (size or 0)
    if budget < whole:
        assert found.searched == 0


@pytest.mark.parametrize("name", sorted(HEADS))
def test_a_greedy_answer_is_not_called_minimal_when_nothing_was_searched(name: str) -> None:
    states = (small_state(name, seed, density=0.9) for seed in range(200))
    found = next(f for f in (counterfactual(state, budget=0) for state in states) if len(f.words) > 1)
    assert not found.minimal
    assert found.searched == 0


def test_one_word_needs_no_search_to_be_minimal() -> None:
    states = (small_state("relu_mlp", seed) for seed in range(200))
    found = next(f for f in (counterfactual(state, budget=0) for state in states) if len(f.words) == 1)
    assert found.minimal


def test_nothing_flips_a_head_that_reads_nothing() -> None:
    state = small_state("relu_mlp", 0)
    with torch.no_grad():
        state.head.out.weight.zero_()
    found = counterfactual(decide(state.head, state.rows))
    assert found.words == []
    assert found.after == found.before
    assert found.minimal
    assert found.searched == len(words_of(state))
    assert not counterfactual(decide(state.head, state.rows), budget=1).minimal


def test_a_row_without_words_has_no_counterfactual() -> None:
    state = small_state("bcos", 1)
    found = counterfactual(state, row=1)
    assert (found.words, found.searched, found.minimal) == ([], 0, True)


def test_a_wide_row_is_searched_within_its_budget_and_in_float32() -> None:
    vocab = 400
    state = decide(draw_head("relu_mlp", 3, vocab=vocab), tiny_rows(2, vocab, density=0.9))
    found = counterfactual(state, budget=10_000)
    assert found.words
    assert found.searched <= 1
    assert int(without(state, tuple(found.words)).argmax()) == found.after != found.before
