"""Every point of a curve is what a user would measure of the edited model."""

from __future__ import annotations

import json

import numpy as np
import pytest

from splade.data.hub import grouped
from splade.data.rows import Texts
from splade.evaluation.bias import evaluate_bias
from splade.inference import Predictor
from splade.intervene import apply, word_ids
from splade.intervene.cached import Cached
from splade.intervene.leakage import contain, features, probe
from splade.models.lexical_sae import LexicalSAE
from splade.studies.curve import Point, curve, summary
from tests.tiny import SENTENCES, tiny_model

TEXTS = [f"{frame} {word}" for frame in SENTENCES[5:] for word in ("slow", "late", "wet", "cup", "slow two")]
LABELS = [i % 2 for i in range(len(TEXTS))]
PAIRS = [(f"{text} slow", f"{text} late") for text in SENTENCES]
REMOVALS = [[], ["slow"], ["film"], ["paris"]]


def points(model: LexicalSAE, **more: object) -> list[Point]:
    rows = Cached.read(model, TEXTS)
    return curve(model, REMOVALS, rows, LABELS, label=1, **more)  # type: ignore[arg-type]


def labels(model: LexicalSAE) -> list[int]:
    names = model.config.label_names
    return [names.index(prediction.label) for prediction in Predictor(model).predict(TEXTS)]


def test_each_point_is_what_is_measured_of_the_edited_model() -> None:
    model = tiny_model(classes=2, opened=30)
    about_N = contain(TEXTS, ["slow"])
    found = points(model, pairs=PAIRS, about_N=about_N)
    first, name = labels(model), model.config.label_names[1]
    for point, words in zip(found, REMOVALS, strict=True):
        if words:
            apply(model, "remove", words)
        now = labels(model)
        assert point.removed == words
        assert point.accuracy.mean == pytest.approx(np.mean(np.equal(now, LABELS)))
        assert point.changed == sum(a != b for a, b in zip(first, now, strict=True))
        a, b = (Predictor(model).predict([pair[side] for pair in PAIRS]) for side in (0, 1))
        gaps = [p.probabilities[name] - q.probabilities[name] for p, q in zip(a, b, strict=True)]
        assert point.gap is not None
        assert point.gap.mean == pytest.approx(np.mean(gaps), abs=1e-6)
        assert point.gap.low <= point.gap.mean <= point.gap.high
        assert point.leakage is not None
        assert point.leakage.mean == pytest.approx(probe(features(model, TEXTS), about_N).auc, abs=1e-3)
    assert [point.words for point in found] == [0, 1, 2, 3]


def test_the_gap_of_groups_is_that_of_their_false_positive_rates() -> None:
    model = tiny_model(classes=2, opened=30)
    groups = [frozenset({"slow"} if "slow" in text else {"cup"}) for text in TEXTS]
    found = points(model, groups=grouped(Texts(TEXTS, LABELS), groups))
    apply(model, "remove", ["slow", "film", "paris"])
    expected = evaluate_bias(np.array(labels(model)) == 1, np.array(LABELS) == 1, groups)
    assert found[-1].gap == expected.mean_fpr_difference


def test_a_curve_changes_nothing_and_can_be_told_in_three_steps() -> None:
    model = tiny_model(classes=2, opened=30)
    found = points(model, pairs=PAIRS)
    assert model.lexicon.keep_V.all()
    told = json.loads(json.dumps(summary(found), allow_nan=False))
    assert told["removed"] == ["slow", "film", "paris"]
    assert [step["removed"] for step in told["steps"]] == [[], ["slow"], ["film", "paris"]]
    assert told["steps"][-1]["gap"] == told["curve"][-1]["gap"]
    assert told["gap_before"] == told["curve"][0]["gap"]["mean"]
    assert told["curve"][0]["leakage"] is None
    assert len(summary(found[:2])["steps"]) == 2


def test_words_that_are_gone_stay_gone_along_the_curve() -> None:
    model = tiny_model(classes=2, opened=30)
    whole = points(model, pairs=PAIRS)
    together = Cached.read(model, TEXTS).without(word_ids(model, ["slow", "film", "paris"]))
    assert int((together.logits().argmax(-1) != Cached.read(model, TEXTS).logits().argmax(-1)).sum()) == (
        whole[-1].changed
    )
