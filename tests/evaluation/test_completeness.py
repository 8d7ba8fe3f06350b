"""What circuits keep of each gold class is what a person would count."""

from __future__ import annotations

import pytest
import torch

from splade.circuits.core import circuit_logits, hard_circuit_mask
from splade.data.rows import Sentences, Texts
from splade.evaluation.completeness import Completeness, CompletenessFitter
from splade.inference.rows import EncodedRows, decide
from splade.inference.scoring import all_logits, predicted_tags
from splade.mechanistic.attribution import Attribution, compute_attribution_tensor
from splade.models.lexical_sae import LexicalSAE
from tests.tiny import SENTENCES, tiny_model

GOLD = [i % 3 for i in range(len(SENTENCES))]


def measured(
    model: LexicalSAE, rows: Texts | Sentences, fractions: tuple[float, ...]
) -> tuple[list[Completeness], Attribution]:
    encoded = EncodedRows(rows, model)
    fitter = CompletenessFitter(encoded, model.config, fractions)
    with torch.no_grad():
        batch = encoded.batch(range(len(encoded)))
        state = decide(model, batch)
        attribution = compute_attribution_tensor(state, state.logits.argmax(-1))
        fitter.update(attribution, batch)
    return fitter.result(), attribution


def test_retention_is_recall_over_recall() -> None:
    model = tiny_model(opened=20)
    [found], attribution = measured(model, Texts(list(SENTENCES), GOLD), (0.1,))
    state = attribution.state
    with torch.no_grad():
        few_NC = circuit_logits(state, hard_circuit_mask(state.rows, attribution.amount, 0.1))
    right_few, right = ((logits.argmax(-1) == torch.tensor(GOLD)) for logits in (few_NC, state.logits))
    counted = {
        name: (int(right_few[c::3].sum()), int(right[c::3].sum()))
        for c, name in enumerate(model.config.label_names)
    }
    expected = {name: few / whole for name, (few, whole) in counted.items() if whole}
    assert found.retention == pytest.approx(expected)
    assert expected


def test_circuits_of_every_word_keep_every_class() -> None:
    model = tiny_model(opened=20)
    predicted = measured(model, Texts(list(SENTENCES), GOLD), (1.0,))[1].state.logits.argmax(-1).tolist()
    [found], _ = measured(model, Texts(list(SENTENCES), predicted), (1.0,))
    assert found.retention == {model.config.label_names[c]: 1.0 for c in sorted(set(predicted))}
    assert (found.score, found.agreement) == (1.0, 1.0)


def test_a_class_that_is_never_right_has_nothing_to_keep() -> None:
    model = tiny_model(opened=20)
    predicted = measured(model, Texts(list(SENTENCES), GOLD), (1.0,))[1].state.logits.argmax(-1)
    wrong = ((predicted + 1) % 3).tolist()
    assert measured(model, Texts(list(SENTENCES), wrong), (0.1,))[0][0].retention == {}


def test_kinds_of_entities_are_kept_when_tagging() -> None:
    model = tiny_model(task="tagging", classes=5, opened=20)
    words = [sentence.split() for sentence in SENTENCES]
    rows = Sentences(words, [["B-PER"] * len(sentence) for sentence in words])
    logits_NC = all_logits(model, EncodedRows(rows, model))
    found_tags = predicted_tags(model.config, EncodedRows(rows, model), logits_NC)
    few, every = measured(model, Sentences(words, found_tags), (0.05, 1.0))[0]
    kinds = {tag[2:] for tags in found_tags for tag in tags if tag != "O"}
    assert kinds
    assert every.retention == dict.fromkeys(sorted(kinds), 1.0)
    assert few.retention.keys() == kinds
    assert few.score <= max(few.retention.values()) < 1  # kinds found by mistake lower the score alone
