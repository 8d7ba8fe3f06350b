"""Embeddings and layers add up to the logit, each is what the model with its state says; nothing stays."""

from __future__ import annotations

import json

import pytest
import torch
from torch import Tensor

from splade.config.model import SensesRecord
from splade.errors import ModelError
from splade.mechanistic.layer_stack import LayerStack
from splade.mechanistic.layerwise import LayerParts, LayerwiseFitter, layer_parts, left_out
from splade.models.build import add_senses
from splade.models.lexical_sae import LexicalSAE
from tests.tiny import FAMILIES, SENTENCES, tiny_batch, tiny_model


def stack_of(model: LexicalSAE, batch: tuple[Tensor, Tensor]) -> LayerStack:
    return LayerStack.of(model.backbone, *batch)


def parts_of(model: LexicalSAE, row_mask: Tensor | None = None) -> LayerParts:
    batch = tiny_batch(model)
    return layer_parts(model, stack_of(model, batch), *batch, row_mask)


def assert_exact(found: LayerParts) -> None:
    assert float(found.parts_KNC.abs().max()) > 0.1
    assert float(found.residual_NC.max()) < 1e-6
    torch.testing.assert_close(found.total_NC, found.state.logits.double(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_embeddings_layers_and_bias_add_up_to_the_logit(family: str) -> None:
    found = parts_of(tiny_model(family))
    assert len(found.parts_KNC) == 3, "the embeddings and two layers"
    assert_exact(found)


@pytest.mark.parametrize(
    "kinds",
    [
        {"pooling": "attention"},
        {"gate": "drelu"},
        {"gate": "gated_jumprelu", "pooling": "attention"},
        {"head": "bcos"},
        {"honesty": "licensed-static"},
        {"honesty": "licensed-contextual"},
        {"topk": 2},
    ],
    ids=str,
)
def test_every_kind_of_model_adds_up(kinds: dict[str, object]) -> None:
    assert_exact(parts_of(tiny_model(**kinds)))


def test_tagged_positions_and_senses_add_up() -> None:
    tagger = tiny_model(task="tagging")
    ids, mask = tiny_batch(tagger)
    row_mask = mask.bool() & (torch.arange(ids.shape[1]) % 2 == 1)
    found = parts_of(tagger, row_mask)
    assert found.parts_KNC.shape[1] == int(row_mask.sum())
    assert_exact(found)
    model = tiny_model(opened=20)
    add_senses(model, SensesRecord(token_ids=model.lexicon.words()[:40].tolist(), num_senses=2))
    torch.nn.init.normal_(model.expander.P_KMH)
    assert_exact(parts_of(model))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_last_state_read_out_is_bit_for_bit_what_entered_the_decoder(family: str) -> None:
    model = tiny_model(family)
    batch = tiny_batch(model)
    stack = stack_of(model, batch)
    states = stack.states(*batch)
    with torch.no_grad():
        assert torch.equal(stack.read_out(states[-1], *batch), model.backbone(*batch))
        assert not torch.allclose(stack.read_out(states[0], *batch), model.backbone(*batch))


def test_a_final_norm_is_found_where_there_is_one_and_only_there() -> None:
    norms = {}
    for family in FAMILIES:
        model = tiny_model(family)
        norms[family] = stack_of(model, tiny_batch(model)).norm
        if family == "modernbert":
            assert norms[family] is model.backbone.mlm.base_model.final_norm
    assert [family for family, norm in norms.items() if norm is not None] == ["modernbert"]


def test_a_norm_after_the_recorded_states_is_found_too() -> None:
    """Other releases of some architectures record the last state before its norm."""
    model = tiny_model("modernbert")
    batch = tiny_batch(model)
    base = model.backbone.mlm.base_model
    new, own, last = parts_of(model), base.forward, []
    base.final_norm.register_forward_pre_hook(lambda _, inputs: last.append(inputs[0]))

    def forward(*inputs: object, **named: object) -> object:
        output = own(*inputs, **named)
        if output.hidden_states is not None:
            output.hidden_states = (*output.hidden_states[:-1], last[-1])
        return output

    base.forward = forward
    stack = stack_of(model, batch)
    assert stack.norm is base.final_norm
    torch.testing.assert_close(layer_parts(model, stack, *batch).parts_KNC, new.parts_KNC)


def test_parts_are_those_of_the_linear_decision_at_substituted_states() -> None:
    model = tiny_model()
    batch = tiny_batch(model)
    stack, found = stack_of(model, batch), parts_of(model)
    rows, W_NCV = found.state.rows, found.state.W_eff.double()
    states, backbone = stack.states(*batch), model.backbone
    for k, state in enumerate(states):
        z_BLV = stack.read_out(state, *batch) @ backbone.E_VH.T + backbone.e_V
        expected_NC = torch.zeros_like(found.total_NC)
        for row, word, at in zip(rows.row_P, rows.word_P, rows.source_position_Q, strict=True):
            expected_NC[row] += W_NCV[row, :, word] * z_BLV[row, at, word].double()
        torch.testing.assert_close(found.parts_KNC[: k + 1].sum(0), expected_NC, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_leaving_a_layer_out_passes_its_input_on(family: str) -> None:
    model = tiny_model(family)
    batch = tiny_batch(model)
    stack = stack_of(model, batch)
    states = stack.states(*batch)
    expected = stack.read_out(states[1], *batch)  # without the last layer, the model ends in the first's work
    with torch.no_grad(), stack.without(1):
        assert torch.equal(model.backbone(*batch), expected)
        assert torch.equal(model.backbone(*batch), expected), "in a second pass too"
    with stack.without(0):
        skipped = stack.states(*batch)
    assert torch.equal(skipped[0], states[0])
    assert not torch.equal(skipped[-1], states[-1])
    assert left_out(model, stack, *batch).shape == (2, len(SENTENCES), 3)


@pytest.mark.parametrize("family", ["albert", "modernbert"])
def test_a_model_is_bit_for_bit_the_same_afterwards(family: str) -> None:
    model = tiny_model(family)
    batch = tiny_batch(model)
    with torch.no_grad():
        before = model.decide(model.encode(*batch)).logits
        stack_of(model, batch)  # the library's own recorders of hidden states are installed once and stay
        hooks = [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()]
        fitter = LayerwiseFitter(model)
        fitter.update(*batch)
        assert torch.equal(model.decide(model.encode(*batch)).logits, before)
    assert [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()] == hooks
    assert "forward" not in vars(model.backbone.mlm.base_model)


def test_means_do_not_depend_on_the_batches() -> None:
    model = tiny_model()
    whole, parts = LayerwiseFitter(model), LayerwiseFitter(model)
    whole.update(*tiny_batch(model))
    for i in range(0, len(SENTENCES), 3):
        parts.update(*tiny_batch(model, SENTENCES[i : i + 3]))
    one, other = whole.result(), parts.result()
    assert one.rows == other.rows == len(SENTENCES)
    assert one.max_relative_residual < 1e-6
    for a, b in zip(one.classes, other.classes, strict=True):
        assert a.embeddings + sum(a.layers) + a.bias == pytest.approx(a.logit, abs=1e-5)
        assert a.left_out == pytest.approx(b.left_out, abs=1e-5)
        assert a.layers == pytest.approx(b.layers, abs=1e-5)
        assert len(a.layers) == len(a.left_out) == 2
    assert json.loads(json.dumps(one.to_dict()))["classes"][0]["label"] == "class a"


def test_rows_without_words_have_no_layers() -> None:
    model = tiny_model()
    fitter = LayerwiseFitter(model)
    fitter.update(*tiny_batch(model, [""]))
    for found in fitter.result().classes:
        assert found.embeddings == 0
        assert found.layers == [0, 0]
        assert found.logit == pytest.approx(found.bias)
    assert LayerwiseFitter(model).result().classes == []


def test_a_model_without_hidden_states_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_model()
    batch = tiny_batch(model)
    base = model.backbone.mlm.base_model
    own = base.forward
    named = lambda kinds: {**kinds, "output_hidden_states": False}  # noqa: E731
    monkeypatch.setattr(base, "forward", lambda *inputs, **kinds: own(*inputs, **named(kinds)))
    with pytest.raises(ModelError, match="no layerwise view"):
        stack_of(model, batch)
