"""The fast path is the tensor interface without its tensors; a removed word stays at zero whatever comes."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from splade.config.model import BackboneRecord, LexicalConfig
from splade.kernels import reference
from splade.models.build import assemble
from splade.models.layers.activation import GATES
from splade.models.lexical_sae import LexicalSAE
from splade.models.lexicon import HONESTY_MODES, Lexicon, LexiconSpec
from splade.models.materialised import allowed
from splade.models.state import SparseRows
from tests.models.twins import decide, gradients
from tests.tiny import FAMILIES, SENTENCES, Sizes, tiny_backbone, tiny_batch, tiny_model

GATE_NAMES, POOLING_NAMES, HEAD_NAMES = sorted(GATES), ["max", "attention"], ["relu_mlp", "bcos"]
CLOSE = {"atol": 2e-5, "rtol": 2e-5}


def assert_both_ways_agree(model: LexicalSAE, ids: Tensor, mask: Tensor) -> None:
    """For documents and for labelled positions, in values, places and logits."""
    sparse_BLV, _ = model(ids, mask)
    slow, fast = model.classify(sparse_BLV, mask), model.decide(model.encode(ids, mask))
    torch.testing.assert_close(fast.sparse_vector, slow.sparse_vector, **CLOSE)
    torch.testing.assert_close(fast.logits, slow.logits, **CLOSE)
    assert torch.equal(fast.rows.source_position_Q, slow.rows.source_position_Q)
    torch.testing.assert_close(fast.rows.source_share_Q, slow.rows.source_share_Q, **CLOSE)

    state = model.decide(model.encode(ids, mask, mask))
    torch.testing.assert_close(state.sparse_vector, sparse_BLV[mask.bool()], **CLOSE)
    torch.testing.assert_close(state.logits, model.tag(sparse_BLV)[mask.bool()], **CLOSE)
    assert torch.equal(state.rows.source_position_Q, mask.nonzero()[:, 1][state.rows.row_P])


@pytest.mark.parametrize("topk", [0, 3])
@pytest.mark.parametrize("pooling", POOLING_NAMES)
@pytest.mark.parametrize("gate", GATE_NAMES)
@pytest.mark.parametrize("honesty", HONESTY_MODES)
def test_fast_path_agrees_with_the_tensor_interface(honesty: str, gate: str, pooling: str, topk: int) -> None:
    for head in HEAD_NAMES:
        model = tiny_model(honesty=honesty, gate=gate, pooling=pooling, head=head, topk=topk)
        ids, mask = tiny_batch(model)
        assert model.encode(ids, mask).value_P.any()
        assert_both_ways_agree(model, ids, mask)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_agrees_with_its_tensor_interface(family: str) -> None:
    model = tiny_model(family)
    assert_both_ways_agree(model, *tiny_batch(model))


@pytest.mark.parametrize("honesty", HONESTY_MODES)
@settings(max_examples=8)
@given(st.lists(st.text(max_size=40), min_size=1, max_size=4))
def test_both_ways_agree_on_any_text(honesty: str, texts: list[str]) -> None:
    model = tiny_model(honesty=honesty)
    assert_both_ways_agree(model, *tiny_batch(model, texts))


@pytest.mark.parametrize(("honesty", "pooling"), itertools.product(HONESTY_MODES, POOLING_NAMES))
def test_hard_inputs_are_read_both_ways_alike(honesty: str, pooling: str) -> None:
    """One token, only special tokens, a row without any token, and tensors that are not contiguous."""
    model = tiny_model(honesty=honesty, pooling=pooling)
    ids, mask = tiny_batch(model, ["clever film", "", "😀 🎉"])
    hard = [
        (ids[:1, 1:2], mask[:1, 1:2]),
        (ids[1:2, :2], mask[1:2, :2]),
        (ids, mask * torch.tensor([[1], [1], [0]])),
        (ids.T.contiguous().T, mask.T.contiguous().T),
    ]
    for case in hard:
        assert_both_ways_agree(model, *case)
    nothing = model.decide(model.encode(ids[1:2], mask[1:2]))
    empty = nothing.rows.where(torch.zeros_like(nothing.rows.open_P))
    assert not nothing.rows.value_P.any()
    torch.testing.assert_close(nothing.logits, model.head(empty))


def test_the_soft_gate_is_a_probability_that_is_zero_where_no_word_may_speak() -> None:
    model = tiny_model()
    ids, mask = tiny_batch(model)
    sparse_BLV, probability_BLV = model(ids, mask)
    assert sparse_BLV.shape == probability_BLV.shape == (*ids.shape, model.backbone.vocab_size)
    assert ((probability_BLV >= 0) & (probability_BLV <= 1)).all()
    assert torch.equal(sparse_BLV > 0, probability_BLV > 0.5)
    assert not probability_BLV[~allowed(model, ids, mask)].any()


def test_licensed_words_alone_are_active() -> None:
    model = tiny_model(honesty="licensed-static")
    ids, mask = tiny_batch(model)
    rows = model.encode(ids, mask)
    licensed = model.lexicon.licensed(ids)[rows.row_P, rows.source_position_Q]
    assert (licensed == rows.word_P[:, None]).any(-1).all()


def test_only_dictionary_words_are_active_and_free_mode_knows_function_words() -> None:
    grounded, free = tiny_model(opened=40), tiny_model(honesty="free", opened=40)
    for model in (grounded, free):
        assert model.lexicon.dictionary_V[decide(model).rows.word_P].all()
    assert not grounded.lexicon.function_V[decide(grounded).rows.word_P].any()
    assert free.lexicon.function_V[decide(free).rows.word_P].any()


def test_topk_keeps_the_largest_words_of_a_position_and_only_in_prediction() -> None:
    model = tiny_model(task="tagging", opened=20)
    ids, mask = tiny_batch(model)
    everything = model.encode(ids, mask, mask)
    model.config.topk_per_position = 2
    cut = model.encode(ids, mask, mask)
    assert float(everything.active_N.max()) > 2
    assert torch.equal(cut.dense(), everything.where(everything.largest(2)).dense())
    model.train()
    model.backbone.eval()
    assert torch.equal(model.encode(ids, mask, mask).active_N, everything.active_N)


def test_a_marked_special_token_is_an_empty_row() -> None:
    model = tiny_model(task="tagging", opened=30)
    ids, mask = tiny_batch(model)
    rows = model.encode(ids, mask, mask)
    special_N = ~model.lexicon.valid(ids, mask)[mask.bool()]
    assert special_N.any()
    assert not rows.active_N[special_N].any()
    assert rows.active_N[~special_N].any()


def test_predictions_repeat_to_the_bit_and_padding_moves_them_by_rounding_only() -> None:
    model = tiny_model()
    together = decide(model).logits
    assert torch.equal(together, decide(model).logits)
    alone = torch.cat([decide(model, (text,)).logits for text in SENTENCES])
    torch.testing.assert_close(together, alone, atol=1e-4, rtol=1e-4)


def test_activations_and_logits_stay_in_float32_under_autocast() -> None:
    for honesty in ("grounded", "licensed-static"):
        model = tiny_model(honesty=honesty)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            state = decide(model)
        assert state.rows.value_P.dtype == state.rows.logit_P.dtype == state.logits.dtype == torch.float32
        assert state.rows.value_P.any()


# --- removed words -------------------------------------------------------------------------------------


def hostile(model: LexicalSAE, word: int, kind: str) -> None:
    """Make the logit of `word` extreme at every position."""
    value = {"huge": 1e30, "inf": float("inf"), "nan": float("nan")}.get(kind)
    with torch.no_grad():
        if value is not None:
            model.backbone.E_VH[word] = value
        if kind == "bias" and model.backbone.e_V is not None:
            model.backbone.e_V[word] = float("inf")
        if kind == "threshold":
            model.gate.raw_V[word] = -1e30


def both_dense(model: LexicalSAE, h_BLH: Tensor, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """s [B, V] by the fast path and by the tensor interface, where the encoder says h."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model.backbone, "forward", lambda *_: h_BLH)
        return model.encode(ids, mask).dense(), model.classify(model(ids, mask)[0], mask).sparse_vector


