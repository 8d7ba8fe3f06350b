"""Predictions and figures as lines for a terminal, whatever the task."""

from __future__ import annotations

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


def test_a_model_without_words_has_no_lines_about_them() -> None:
    twin = tiny_model()
    dense = DenseModel(twin.config, twin.backbone, twin.tokenizer)
    lines = shown.measured(results(evaluate(dense, ROWS).to_dict()))
    assert list(lines) == ["data", "accuracy", "recall", "calibration_error"]
