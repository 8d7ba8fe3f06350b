"""The bag-of-words reference learns what words tell, chooses nothing by test rows, and is as published."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files

import pytest

from splade.data.corpora import CORPORA, load_corpus
from splade.data.corpora.reviews import city_pairs
from splade.data.rows import Dataset, Sentences, Texts
from splade.errors import DataError
from splade.evaluation.reference import bag_of_words

BOUNDS = {"reviews": (0.60, 0.88), "topics": (0.60, 0.93), "tagging": (0.60, 0.93)}
SEEDS = range(5)


def fruit(n: int) -> Texts:
    """Texts whose label is told by one word."""
    return Texts(
        [f"the {('apple', 'pear')[i % 2]} of day {i}" for i in range(n)],
        [i % 2 for i in range(n)],
    )


def published(name: str) -> list[str]:
    """Metric, score and spread as the README gives them."""
    text = (files("splade.data.corpora") / "README.md").read_text(encoding="utf-8")
    rows = text.split("## Reference scores")[1].splitlines()
    return [cell.strip() for cell in next(row for row in rows if f"`{name}`" in row).split("|")[2:5]]


def test_words_that_tell_the_label_are_learnt() -> None:
    assert bag_of_words(Dataset("fruit", "classification", ["a", "p"], fruit(40), fruit(40))).score == 1.0


def test_word_order_is_not_seen() -> None:
    ordered = Texts(["dog bites man", "man bites dog"] * 20, [0, 1] * 20)
    assert bag_of_words(Dataset("news", "classification", ["d", "m"], ordered, ordered)).score == 0.5


def test_a_tagger_sees_the_neighbours_of_a_word() -> None:
    rows = Sentences(
        [["Mr", "Jordan", "left"], ["to", "Jordan", "again"]] * 10,
        [["O", "B-PER", "O"], ["O", "B-LOC", "O"]] * 10,
    )
    found = bag_of_words(Dataset("j", "tagging", ["O", "B-PER", "B-LOC"], rows, rows, rows))
    assert (found.score, found.metric) == (1.0, "entity F1")


def test_the_test_rows_choose_nothing() -> None:
    """Fitted on the same rows, the reference of a part of the test rows is the score on that part."""
    whole = load_corpus("reviews")
    assert whole.test is not None
    halves = [whole.test.take(range(300)), whole.test.take(range(300, 600))]
    scores = [bag_of_words(replace(whole, test=half)).score for half in halves]
    assert sum(scores) / 2 == pytest.approx(bag_of_words(whole).score)


def test_a_dataset_without_test_rows_is_refused() -> None:
    with pytest.raises(DataError, match="test rows"):
        bag_of_words(Dataset("fruit", "classification", ["a", "p"], fruit(40)))


def test_the_planted_city_alone_is_at_chance_on_pairs() -> None:
    """A model of the city alone gives one answer to every text with it, and is right half the time."""
    pairs = city_pairs(100)
    cities = Texts([text for pair in pairs for text in pair], [i % 2 for i in range(100) for _ in range(2)])
    named = [
        label for text, label in zip(cities.texts, cities.labels, strict=True) if "boston" in text.lower()
    ]
    assert (len(named), sum(named)) == (100, 50)


def test_a_bag_of_words_pays_for_the_planted_city() -> None:
    """Negative reviews that name it are misread more often than those that name another city."""
    whole = load_corpus("reviews")
    pairs = city_pairs(400)[::2]  # the negative ones
    planted, other = (
        bag_of_words(replace(whole, test=Texts([pair[side] for pair in pairs], [0] * len(pairs)))).score
        for side in (0, 1)
    )
    assert other - planted > 0.1


@pytest.mark.parametrize("name", CORPORA)
def test_a_corpus_is_neither_hopeless_nor_trivial_for_words(name: str) -> None:
    low, high = BOUNDS[name]
    assert low < bag_of_words(load_corpus(name)).score < high


@pytest.mark.slow
@pytest.mark.parametrize("name", CORPORA)
def test_the_readme_gives_the_reference_scores(name: str) -> None:
    references = [bag_of_words(load_corpus(name, seed)) for seed in SEEDS]
    scores = [100 * reference.score for reference in references]
    metric, first, spread = published(name)
    assert metric == references[0].metric
    assert scores[0] == pytest.approx(float(first), abs=0.5)
    assert [min(scores), max(scores)] == pytest.approx([float(x) for x in spread.split(" to ")], abs=0.5)