@pytest.mark.parametrize("kind", ["plain", "huge", "inf", "nan", "bias", "threshold"])
@pytest.mark.parametrize(("gate", "pooling"), itertools.product(GATE_NAMES, POOLING_NAMES))
def test_a_removed_word_is_zero_for_every_input(gate: str, pooling: str, kind: str) -> None:
    model = tiny_model(gate=gate, pooling=pooling, opened=20)
    ids, mask = tiny_batch(model)
    h_BLH = model.backbone(ids, mask).detach()
    before, _ = both_dense(model, h_BLH, ids, mask)
    word = int(before.sum(0).argmax())
    model.lexicon.keep_V[word] = False
    hostile(model, word, kind)
    for training in (False, True):
        model.train(training)
        for s_BV in both_dense(model, h_BLH, ids, mask):
            assert not s_BV[:, word].any()
            others = torch.arange(s_BV.shape[1]) != word
            assert s_BV.isfinite().all()
            if pooling == "max":
                torch.testing.assert_close(s_BV[:, others], before[:, others], **CLOSE)


@settings(max_examples=15)
@given(st.integers(0, 2**16), st.sampled_from([float("inf"), -float("inf"), float("nan"), 1e38, -1e38]))
def test_a_removed_word_is_zero_for_every_state_of_the_encoder(seed: int, value: float) -> None:
    model = tiny_model()
    ids, mask = tiny_batch(model, SENTENCES[:3])
    model.lexicon.keep_V[model.lexicon.words()[::2]] = False
    torch.manual_seed(seed)
    h_BLH = torch.randn(*ids.shape, model.backbone.E_VH.shape[1]) * 10
    h_BLH[torch.rand(h_BLH.shape) < 0.1] = value
    for s_BV in both_dense(model, h_BLH, ids, mask):
        assert not s_BV[:, ~model.lexicon.keep_V].any()


