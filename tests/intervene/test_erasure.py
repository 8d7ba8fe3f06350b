"""Erasing embeddings moves other words; removing a word does not. What is kept can be put back."""

from __future__ import annotations

import pytest
import torch

from splade.config.model import SensesRecord
from splade.errors import ConfigError, DataError
from splade.intervene import apply, model_hash, word_ids
from splade.intervene.erasure import Moved, erase_embedding, others_moved, restore_embedding
from splade.intervene.leakage import encoded
from splade.models.build import add_senses
from splade.models.lexical_sae import LexicalSAE
from tests.tiny import FAMILIES, SENTENCES, tiny_model


def activations(model: LexicalSAE, texts: list[str]) -> torch.Tensor:
    with torch.no_grad():
        parts = list(encoded(model, texts))
    order = torch.tensor([i for indices, _ in parts for i in indices])
    return torch.cat([rows.dense() for _, rows in parts])[order.argsort()]


@pytest.mark.parametrize("family", FAMILIES)
def test_an_erased_word_has_logit_zero_and_comes_back_bit_for_bit(family: str) -> None:
    model = tiny_model(family)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    erasure = erase_embedding(model, ["film"])
    rows = sorted(erasure.rows)
    backbone = model.backbone
    h_BLH = torch.randn(1, 3, backbone.E_VH.shape[1])
    assert torch.equal(backbone.decoder(h_BLH)[..., rows], torch.zeros(1, 3, len(rows)))
    assert not backbone.mlm.get_input_embeddings().weight[rows].any()
    assert erasure.hash_before != erasure.hash_after == model_hash(model)
    restore_embedding(model, erasure)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert model_hash(model) == erasure.hash_before


def test_other_words_move_by_an_erasure_and_not_by_a_removal() -> None:
    model = tiny_model(opened=20)
    texts = [text for text in SENTENCES if "film" in text]
    ids = word_ids(model, ["film"])
    others = [j for j in range(model.lexicon.vocab_size) if j not in ids]
    before_NV = activations(model, texts)
    found = others_moved(model, ["film"], texts)
    assert torch.equal(activations(model, texts), before_NV)  # measuring leaves the model as it was
    assert found.texts == len(texts)
    assert found.before == int((before_NV[:, others] > 0).sum())
    assert found.moved + found.closed > found.before / 2
    assert found.change > 0.01
    erasure = erase_embedding(model, ["film"])
    after_NV = activations(model, texts)[:, others]
    assert found.opened == int(((after_NV > 0) & (before_NV[:, others] == 0)).sum())
    restore_embedding(model, erasure)
    apply(model, "remove", ["film"])
    assert torch.equal(activations(model, texts)[:, others], before_NV[:, others])


def test_texts_without_the_word_keep_every_other_value() -> None:
    model = tiny_model(opened=20)
    texts = [text for text in SENTENCES if "film" not in text]
    active = int((activations(model, texts)[:, :] > 0).sum())
    ids = word_ids(model, ["film"])
    expected = active - int((activations(model, texts)[:, ids] > 0).sum())
    found = others_moved(model, ["film"], texts)
    assert (found.before, found.moved, found.opened, found.closed) == (expected, 0, 0, 0)
    assert found.change == 0.0


def test_texts_without_any_other_word_have_nothing_to_move() -> None:
    model = tiny_model()
    ids = word_ids(model, ["film"])
    model.lexicon.keep_V[[j for j in range(model.lexicon.vocab_size) if j not in ids]] = False
    assert others_moved(model, ["film"], SENTENCES[:3]) == Moved(3, 0, 0, 0, 0, 0.0, others_changed(model))


def others_changed(model: LexicalSAE) -> int:
    """Decisions that differ once the word is shut, among the first three sentences."""
    [(_, rows)] = encoded(model, SENTENCES[:3])
    full = model.decide(rows).logits.argmax(-1)
    empty = model.decide(rows.where(torch.zeros_like(rows.open_P))).logits.argmax(-1)
    return int((full != empty).sum())


def test_senses_share_the_row_that_is_erased() -> None:
    model = tiny_model()
    [film] = model.lexicon.ids("film")
    add_senses(model, SensesRecord(token_ids=[film], num_senses=3))
    assert erase_embedding(model, ["film"]).rows == [film]


def test_a_model_that_went_on_is_not_overwritten() -> None:
    model = tiny_model()
    erasure = erase_embedding(model, ["film"])
    apply(model, "remove", ["slow"])
    with pytest.raises(ConfigError, match="changed since the erasure"):
        restore_embedding(model, erasure)
    with pytest.raises(DataError, match="not one word"):
        erase_embedding(model, ["zyzzyva"])
