"""Planted truth: what the texts promise, and how finding their deciding words is scored."""

from __future__ import annotations

from random import Random

import pytest
import torch

from splade.data.corpora import planted as corpus
from splade.data.corpora.planted import Planted, label_of, planted_dataset, planted_texts
from splade.data.rows import Texts
from splade.errors import ConfigError, DataError
from splade.evaluation.explainers.inputs import EXPLAINERS
from splade.evaluation.explainers.questions import Settings, UnavailableError, ask, logits_of
from splade.evaluation.planted import planted_rows, precision, words_in
from splade.models.function_words import ENGLISH
from splade.models.lexical_sae import LexicalSAE
from tests.tiny import SENTENCES, tiny_model

TEXTS = planted_texts(0, 800)
ALL_PLANTED = {word for words in (*corpus.POLAR, corpus.VERBS[1], corpus.NOUNS[1]) for word in words}
LITTLE = Settings(ig_steps=4, batch_size=16)


def spanned(text: str, *words: str) -> list[tuple[int, int]]:
    return [(text.index(word), text.index(word) + len(word)) for word in words]


def rest(i: int) -> str:
    """Text i without the words that decide it."""
    text = TEXTS.texts[i]
    for start, end in reversed(TEXTS.spans[i]):
        text = text[:start] + text[end:]
    return text


# --- the texts -----------------------------------------------------------------------------------------


def test_planted_words_alone_decide_the_label() -> None:
    for i, label in enumerate(TEXTS.labels):
        assert label_of(TEXTS.texts[i]) == label
        assert label_of(" ".join(TEXTS.words(i))) == label  # all others gone
        assert label_of(rest(i)) is None


def test_each_planted_word_decides() -> None:
    """Without what takes it back, or with praise for blame, the label is the other one."""
    for i, label in enumerate(TEXTS.labels):
        *reverser, polar = TEXTS.words(i)
        if reverser:
            assert label_of(polar) == 1 - label
        side = corpus.POLAR[1].count(polar)
        other = corpus.POLAR[1 - side][corpus.POLAR[side].index(polar)]
        assert label_of(" ".join([*reverser, other])) == 1 - label


def test_only_the_word_of_praise_or_blame_is_drawn_by_the_label() -> None:
    for seed in range(50):
        drafts = [corpus._lift(corpus._draft(Random(seed), label)) for label in (0, 1)]
        (one, one_spans), (other, other_spans) = drafts
        (a, b), (c, d) = one_spans[-1], other_spans[-1]
        assert one[:a] + one[b:] == other[:c] + other[d:]
        assert {one[a:b], other[c:d]} <= {word for side in corpus.POLAR for word in side}


def test_all_other_words_are_at_chance() -> None:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score

    counts = CountVectorizer().fit_transform([rest(i) for i in range(len(TEXTS))])
    scores = cross_val_score(LogisticRegression(max_iter=500), counts, TEXTS.labels, cv=5)
    assert abs(scores.mean() - 0.5) < 2.6 * 0.5 / len(TEXTS) ** 0.5  # 99 % of guesses


def test_words_that_take_back_stand_where_they_decide_nothing_too() -> None:
    idle = [bool(ALL_PLANTED & set(rest(i).lower().replace(",", " ").split())) for i in range(len(TEXTS))]
    by_label = [[idle[i] for i in range(len(TEXTS)) if TEXTS.labels[i] == label] for label in (0, 1)]
    for found in by_label:
        assert sum(found) / len(found) == pytest.approx(corpus.REVERSED_SHARE, abs=0.06)


def test_planted_words_are_content_words_of_one_piece() -> None:
    from splade.models.backbone import load_backbone

    _, tokenizer = load_backbone("minilm-l6-mlm")
    assert not ALL_PLANTED & ENGLISH
    assert all(len(tokenizer.tokenize(word)) == 1 for word in ALL_PLANTED)


def test_a_seed_gives_its_texts_and_splits_share_none() -> None:
    dataset, truth = planted_dataset(3, {"train": 60, "validation": 10, "test": 30})
    again, _ = planted_dataset(3, {"train": 60, "validation": 10, "test": 30})
    assert dataset == again != planted_dataset(4, {"train": 60, "validation": 10, "test": 30})[0]
    keys = [key for part in dataset.splits().values() for key in Texts.keys(part)]
    assert len(keys) == len(set(keys)) == 100
    assert truth.rows() == dataset.test
    assert sum(TEXTS.labels) == len(TEXTS) / 2


def test_a_twin_has_the_other_label_and_differs_in_one_word() -> None:
    for i, label in enumerate(TEXTS.labels):
        start, end = TEXTS.spans[i][-1]
        assert label_of(TEXTS.twins[i]) == 1 - label
        assert TEXTS.twins[i].startswith(TEXTS.texts[i][:start])
        assert TEXTS.twins[i].endswith(TEXTS.texts[i][end:])


