"""A word of several senses has a dimension for each; a position speaks of one, and nothing else changes."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from splade.config.model import BackboneRecord, LexicalConfig, SensesRecord
from splade.errors import ModelError
from splade.intervene import SuppressedModel, suppress_token_globally
from splade.kernels import reference
from splade.mechanistic.attribution import compute_attribution_tensor, residual
from splade.models.build import add_senses, assemble, calibrate
from splade.models.frozen import FrozenLM, TopWords
from splade.models.layers.activation import GATES
from splade.models.layers.virtual_expander import VirtualExpander
from splade.models.lexical_sae import LexicalSAE
from splade.models.lexicon import HONESTY_MODES, Lexicon, LexiconSpec
from splade.models.materialised import allowed
from tests.models.twins import decide, gradients
from tests.tiny import FAMILIES, SENTENCES, Sizes, tiny_backbone, tiny_batch, tiny_model

GATE_NAMES, POOLING_NAMES, HEAD_NAMES = sorted(GATES), ["max", "attention"], ["relu_mlp", "bcos"]
CLOSE = {"atol": 2e-5, "rtol": 2e-5}
NEVER = float("-inf")


def split(model: LexicalSAE, count: int = 5, senses: int = 2) -> LexicalSAE:
    """The most active words of a model expanded, with directions that send positions everywhere."""
    model.eval()
    ids, mask = tiny_batch(model)
    mass_V = model.encode(ids, mask, mask).dense().sum(0)
    words = mass_V.topk(count).indices.tolist()
    assert mass_V[words].all()
    add_senses(model, SensesRecord(token_ids=words, num_senses=senses))
    maker = torch.Generator().manual_seed(5)
    h_NH = model.backbone(ids, mask)[mask.bool()].detach()
    with torch.no_grad():
        P_KMH = torch.randn(model.expander.P_KMH.shape, generator=maker)
        model.expander.P_KMH.copy_(P_KMH / h_NH.norm(dim=-1).mean())
        model.expander.c_KM.copy_(-model.expander.P_KMH @ h_NH.mean(0))
    return model


def split_model(senses: int = 2, **kind: object) -> LexicalSAE:
    return split(tiny_model(**{"opened": 20, **kind}), senses=senses)


def folded(model: LexicalSAE, s_NV: Tensor) -> Tensor:
    """The senses of every word added up, [N, decoder rows]."""
    out = s_NV.new_zeros(len(s_NV), model.lexicon.decoder_rows)
    return out.index_add(1, model.lexicon.word_V, s_NV)


def assert_both_ways_agree(model: LexicalSAE, ids: Tensor, mask: Tensor) -> None:
    sparse_BLV, soft_BLV = model(ids, mask)
    assert sparse_BLV.shape == soft_BLV.shape == (*ids.shape, model.lexicon.vocab_size)
    slow, fast = model.classify(sparse_BLV, mask), model.decide(model.encode(ids, mask))
    torch.testing.assert_close(fast.sparse_vector, slow.sparse_vector, **CLOSE)
    torch.testing.assert_close(fast.logits, slow.logits, **CLOSE)
    assert torch.equal(fast.rows.source_position_Q, slow.rows.source_position_Q)
    torch.testing.assert_close(fast.rows.source_share_Q, slow.rows.source_share_Q, **CLOSE)
    state = model.decide(model.encode(ids, mask, mask))
    torch.testing.assert_close(state.sparse_vector, sparse_BLV[mask.bool()], **CLOSE)
    torch.testing.assert_close(state.logits, model.tag(sparse_BLV)[mask.bool()], **CLOSE)


# --- the two ways to s ---------------------------------------------------------------------------------


@pytest.mark.parametrize("topk", [0, 3])
@pytest.mark.parametrize("pooling", POOLING_NAMES)
@pytest.mark.parametrize(("honesty", "gate"), itertools.product(HONESTY_MODES, GATE_NAMES))
def test_the_fast_path_agrees_with_the_tensor_interface(
    honesty: str, gate: str, pooling: str, topk: int
) -> None:
    model = split_model(honesty=honesty, gate=gate, pooling=pooling, topk=topk, senses=3)
    with torch.no_grad():  # each slot owns a threshold
        model.gate.raw_V[model.lexicon.decoder_rows :].sub_(0.3)
        model.gate.clamp_()
    ids, mask = tiny_batch(model)
    rows = model.encode(ids, mask)
    assert (rows.word_P >= model.lexicon.decoder_rows).any(), "no further sense is active"
    assert_both_ways_agree(model, ids, mask)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_can_be_expanded(family: str) -> None:
    model = split_model(family=family)
    assert_both_ways_agree(model, *tiny_batch(model))


@settings(max_examples=10)
@given(st.lists(st.text(max_size=40), min_size=1, max_size=4))
def test_both_ways_agree_on_any_text(texts: list[str]) -> None:
    model = split_model()
    assert_both_ways_agree(model, *tiny_batch(model, texts))


def test_activations_stay_in_float32_under_autocast() -> None:
    model = split_model()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        state = decide(model)
    assert state.rows.value_P.dtype == state.logits.dtype == torch.float32
    assert (state.rows.word_P >= model.lexicon.decoder_rows).any()


def test_a_position_speaks_of_one_sense_at_most_and_the_choice_is_the_best_score() -> None:
    model = split_model(task="tagging", senses=3)
    ids, mask = tiny_batch(model)
    expander = model.expander
    s_NKM = model.encode(ids, mask, mask).dense()[:, expander.slot_KM]
    h_NH = model.backbone(ids, mask)[mask.bool()]
    best_NK = (torch.einsum("nh,kmh->nkm", h_NH, expander.P_KMH) + expander.c_KM).argmax(-1)
    assert ((s_NKM > 0).sum(-1) <= 1).all()
    open_NK = s_NKM.amax(-1) > 0
    assert torch.equal(s_NKM.argmax(-1)[open_NK], best_NK[open_NK])
    assert len(best_NK[open_NK].unique()) == 3


# --- what expansion leaves as it was -------------------------------------------------------------------


@pytest.mark.parametrize("gate", GATE_NAMES)
@pytest.mark.parametrize("honesty", HONESTY_MODES)
def test_at_positions_the_senses_add_up_to_the_word_and_no_logit_changes(honesty: str, gate: str) -> None:
    model = tiny_model(honesty=honesty, gate=gate, task="tagging", opened=20)
    ids, mask = tiny_batch(model)
    before = model.decide(model.encode(ids, mask, mask))
    after = split(model).decide(model.encode(ids, mask, mask))
    assert (after.rows.word_P >= model.lexicon.decoder_rows).any()
    assert torch.equal(folded(model, after.sparse_vector), before.sparse_vector)
    torch.testing.assert_close(after.logits, before.logits, **CLOSE)


def test_under_attention_pooling_no_logit_changes() -> None:
    """The pooled value is linear in the positions, so the senses share what the word had."""
    model = tiny_model(pooling="attention", opened=20)
    before = decide(model)
    after = decide(split(model))
    assert (after.rows.word_P >= model.lexicon.decoder_rows).any()
    torch.testing.assert_close(folded(model, after.sparse_vector), before.sparse_vector, **CLOSE)
    torch.testing.assert_close(after.logits, before.logits, **CLOSE)


def test_under_max_pooling_logits_change_by_the_second_senses_of_a_text_and_by_nothing_else() -> None:
    model = tiny_model(opened=20)
    texts = (*SENTENCES, "clever", "Paris")  # one position means one sense of a word
    before = decide(model, texts)
    after = decide(split(model, count=8), texts)
    expander = model.expander
    s_BKM = after.sparse_vector[:, expander.slot_KM]
    torch.testing.assert_close(s_BKM.amax(-1), before.sparse_vector[:, expander.word_K], **CLOSE)
    again_BK = s_BKM.sum(-1) - s_BKM.amax(-1)
    extra_BD = again_BK @ model.head.W_in[expander.word_K]
    u_BD = before.sparse_vector @ model.head.W_in[: model.lexicon.decoder_rows]
    torch.testing.assert_close(model.head.project(after.rows), u_BD + extra_BD, **CLOSE)
    same_B = ~again_BK.any(-1)
    assert same_B.any()
    assert not same_B.all()
    torch.testing.assert_close(after.logits[same_B], before.logits[same_B], **CLOSE)
    assert (after.logits != before.logits)[~same_B].any(-1).all()


def test_slots_start_alike_in_threshold_head_and_dictionary() -> None:
    model = split_model(pooling="attention", senses=3)
    word_V, lexicon = model.lexicon.word_V, model.lexicon
    assert lexicon.vocab_size == lexicon.decoder_rows + 5 * 2 == len(word_V)
    tables = [model.gate.raw_V, model.head.W_in, model.pooling.query_V, lexicon.dictionary_V]
    for table in [*tables, lexicon.function_V, lexicon.keep_V]:
        assert len(table) == lexicon.vocab_size
        assert torch.equal(table, table[word_V])
    assert model.head.vocab_size == lexicon.vocab_size


def test_a_model_without_expansion_has_no_weights_of_it() -> None:
    model = tiny_model()
    assert not any("expander" in key for key in model.state_dict())
    assert model.config.senses is None
    assert torch.equal(model.lexicon.word_V, torch.arange(model.backbone.vocab_size))
    assert model.lexicon.surfaces == model.lexicon.names


@pytest.mark.parametrize("head", HEAD_NAMES)
@pytest.mark.parametrize("pooling", POOLING_NAMES)
@pytest.mark.parametrize("honesty", ["grounded", "licensed-static"])
def test_contributions_sum_to_the_logit(honesty: str, pooling: str, head: str) -> None:
    state = decide(split_model(honesty=honesty, pooling=pooling, head=head))
    attribution = compute_attribution_tensor(state)
    torch.testing.assert_close(attribution.total, state.logits, **CLOSE)
    assert float(residual(attribution).max()) <= 1e-6
    assert state.W_eff.shape[-1] == state.rows.vocab_size


# --- names and edits -----------------------------------------------------------------------------------


def named(model: LexicalSAE, *words: str, senses: int = 2) -> LexicalSAE:
    ids = [model.lexicon.ids(word)[0] for word in words]
    add_senses(model, SensesRecord(token_ids=ids, num_senses=senses))
    return model


def test_senses_are_numbered_and_a_word_is_found_with_all_of_them() -> None:
    model = tiny_model()
    film = model.lexicon.ids("film")[0]
    lexicon = named(model, "film", "Paris", senses=3).lexicon
    V = lexicon.decoder_rows
    assert lexicon.ids("Film ") == [film, V, V + 1]
    assert [lexicon.names[j] for j in lexicon.ids("film")] == ["film#1", "film#2", "film#3"]
    assert [lexicon.surfaces[j] for j in lexicon.ids("paris")] == ["Paris"] * 3
    assert lexicon.ids("film#2") == [V]
    assert lexicon.names[lexicon.ids("clever")[0]] == "clever"
    assert (lexicon.words() < V).all()


@pytest.mark.parametrize("pooling", POOLING_NAMES)
def test_a_removed_word_is_silent_in_all_its_senses(pooling: str) -> None:
    model = split_model(pooling=pooling)
    word = int(model.expander.word_K[0])
    name = model.lexicon.surfaces[word]
    before = decide(model)
    assert before.rows.dense()[:, model.expander.slot_KM[0]].any(0).all()
    with SuppressedModel(model, [name]):
        for s_BV in (decide(model).sparse_vector, model(*tiny_batch(model))[0].flatten(0, 1)):
            assert not s_BV[:, model.expander.slot_KM[0]].any()
    assert torch.equal(decide(model).logits, before.logits)
    assert set(model.expander.slot_KM[0].tolist()) <= set(suppress_token_globally(model, [name]))


def test_one_sense_can_be_removed_and_no_other_dimension_moves() -> None:
    model = split_model()
    before = decide(model).sparse_vector
    slot = int(model.expander.slot_KM[0, 0])
    suppress_token_globally(model, [model.lexicon.names[slot]])
    for after in (
        decide(model).sparse_vector,
        model.classify(model(*tiny_batch(model))[0], tiny_batch(model)[1]).sparse_vector,
    ):
        assert not after[:, slot].any()
        others = torch.arange(len(model.lexicon.names)) != slot
        torch.testing.assert_close(after[:, others], before[:, others], **CLOSE)


@pytest.mark.parametrize("gate", GATE_NAMES)
@pytest.mark.parametrize("value", [float("inf"), float("nan"), 1e30, None])
def test_training_is_not_poisoned_by_a_removed_word(gate: str, value: float | None) -> None:
    """Its decoder row holds `value`; None stands for an infinite bias, with which it passes every gate."""
    model = split_model(gate=gate)
    ids, mask = tiny_batch(model)
    h_BLH = model.backbone(ids, mask).detach().requires_grad_()
    word = int(model.expander.word_K[0])
    suppress_token_globally(model, [model.lexicon.surfaces[word]])
    with torch.no_grad():
        if value is None:
            model.backbone.e_V[word] = float("inf")
        else:
            model.backbone.E_VH[word] = value
    model.train()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model.backbone, "forward", lambda *_: h_BLH)
        for rows in (model.encode(ids, mask), model.encode(ids, mask, mask)):
            model.zero_grad()
            model.decide(rows).logits.square().sum().backward()
            for gradient in (h_BLH.grad, *(p.grad for p in model.parameters() if p.grad is not None)):
                assert gradient.isfinite().all()
            assert not model.expander.P_KMH.grad[0].any()
            assert model.expander.P_KMH.grad[1:].any()


def test_an_encoder_that_fails_at_padding_poisons_no_direction() -> None:
    model = split_model().train()
    ids, mask = tiny_batch(model)
    h_BLH = torch.where(mask[..., None].bool(), model.backbone(ids, mask).detach(), float("nan"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model.backbone, "forward", lambda *_: h_BLH)
        decide(model).logits.square().sum().backward()
    for parameter in model.expander.parameters():
        assert parameter.grad.any()
        assert parameter.grad.isfinite().all()


# --- gradients -----------------------------------------------------------------------------------------


def choice(expander: VirtualExpander, h: Tensor) -> Tensor:
    """One-hot choices with the gradient of the softmax, spelled out."""
    score = torch.einsum("...h,kmh->...km", h, expander.P_KMH) + expander.c_KM
    hard = nn.functional.one_hot(score.argmax(-1), expander.num_senses).float()
    soft = score.softmax(-1)
    return hard + soft - soft.detach()


def dense_positions(model: LexicalSAE, h_BLH: Tensor, ids: Tensor, mask: Tensor) -> Tensor:
    """s [B, L, V] in plain torch."""
    z_BLV = nn.functional.linear(h_BLH, model.backbone.E_VH, model.backbone.e_V)[..., model.lexicon.word_V]
    z_BLV = torch.where(allowed(model, ids, mask), z_BLV, NEVER)
    weight_BLV = torch.ones_like(z_BLV)
    slots = model.expander.slot_KM.flatten()
    weight_BLV = weight_BLV.index_copy(-1, slots, choice(model.expander, h_BLH).flatten(-2))
    return weight_BLV * model.gate(z_BLV, model.gate.theta())


def dense_documents(model: LexicalSAE, h_BLH: Tensor, ids: Tensor, mask: Tensor) -> Tensor:
    """s [B, V]: each slot read at the best position that means it, or else at the word's best."""
    s_BLV = dense_positions(model, h_BLH, ids, mask)
    with torch.no_grad():
        z_BLV = nn.functional.linear(h_BLH, model.backbone.E_VH, model.backbone.e_V)[
            ..., model.lexicon.word_V
        ]
        z_BLV = torch.where(allowed(model, ids, mask), z_BLV, NEVER)
        meant_BLV = torch.ones_like(z_BLV)
        slots = model.expander.slot_KM.flatten()
        meant_BLV[..., slots] = choice(model.expander, h_BLH).round().flatten(-2)
        meant_z = torch.where(meant_BLV > 0, z_BLV, NEVER)
        at_BV = torch.where(meant_z.amax(1) > NEVER, meant_z.argmax(1), z_BLV.argmax(1))
    return s_BLV.gather(1, at_BV[:, None])[:, 0]