@pytest.mark.parametrize("honesty", HONESTY_MODES)
def test_under_max_pooling_no_other_word_moves_by_a_bit(honesty: str) -> None:
    model = tiny_model(honesty=honesty)
    before = decide(model).rows
    words = before.word_P.unique()[::3]
    model.lexicon.keep_V[words] = False
    after = decide(model).rows
    assert torch.equal(after.dense(), before.without(words).dense())
    assert not torch.isin(after.word_P, words).any()


def test_with_topk_a_removed_word_keeps_its_place_so_that_no_other_word_enters() -> None:
    model = tiny_model(task="tagging", opened=20, topk=2)
    ids, mask = tiny_batch(model)
    before = model.encode(ids, mask, mask)
    words = before.word_P.unique()[::2]
    model.lexicon.keep_V[words] = False
    assert torch.equal(model.encode(ids, mask, mask).dense(), before.without(words).dense())
    assert_both_ways_agree(model, ids, mask)


@pytest.mark.parametrize("gate", GATE_NAMES)
@pytest.mark.parametrize("kind", ["plain", "inf", "nan", "bias"])
def test_training_neither_moves_nor_is_poisoned_by_a_removed_word(gate: str, kind: str) -> None:
    model = tiny_model(gate=gate, opened=20)
    ids, mask = tiny_batch(model)
    h_BLH = model.backbone(ids, mask).detach().requires_grad_()
    word = int(decide(model).sparse_vector.sum(0).argmax())
    model.lexicon.keep_V[word] = False
    hostile(model, word, kind)
    model.train()
    for way in ("fast", "tensors"):
        model.zero_grad()
        h_BLH.grad = None
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(model.backbone, "forward", lambda *_: h_BLH)
            rows = (
                model.encode(ids, mask) if way == "fast" else model.classify(model(ids, mask)[0], mask).rows
            )
        model.decide(rows).logits.square().sum().backward()
        for gradient in (h_BLH.grad, *(p.grad for p in model.parameters() if p.grad is not None)):
            assert gradient is not None
            assert gradient.isfinite().all()
        for table in (model.gate.raw_V, model.head.W_in, model.backbone.E_VH):
            assert table.grad is not None
            assert table.grad.any()
            assert not table.grad[word].any()


def test_an_encoder_that_fails_at_padding_poisons_no_gradient() -> None:
    model = tiny_model()
    ids, mask = tiny_batch(model)
    h_BLH = model.backbone(ids, mask).detach()
    h_BLH = torch.where(mask[..., None].bool(), h_BLH, float("nan"))
    for way in ("fast", "tensors"):
        model.zero_grad()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(model.backbone, "forward", lambda *_: h_BLH)
            rows = (
                model.encode(ids, mask) if way == "fast" else model.classify(model(ids, mask)[0], mask).rows
            )
        model.decide(rows).logits.square().sum().backward()
        assert model.backbone.E_VH.grad is not None
        assert model.backbone.E_VH.grad.any()
        assert model.backbone.E_VH.grad.isfinite().all()


