"""Explainers side by side: what each returns, what it costs, and what the comparison makes of it."""

import os
import sys
import warnings

import pytest
import torch

from splade.errors import ConfigError, DataError
from splade.evaluation.explainers import bottleneck, inputs
from splade.evaluation.explainers.attention import recording
from splade.evaluation.explainers.bottleneck import BOTTLENECK, Decided
from splade.evaluation.explainers.compare import compare
from splade.evaluation.explainers.erasing import erase_active, erase_inputs, faithfulness, kept
from splade.evaluation.explainers.inputs import EXPLAINERS
from splade.evaluation.explainers.questions import Meter, Settings, ask, decide, keeping, logits_of
from splade.inference.predictor import Predictor
from splade.mechanistic.attribution import compute_attribution_tensor
from tests.tiny import SENTENCES, tiny_model

os.environ.setdefault("NUMBA_DISABLE_JIT", "1")  # compiling shap would take longer than these tests

TEXTS = [*SENTENCES[:3], "a slow film"]
LITTLE = Settings(ig_steps=6, gradient_shap_samples=5, lime_samples=40, shap_evaluations=30, batch_size=16)
FRACTIONS = (0.1, 0.5)


def decided(model, settings=LITTLE, texts=TEXTS):
    """All texts in one batch, the predicted class of each."""
    questions = ask(model, texts)
    [(indices, batch, state)] = decide(model, questions, settings)
    classes_N = torch.tensor([questions[i].label for i in indices])
    return Decided(state, classes_N, batch.attention_mask)


# --- the words of the decision -------------------------------------------------------------------------


def test_gradient_times_input_is_the_exact_contribution_for_the_relu_head():
    found = decided(tiny_model())
    torch.testing.assert_close(
        BOTTLENECK["gradient_x_input"](found, LITTLE), BOTTLENECK["dla"](found, LITTLE), atol=1e-5, rtol=1e-4
    )


def test_gradient_times_input_is_not_the_contribution_for_the_bcos_head_but_its_path():
    found = decided(tiny_model(head="bcos"))
    gradient = BOTTLENECK["gradient_x_input"](found, LITTLE)
    torch.testing.assert_close(gradient, BOTTLENECK["path"](found, LITTLE), atol=1e-5, rtol=1e-3)
    assert not torch.allclose(gradient, BOTTLENECK["dla"](found, LITTLE), atol=1e-3)


def test_integrated_gradients_tend_to_the_path_as_steps_grow():
    found = decided(tiny_model())
    path_P = BOTTLENECK["path"](found, LITTLE)

    def error(steps):
        return float(
            (BOTTLENECK["integrated_gradients"](found, Settings(ig_steps=steps)) - path_P).abs().max()
        )

    assert error(400) < error(2) / 10
    assert error(400) < 1e-2


def test_attention_of_a_text_does_not_depend_on_the_padding_beside_it():
    model = tiny_model()
    with recording(model) as recorded:
        [(_, together, _)] = decide(model, ask(model, ["a slow film", TEXTS[1]]), LITTLE)
        padded_BL = recorded.received(together.attention_mask)
        [(_, alone, _)] = decide(model, ask(model, ["a slow film"]), LITTLE)
        single_BL = recorded.received(alone.attention_mask)
    length = int(alone.attention_mask.sum())
    torch.testing.assert_close(padded_BL[1, :length], single_BL[0])
    torch.testing.assert_close(single_BL.sum(), torch.tensor(float(length)))  # every position gives 1


def test_recording_leaves_the_backbone_as_it_was():
    model = tiny_model()
    config = model.backbone.mlm.config
    before = config._attn_implementation
    with recording(model):
        assert config._attn_implementation == "eager"
    assert config._attn_implementation == before
    assert not config.output_attentions


def test_attention_scores_are_values_times_what_their_positions_receive():
    model = tiny_model()
    with recording(model) as recorded:
        found = decided(model)
        found = Decided(found.state, found.classes_N, found.attention_mask, recorded)
        score_P = bottleneck.attention(found, LITTLE)
        received_BL = recorded.received(found.attention_mask)
    rows = found.state.rows  # max pooling: one position a pair
    expected_P = rows.value_P * received_BL[rows.row_P, rows.source_position_Q]
    torch.testing.assert_close(score_P, expected_P)


