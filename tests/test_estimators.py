"""The estimators follow scikit-learn's conventions and say what a prediction is the sum of."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from splade import LexicalClassifier, LexicalTagger
from splade.errors import ConfigError, DataError
from splade.estimators import _classes
from tests.tiny import SENTENCES, tiny_backbone, tiny_model, tiny_tokenizer

GOOD, BAD = ("charming", "clever", "lovely", "helpful"), ("slow", "tedious", "broken", "late")
TEXTS = [f"the film was {w}" for w in GOOD + BAD] + [f"a {w} hotel in Paris" for w in GOOD + BAD]
LABELS = (["up"] * 4 + ["down"] * 4) * 2
SETTINGS = {"training.learning_rate": 1e-3, "training.precision": "fp32"}


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny masked LM as a folder, which warns that it speaks no English."""
    folder = tmp_path_factory.mktemp("backbone")
    tokenizer = tiny_tokenizer("wordpiece")
    tiny_backbone("bert", len(tokenizer)).mlm.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def estimator(backbone: str, **changes: object) -> LexicalClassifier:
    arguments = {"target_active": 10, "epochs": 4, "batch_size": 4, "validation_share": 0.0, **changes}
    return LexicalClassifier(model=backbone, settings=SETTINGS, **arguments)


pytestmark = pytest.mark.filterwarnings("ignore::splade.models.backbone.UntrainedHeadWarning")


def test_fit_predict_score_and_explain(backbone: str, tmp_path: Path) -> None:
    fitted = estimator(backbone, epochs=24).fit(TEXTS, LABELS)
    assert fitted.score(TEXTS, LABELS) > 0.8
    assert list(fitted.classes_) == ["down", "up"]
    proba = fitted.predict_proba(TEXTS)
    assert proba.shape == (len(TEXTS), 2)
    assert np.allclose(proba.sum(1), 1)
    assert (fitted.predict(TEXTS) == fitted.classes_[proba.argmax(1)]).all()
    [explanation] = fitted.explain([TEXTS[0]])
    assert explanation.bias + sum(w.contribution for w in explanation.words) == pytest.approx(
        explanation.logit, abs=1e-5
    )
    fitted.save_pretrained(tmp_path / "m")
    again = LexicalClassifier.from_pretrained(tmp_path / "m")
    again.set_params(batch_size=fitted.batch_size)  # padding changes the last bits
    assert (again.predict_proba(TEXTS) == proba).all()


def test_numbers_come_back_as_numbers(backbone: str) -> None:
    labels = np.array([7 if label == "up" else -1 for label in LABELS])
    fitted = estimator(backbone, epochs=1).fit(TEXTS, labels)
    assert fitted.classes_.tolist() == [-1, 7]
    assert set(fitted.predict(TEXTS).tolist()) <= {-1, 7}


def test_clones_carry_settings_and_nothing_learned(backbone: str) -> None:
    fitted = estimator(backbone, epochs=1).fit(TEXTS, LABELS)
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(TEXTS)


def test_pickled_estimators_predict_the_same(backbone: str) -> None:
    fitted = estimator(backbone, epochs=1).fit(TEXTS, LABELS)
    assert (pickle.loads(pickle.dumps(fitted)).predict_proba(TEXTS) == fitted.predict_proba(TEXTS)).all()


def test_it_works_in_a_pipeline_and_a_grid_search(backbone: str) -> None:
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    pipeline = Pipeline([("lower", lower), ("lexical", estimator(backbone, epochs=1))])
    search = GridSearchCV(pipeline, {"lexical__target_active": [5, 20]}, cv=2)
    search.fit(TEXTS, LABELS)
    assert search.best_params_["lexical__target_active"] in (5, 20)
    assert len(search.predict(TEXTS)) == len(TEXTS)


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        (TEXTS, LABELS[:-1], "give one label a text"),
        (TEXTS, ["up"] * len(TEXTS), "two classes"),
    ],
)
def test_labels_that_cannot_be_learned_are_refused(
    backbone: str, texts: list[str], labels: list[str], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        estimator(backbone).fit(texts, labels)


def test_an_unknown_setting_is_named(backbone: str) -> None:
    with pytest.raises(ConfigError, match=r"training\.learning_rate"):
        LexicalClassifier(model=backbone, settings={"training.learning_rat": 1}).fit(TEXTS, LABELS)


def test_the_tagger_reads_any_scheme_and_scores_entities(backbone: str) -> None:
    cities = ("Paris", "Berlin", "London")
    sentences = [["readers", "visited", city, "in", "March"] for city in cities] * 4
    tags = [["O", "O", "I-LOC", "O", "O"]] * len(sentences)
    tagger = LexicalTagger(
        model=backbone, target_active=10, epochs=20, batch_size=4, validation_share=0.0, settings=SETTINGS
    ).fit(sentences, tags)
    assert tagger.predict(sentences)[0] == ["O", "O", "B-LOC", "O", "O"]
    assert tagger.score(sentences, tags) == 1.0
    [explanation] = tagger.explain([sentences[0]])
    assert explanation.row is not None
    assert explanation.row.text == "Paris"


def test_sentences_and_tags_of_different_lengths_are_refused(backbone: str) -> None:
    with pytest.raises(DataError, match="one tag"):
        LexicalTagger(model=backbone).fit([["a", "b"]], [["O"]])


# --- several labels a text --------------------------------------------------------------------------------

TOPICS = [{"good", "film"}, {"film"}, {"hotel"}, set(), {"good", "hotel"}]


def test_labels_in_lists_and_in_a_matrix_are_the_same_classes() -> None:
    classes, listed = _classes([sorted(labels) for labels in TOPICS])
    assert classes.tolist() == ["film", "good", "hotel"]
    assert listed.tolist() == [[1, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 1, 1]]
    columns, matrix = _classes(listed)
    assert columns.tolist() == [0, 1, 2]
    assert (matrix == listed).all()
    assert (_classes(listed.tolist())[1] == listed).all(), "scikit-learn takes lists of zeros and ones too"
    assert (_classes(TOPICS)[1] == listed).all()
    ordered, swapped = _classes(TOPICS, np.array(["hotel", "film", "good"]))
    assert ordered.tolist() == ["hotel", "film", "good"]
    assert (swapped == listed[:, [2, 0, 1]]).all()


def test_several_labels_are_predicted_and_scored_as_a_matrix() -> None:
    fitted = LexicalClassifier(batch_size=4)
    model = tiny_model(classes=4, seed=11, opened=25)
    model.config.multi_label = True
    fitted._adopt(model)
    found, proba = fitted.predict(SENTENCES), fitted.predict_proba(SENTENCES)
    assert found.shape == proba.shape == (len(SENTENCES), 4)
    assert (found == (proba >= 0.5)).all()
    assert set(found.sum(1).tolist()) != {1}
    names = [[name for name, has in zip(fitted.classes_, row, strict=True) if has] for row in found]
    assert fitted.score(SENTENCES, found) == fitted.score(SENTENCES, names) == 1.0
    wrong = found.copy()
    wrong[0, 0] = 1 - wrong[0, 0]
    assert fitted.score(SENTENCES, wrong) == pytest.approx(1 - 1 / len(SENTENCES))


def test_a_dense_model_is_refused_before_training(backbone: str) -> None:
    with pytest.raises(ConfigError, match="choose another recipe"):
        LexicalClassifier(model=backbone, settings={"recipe": "dense"}).fit(TEXTS, LABELS)
