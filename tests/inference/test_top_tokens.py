"""Whole words are told from pieces; the words of a class are ranked by what they contribute."""

from __future__ import annotations

import pytest
import torch

from splade.config.model import SensesRecord
from splade.errors import DataError
from splade.inference import Predictor
from splade.inference.top_tokens import get_clean_vocab_mask, get_top_tokens
from splade.mechanistic.global_view import GlobalViewFitter
from splade.models.build import add_senses
from tests.tiny import SENTENCES, TOKENIZER_KINDS, tiny_batch, tiny_model, tiny_tokenizer

MARKS = {"wordpiece": ("", "##"), "bpe": ("Ġ", ""), "unigram": ("▁", "")}


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_pieces_special_tokens_and_single_characters_are_not_clean(kind: str) -> None:
    tokenizer = tiny_tokenizer(kind)
    mask_V = get_clean_vocab_mask(tokenizer)
    assert mask_V.shape == (len(tokenizer),)
    assert not mask_V[tokenizer.all_special_ids].any()
    begin, inside = MARKS[kind]
    vocab = tokenizer.get_vocab()
    assert mask_V[vocab[f"{begin}muslim"]]
    assert not any(mask_V[vocab[f"{mark}a"]] for mark in (begin, inside) if f"{mark}a" in vocab)
    for piece in tokenizer.convert_ids_to_tokens(mask_V.nonzero()[:, 0].tolist()):
        assert piece.startswith(begin)
        assert not piece.startswith("##")
        assert len(piece.removeprefix(begin)) > 1


def test_a_piece_inside_a_word_is_not_clean() -> None:
    tokenizer = tiny_tokenizer("wordpiece")
    mask_V, vocab = get_clean_vocab_mask(tokenizer), tokenizer.get_vocab()
    assert not mask_V[[vocab["##reliable"], vocab["##ly"], vocab["[unused0]"], vocab[","]]].any()
    assert mask_V[[vocab["un"], vocab["friend"], vocab["the"]]].all()


def test_words_are_ranked_by_the_mean_contribution_of_the_global_view() -> None:
    model = tiny_model(opened=20)
    fitter = GlobalViewFitter(model.head)
    with torch.no_grad():
        fitter.update(model.decide(model.encode(*tiny_batch(model))))
    mean_V = fitter.result().contribution_mean_CV[1]
    every = get_top_tokens(model, SENTENCES, "class b", top_k=1000, clean_vocab=False)
    by_name: dict[str, float] = {}
    for name, value in zip(model.lexicon.names, mean_V.tolist(), strict=True):
        by_name[name] = by_name.get(name, 0.0) + value
    for word, score in every:
        assert score == pytest.approx(by_name[word], abs=1e-5)
    assert [score for _, score in every] == sorted((score for _, score in every), reverse=True)
    clean = get_top_tokens(model, SENTENCES, "class b", top_k=1000)
    assert 0 < len(clean) < len(every)
    assert get_top_tokens(model, SENTENCES, "class b", top_k=3) == clean[:3]


def test_spans_are_words_of_the_texts_and_add_up_with_the_bias() -> None:
    model = tiny_model(opened=20)
    found = dict(get_top_tokens(model, SENTENCES, "class a", top_k=1000, spans=True))
    assert {"unreliable", "muslim"} <= set(found)
    explanations = Predictor(model).explain(list(SENTENCES), target="class a")
    expected = sum(e.logit - e.bias for e in explanations) / len(explanations)
    assert sum(found.values()) == pytest.approx(expected, abs=1e-4)


def test_senses_of_a_whole_word_are_named() -> None:
    model = tiny_model(opened=30)
    add_senses(model, SensesRecord(token_ids=model.lexicon.ids("film"), num_senses=3))
    names = dict(get_top_tokens(model, SENTENCES, "class a", top_k=1000))
    assert any(name.startswith("film#") for name in names)


def test_a_tagger_ranks_over_labelled_words() -> None:
    model = tiny_model(task="tagging", classes=5, opened=10)
    found = get_top_tokens(model, SENTENCES[:2], "B-PER", top_k=5, clean_vocab=False)
    assert len(found) == 5


def test_no_texts_have_no_words() -> None:
    with pytest.raises(DataError, match="no texts"):
        get_top_tokens(tiny_model(), [], "class a")
