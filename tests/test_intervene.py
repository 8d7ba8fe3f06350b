"""A removed word is gone for every input, nothing else moves, and what was lent comes back."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from splade import LexicalSAE, SuppressedModel, suppress_token_globally
from splade.errors import DataError
from splade.intervene import word_ids
from tests.tiny import tiny_batch, tiny_model


def active(model: LexicalSAE) -> torch.Tensor:
    with torch.no_grad():
        return model.encode(*tiny_batch(model)).dense()


def most_active(model: LexicalSAE) -> str:
    order = (active(model) > 0).sum(0).argsort(descending=True).tolist()
    return next(name for j in order if (name := model.lexicon.names[j]).isalpha() and len(name) > 2)


@pytest.mark.parametrize("honesty", ["grounded", "free", "licensed-static"])
def test_only_the_removed_word_moves(honesty: str) -> None:
    model = tiny_model(honesty=honesty)
    before, word = active(model), most_active(model)
    ids = suppress_token_globally(model, [word])
    after = active(model)
    assert (before[:, ids] > 0).any()
    assert (after[:, ids] == 0).all()
    others = [j for j in range(before.shape[1]) if j not in ids]
    assert torch.equal(after[:, others], before[:, others])


def test_the_tensor_interface_agrees() -> None:
    model = tiny_model()
    ids = suppress_token_globally(model, [most_active(model)])
    with torch.no_grad():
        sparse_seq, _ = model(*tiny_batch(model))
    assert (sparse_seq[..., ids] == 0).all()


def test_a_removal_survives_saving(tmp_path: Path) -> None:
    model = tiny_model()
    suppress_token_globally(model, [most_active(model)])
    model.save_pretrained(tmp_path / "m")
    assert torch.equal(active(LexicalSAE.from_pretrained(tmp_path / "m")), active(model))


def test_a_suppressed_model_comes_back_to_the_bit() -> None:
    model = tiny_model()
    word = most_active(model)
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    with SuppressedModel(model, [word]) as less:
        assert (active(less)[:, word_ids(model, [word])] == 0).all()
    with pytest.raises(DataError), SuppressedModel(model, [word]):
        word_ids(model, ["zyzzyva"])
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())


def test_nested_removals_end_in_order() -> None:
    model = tiny_model()
    suppress_token_globally(model, ["film"])
    with SuppressedModel(model, ["film", "slow"]):
        pass
    assert not model.lexicon.keep_V[word_ids(model, ["film"])].any()
    assert model.lexicon.keep_V[word_ids(model, ["slow"])].all()


def test_every_form_of_a_word_is_found() -> None:
    model = tiny_model(family="roberta")
    names = {model.tokenizer.convert_ids_to_tokens(j) for j in word_ids(model, ["Muslim"])}
    assert len(names) > 1
    assert {name.lstrip("Ġ").lower() for name in names} == {"muslim"}


@pytest.mark.parametrize(("words", "message"), [(["zyzzyva"], "zyzzyva"), ("slow", "list of words")])
def test_what_cannot_be_removed_is_said(words: list[str] | str, message: str) -> None:
    model = tiny_model()
    with pytest.raises(DataError, match=message):
        suppress_token_globally(model, words)  # type: ignore[arg-type]
    assert model.lexicon.keep_V.all()
