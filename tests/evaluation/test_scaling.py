"""Scaling metrics at their limits: gates wide open cost nothing, gates shut leave a uniform guess."""

from __future__ import annotations

import json
import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from splade.config.model import SensesRecord
from splade.data.encoding import Batch
from splade.data.rows import Sentences, Texts
from splade.evaluation.scaling import (
    HIDDEN_SHARE,
    Scaling,
    ScalingFitter,
    ablation_sparsity,
    divergence,
    guess_losses,
    hide,
    plain_relu,
)
from splade.inference.rows import EncodedRows, decide
from splade.models.build import add_senses
from splade.models.lexical_sae import LexicalSAE
from splade.models.materialised import rows_of
from tests.tiny import SENTENCES, Sizes, tiny_batch, tiny_model

TEXTS = Texts(list(SENTENCES), [i % 3 for i in range(len(SENTENCES))])
WORDS = [sentence.split() for sentence in SENTENCES]
TAGGED = Sentences(WORDS, [["B-PER", *["O"] * (len(words) - 1)] for words in WORDS])


def batch_of(model: LexicalSAE, rows: Texts | Sentences = TEXTS) -> Batch:
    return EncodedRows(rows, model).batch(range(len(rows)))


def positions(model: LexicalSAE) -> tuple[Tensor, Tensor]:
    """h and the true tokens of all text."""
    ids_BL, mask_BL = tiny_batch(model)
    valid_BL = model.lexicon.valid(ids_BL, mask_BL)
    with torch.no_grad():
        return model.backbone(ids_BL, mask_BL)[valid_BL], ids_BL[valid_BL]


def measured(model: LexicalSAE, rows: Texts | Sentences = TEXTS, seed: int = 0) -> Scaling:
    batch = batch_of(model, rows)
    fitter = ScalingFitter(model, seed)
    with torch.no_grad():
        fitter.update(batch, decide(model, batch))
    return fitter.result()


# --- the language model -----------------------------------------------------------------------------------


def test_shut_gates_leave_a_uniform_guess() -> None:
    model = tiny_model()
    model.gate.set_threshold(1e6)
    _, gated_N = guess_losses(model, *positions(model))
    torch.testing.assert_close(gated_N, torch.full_like(gated_N, math.log(model.backbone.vocab_size)))


