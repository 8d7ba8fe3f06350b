"""Predictions and figures as lines for a terminal, whatever the task."""

from __future__ import annotations

import re
from dataclasses import asdict

import pytest

from splade.cli import shown
from splade.data.rows import Sentences, Texts
from splade.evaluation.suite import evaluate
from splade.inference import Predictor
from splade.models.dense import DenseModel
from tests.tiny import SENTENCES, tiny_model

ROWS = Texts(list(SENTENCES), [i % 3 for i in range(len(SENTENCES))])


def results(found: dict) -> dict:
    return {**found, "dataset": "mine", "rows": {"test": len(SENTENCES)}}


def test_every_label_of_a_text_is_shown_with_its_probability() -> None:
    row = {
        "text": "x",
        "labels": ["a", "b"],
        "probabilities": {"a": 0.9, "b": 0.5, "c": 0.1},
        "truncated": True,
    }
    assert shown.prediction(row) == {"labels": "a 90.0%, b 50.0%", "text": "x (cut)"}
    assert shown.prediction({**row, "labels": [], "truncated": False}) == {"labels": "none", "text": "x"}


def test_a_prediction_of_several_labels_is_such_a_row() -> None:
    model = tiny_model()
    model.config.multi_label = True
    [found] = Predictor(model).predict(["clever film"])
    assert list(shown.prediction({"text": "clever film", **asdict(found)})) == ["labels", "text"]


def test_the_calibration_error_is_shown() -> None:
    found = evaluate(tiny_model(), ROWS)
    line = shown.measured(results(found.to_dict()))["calibration_error"]
    assert float(line.rstrip("%")) == pytest.approx(100 * found.ece, abs=0.06)


def test_f1_of_every_label_is_shown_by_its_name() -> None:
    model = tiny_model()
    model.config.multi_label = True
    line = shown.measured(results(evaluate(model, ROWS).to_dict()))
    assert list(line["label_f1"]) == ["micro", "macro", *model.config.label_names]
    words = Sentences([["Paris", "was"]], [["B-PER", "O"]])
    assert "entity_f1" in shown.measured(results(evaluate(tiny_model(task="tagging"), words).to_dict()))


STEPS = (
    "dla",
    "active_words",
    "dictionary",
    "completeness",
    "separation",
    "eraser",
    "removability",
    "layerwise",
    "scaling",
)


def test_what_the_steps_found_is_shown_and_a_failed_one_says_why() -> None:
    whole = results(evaluate(tiny_model(opened=20), ROWS).to_dict())
    lines = shown.measured(whole)
    assert {"cosine_of_classes", "layers", "guessing_hidden_words", "loss"} <= lines.keys()
    assert "not_measured" not in lines
    for step in STEPS:
        broken = {key: value for key, value in whole.items() if key != step}
        left = shown.measured({**broken, "problems": {step: "ValueError: no"}})
        assert left.pop("not_measured") == {step: "ValueError: no"}
        assert left.items() < lines.items()


def test_the_layers_shown_sum_to_the_logit_shown() -> None:
    lines = shown.measured(results(evaluate(tiny_model(opened=20), ROWS).to_dict()))
    for line in lines["layers"].values():
        logit, terms = line.split(" = ")
        figures = [float(term) for term in re.findall(r"[+-]\d+\.\d\d", terms)]
        assert sum(figures) == pytest.approx(float(logit), abs=0.005 * (len(figures) + 1))


def test_an_autoencoder_is_shown_by_what_it_costs() -> None:
    found = results(evaluate(tiny_model(), ROWS).to_dict())
    sae = {
        "kind": "topk",
        "explained_variance": 0.8,
        "l0": 32.0,
        "features": 3072,
        "accuracy_change": -0.01,
        "agreement": 0.97,
    }
    line = shown.measured({**found, "sae": [sae]})["autoencoders"]["topk"]
    assert line == "80.0% explained by 32 of 3,072 features, accuracy -1.0 points, 97.0% alike"


def test_a_model_without_words_has_no_lines_about_them() -> None:
    twin = tiny_model()
    dense = DenseModel(twin.config, twin.backbone, twin.tokenizer)
    lines = shown.measured(results(evaluate(dense, ROWS).to_dict()))
    assert list(lines) == ["data", "accuracy", "recall", "calibration_error"]
