"""A tagged sentence has one prediction a word, however long it is, and explanations that know their word."""

from __future__ import annotations

import pytest

from splade.inference import Predictor
from tests.inference.texts import LONG, predictor
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