# --- gradients -----------------------------------------------------------------------------------------


def dense_rows(model: LexicalSAE, h_BLH: Tensor, ids: Tensor, mask: Tensor) -> Tensor:
    """s [B, V] from materialised logits, closed words included, so that every surrogate gradient flows."""
    z_BLV = nn.functional.linear(h_BLH, model.backbone.E_VH, model.backbone.e_V)
    z_BLV = torch.where(allowed(model, ids, mask) & model.lexicon.keep_V, z_BLV, float("-inf"))
    if model.config.pooling == "max":
        best_BV = z_BLV.max(dim=1).values  # the first of equals, as everywhere
        return model.gate(best_BV, model.gate.theta())
    s_BLV = model.gate(z_BLV, model.gate.theta())
    score_BL = (s_BLV @ model.pooling.query_V).masked_fill(~(s_BLV > 0).any(-1), -1e30)
    return torch.einsum("bl,blv->bv", score_BL.softmax(-1), s_BLV)


def dense_logits(model: LexicalSAE, s_BV: Tensor) -> Tensor:
    hidden = torch.relu(s_BV @ model.head.W_in + model.head.b1)
    return model.head.out(hidden)


@pytest.mark.parametrize("honesty", HONESTY_MODES)
@pytest.mark.parametrize(("gate", "pooling"), itertools.product(GATE_NAMES, POOLING_NAMES))
def test_gradients_of_training_are_those_of_the_materialised_model(
    gate: str, pooling: str, honesty: str
) -> None:
    model = tiny_model(gate=gate, pooling=pooling, honesty=honesty, opened=20).train()
    ids, mask = tiny_batch(model)
    h_BLH = model.backbone.eval()(ids, mask).detach().requires_grad_()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model.backbone, "forward", lambda *_: h_BLH)
        if model.frozen is not None:
            top_BLK = tiny_model(honesty=honesty).frozen.top_words(ids, mask)
            patch.setattr(model.frozen, "top_words", lambda *_: top_BLK)
        fast = model.decide(model.encode(ids, mask))
        dense_BV = dense_rows(model, h_BLH, ids, mask)
        slow = dense_logits(model, dense_BV)
    assert gate == "drelu" or not fast.rows.open_P.all(), "no threshold learns from below"
    torch.testing.assert_close(fast.sparse_vector, dense_BV, **CLOSE)
    torch.testing.assert_close(fast.logits, slow, **CLOSE)
    expected = gradients(model, h_BLH, slow)
    for name, gradient in gradients(model, h_BLH, fast.logits).items():
        scale = float(expected[name].abs().max())
        assert scale > 0 or name == "theta", name
        torch.testing.assert_close(gradient, expected[name], atol=1e-4 * max(scale, 1.0), rtol=1e-4, msg=name)


@pytest.mark.parametrize("pooling", POOLING_NAMES)
def test_gradients_of_both_ways_agree_where_gates_are_open(pooling: str) -> None:
    model = tiny_model(pooling=pooling)
    ids, mask = tiny_batch(model)
    h_BLH = model.backbone(ids, mask).detach().requires_grad_()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model.backbone, "forward", lambda *_: h_BLH)
        fast = model.decide(model.encode(ids, mask)).logits
        slow = model.classify(model(ids, mask)[0], mask).logits
    expected = gradients(model, h_BLH, slow)
    for name, gradient in gradients(model, h_BLH, fast).items():
        torch.testing.assert_close(gradient, expected[name], atol=1e-4, rtol=1e-4, msg=name)


# --- sizes ---------------------------------------------------------------------------------------------

V, B, L, C, D = 3000, 8, 12, 5, 24


def wide_model(honesty: str, pooling: str) -> LexicalSAE:
    """V much larger than all else, every word an ordinary one, about one gate in a hundred open."""
    names = ["w" + "".join(chr(97 + int(digit)) for digit in str(j)) for j in range(V)]
    lexicon = Lexicon(names, [True] * V, [0], [], LexiconSpec(honesty))
    backbone = tiny_backbone("bert", V, hidden_size=8, num_attention_heads=2, intermediate_size=8)
    config = LexicalConfig(
        label_names=[*"abcde"],
        backbone=BackboneRecord(name="wide"),
        honesty=honesty,
        pooling=pooling,
        width=D,
    )
    model = assemble(config, backbone, lexicon, None)
    if honesty == "licensed-static":
        lexicon.build_licences(backbone.E_VH.detach())
    z = nn.functional.linear(model.backbone(*wide_batch()), backbone.E_VH, backbone.e_V).detach()
    model.gate.set_threshold(float(z.flatten().quantile(0.998)))
    model.gate.epsilon = 0.02 * float(z.std())
    return model.train()


