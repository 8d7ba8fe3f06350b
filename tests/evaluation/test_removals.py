"""Ways to remove a concept, side by side: each row is what that way by itself gives."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
import torch

pytest.importorskip("concept_erasure")

from splade.data.rows import Texts
from splade.errors import ConfigError, DataError
from splade.evaluation.bias import evaluate_bias
from splade.evaluation.intervals import Interval
from splade.evaluation.removals import Marked, RemovalRow, compare_removals
from splade.inference import Predictor
from splade.intervene import SuppressedModel, apply, word_ids
from splade.intervene.leakage import leakage
from splade.models.lexical_sae import LexicalSAE
from tests.tiny import SENTENCES, tiny_model

ENDS = ("slow", "late", "wet", "cup", "slow two", "Berlin", "slow story", "screen")


def marked(frames: tuple[str, ...]) -> Marked:
    texts = [f"{frame} {end}" for frame in frames for end in ENDS]
    return Marked(Texts(texts, [i % 2 for i in range(len(texts))]), ["slow" in text for text in texts])


TRAIN, TEST = marked(SENTENCES[:5]), marked(SENTENCES[5:])


def table(model: LexicalSAE, **settings: object) -> dict[str, RemovalRow]:
    rows = compare_removals(model, ["slow"], TRAIN, TEST, **settings)
    return {row.removal: row for row in rows}


@pytest.fixture(scope="module")
def model() -> LexicalSAE:
    return tiny_model(classes=2, opened=30)


@pytest.fixture(scope="module")
def found(model: LexicalSAE) -> dict[str, RemovalRow]:
    return table(model)


def test_every_way_has_its_row(model: LexicalSAE, found: dict[str, RemovalRow]) -> None:
    assert list(found) == ["none", "surgery", "LEACE", "surgery and LEACE"]
    assert found["none"].collateral is None
    outside = len(TEST.concept) - sum(TEST.concept)
    assert all(row.collateral.rows == outside for name, row in found.items() if name != "none")
    assert all(row.accuracy.low <= row.accuracy.mean <= row.accuracy.high for row in found.values())
    json.dumps([row.to_dict() for row in found.values()], allow_nan=False)


def test_rows_without_and_with_surgery_are_the_certificates_leakage(
    model: LexicalSAE, found: dict[str, RemovalRow]
) -> None:
    """`leakage` marks a text by the word itself, as the concept is marked here."""
    expected = leakage(model, word_ids(model, ["slow"]), TEST.rows.texts)
    for name, probe in (("none", expected.before), ("surgery", expected.after)):
        assert found[name].leakage == Interval(probe.auc, probe.low, probe.high)


def test_accuracy_and_collateral_of_surgery_are_those_of_a_suppressed_model(
    model: LexicalSAE, found: dict[str, RemovalRow]
) -> None:
    before = Predictor(model).predict(TEST.rows.texts)
    with SuppressedModel(model, ["slow"]):
        after = Predictor(model).predict(TEST.rows.texts)
    names = model.config.label_names
    right = [names[label] == p.label for label, p in zip(TEST.rows.labels, after, strict=True)]
    assert found["surgery"].accuracy.mean == pytest.approx(np.mean(right))
    moved = [
        abs(a.probabilities[b.label] - b.probability)
        for a, b, has in zip(after, before, TEST.concept, strict=True)
        if not has
    ]
    assert found["surgery"].collateral.moved.mean == pytest.approx(np.mean(moved), abs=1e-6)


def test_leace_leaves_a_probe_nothing_where_it_was_fitted_and_a_dense_s(
    model: LexicalSAE, found: dict[str, RemovalRow]
) -> None:
    rows = {row.removal: row for row in compare_removals(model, ["slow"], TEST, TEST)}
    assert rows["none"] == found["none"]
    assert rows["none"].leakage.mean > 0.8
    assert rows["LEACE"].leakage.mean < 0.5  # equal means on all rows lean the rows of a fold the other way
    assert rows["LEACE"].present > 1.5 * rows["none"].present
    assert rows["surgery"].present <= rows["none"].present


def test_a_model_that_never_had_the_words_is_surgery(model: LexicalSAE, found: dict[str, RemovalRow]) -> None:
    without = copy.deepcopy(model)
    apply(without, "remove", ["slow"])
    again = table(model, retrained=without)
    assert list(again)[-1] == "retrained"
    expected = {**found["surgery"].to_dict(), "removal": "retrained"}
    assert again["retrained"].to_dict() == expected


def test_classes_in_another_order_are_the_same_classes(
    model: LexicalSAE, found: dict[str, RemovalRow]
) -> None:
    turned = copy.deepcopy(model)
    turned.config.label_names = turned.config.label_names[::-1]
    with torch.no_grad():
        turned.head.out.weight.copy_(model.head.out.weight.flip(0))
        turned.head.out.bias.copy_(model.head.out.bias.flip(0))
    row = table(model, retrained=turned)["retrained"]
    assert row.accuracy == found["none"].accuracy
    assert row.collateral.moved.mean == pytest.approx(0.0, abs=1e-6)


def test_a_gap_is_measured_from_the_probabilities_of_each_way(model: LexicalSAE) -> None:
    groups = [{"slow"} if has else {"other"} for has in TEST.concept]
    gold = np.array(TEST.rows.labels) == 1

    def gap(probability_NC: np.ndarray) -> Interval | None:
        return evaluate_bias(probability_NC[:, 1], gold, groups, draws=50).fpr_gap

    rows = table(model, gap=gap)
    before = [p.probabilities[model.config.label_names[1]] for p in Predictor(model).predict(TEST.rows.texts)]
    expected = evaluate_bias(np.array(before), gold, groups, draws=50).fpr_gap
    assert rows["none"].gap.mean == pytest.approx(expected.mean)
    assert all(row.gap is not None for row in rows.values())


def test_the_model_is_as_before_afterwards(model: LexicalSAE) -> None:
    before = Predictor(model).predict(TEST.rows.texts)
    table(model)
    assert Predictor(model).predict(TEST.rows.texts) == before
    assert model.lexicon.keep_V.all()
    assert "decide" not in vars(model)


def test_too_few_rows_with_the_concept_are_not_probed(model: LexicalSAE) -> None:
    few = Marked(Texts(TEST.rows.texts[:8], TEST.rows.labels[:8]), TEST.concept[:8])
    assert {row.leakage for row in compare_removals(model, ["slow"], TRAIN, few)} == {None}


def test_what_cannot_be_compared_says_what_to_give(model: LexicalSAE) -> None:
    with pytest.raises(DataError, match="one label a text"):
        Marked(TEST.rows, [True])
    with pytest.raises(DataError, match="labelled test rows"):
        compare_removals(model, ["slow"], TRAIN, Marked(Texts(TEST.rows.texts), TEST.concept))
    with pytest.raises(ConfigError, match="classification models"):
        table(tiny_model(task="tagging", classes=5))
    with pytest.raises(ConfigError, match="same labels"):
        table(model, retrained=tiny_model(classes=3))
