"""Edits act on their words alone, for every input, outlast saving and training, and come back to the bit."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from splade.config.model import SensesRecord
from splade.errors import ConfigError, ModelError
from splade.intervene import SuppressedModel, apply, model_hash, replay, undo, word_ids
from splade.mechanistic.attribution import compute_attribution_tensor, residual
from splade.models.build import add_senses
from splade.models.lexical_sae import LexicalSAE
from splade.training.loop import Trainer
from splade.training.progress import Progress
from tests.tiny import SENTENCES, tiny_batch, tiny_model
from tests.training.toys import settings as toy_settings
from tests.training.toys import texts

WORDS = ("film", "slow", "clever", "muslim", "paris", "hotel", "late", "wet", "cup", "budget")
KINDS = (("grounded", "max"), ("free", "max"), ("licensed-static", "max"), ("grounded", "attention"))
entries = st.one_of(
    st.tuples(st.just("remove"), st.lists(st.sampled_from(WORDS), min_size=1, max_size=3), st.none()),
    st.tuples(
        st.just("scale"),
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=2),
        st.sampled_from([0.1, 0.5, 1.0, 3.7]),
    ),
)
journals = st.lists(entries, min_size=1, max_size=4)


@functools.cache
def shared(honesty: str = "grounded", pooling: str = "max") -> LexicalSAE:
    """A model for tests that leave it as it was."""
    return tiny_model(honesty=honesty, pooling=pooling, opened=30)


@torch.no_grad()
def ways(model: LexicalSAE) -> Iterator[Tensor]:
    """s on each of the ways that lead to it."""
    ids, mask = tiny_batch(model)
    yield model.encode(ids, mask).dense()
    yield model.encode(ids, mask, mask).dense()
    yield model(ids, mask)[0].flatten(0, 1)


def state(model: LexicalSAE) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def same(model: LexicalSAE, before: dict[str, Tensor]) -> bool:
    return all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@contextmanager
def edited(model: LexicalSAE, drawn) -> Iterator[list]:
    before = state(model)
    for action, words, factor in drawn:
        apply(model, action, words, factor, "drawn")
    try:
        yield model.lexicon.edits
    finally:
        while model.lexicon.edits:
            undo(model)
        assert same(model, before)


@contextmanager
def hostile_rows(model: LexicalSAE, ids: list[int], value: float) -> Iterator[None]:
    """Decoder rows and biases of some words that make their logits infinite or NaN."""
    E_VH, e_V = model.backbone.E_VH, model.backbone.e_V
    kept = E_VH.detach().clone(), e_V.detach().clone()
    with torch.no_grad():
        h_BLH = model.backbone(*tiny_batch(model))  # as it was: tied rows are inputs as well
        e_V[ids] = value
        E_VH[ids] = value
    handle = model.backbone.register_forward_hook(lambda *_: h_BLH)
    try:
        yield
    finally:
        handle.remove()
        with torch.no_grad():
            E_VH.copy_(kept[0])
            e_V.copy_(kept[1])


@pytest.mark.parametrize(("honesty", "pooling"), KINDS)
@settings(max_examples=8, deadline=None)
@given(drawn=journals, number=st.integers(0, 3))
def test_undo_restores_every_bit_and_the_hash_chain(honesty, pooling, drawn, number) -> None:
    model = shared(honesty, pooling)
    start, first = state(model), model_hash(model)
    with edited(model, drawn) as edits:
        chain = [first, *(h for e in edits for h in (e.hash_before, e.hash_after)), model_hash(model)]
        assert all(a == b for a, b in zip(chain[::2], chain[1::2], strict=True))
        if edits:
            place = number % len(edits)
            rest = [(e.action, e.words, e.factor) for i, e in enumerate(edits) if i != place]
            undo(model, place + 1)
            found = state(model)
            while model.lexicon.edits:
                undo(model)
            assert same(model, start)
            for action, words, factor in rest:
                apply(model, action, words, factor)
            assert same(model, found)
    assert model_hash(model) == first


@pytest.mark.parametrize(("honesty", "pooling"), KINDS)
@settings(max_examples=6, deadline=None)
@given(drawn=journals, value=st.sampled_from([float("nan"), float("inf"), float("-inf"), 1e30]))
def test_removed_words_are_zero_whatever_their_logits(honesty, pooling, drawn, value) -> None:
    model = shared(honesty, pooling)
    with edited(model, drawn):
        removed = (~model.lexicon.keep_V).nonzero()[:, 0].tolist()
        with hostile_rows(model, removed, value):
            assert all((s_NV[:, removed] == 0).all() for s_NV in ways(model))
            assert all(s_NV.isfinite().all() for s_NV in ways(model))


@pytest.mark.parametrize("honesty", ["grounded", "free", "licensed-static"])
@settings(max_examples=8, deadline=None)
@given(drawn=journals)
def test_under_max_pooling_nothing_else_moves(honesty, drawn) -> None:
    model = shared(honesty)
    before = list(ways(model))
    with edited(model, drawn):
        keep_V, scale_V = model.lexicon.keep_V, model.lexicon.scale_V
        for old, new in zip(before, ways(model), strict=True):
            assert torch.equal(new, torch.where(keep_V, old * scale_V, 0.0))


@pytest.mark.parametrize("pooling", ["max", "attention"])
@settings(max_examples=6, deadline=None)
@given(drawn=journals)
def test_an_edited_models_logits_are_still_sums(pooling, drawn) -> None:
    model = shared("grounded", pooling)
    with edited(model, drawn), torch.no_grad():
        decision = model.decide(model.encode(*tiny_batch(model)))
        assert residual(compute_attribution_tensor(decision, decision.logits.argmax(-1))).max() <= 1e-6


def test_what_top_k_chooses_does_not_depend_on_edits() -> None:
    model = tiny_model(topk=3, opened=30)
    before = list(ways(model))
    names = [model.lexicon.names[j] for j in before[0].sum(0).topk(6).indices.tolist()]
    apply(model, "scale", names[:3], 0.01)
    apply(model, "remove", names[3:4])
    keep_V, scale_V = model.lexicon.keep_V, model.lexicon.scale_V
    for old, new in zip(before, ways(model), strict=True):
        assert torch.equal(new, torch.where(keep_V, old * scale_V, 0.0))


def test_edits_survive_saving_and_further_training(tmp_path: Path) -> None:
    model = tiny_model(classes=2)
    apply(model, "remove", ["slow", "late"], reason="<b>why</b>")
    apply(model, "scale", ["clever"], 0.25)
    model.save_pretrained(tmp_path / "m")
    again = LexicalSAE.from_pretrained(tmp_path / "m")
    assert again.lexicon.edits == model.lexicon.edits
    assert model_hash(again) == again.lexicon.edits[-1].hash_after
    trainer = Trainer(again, texts(), toy_settings(epochs=10), Progress())
    trainer.run()
    assert trainer.at.steps >= 50
    assert model_hash(again) != model_hash(model)
    assert torch.equal(again.lexicon.scale_V, model.lexicon.scale_V)
    gone = word_ids(again, ["slow", "late"])
    assert all((s_NV[:, gone] == 0).all() for s_NV in ways(again))
    while again.lexicon.edits:
        undo(again)
    assert again.lexicon.keep_V.all()
    assert (again.lexicon.scale_V == 1).all()


def test_a_journal_is_replayed_on_another_model() -> None:
    model, other = shared(), tiny_model(seed=5)
    with edited(model, [("remove", ["film"], None), ("scale", ["slow"], 0.5)]) as edits:
        replay(other, edits)
        assert [(e.action, e.words, e.factor) for e in other.lexicon.edits] == [
            (e.action, e.words, e.factor) for e in edits
        ]
        assert torch.equal(other.lexicon.scale_V, model.lexicon.scale_V)
        assert replay(other, edits) == []


def test_the_latest_factor_holds_and_undo_returns_to_the_earlier() -> None:
    model = shared()
    with edited(model, [("scale", ["film"], 0.5), ("scale", ["film"], 3.0)]):
        film = word_ids(model, ["film"])
        assert (model.lexicon.scale_V[film] == 3.0).all()
        undo(model)
        assert (model.lexicon.scale_V[film] == 0.5).all()


def test_senses_go_with_their_word_and_come_back_with_it() -> None:
    model = tiny_model()
    word = model.lexicon.ids("film")[0]
    apply(model, "remove", ["film"])
    apply(model, "scale", ["slow"], 0.5)
    add_senses(model, SensesRecord(token_ids=[word, model.lexicon.ids("slow")[0]], num_senses=3))
    assert len(model.lexicon.edits[0].ids) == 3
    assert not model.lexicon.keep_V[word_ids(model, ["film"])].any()
    undo(model)
    undo(model)
    assert model.lexicon.keep_V.all()
    assert (model.lexicon.scale_V == 1).all()
    edit = apply(model, "remove", ["film#2"])
    assert edit is not None
    assert len(edit.ids) == 1


def test_a_suppressed_model_answers_like_one_that_was_edited() -> None:
    model, ids_mask = shared(), tiny_batch(shared())
    before, lent = state(model), SuppressedModel(shared(), ["film", "slow"])
    found, predicted = lent(*ids_mask)[0], lent.predict(SENTENCES)
    explained = lent.explain(SENTENCES[:1])
    assert same(model, before)
    with edited(model, [("remove", ["film", "slow"], None)]):
        assert torch.equal(found, model(*ids_mask)[0])
        with lent as outer, lent as inner:
            assert inner is outer is model
    assert [p.label for p in predicted] == [p.label for p in lent.predict(SENTENCES)]
    assert not {"film", "slow"} & {word.word for word in explained[0].words}


@pytest.mark.parametrize(
    ("action", "factor", "message"),
    [
        ("scale", None, "factor None"),
        ("scale", 0.0, "remove the word"),
        ("scale", float("nan"), "factor nan"),
        ("remove", 0.5, "takes no factor"),
        ("paint", None, "remove or scale"),
    ],
)
def test_what_is_no_edit_is_refused_and_leaves_nothing(action, factor, message) -> None:
    model = shared()
    with pytest.raises(ConfigError, match=message):
        apply(model, action, ["film"], factor)
    assert model.lexicon.edits == []


def test_undo_needs_an_edit() -> None:
    model = shared()
    with pytest.raises(ConfigError, match="nothing to undo"):
        undo(model)
    with edited(model, [("remove", ["film"], None)]), pytest.raises(ConfigError, match="no edit 2"):
        undo(model, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda entry: entry.update(ids=[10**6]), "does not fit"),
        (lambda entry: entry.update(ids=[-1]), "does not fit"),
        (lambda entry: entry.update(words=["other"], ids=[70]), "does not fit"),
        (lambda entry: entry.update(action="scale", factor=0.5), "does not fit"),
        (lambda entry: entry.update(action="scale"), "damaged"),
        (lambda entry: entry.pop("time"), "damaged"),
        (lambda entry: entry.update(more=1), "damaged"),
    ],
)
def test_a_journal_that_does_not_fit_is_refused(tmp_path: Path, change, message) -> None:
    model = shared()
    with edited(model, [("remove", ["film"], None)]):
        model.save_pretrained(tmp_path / "m")
    path = tmp_path / "m" / "edits.json"
    [entry] = json.loads(path.read_text(encoding="utf-8"))
    change(entry)
    path.write_text(json.dumps([entry]), encoding="utf-8")
    with pytest.raises(ModelError, match=message):
        LexicalSAE.from_pretrained(tmp_path / "m")


def test_a_folder_from_before_edits_is_read(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    shared().save_pretrained(tmp_path / "m")
    (tmp_path / "m" / "edits.json").unlink()
    weights = load_file(tmp_path / "m" / "model.safetensors")
    weights.pop("lexicon.scale_V")
    save_file(weights, tmp_path / "m" / "model.safetensors")
    again = LexicalSAE.from_pretrained(tmp_path / "m")
    assert again.lexicon.edits == []
    assert model_hash(again) == model_hash(shared())