@pytest.mark.parametrize("seed", range(3))
def test_random_scores_are_worse_than_exact_ones_where_few_words_decide(seed):
    model = tiny_model(seed=seed, opened=20)
    with torch.no_grad():  # plant it: the head reads a tenth of the words and all else is noise
        model.head.W_in[torch.rand(len(model.head.W_in)) > 0.1] *= 0.01
    found = decided(model, texts=SENTENCES)

    def needed(name):
        scores = BOTTLENECK[name](found, LITTLE)
        erasures = erase_active(model.config, found.state, found.classes_N, scores, (0.1, 0.2))
        return faithfulness(erasures, (0.1, 0.2)).aopc_comprehensiveness.mean

    assert needed("dla") > needed("random") + 0.02


# --- the words of the text -----------------------------------------------------------------------------


@pytest.mark.parametrize("pooling", ["max", "attention"])
def test_our_scores_sum_to_the_logit_less_the_bias(pooling):
    model = tiny_model(pooling=pooling)
    questions = ask(model, TEXTS)
    scores = inputs.ours(model, questions, LITTLE)
    for i, question in enumerate(questions):
        [(_, _, state)] = decide(model, [question], LITTLE)
        attribution = compute_attribution_tensor(state, torch.tensor([question.label]))
        explained = (attribution.logit - attribution.bias).detach()
        assert sum(scores[i]) == pytest.approx(float(explained), abs=1e-4)


def test_our_scores_are_the_spans_of_an_explanation():
    model = tiny_model()
    scores = inputs.ours(model, ask(model, TEXTS), LITTLE)
    for found, explanation in zip(scores, Predictor(model).explain(TEXTS), strict=True):
        spans = [span.contribution for span in explanation.spans]
        assert found == pytest.approx(spans[: len(found)], abs=1e-5)


@pytest.mark.parametrize("name", EXPLAINERS)
def test_every_explainer_scores_every_word_and_repeats_itself(name):
    _need(name)
    model = tiny_model()
    questions = ask(model, [*TEXTS, "film", "", " ".join(SENTENCES)])  # the last is cut
    assert questions[-1].reading.truncated
    first = EXPLAINERS[name].explain(model, questions, LITTLE)
    assert [len(scores) for scores in first] == [question.words for question in questions]
    again = EXPLAINERS[name].explain(model, questions, LITTLE)
    for scores, repeated in zip(first, again, strict=True):
        assert scores == pytest.approx(repeated, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "passes"),
    [("ours", 1), ("integrated_gradients", 6), ("gradient_shap", 5), ("lime", 40), ("random", 0)],
)
def test_forward_passes_are_counted(name, passes):
    _need(name)
    model = tiny_model()
    questions = ask(model, TEXTS)
    with Meter(model) as meter:
        EXPLAINERS[name].explain(model, questions, LITTLE)
    assert meter.passes == passes * len(TEXTS)
    assert meter.seconds > 0
    ask(model, TEXTS)
    assert meter.passes == passes * len(TEXTS)  # nothing outside the block counts


def test_shap_keeps_to_its_evaluations_and_sums_to_the_logit_gap():
    _need("shap")
    model = tiny_model()
    question, settings = ask(model, TEXTS[:1])[0], Settings(shap_evaluations=30, batch_size=4)
    with Meter(model) as meter:
        [scores] = inputs.shap(model, [question], settings)
    assert meter.passes <= 30 + settings.batch_size
    keep_MW = torch.tensor([[True], [False]]).expand(-1, question.words)
    whole, empty = logits_of(model, keeping(question, keep_MW, "mask", model), 2)[:, question.label]
    assert sum(scores) == pytest.approx(float(whole - empty), abs=1e-4)