def test_open_gates_over_all_words_lose_nothing() -> None:
    model = tiny_model(gate="drelu")
    model.gate.set_threshold(0.0)
    model.lexicon.dictionary_V.fill_(True)
    with torch.no_grad():
        model.backbone.e_V.add_(1e3)  # every logit is positive, and a constant does not move a softmax
    plain_N, gated_N = guess_losses(model, *positions(model))
    torch.testing.assert_close(plain_N, gated_N, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("topk", [0, 2])
def test_losses_are_those_of_the_dense_softmax(topk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_model(opened=40, topk=topk)
    model.lexicon.keep_V[model.lexicon.words()[0]] = False
    h_NH, true_N = positions(model)
    z_NV = F.linear(h_NH, model.backbone.E_VH, model.backbone.e_V)
    s_NV = torch.where(z_NV > model.gate.theta(), z_NV, 0.0)
    s_NV = torch.where(model.lexicon.dictionary_V & model.lexicon.keep_V, s_NV, 0.0)
    if topk:
        s_NV = torch.where(s_NV >= s_NV.topk(topk).values[:, -1:], s_NV, 0.0)
    monkeypatch.setattr("splade.evaluation.scaling._ELEMENTS_AT_ONCE", 1000)
    plain_N, gated_N = guess_losses(model, h_NH, true_N)
    torch.testing.assert_close(plain_N, F.cross_entropy(z_NV, true_N, reduction="none"))
    torch.testing.assert_close(gated_N, F.cross_entropy(s_NV, true_N, reduction="none"))
    assert not torch.allclose(plain_N, gated_N)


def test_an_expanded_word_is_guessed_as_one_word() -> None:
    plain, expanded = tiny_model(opened=40), tiny_model(opened=40)
    add_senses(expanded, SensesRecord(token_ids=expanded.lexicon.words()[:9].tolist(), num_senses=3))
    torch.nn.init.normal_(expanded.expander.P_KMH)
    losses, others = guess_losses(plain, *positions(plain)), guess_losses(expanded, *positions(expanded))
    torch.testing.assert_close(losses, others)


def test_nothing_as_wide_as_the_vocabulary_holds_all_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_model()
    h_NH, true_N = (x.repeat_interleave(20, 0) for x in positions(model))
    monkeypatch.setattr("splade.evaluation.scaling._ELEMENTS_AT_ONCE", 1 << 14)
    with Sizes() as sizes:
        guess_losses(model, h_NH, true_N)
    assert sizes.largest <= 1 << 14 < len(h_NH) * model.lexicon.vocab_size


def test_only_text_is_hidden_and_about_the_stated_share() -> None:
    model = tiny_model()
    batch = batch_of(model, Texts(list(SENTENCES) * 30, [0] * 30 * len(SENTENCES)))
    mask_id = model.tokenizer.mask_token_id
    ids_BL, hidden_BL = hide(model, batch, mask_id, torch.Generator().manual_seed(0))
    valid_BL = model.lexicon.valid(batch.input_ids, batch.attention_mask)
    assert not (hidden_BL & ~valid_BL).any()
    assert torch.equal(ids_BL == mask_id, hidden_BL)
    assert torch.equal(ids_BL[~hidden_BL], batch.input_ids[~hidden_BL])
    assert float(hidden_BL.sum() / valid_BL.sum()) == pytest.approx(HIDDEN_SHARE, rel=0.1)


# --- the head ---------------------------------------------------------------------------------------------


def test_a_gate_that_is_the_plain_relu_costs_the_head_nothing() -> None:
    model = tiny_model(gate="drelu")
    model.gate.set_threshold(0.0)
    found = measured(model)
    assert found.head_loss == pytest.approx(found.head_loss_relu)
    assert found.head_kl == pytest.approx(0, abs=1e-6)
    assert measured(tiny_model()).head_kl > 1e-3


@pytest.mark.parametrize("kinds", [{}, {"pooling": "attention"}, {"honesty": "licensed-static"}], ids=str)
def test_plain_relu_decides_from_every_positive_word(kinds: dict[str, str]) -> None:
    model = tiny_model(**kinds)
    batch = batch_of(model)
    gate = model.gate
    [state] = plain_relu(model, batch)
    assert model.gate is gate
    z_BLV = F.linear(
        model.backbone(batch.input_ids, batch.attention_mask), model.backbone.E_VH, model.backbone.e_V
    )
    assert (state.rows.active_N > decide(model, batch).rows.active_N).all()
    if not kinds:
        valid_BL = model.lexicon.valid(batch.input_ids, batch.attention_mask)
        best_BV = z_BLV.masked_fill(~valid_BL[..., None], 0.0).amax(1)
        expected = torch.where(model.lexicon.dictionary_V, best_BV.relu(), 0.0)
        torch.testing.assert_close(state.sparse_vector, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("task", ["classification", "tagging"])
def test_a_few_documents_at_a_time_are_decided_as_all_at_once(
    task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_model(task=task)
    batch = batch_of(model, TAGGED if task == "tagging" else TEXTS)
    [whole] = plain_relu(model, batch)
    monkeypatch.setattr("splade.evaluation.scaling._ELEMENTS_AT_ONCE", 3 * 120)
    parts = list(plain_relu(model, batch))
    assert len(parts) > 1
    torch.testing.assert_close(torch.cat([part.logits for part in parts]), whole.logits)


def test_divergence_is_zero_for_equals_and_torchs_elsewhere() -> None:
    one, other = torch.randn(5, 3), torch.randn(5, 3)
    assert float(divergence(one, one, False).abs().max()) < 1e-6
    expected = F.kl_div(other.log_softmax(-1), one.log_softmax(-1), log_target=True, reduction="none").sum(-1)
    torch.testing.assert_close(divergence(one, other, False), expected)
    pairs = [torch.stack([x, torch.zeros_like(x)], -1) for x in (one, other)]
    torch.testing.assert_close(divergence(one, other, True), divergence(*pairs, False).mean(-1))


# --- few words --------------------------------------------------------------------------------------------


def test_sparsity_counts_equal_words_and_forgets_scale_and_sign() -> None:
    rows = rows_of(torch.ones(1, 4, 6))
    amount_NV = torch.zeros(4, 6)
    amount_NV[0, 2] = -7.0  # one word does it all
    amount_NV[1] = torch.tensor([3.0, -3.0, 3.0, -3.0, 3.0, -3.0]) * 1e-30
    amount_NV[2, :2] = torch.tensor([1.0, 2.0])
    found_N = ablation_sparsity(rows, amount_NV.flatten())
    torch.testing.assert_close(found_N, torch.tensor([1.0, 6.0, 9 / 5, 0.0]).double())


def test_a_row_without_words_has_no_sparsity() -> None:
    assert ablation_sparsity(rows_of(torch.zeros(1, 2, 6)), torch.empty(0)).tolist() == [0, 0]


# --- together ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["classification", "tagging"])
def test_figures_repeat_with_their_seed_and_survive_json(task: str) -> None:
    rows = TAGGED if task == "tagging" else TEXTS
    one, other = (measured(tiny_model(task=task), rows) for _ in range(2))
    assert one == other
    assert one.hidden > 0
    assert one.rows == (sum(map(len, WORDS)) if task == "tagging" else len(SENTENCES))
    assert one.ablation_sparsity >= 1
    assert one.lm_loss_gated != one.lm_loss
    assert measured(tiny_model(task=task), rows, seed=1).lm_loss != one.lm_loss
    assert json.loads(json.dumps(one.to_dict()))["rows"] == one.rows


def test_several_labels_a_text_are_scored_apart() -> None:
    model = tiny_model()
    model.config.multi_label = True
    found = measured(model, Texts(list(SENTENCES), label_sets=[[0], []] * 5))
    assert found.head_kl > 0
    assert found.head_loss != found.head_loss_relu


def test_nothing_counted_has_no_means() -> None:
    found = ScalingFitter(tiny_model()).result()
    assert (found.hidden, found.rows) == (0, 0)
    assert found.lm_loss is found.head_kl is found.ablation_sparsity is None