@pytest.mark.parametrize("rows", ["documents", "positions"])
@pytest.mark.parametrize(("gate", "honesty"), itertools.product(GATE_NAMES, ["grounded", "free"]))
def test_gradients_of_training_are_those_of_the_straight_through_choice(
    gate: str, honesty: str, rows: str
) -> None:
    model = split_model(gate=gate, honesty=honesty, senses=3).train()
    ids, mask = tiny_batch(model)
    h_BLH = model.backbone.eval()(ids, mask).detach().requires_grad_()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model.backbone, "forward", lambda *_: h_BLH)
        fast = model.decide(model.encode(ids, mask, mask if rows == "positions" else None))
    dense = {"documents": dense_documents, "positions": dense_positions}[rows](model, h_BLH, ids, mask)
    dense_NV = dense[mask.bool()] if rows == "positions" else dense
    torch.testing.assert_close(fast.sparse_vector, dense_NV, **CLOSE)
    slow = model.head.out(torch.relu(dense_NV @ model.head.W_in + model.head.b1))
    torch.testing.assert_close(fast.logits, slow, **CLOSE)
    expected = gradients(model, h_BLH, slow)
    for name, gradient in gradients(model, h_BLH, fast.logits).items():
        scale = float(expected[name].abs().max())
        assert scale > 0 or name == "theta", name
        torch.testing.assert_close(gradient, expected[name], atol=1e-4 * max(scale, 1.0), rtol=1e-4, msg=name)


