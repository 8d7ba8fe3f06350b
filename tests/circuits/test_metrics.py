"""Entities are scored as conlleval scores them, with 0 where there is nothing to divide by."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_fscore_support
from sklearn.preprocessing import MultiLabelBinarizer

from splade.circuits.metrics import (
    EntityScore,
    accuracy,
    effective_vocabulary,
    entity_scores,
    label_scores,
    token_accuracy,
)

NOTHING = EntityScore(0.0, 0.0, 0.0, 0)


def test_accuracy_is_the_share_of_equal_pairs() -> None:
    assert accuracy([1, 2, 3, 4], [1, 2, 0, 0]) == 0.5
    assert accuracy(["a"], ["a"]) == 1.0
    assert accuracy([], []) == 0.0


def test_token_accuracy_counts_words_and_not_sentences() -> None:
    assert token_accuracy([["O", "O", "B-X"], ["O"]], [["O", "O", "O"], ["O"]]) == 0.75


def test_an_entity_counts_if_span_and_type_are_right() -> None:
    gold = [["B-PER", "I-PER", "O", "B-LOC"], ["B-PER", "O", "O", "O"]]
    found = [["B-PER", "I-PER", "O", "B-PER"], ["B-PER", "I-PER", "O", "B-LOC"]]
    scores = entity_scores(found, gold)
    # found: PER 0-2 right, PER 3 wrong type, PER 0-2 wrong end, LOC 3 not there
    assert scores["micro"] == EntityScore(1 / 4, 1 / 3, pytest.approx(2 / 7), 3)
    assert scores["PER"] == EntityScore(1 / 3, 1 / 2, pytest.approx(0.4), 2)
    assert scores["LOC"] == EntityScore(0.0, 0.0, 0.0, 1)
    assert list(scores) == ["micro", "LOC", "PER"]


def test_the_same_span_of_another_sentence_is_another_entity() -> None:
    assert entity_scores([["B-X"], ["O"]], [["O"], ["B-X"]])["micro"] == EntityScore(0.0, 0.0, 0.0, 1)


def test_limits_without_entities() -> None:
    there = [["B-X", "O"]]
    none = [["O", "O"]]
    assert entity_scores(none, there)["micro"] == EntityScore(0.0, 0.0, 0.0, 1)
    assert entity_scores(there, none) == {"micro": NOTHING, "X": NOTHING}
    assert entity_scores(none, none) == {"micro": NOTHING}
    assert entity_scores([], []) == {"micro": NOTHING}
    assert entity_scores([[]], [[]]) == {"micro": NOTHING}


def test_perfect_predictions_score_one() -> None:
    gold = [["B-X", "I-X", "B-X", "O", "B-Y"]]
    assert entity_scores(gold, gold)["micro"] == EntityScore(1.0, 1.0, 1.0, 3)


def test_an_entity_may_begin_with_i_as_conlleval_reads_it() -> None:
    gold = [["O", "B-X", "I-X"]]
    assert entity_scores([["O", "I-X", "I-X"]], gold)["micro"].f1 == 1.0
    assert entity_scores([["O", "B-X", "I-Y"]], gold)["micro"].f1 == 0.0


# --- conlleval, as its Perl source decides word by word ---------------------------------------------------

Tags = list[list[str]]


def ends(before: str, after: str) -> bool:
    """Whether an entity ends between two tags."""
    if before == "O":
        return False
    return after == "O" or after[0] == "B" or before[2:] != after[2:]


def starts(before: str, after: str) -> bool:
    """Whether an entity starts at the second of two tags."""
    if after == "O":
        return False
    return before == "O" or after[0] == "B" or before[2:] != after[2:]


def conlleval(predicted: Tags, gold: Tags) -> tuple[int, int, int]:
    """Entities found, there and right, counted in one pass over pairs of neighbouring words."""
    counts: Counter[str] = Counter()
    for found_tags, gold_tags in zip(predicted, gold, strict=True):
        matching = False
        words = list(zip(["O", *found_tags, "O"], ["O", *gold_tags, "O"], strict=True))
        for (found_before, gold_before), (found, there) in pairwise(words):
            if matching:
                ended = ends(found_before, found), ends(gold_before, there)
                counts["right"] += ended == (True, True)
                matching = not any(ended)
            started = starts(found_before, found), starts(gold_before, there)
            counts["found"] += started[0]
            counts["there"] += started[1]
            matching |= started == (True, True) and found[2:] == there[2:]
    return counts["found"], counts["there"], counts["right"]


@st.composite
def two_taggings(draw: st.DrawFn) -> tuple[Tags, Tags]:
    """Any tags, valid or not; half of the predictions agree with the gold tag."""
    any_tag = st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y"])
    gold = draw(st.lists(st.lists(any_tag, max_size=8), max_size=4))
    return [[draw(st.just(tag) | any_tag) for tag in tags] for tags in gold], gold


@given(two_taggings())
def test_scores_are_those_of_conlleval(taggings: tuple[Tags, Tags]) -> None:
    found, there, right = conlleval(*taggings)
    score = entity_scores(*taggings)["micro"]
    assert score.support == there
    assert score.precision == (right / found if found else 0)
    assert score.recall == (right / there if there else 0)
    assert score.f1 == pytest.approx(2 * right / (found + there) if right else 0)


@given(two_taggings())
def test_types_add_up_to_the_whole(taggings: tuple[Tags, Tags]) -> None:
    scores = entity_scores(*taggings)
    kinds = [score for kind, score in scores.items() if kind != "micro"]
    assert sum(score.support for score in kinds) == scores["micro"].support
    assert sum(score.recall * score.support for score in kinds) == pytest.approx(
        scores["micro"].recall * scores["micro"].support
    )


# --- several labels a text --------------------------------------------------------------------------------


def test_scores_of_several_labels_are_scikit_learns() -> None:
    draw = random.Random(0)

    def label_sets() -> list[list[int]]:
        return [draw.sample(range(4), draw.randrange(4)) for _ in range(40)]

    predicted, gold = label_sets(), label_sets()
    matrix = MultiLabelBinarizer(classes=range(5)).fit(gold)
    true, found = matrix.transform(gold), matrix.transform(predicted)
    micro, scores = label_scores(predicted, gold, 5)
    expected = precision_recall_fscore_support(true, found, average="micro", zero_division=0)[:3]
    assert (micro.precision, micro.recall, micro.f1) == pytest.approx(expected)
    for c, values in enumerate(
        zip(*precision_recall_fscore_support(true, found, zero_division=0), strict=True)
    ):
        assert (scores[c].precision, scores[c].recall, scores[c].f1, scores[c].support) == pytest.approx(
            values
        )
    assert scores[4] == NOTHING


def test_one_label_a_text_has_its_accuracy_as_micro_f1() -> None:
    predicted, gold = [[0], [1], [2], [1]], [[0], [2], [2], [1]]
    micro, _ = label_scores(predicted, gold, 3)
    assert micro.precision == micro.recall == micro.f1 == accuracy(predicted, gold) == 0.75


# --- effective vocabulary ---------------------------------------------------------------------------------


def test_equal_shares_count_every_word_and_one_word_counts_one() -> None:
    mass_CV = torch.zeros(3, 50)
    mass_CV[0, :20], mass_CV[1, 7] = 0.3, 2.0
    assert effective_vocabulary(mass_CV).tolist() == pytest.approx([20, 1, 1])
    assert torch.allclose(effective_vocabulary(100 * mass_CV), effective_vocabulary(mass_CV))