def wide_batch() -> tuple[Tensor, Tensor]:
    ids = torch.randint(1, V, (B, L), generator=torch.Generator().manual_seed(0))
    return ids, torch.ones_like(ids)


@pytest.mark.parametrize("tagging", [False, True])
@pytest.mark.parametrize("pooling", POOLING_NAMES)
@pytest.mark.parametrize("honesty", ["grounded", "licensed-static"])
def test_nothing_of_the_size_of_a_vocabulary_per_class_or_position_is_made(
    honesty: str, pooling: str, tagging: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No tensor of B·C·V elements, forward, linearised or backward; B·D·V and B·L·V are larger still."""
    model = wide_model(honesty, pooling)
    ids, mask = wide_batch()
    h_BLH = model.backbone(ids, mask).detach().requires_grad_()
    monkeypatch.setattr(model.backbone, "forward", lambda *_: h_BLH)
    monkeypatch.setattr(reference, "CHUNK_ELEMENTS", B * V)
    with Sizes() as sizes:
        state = model.decide(model.encode(ids, mask, mask if tagging else None))
        assert state.linearisation.mix_NCD.shape[1:] == (C, D)
        state.logits.square().sum().backward()
    assert state.rows.open_P.any()
    assert sizes.largest < B * C * V
    assert not any(len(shape) >= 3 and V in shape and B in shape for shape in sizes.shapes)


def test_the_spy_sees_the_tensors_of_the_tensor_interface() -> None:
    model = wide_model("grounded", "max")
    ids, mask = wide_batch()
    with Sizes() as sizes:
        model(ids, mask)
    assert sizes.largest >= B * L * V


def test_effective_weights_are_made_only_when_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "CHUNK_ELEMENTS", B * V)
    model = wide_model("grounded", "max").eval()
    with Sizes() as sizes:
        state = model.decide(model.encode(*wide_batch()))
    assert sizes.largest < B * C * V
    with Sizes() as sizes:
        assert state.W_eff.shape == (B, C, V)
    assert sizes.largest >= B * C * V


# --- the values passed on ------------------------------------------------------------------------------


@pytest.mark.parametrize("head", HEAD_NAMES)
@pytest.mark.parametrize("honesty", HONESTY_MODES)
def test_contributions_and_bias_sum_to_every_logit(honesty: str, head: str) -> None:
    state = decide(tiny_model(honesty=honesty, head=head))
    rebuilt = torch.einsum("nv,ncv->nc", state.sparse_vector, state.W_eff) + state.b_eff
    torch.testing.assert_close(rebuilt, state.logits, **CLOSE)


def test_a_tagging_state_is_the_same_value_by_position() -> None:
    model = tiny_model(task="tagging", classes=5)
    ids, mask = tiny_batch(model)
    state = model.tag_circuit(model(ids, mask)[0])
    assert state.by_position(state.logits).shape == (*ids.shape, 5)
    assert torch.equal(state.by_position(state.logits), model.tag(model(ids, mask)[0]))
    rebuilt = torch.einsum("nv,ncv->nc", state.sparse_vector, state.W_eff) + state.b_eff
    torch.testing.assert_close(rebuilt, state.logits, **CLOSE)


def test_a_grounded_model_needs_no_frozen_lm_to_predict() -> None:
    assert tiny_model().frozen is None
    assert tiny_model(honesty="licensed-static").frozen is None


def test_rows_know_their_offsets_and_counts() -> None:
    rows: SparseRows = decide(tiny_model()).rows
    dense = rows.dense()
    assert rows.active_N.tolist() == (dense > 0).sum(1).tolist()
    counts = torch.bincount(rows.row_P, minlength=rows.n_rows)
    assert rows.offsets_N.tolist() == [0, *counts.cumsum(0).tolist()[:-1]]
    torch.testing.assert_close(rows.sum_by_row(rows.value_P), dense.sum(1))