def test_integrated_gradients_of_a_gate_without_jumps_close_their_gap():
    _need("integrated_gradients")
    model = tiny_model(gate="drelu", head="relu_mlp")
    questions = ask(model, TEXTS[:2])
    few, many = (
        inputs.integrated_gradients_gap(model, questions, Settings(ig_steps=steps)) for steps in (4, 400)
    )
    assert max(map(abs, many)) < 0.05
    assert max(map(abs, many)) < max(map(abs, few))


def test_lime_finds_the_one_word_a_model_reads():
    _need("lime")
    model = tiny_model()
    question = ask(model, ["the film was a charming and clever comedy"])[0]
    with pytest.MonkeyPatch.context() as patch:  # the logit counts one word; nothing else matters
        patch.setattr(inputs, "_game", lambda *_: lambda keep_MW: keep_MW[:, 4].astype(float))
        [scores] = inputs.lime(model, [question], Settings(lime_samples=500))
    assert max(range(len(scores)), key=scores.__getitem__) == 4
    assert scores[4] > 10 * max(abs(s) for i, s in enumerate(scores) if i != 4)


@pytest.mark.parametrize("family", ["bert", "roberta", "deberta-v2", "modernbert"])
def test_embeddings_lead_to_the_logit_of_their_text(family):
    model = tiny_model(family)
    for question in ask(model, TEXTS[:2]):
        ids = [list(question.reading.example.input_ids)]
        expected = logits_of(model, ids, 1)[:, question.label]
        with inputs._embedded(model, question) as (logit, x_1LH, base_1LH):
            found, baseline = logit(x_1LH).detach(), logit(base_1LH).detach()
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
        assert not torch.allclose(baseline, expected, atol=1e-3)
    assert len(model.backbone.mlm.get_input_embeddings()._forward_hooks) == 0


@pytest.mark.parametrize("family", ["bert", "roberta", "deberta-v2", "modernbert"])
def test_rollout_divides_what_each_position_takes_among_the_inputs(family):
    model = tiny_model(family)
    with recording(model) as recorded:
        [(_, batch, _)] = decide(model, ask(model, TEXTS), LITTLE)
        rolled_BLL = recorded.rollout
    valid_BL = batch.attention_mask.bool()
    torch.testing.assert_close(rolled_BLL.sum(-1)[valid_BL], torch.ones(int(valid_BL.sum())))
    to_padding_BL = torch.einsum("blm,bm->bl", rolled_BLL, (~valid_BL).float())
    assert to_padding_BL[valid_BL].abs().max() < 1e-6


# --- removal -------------------------------------------------------------------------------------------


def test_masked_words_keep_their_pieces_and_deleted_ones_do_not():
    model = tiny_model()
    question = ask(model, ["a charming film"])[0]  # charm ##ing
    keep_MW = torch.tensor([[True, True, True], [True, False, True]])
    mask, ids = model.tokenizer.mask_token_id, list(question.reading.example.input_ids)
    assert keeping(question, keep_MW, "mask", model) == [ids, [*ids[:2], mask, mask, *ids[4:]]]
    assert keeping(question, keep_MW, "deletion", model) == [ids, [*ids[:2], *ids[4:]]]


def test_variants_name_the_highest_words_and_at_least_one():
    variants = kept([0.5, 2.0, -1.0, 2.0], (0.01, 0.5)).int().tolist()
    assert variants == [[1, 1, 1, 1], [1, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 0], [0, 1, 0, 1]]


def test_keeping_all_words_loses_nothing_and_naming_all_takes_all():
    model = tiny_model()
    questions = ask(model, TEXTS)
    scores = inputs.random(model, questions, LITTLE)
    erasures = erase_inputs(model, questions, scores, "mask", (1.0,), 16)
    torch.testing.assert_close(erasures.enough_TK, torch.zeros_like(erasures.enough_TK), atol=1e-6, rtol=0)
    blank = [keeping(q, torch.zeros(1, q.words, dtype=torch.bool), "mask", model)[0] for q in questions]
    changed = logits_of(model, blank, 16).argmax(-1) != torch.tensor([q.label for q in questions])
    assert erasures.flips_TK[:, 0].bool().tolist() == changed.tolist()


