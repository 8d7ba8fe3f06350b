"""Decoded tags are the best of all valid ones, over whole sentences whatever windows they were read in."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from splade.circuits.decoding import best_valid, decode, transitions
from splade.data.encoding import Example
from splade.data.tagging import to_bio

NAMES = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


def valid(tags: list[str]) -> bool:
    """BIO is valid exactly when reading it as any scheme changes nothing."""
    return to_bio(tags) == tags


def scores(length: int, seed: int, names: list[str] = NAMES) -> torch.Tensor:
    return torch.randn(length, len(names), dtype=torch.double, generator=torch.Generator().manual_seed(seed))


def total(score_WC: torch.Tensor, tags: tuple[int, ...] | list[int]) -> float:
    return sum(float(score_WC[word, tag]) for word, tag in enumerate(tags))


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_no_valid_tagging_scores_higher(length: int) -> None:
    sentences = [scores(length, seed) for seed in range(12)]
    for score_WC, found in zip(sentences, best_valid(sentences, NAMES), strict=True):
        every = itertools.product(range(len(NAMES)), repeat=length)
        best = max((t for t in every if valid([NAMES[i] for i in t])), key=lambda t: total(score_WC, t))
        assert tuple(found) == best


@given(st.lists(st.integers(0, 12), max_size=8), st.integers(0, 999))
def test_tags_are_always_valid_and_the_most_probable_ones_where_those_are(
    lengths: list[int], seed: int
) -> None:
    sentences = [scores(length, seed + k) for k, length in enumerate(lengths)]
    for score_WC, found in zip(sentences, best_valid(sentences, NAMES), strict=True):
        assert valid([NAMES[i] for i in found])
        most_probable = score_WC.argmax(-1).tolist()
        if valid([NAMES[i] for i in most_probable]):
            assert found == most_probable


def test_sentences_are_decoded_alike_alone_and_together() -> None:
    sentences = [scores(length, length) for length in (1, 9, 30, 2, 9)]
    assert best_valid(sentences, NAMES) == [best_valid([one], NAMES)[0] for one in sentences]


def test_the_allowed_transitions_are_those_of_bio() -> None:
    allowed = transitions(NAMES)
    for (i, before), (j, after) in itertools.product(enumerate(NAMES), repeat=2):
        opening = [] if before == "O" else [f"B-{before[2:]}"]
        assert bool(allowed[i, j]) == valid([*opening, before, after])


def test_a_sentence_cannot_begin_inside_an_entity() -> None:
    score_WC = torch.tensor([[0.0, 0.5, 1.0, 0.0, 0.0]])
    assert best_valid([score_WC], NAMES) == [[1]]


def test_a_sure_neighbour_decides_what_an_unsure_word_is() -> None:
    # alone the words are I-PER and I-LOC; the second is far surer than the first
    score_WC = torch.tensor([[0.0, 0.1, 1.0, 0.5, 0.0], [0.0, 0.0, 0.0, 0.0, 9.0]])
    assert [NAMES[i] for i in best_valid([score_WC], NAMES)[0]] == ["B-LOC", "I-LOC"]


def windows() -> tuple[list[Example], torch.Tensor]:
    """Two sentences: the second in two windows, with a word that has no piece and two words in one piece."""
    examples = [
        Example([0], [0, 0], 0, [1, 2], [[0], [1]]),
        Example([0], [0, 0], 1, [1, 2], [[2], [4, 5]]),
        Example([0], [0], 1, [1], [[0]]),
    ]
    return examples, scores(5, 4)


def test_words_are_decoded_over_their_whole_sentence() -> None:
    examples, logits_RC = windows()
    found = decode(examples, logits_RC, {0: 2, 1: 6}, NAMES)
    silent = torch.tensor([0.0, *[-torch.inf] * 4])
    second = torch.stack([logits_RC[4], silent, logits_RC[2], silent, logits_RC[3], logits_RC[3]])
    assert found == dict(enumerate(best_valid([logits_RC[:2], second], NAMES)))
    assert found[1][1] == found[1][3] == 0


def test_a_window_boundary_is_no_beginning() -> None:
    """I-PER in the second window goes on with the B-PER that the first one ends with."""
    examples = [Example([0], [0], 0, [1], [[0]]), Example([0], [0], 0, [1], [[1]])]
    logits_RC = torch.tensor([[0.0, 9, 0, 0, 0], [0.0, 0, 9, 0, 0]])
    assert decode(examples, logits_RC, {0: 2}, NAMES) == {0: [1, 2]}
    assert decode(list(reversed(examples)), logits_RC.flip(0), {0: 2}, NAMES) == {0: [1, 2]}


def test_independent_words_have_their_most_probable_tag() -> None:
    examples, logits_RC = windows()
    found = decode(examples, logits_RC, {0: 2, 1: 6}, NAMES, "independent")
    best = logits_RC.argmax(-1).tolist()
    assert found == {0: best[:2], 1: [best[4], 0, best[2], 0, best[3], best[3]]}


def test_a_temperature_changes_no_tag() -> None:
    examples, logits_RC = windows()
    plain = decode(examples, logits_RC, {0: 2, 1: 6}, NAMES)
    assert decode(examples, (logits_RC / 7).log_softmax(-1), {0: 2, 1: 6}, NAMES) == plain


def test_nothing_is_decoded_to_nothing() -> None:
    assert decode([], torch.zeros(0, 5), {}, NAMES) == {}
    assert decode([], torch.zeros(0, 5), {3: 2}, NAMES) == {3: [0, 0]}
    assert best_valid([torch.zeros(0, 5)], NAMES) == [[]]