def test_a_sense_that_no_position_means_learns_too() -> None:
    model = split_model().train()
    with torch.no_grad():
        model.expander.c_KM[:, 1] = -3.0
        model.expander.P_KMH.mul_(0.1)
    rows = model.encode(*tiny_batch(model))
    unmeant_P = rows.logit_P == NEVER
    assert unmeant_P.any()
    assert not rows.value_P[unmeant_P].any()
    further_P = rows.word_P >= model.lexicon.decoder_rows
    assert unmeant_P[further_P].all()
    rows.value_P[further_P].sum().backward()
    assert model.expander.c_KM.grad[:, 1].gt(0).any(), "raising an unused sense would use it"
    torch.testing.assert_close(model.expander.c_KM.grad.sum(1), torch.zeros(5), **CLOSE)


@pytest.mark.parametrize("pooling", POOLING_NAMES)
def test_gradients_of_both_ways_agree_where_gates_are_open(pooling: str) -> None:
    model = split_model(pooling=pooling)
    ids, mask = tiny_batch(model)
    h_BLH = model.backbone(ids, mask).detach().requires_grad_()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model.backbone, "forward", lambda *_: h_BLH)
        fast = model.decide(model.encode(ids, mask)).logits
        slow = model.classify(model(ids, mask)[0], mask).logits
    expected = gradients(model, h_BLH, slow)
    for name, gradient in gradients(model, h_BLH, fast).items():
        torch.testing.assert_close(gradient, expected[name], atol=1e-4, rtol=1e-4, msg=name)