def test_with_several_labels_each_class_is_measured_by_itself():
    model = tiny_model()
    model.config.multi_label = True
    found = decided(model)
    score_P = BOTTLENECK["dla"](found, LITTLE)
    erasures = erase_active(model.config, found.state, found.classes_N, score_P, (1.0,))
    empty_C = model.head(found.state.rows.without(found.state.rows.word_P)).detach()[0]
    whole_N = found.state.logits.detach().gather(-1, found.classes_N[:, None])[:, 0]
    temperature = model.config.temperature
    lost_N = torch.sigmoid(whole_N / temperature) - torch.sigmoid(empty_C[found.classes_N] / temperature)
    torch.testing.assert_close(erasures.needed_TK[:, 0].float(), lost_N, atol=1e-5, rtol=1e-4)
    assert erasures.flips_TK[:, 0].bool().tolist() == [
        bool(((row >= 0) != (empty_C >= 0)).any()) for row in found.state.logits
    ]


# --- the tables ----------------------------------------------------------------------------------------


def test_both_tables_have_every_explainer_with_figures_and_costs():
    for name in EXPLAINERS:
        _need(name)
    rows = compare(tiny_model(), TEXTS, LITTLE, fractions=FRACTIONS, batch_sizes=(8,))
    assert [row.explainer for row in rows if row.table == "bottleneck"] == list(BOTTLENECK)
    assert [row.explainer for row in rows if row.removal == "mask"] == list(EXPLAINERS)
    assert [row.explainer for row in rows if row.removal == "deletion"] == list(EXPLAINERS)
    for row in rows:
        assert row.note == ""
        assert [at.fraction for at in row.faithfulness.at] == list(FRACTIONS)
        for figure in (row.faithfulness.aopc_comprehensiveness, row.faithfulness.aopc_sufficiency):
            assert -1 <= figure.low <= figure.mean <= figure.high <= 1
        assert row.cost.milliseconds > 0
    passes = {row.explainer: row.cost.forward_passes for row in rows if row.table == "inputs"}
    assert passes["ours"] == 1
    assert passes["lime"] == LITTLE.lime_samples


def test_texts_come_back_in_their_order_whatever_the_batches():
    model = tiny_model()
    whole, single = (
        compare(model, TEXTS, LITTLE, ["dla", "ours"], FRACTIONS, batch_sizes=(size,)) for size in (8, 1)
    )
    for one, other in zip(whole, single, strict=True):
        a, b = one.faithfulness.aopc_comprehensiveness, other.faithfulness.aopc_comprehensiveness
        assert (a.mean, a.low, a.high) == pytest.approx((b.mean, b.low, b.high), abs=1e-5)


def test_a_missing_package_says_which_extra_to_install_and_the_others_go_on(monkeypatch):
    real = inputs.package

    def without_lime(name):
        monkeypatch.setitem(sys.modules, "lime", None)
        monkeypatch.setitem(sys.modules, "lime.lime_text", None)
        return real(name)

    monkeypatch.setattr(inputs, "package", without_lime)
    rows = compare(tiny_model(), TEXTS, LITTLE, ["ours", "lime"], FRACTIONS, batch_sizes=(8,))
    notes = {row.explainer: row.note for row in rows}
    assert "lexical-sae[explainers]" in notes["lime"]
    assert all(row.faithfulness is None for row in rows if row.explainer == "lime")
    assert all(row.faithfulness is not None for row in rows if row.explainer == "ours")


def test_mistakes_are_answered_in_one_line():
    model = tiny_model()
    with pytest.raises(ConfigError, match="no explainer 'limes': choose among"):
        compare(model, TEXTS, LITTLE, ["limes"])
    with pytest.raises(DataError, match="at least one"):
        compare(model, [], LITTLE)
    with pytest.raises(ConfigError, match="classification model"):
        compare(tiny_model(task="tagging"), TEXTS, LITTLE)


def _need(name):
    package = {"integrated_gradients": "captum", "gradient_shap": "captum", "lime": "lime", "shap": "shap"}
    if name in package:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pytest.importorskip(package[name])
