"""A text with several labels is decided label by label, and each of its labels has its own explanation."""

from __future__ import annotations

import math
from dataclasses import asdict

import pytest

from splade.errors import ConfigError
from splade.inference import MultiLabelPrediction, Predictor
from tests.inference.texts import LONG, STRANGE, assert_sums, predictor
from tests.tiny import SENTENCES

ALL = [*SENTENCES, *STRANGE, LONG]


@pytest.fixture(scope="module")
def several() -> Predictor:
    found = predictor(classes=4, seed=11)
    found.model.config.multi_label = True
    return found


def test_labels_are_those_with_a_probability_of_at_least_a_half(several: Predictor) -> None:
    found = several.predict(ALL)
    for prediction in found:
        assert isinstance(prediction, MultiLabelPrediction)
        probable = [name for name in several.names if prediction.probabilities[name] >= 0.5]
        assert prediction.labels == probable
        assert prediction.probability == max(prediction.probabilities.values())
    assert {len(prediction.labels) for prediction in found} >= {0, 1, 2}, "the test needs all kinds"


def test_probabilities_are_of_each_label_by_itself(several: Predictor) -> None:
    [before] = several.predict([SENTENCES[0]])
    assert abs(sum(before.probabilities.values()) - 1) > 0.01
    explanations = {name: several.explain([SENTENCES[0]], target=name)[0] for name in several.names}
    for name, found in explanations.items():
        assert before.probabilities[name] == pytest.approx(1 / (1 + math.exp(-found.logit)), abs=1e-6)


def test_every_predicted_label_is_explained_and_no_other(several: Predictor) -> None:
    predictions = several.predict(ALL)
    expected = [(text, name) for text, p in zip(ALL, predictions, strict=True) for name in p.labels]
    found = several.explain(ALL)
    assert [(e.text, e.explained) for e in found] == expected
    for explanation in found:
        assert_sums(explanation)
        assert explanation.prediction == explanation.explained
        assert explanation.probability == explanation.probabilities[explanation.explained] >= 0.5
        assert explanation.logit >= 0


def test_a_target_is_explained_for_every_text_with_what_was_decided_of_it(several: Predictor) -> None:
    name = several.names[1]
    predictions = several.predict(ALL)
    found = several.explain(ALL, target=name)
    assert [explanation.text for explanation in found] == ALL
    for explanation, predicted in zip(found, predictions, strict=True):
        assert_sums(explanation)
        assert explanation.explained == name
        assert explanation.prediction == (name if name in predicted.labels else f"not {name}")
        assert explanation.probability >= 0.5
    assert {explanation.prediction for explanation in found} == {name, f"not {name}"}


@pytest.mark.parametrize("method", ["path", "ablation"])
def test_labels_of_a_text_do_not_mix(several: Predictor, method: str) -> None:
    """Explained together or one by one, a label has the same words."""
    together = several.explain(SENTENCES, method)
    assert together
    for found in together:
        [alone] = [e for e in several.explain(SENTENCES, method, found.explained) if e.text == found.text]
        assert alone == found


def test_a_temperature_changes_probabilities_and_no_label(several: Predictor) -> None:
    plain = several.predict(ALL)
    several.model.config.temperature = 5.0
    soft = several.predict(ALL)
    several.model.config.temperature = 1.0
    assert [p.labels for p in soft] == [p.labels for p in plain]
    assert all(abs(p.probability - 0.5) <= abs(q.probability - 0.5) for p, q in zip(soft, plain, strict=True))


def test_one_flip_is_not_to_be_had_of_several_labels(several: Predictor) -> None:
    with pytest.raises(ConfigError, match="use explain"):
        several.counterfactual("clever film")


def test_a_saved_model_still_gives_several_labels(several: Predictor, tmp_path) -> None:
    several.model.save_pretrained(tmp_path / "model")
    loaded = Predictor.from_pretrained(tmp_path / "model", batch_size=several.batch_size)
    assert loaded.predict(SENTENCES) == several.predict(SENTENCES)


def test_a_single_label_prediction_has_no_list() -> None:
    [found] = predictor().predict(["clever film"])
    assert list(asdict(found)) == ["label", "probability", "probabilities", "truncated"]
    [found] = predictor(task="tagging").predict_tags(["film"])[0]
    assert list(asdict(found)) == ["label", "probability", "probabilities", "truncated"]
