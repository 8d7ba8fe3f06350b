"""A tagged sentence has one prediction a word, however long it is, and explanations that know their word."""

from __future__ import annotations

import pytest

from splade.data.tagging import to_bio
from splade.inference import Predictor
from tests.inference.texts import LONG, assert_sums, predictor
from tests.tiny import SENTENCES

NESTED = ["Paris", "", "was", "\0", "lovely"]  # words without any piece have no row


@pytest.fixture(scope="module")
def tagger() -> Predictor:
    return predictor(task="tagging", opened=20)


def test_every_word_of_a_sentence_is_tagged(tagger: Predictor) -> None:
    sentences = [sentence.split() for sentence in (*SENTENCES, LONG)]
    found = tagger.predict_tags(sentences)
    assert [len(tags) for tags in found] == [len(words) for words in sentences]
    assert {tag.label for tags in found for tag in tags} <= set(tagger.names)


def test_a_plain_text_is_split_into_its_words(tagger: Predictor) -> None:
    text = "Muslim readers, in Paris!"
    words = ["Muslim", "readers", ",", "in", "Paris", "!"]
    assert len(tagger.predict_tags([text])[0]) == len(words)
    assert [found.row.text for found in tagger.explain([text], target="O")] == words


def test_words_without_a_piece_are_outside(tagger: Predictor) -> None:
    [tags] = tagger.predict_tags([NESTED])
    assert len(tags) == len(NESTED)
    for silent in (1, 3):
        assert (tags[silent].label, tags[silent].probability) == ("O", 1.0)
    assert [found.row.text for found in tagger.explain([NESTED], target="O")] == ["Paris", "was", "lovely"]


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta"])
def test_a_long_sentence_is_windowed_and_every_word_explained_once(family: str) -> None:
    model = predictor(task="tagging", family=family, batch_size=2)
    words = [*LONG.split(), "Paris"] * 3
    [tags] = model.predict_tags([words])
    found = model.explain([words], target="O")
    assert len(tags) == len(words)
    assert [explanation.row.text for explanation in found] == words
    assert len({explanation.row.start for explanation in found}) == len(words)
    for tag, explanation in zip(tags, found, strict=True):
        assert explanation.probabilities == tag.probabilities
        assert not explanation.truncated
        assert explanation.text == " ".join(words)
        place = explanation.row
        assert explanation.text[place.start : place.end] == place.text


def test_only_words_in_an_entity_are_explained_without_a_target(tagger: Predictor) -> None:
    tags = tagger.predict_tags(SENTENCES)
    inside = [tag.label for sentence in tags for tag in sentence if tag.label != "O"]
    found = tagger.explain(SENTENCES)
    assert 0 < len(inside) < sum(map(len, tags))
    assert [explanation.prediction for explanation in found] == inside
    assert all(explanation.explained == explanation.prediction for explanation in found)


def test_sentences_keep_their_order_whatever_their_length(tagger: Predictor) -> None:
    sentences = [SENTENCES[0], LONG, "Paris", SENTENCES[1]]
    found = tagger.explain([sentence.split() for sentence in sentences], target="O")
    order = list(dict.fromkeys(explanation.text for explanation in found))
    assert order == sentences
    for sentence in sentences:
        starts = [explanation.row.start for explanation in found if explanation.text == sentence]
        assert starts == sorted(starts)


def test_repeats_are_bit_identical(tagger: Predictor) -> None:
    assert tagger.explain([LONG, *SENTENCES]) == tagger.explain([LONG, *SENTENCES])


# --- valid tags -------------------------------------------------------------------------------------------

MANY = [sentence.split() * 6 for sentence in (*SENTENCES, LONG)]  # several windows each


@pytest.fixture(scope="module")
def restless() -> Predictor:
    """A tagger of five tags that are all over the place."""
    return predictor(task="tagging", classes=5, opened=20, seed=3)


def independently(tagger: Predictor, sentences: list[list[str]]) -> list[list[str]]:
    tagger.model.config.decode = "independent"
    found = [[tag.label for tag in tags] for tags in tagger.predict_tags(sentences)]
    tagger.model.config.decode = "valid"
    return found


def test_tags_are_valid_across_windows(restless: Predictor) -> None:
    found = [[tag.label for tag in tags] for tags in restless.predict_tags(MANY)]
    assert all(to_bio(tags) == tags for tags in found)
    alone = independently(restless, MANY)
    assert any(to_bio(tags) != tags for tags in alone), "the test needs sentences that are not valid alone"
    for tags, other in zip(found, alone, strict=True):
        assert tags == other or to_bio(other) != other


def test_probabilities_stay_the_models_own(restless: Predictor) -> None:
    valid = restless.predict_tags(MANY)
    restless.model.config.decode = "independent"
    free = restless.predict_tags(MANY)
    restless.model.config.decode = "valid"
    assert [[t.probabilities for t in tags] for tags in valid] == [[t.probabilities for t in u] for u in free]
    flat = [tag for tags in valid for tag in tags]
    assert all(tag.probability == tag.probabilities[tag.label] for tag in flat)
    assert all(tag.probability == max(tag.probabilities.values()) for tags in free for tag in tags)
    assert any(tag.probability < max(tag.probabilities.values()) for tag in flat)


def test_the_decoded_tag_of_each_word_is_explained(restless: Predictor) -> None:
    tags = restless.predict_tags(MANY)
    expected = [tag for sentence in tags for tag in sentence if tag.label != "O"]
    found = restless.explain(MANY)
    assert [(e.prediction, e.explained) for e in found] == [(tag.label, tag.label) for tag in expected]
    assert [e.probability for e in found] == [tag.probability for tag in expected]
    for explanation in found:
        assert_sums(explanation)


def test_how_many_sentences_come_together_changes_no_tag(restless: Predictor) -> None:
    """Sentences are decoded in groups; every one of many groups keeps its own."""
    sentences = [list(words) for words in MANY] * 8
    small = Predictor(restless.model, batch_size=1)
    labels = [[tag.label for tag in tags] for tags in small.predict_tags(sentences)]
    assert labels == [[tag.label for tag in tags] for tags in restless.predict_tags(MANY)] * 8