V, B, L, C = 3000, 8, 12, 5


def wide_model(pooling: str) -> LexicalSAE:
    names = ["w" + "".join(chr(97 + int(digit)) for digit in str(j)) for j in range(V)]
    lexicon = Lexicon(names, [True] * V, [0], [], LexiconSpec())
    backbone = tiny_backbone("bert", V, hidden_size=8, num_attention_heads=2, intermediate_size=8)
    record = BackboneRecord(name="wide")
    senses = SensesRecord(token_ids=[7, 8, 9])
    config = LexicalConfig(label_names=[*"abcde"], backbone=record, pooling=pooling, width=24, senses=senses)
    model = assemble(config, backbone, lexicon, None)
    z = nn.functional.linear(backbone(*wide_batch()), backbone.E_VH, backbone.e_V).detach()
    model.gate.set_threshold(float(z.flatten().quantile(0.998)))
    model.gate.epsilon = 0.02 * float(z.std())
    return model.train()


def wide_batch() -> tuple[Tensor, Tensor]:
    ids = torch.randint(1, V, (B, L), generator=torch.Generator().manual_seed(0))
    return ids, torch.ones_like(ids)


@pytest.mark.parametrize("tagging", [False, True])
@pytest.mark.parametrize("pooling", POOLING_NAMES)
def test_nothing_of_the_size_of_a_vocabulary_per_position_is_made(
    pooling: str, tagging: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = wide_model(pooling)
    ids, mask = wide_batch()
    h_BLH = model.backbone(ids, mask).detach().requires_grad_()
    monkeypatch.setattr(model.backbone, "forward", lambda *_: h_BLH)
    monkeypatch.setattr(reference, "CHUNK_ELEMENTS", B * V)
    with Sizes() as sizes:
        state = model.decide(model.encode(ids, mask, mask if tagging else None))
        state.logits.square().sum().backward()
    assert state.rows.open_P.any()
    assert sizes.largest < B * C * V


# --- folders, grounding, thresholds --------------------------------------------------------------------


@pytest.mark.parametrize("honesty", HONESTY_MODES)
@pytest.mark.parametrize("pooling", POOLING_NAMES)
def test_a_saved_model_predicts_the_same_to_the_bit(honesty: str, pooling: str, tmp_path: Path) -> None:
    model = split_model(honesty=honesty, pooling=pooling)
    model.config.senses.contexts = {"film#1": ["a film scene"]}
    suppress_token_globally(model, [model.lexicon.names[int(model.expander.slot_KM[1, 1])]])
    model.save_pretrained(tmp_path / "model")
    again = LexicalSAE.from_pretrained(tmp_path / "model")
    assert again.config == model.config
    assert again.lexicon.names == model.lexicon.names
    assert torch.equal(again.lexicon.keep_V, model.lexicon.keep_V)
    one, other = decide(model), decide(again)
    assert torch.equal(one.rows.dense(), other.rows.dense())
    assert torch.equal(one.logits, other.logits)


def test_a_folder_from_before_expansion_still_loads(tmp_path: Path) -> None:
    model = tiny_model()
    model.save_pretrained(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    described = json.loads(path.read_text())
    del described["senses"]
    path.write_text(json.dumps(described))
    again = LexicalSAE.from_pretrained(tmp_path / "model")
    assert torch.equal(decide(again).logits, decide(model).logits)


@pytest.mark.parametrize("words", [[3, 3], [10**6], [-1]])
def test_senses_of_unknown_words_are_a_damaged_folder(words: list[int], tmp_path: Path) -> None:
    split_model().save_pretrained(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    described = json.loads(path.read_text())
    described["senses"]["token_ids"] = words
    path.write_text(json.dumps(described))
    with pytest.raises(ModelError, match="senses of unknown words"):
        LexicalSAE.from_pretrained(tmp_path / "model")


def test_the_frozen_lm_grounds_every_sense_of_what_it_says() -> None:
    model = split_model(3, family="roberta")
    plain = FrozenLM.copy_of(model.backbone, tiny_model("roberta").lexicon)
    frozen = FrozenLM.copy_of(model.backbone, model.lexicon)
    frozen.further_WM[-1] = 0  # must not stand for 'no word', which is -1
    ids, mask = tiny_batch(model)
    top_BLK, word_BLK = frozen.top_words(ids, mask), plain.top_words(ids, mask)
    width = word_BLK.shape[-1]
    assert torch.equal(top_BLK[..., :width], word_BLK)
    said = torch.zeros(*ids.shape, model.lexicon.vocab_size + 1, dtype=torch.bool)
    said.scatter_(-1, top_BLK % said.shape[-1], True)
    words = torch.zeros(*ids.shape, model.lexicon.decoder_rows + 1, dtype=torch.bool)
    words.scatter_(-1, word_BLK % words.shape[-1], True)
    assert torch.equal(said[..., :-1], words[..., :-1][..., model.lexicon.word_V])
    assert not said[..., model.lexicon.decoder_rows :][..., :-1].all()
    documents = [model.tokenizer(text)["input_ids"] for text in SENTENCES]
    cache = TopWords(frozen, documents)
    cache.fill([range(len(SENTENCES))], lambda _: (ids, mask), lambda _: None)
    assert torch.equal(cache.batch(range(len(SENTENCES)), ids, mask).long(), top_BLK)


def test_thresholds_of_an_expanded_model_start_from_data() -> None:
    model = split_model()
    ids, mask = tiny_batch(model)
    calibrate(model, [(ids, mask, None)], 6)
    assert float(model.encode(ids, mask).active_N.mean()) == pytest.approx(6, abs=0.11)
