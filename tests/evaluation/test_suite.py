"""The evaluation counts what a person would count, and neither padding nor batches change it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch

from splade.circuits.calibration import expected_calibration_error
from splade.circuits.core import circuit_logits, hard_circuit_mask
from splade.circuits.prediction import decided
from splade.data.rows import Sentences, Texts
from splade.data.tagging import to_bio
from splade.evaluation.completeness import CompletenessFitter
from splade.evaluation.suite import Evaluation, evaluate
from splade.inference import Predictor
from splade.inference import rows as module
from splade.inference.rows import EncodedRows, decide
from splade.mechanistic.attribution import compute_attribution_tensor
from splade.models.dense import DenseModel
from splade.models.frozen import FrozenLM
from splade.models.lexical_sae import LexicalSAE
from tests.tiny import SENTENCES, tiny_labels, tiny_model

TEXTS = Texts([*SENTENCES, "", "clever"], [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2])
GOLD = [["O", "B-PER", "I-PER", *["O"] * 40], ["O", "O", "B-PER", *["O"] * 40]]
WORDS = [sentence.split() for sentence in SENTENCES]
UNSTABLE = (".seconds", ".step_seconds", ".scaling.lm_loss", ".scaling.hidden")
TAGGED = Sentences(WORDS, [GOLD[i % 2][: len(words)] for i, words in enumerate(WORDS)])


@pytest.fixture(autouse=True)
def _few_words_are_grounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tiny dictionary would be within the frozen LM's top 100 as a whole."""
    monkeypatch.setattr("splade.models.frozen.GROUNDING_RANK", 15)


def frozen_of(model: LexicalSAE) -> FrozenLM:
    """A language model that would not say quite what the model says."""
    return FrozenLM.copy_of(tiny_model(seed=9).backbone, model.lexicon)


def measured(batch_size: int = 4, rows: Texts | Sentences = TEXTS, **kinds: object) -> Evaluation:
    model = tiny_model(**{"opened": 20, **kinds})
    return evaluate(model, rows, frozen_of(model), batch_size)


def flat(value: object, path: str = "") -> dict[str, object]:
    """Every figure under its dotted key, but times, and guesses at words hidden by batch."""
    if isinstance(value, dict):
        return {k: v for key, part in value.items() for k, v in flat(part, f"{path}.{key}").items()}
    if isinstance(value, list):
        return {k: v for i, part in enumerate(value) for k, v in flat(part, f"{path}.{i}").items()}
    return {} if path.startswith(UNSTABLE) else {path: value}


def assert_same_figures(one: Evaluation, other: Evaluation) -> None:
    a, b = flat(one.to_dict()), flat(other.to_dict())
    assert a.keys() == b.keys()
    for key, value in a.items():
        if ".dla." not in key:
            assert value == (pytest.approx(b[key], abs=1e-4) if isinstance(value, float) else b[key]), key


def test_accuracy_and_recall_are_counted_by_hand() -> None:
    model = tiny_model(opened=20)
    found = evaluate(model, TEXTS).to_dict()
    predicted = [p.label for p in Predictor(model).predict(TEXTS.texts)]
    gold = [model.config.label_names[label] for label in TEXTS.labels]
    right = [p == g for p, g in zip(predicted, gold, strict=True)]
    assert found["accuracy"] == pytest.approx(sum(right) / 12)
    for name in model.config.label_names:
        of_class = [r for r, g in zip(right, gold, strict=True) if g == name]
        assert found["recall"][name] == pytest.approx(sum(of_class) / len(of_class))


def test_the_class_without_rows_has_no_recall() -> None:
    found = evaluate(tiny_model(), Texts(["clever film"], [1]))
    assert list(found.quality.recall) == ["class b"]


def test_entity_f1_is_counted_by_hand() -> None:
    names = tiny_labels("tagging", 5)
    model = tiny_model(task="tagging", classes=5, opened=20)
    tags = [[p.label for p in sentence] for sentence in Predictor(model).predict_tags(WORDS)]
    gold = Sentences(WORDS, [list(sentence) for sentence in tags])
    perfect = evaluate(model, gold)
    assert (perfect.quality.accuracy, perfect.quality.f1) == (1.0, 1.0)
    flipped = next(i for i, sentence in enumerate(tags) if any(tag != "O" for tag in sentence))
    gold.tags[flipped] = ["O"] * len(tags[flipped])  # the entities of one sentence were wrong
    found = evaluate(model, gold)
    wrong = sum(tag != "O" for tag in tags[flipped])
    assert found.quality.accuracy == pytest.approx(1 - wrong / sum(map(len, tags)))
    micro = found.quality.entities["micro"]
    assert micro.recall == 1.0
    assert found.quality.f1 == pytest.approx(2 * micro.precision / (1 + micro.precision))
    assert set(found.quality.entities) <= {"micro", *(name[2:] for name in names if name != "O")}