# --- the figures ---------------------------------------------------------------------------------------


def test_precision_and_area_of_hand_computed_scores() -> None:
    found = precision([[0.1, -9.0, 0.2, 3.0]], [[False, True, False, True]])
    assert (found.precision.mean, found.auc.mean) == (1.0, 1.0)  # what speaks against counts by its size
    found = precision([[4.0, 3.0, 2.0, 1.0]], [[False, True, False, True]])
    assert found.precision.mean == 0.5
    assert found.auc.mean == 0.25  # pairs won: 3 > 2 alone of four


def test_equal_scores_share_their_places() -> None:
    found = precision([[0.0] * 4], [[True, False, False, False]])
    assert (found.precision.mean, found.auc.mean) == (0.25, 0.5)
    found = precision([[5.0, 1.0, 1.0, 0.0]], [[True, True, False, False]])
    assert found.precision.mean == 0.75  # one is certain, the other half so


def test_texts_without_a_ranking_are_left_out() -> None:
    found = precision([[1.0], [1.0, 2.0], [], [1.0, 0.0]], [[True], [False, False], [], [True, False]])
    assert (found.texts, found.precision.mean) == (1, 1.0)
    assert precision([], []).texts == 0


def test_words_are_found_by_their_place_in_the_text() -> None:
    model, text = tiny_model(), "a charming film, a slow film"
    questions = ask(model, [text])
    [truth] = words_in(questions, Planted([text], [0], [spanned(text, "charming", "slow")], [text]))
    words = [place.text for place in questions[0].reading.places]
    assert [word for word, planted in zip(words, truth, strict=True) if planted] == ["charming", "slow"]


# --- the rows ------------------------------------------------------------------------------------------


def undecided_model() -> LexicalSAE:
    """A tiny model that gives its classes to different sentences."""
    model = tiny_model()
    ids = [list(question.reading.example.input_ids) for question in ask(model, SENTENCES)]
    with torch.no_grad():
        model.head.out.bias -= logits_of(model, ids, 16).mean(0)
    return model


def tiny_planted() -> Planted:
    """Labelled as a tiny model does, but for the first; the second words were planted, and twins are unlike.

    The twin of the second text is that text, which no model follows.
    """
    model, texts = undecided_model(), list(SENTENCES)
    questions = ask(model, texts)
    labels = [question.label for question in questions]
    twins = [next(t for t, other in zip(texts, labels, strict=True) if other != own) for own in labels]
    labels[0], twins[1] = (labels[0] + 1) % 3, texts[1]
    spans = [[(place.start, place.end) for place in q.reading.places[1:2]] for q in questions]
    spans[2] = [(place.start, place.end) for place in questions[2].reading.places[1:3]]
    return Planted(texts, labels, spans, twins)


def test_rows_count_the_texts_that_were_right_and_what_explaining_costs() -> None:
    pytest.importorskip("captum")
    rows = planted_rows(undecided_model(), tiny_planted(), LITTLE, ["ours", "random", "integrated_gradients"])
    assert [row.explainer for row in rows] == ["ours", "random", "integrated_gradients"]
    for row in rows:
        assert (row.accuracy, row.followed) == (0.9, 0.8)
        assert [found.texts for found in (row.found, row.alone, row.together) if found] == [8, 7, 1]
    assert [row.forward_passes for row in rows] == [1, 0, 4]


def test_an_explainer_that_knows_finds_all_and_one_that_lacks_something_says_so(monkeypatch) -> None:
    planted = tiny_planted()

    def knows(model, questions, settings):
        by_text = dict(zip(planted.texts, planted.spans, strict=True))
        spans = [by_text[q.reading.text] for q in questions]
        texts = [q.reading.text for q in questions]
        truth = words_in(questions, Planted(texts, [0] * len(texts), spans, texts))
        return [[-float(planted) for planted in words] for words in truth]

    def lacks(model, questions, settings):
        raise UnavailableError("needs more")

    monkeypatch.setitem(EXPLAINERS, "ours", type(EXPLAINERS["ours"])(knows))
    monkeypatch.setitem(EXPLAINERS, "random", type(EXPLAINERS["ours"])(lacks))
    known, lacking = planted_rows(undecided_model(), planted, LITTLE, ["ours", "random"])
    assert known.found is not None
    assert (known.found.precision.mean, known.found.auc.low) == (1.0, 1.0)
    assert (lacking.found, lacking.note) == (None, "needs more")


def test_mistakes_are_answered_in_one_line() -> None:
    with pytest.raises(ConfigError, match="no explainer 'dla'"):
        planted_rows(undecided_model(), tiny_planted(), LITTLE, ["dla"])
    with pytest.raises(DataError, match="at least one"):
        planted_rows(undecided_model(), Planted([], [], [], []), LITTLE)