@pytest.mark.parametrize("kinds", [{}, {"pooling": "attention"}, {"honesty": "licensed-contextual"}])
@pytest.mark.parametrize("batch_size", [1, 5, 100])
def test_the_batch_size_changes_no_figure(batch_size: int, kinds: dict) -> None:
    assert_same_figures(measured(2, **kinds), measured(batch_size, **kinds))


@pytest.mark.parametrize("batch_size", [1, 100])
def test_the_batch_size_changes_no_figure_of_a_tagger(batch_size: int) -> None:
    one, other = (measured(size, TAGGED, task="tagging") for size in (3, batch_size))
    assert_same_figures(one, other)


@pytest.mark.parametrize("task", ["classification", "tagging"])
def test_padding_never_counts(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same figures when every batch is padded far beyond its longest text."""
    short = Texts(["clever film", "slow"], [0, 1])
    rows = short if task == "classification" else Sentences([["Paris", "was"], ["slow"]], [["O", "O"], ["O"]])
    plain, collate = measured(rows=rows, task=task), module.collate

    def padded(*args: object):
        batch = collate(*args)
        width = (0, 40)
        mask = None if batch.row_mask is None else torch.nn.functional.pad(batch.row_mask, width)
        ids = torch.nn.functional.pad(batch.input_ids, width, value=0)
        attention = torch.nn.functional.pad(batch.attention_mask, width)
        return type(batch)(ids, attention, mask, batch.labels_N, batch.indices)

    monkeypatch.setattr(module, "collate", padded)
    assert_same_figures(measured(rows=rows, task=task), plain)


@pytest.mark.parametrize("task", ["classification", "tagging"])
def test_the_documented_keys_are_plain_json(task: str) -> None:
    found = measured(rows=TEXTS if task == "classification" else TAGGED, task=task).to_dict()
    assert json.loads(json.dumps(found)) == found
    assert found["task"] == task
    assert found["rows"] == (12 if task == "classification" else 10)
    assert 0 <= found["accuracy"] <= 1
    assert ("f1" in found) == (task == "tagging")
    assert found["dla"]["max_relative_residual"] <= 1e-6
    assert found["dla"]["max_abs_error"] <= 1e-4
    dictionary = found["dictionary"]
    assert 0 < dictionary["grounding100"] < dictionary["grounding100_anywhere"] < 1
    assert 0 < dictionary["in_input"] < 1
    predicted = {name for name, count in dictionary["texts"].items() if count}
    assert set(dictionary["effective_vocabulary"]) <= predicted
    assert all(size >= 1 for size in dictionary["effective_vocabulary"].values())


def test_active_words_are_counted_for_every_row() -> None:
    model = tiny_model(opened=20)
    found = evaluate(model, TEXTS).active_words
    counts = [explanation.active_words for explanation in Predictor(model).explain(TEXTS.texts)]
    assert found.mean == pytest.approx(sum(counts) / 12)
    assert found.max == max(counts)
    assert found.median == sorted(counts)[5]  # the lower middle one of twelve
    assert min(counts) == 0


def test_sparsity_is_the_share_of_words_that_are_not_active() -> None:
    model = tiny_model(task="tagging", opened=20)
    found = evaluate(model, TAGGED).active_words
    assert found.sparsity == pytest.approx(1 - found.mean / model.lexicon.vocab_size)
    assert 0 < found.sparsity < 1


def test_several_labels_are_counted_by_hand() -> None:
    model = tiny_model(opened=20, classes=4, seed=11)
    model.config.multi_label = True
    names = model.config.label_names
    rows = Texts(list(SENTENCES), label_sets=[[i % 3, 3][: i % 4] for i in range(len(SENTENCES))])
    found = evaluate(model, rows).to_dict()
    predicted = [set(p.labels) for p in Predictor(model).predict(rows.texts)]
    gold = [{names[i] for i in ids} for ids in rows.label_sets]
    pairs = list(zip(predicted, gold, strict=True))
    assert found["accuracy"] == pytest.approx(sum(p == g for p, g in pairs) / len(pairs))
    right = sum(len(p & g) for p, g in pairs)
    assert found["f1"] == pytest.approx(2 * right / sum(len(p) + len(g) for p, g in pairs))
    by_hand = {}
    for name in names:
        both, either = sum(name in p & g for p, g in pairs), sum((name in p) + (name in g) for p, g in pairs)
        by_hand[name] = 2 * both / either if either else 0.0
    assert found["class_f1"] == pytest.approx(by_hand)
    assert found["macro_f1"] == pytest.approx(sum(by_hand.values()) / len(names))
    assert "entities" not in found


def test_a_model_of_several_labels_may_be_measured_on_rows_with_one() -> None:
    model = tiny_model()
    model.config.multi_label = True
    sets = Texts(TEXTS.texts, label_sets=[[label] for label in TEXTS.labels])
    assert_same_figures(evaluate(model, TEXTS), evaluate(model, sets))


@pytest.mark.parametrize("several", [False, True])
def test_the_calibration_error_is_that_of_the_probabilities_given(several: bool) -> None:
    model = tiny_model(opened=20)
    model.config.multi_label = several
    plain = evaluate(model, TEXTS)
    model.config.temperature = 4.0
    soft = evaluate(model, TEXTS)
    assert plain.ece == plain.ece_uncalibrated == soft.ece_uncalibrated != soft.ece
    shown = [list(p.probabilities.values()) for p in Predictor(model).predict(TEXTS.texts)]
    gold = torch.tensor(TEXTS.labels)
    gold = torch.nn.functional.one_hot(gold, 3).float() if several else gold
    assert soft.ece == pytest.approx(expected_calibration_error(torch.tensor(shown), gold), abs=1e-6)
    assert soft.quality == plain.quality


def test_a_dense_model_has_quality_and_calibration_and_nothing_of_words() -> None:
    twin = tiny_model()
    found = evaluate(DenseModel(twin.config, twin.backbone, twin.tokenizer), TEXTS).to_dict()
    assert {"accuracy", "recall", "ece"} <= found.keys()
    assert not {"dla", "active_words", "dictionary"} & found.keys()
    assert found["rows"] == 12


@pytest.mark.parametrize("decode", ["valid", "independent"])
def test_tags_are_measured_as_they_are_predicted(decode: str) -> None:
    model = tiny_model(task="tagging", classes=5, opened=20, seed=3)
    model.config.decode = decode
    tags = [[p.label for p in sentence] for sentence in Predictor(model).predict_tags(WORDS)]
    assert (decode == "valid") == all(to_bio(sentence) == sentence for sentence in tags)
    assert evaluate(model, Sentences(WORDS, tags)).quality.accuracy == 1.0


def test_grounding_is_not_measured_without_the_frozen_lm() -> None:
    found = evaluate(tiny_model(), TEXTS).to_dict()
    assert found["dictionary"]["grounding100"] is None


def test_a_model_licensed_by_its_frozen_lm_is_grounded_whole() -> None:
    model = tiny_model(honesty="licensed-contextual", opened=20)
    assert evaluate(model, TEXTS, model.frozen).dictionary.grounding100 == 1.0


def test_progress_counts_every_text() -> None:
    seen: dict[str, list[int]] = {}

    @contextmanager
    def watch(name: str, total: int) -> Iterator[Callable[[int], None]]:
        seen[name] = []
        yield seen[name].append
        assert sum(seen[name]) == total == 12

    evaluate(tiny_model(), TEXTS, batch_size=5, watch=watch)
    assert list(seen) == ["evaluation", "layerwise", "scaling"]


def test_a_circuit_agrees_on_several_labels_only_if_it_has_the_same_set() -> None:
    model = tiny_model(opened=20, classes=4, seed=11)
    model.config.multi_label = True
    encoded = EncodedRows(Texts(list(SENTENCES), label_sets=[[0]] * len(SENTENCES)), model)
    fitter, same = CompletenessFitter(encoded, model.config, [0.5]), 0
    with torch.no_grad():
        batch = encoded.batch(range(len(encoded)))
        state = decide(model, batch)
        attribution = compute_attribution_tensor(state, state.logits.argmax(-1))
        fitter.update(attribution, batch)
        alone = circuit_logits(state, hard_circuit_mask(state.rows, attribution.amount, 0.5))
    for few, whole in zip(decided(alone, True), decided(state.logits, True), strict=True):
        same += few == whole
    assert fitter.result()[0].agreement == pytest.approx(same / len(SENTENCES))
    assert 0 < same < len(SENTENCES)
