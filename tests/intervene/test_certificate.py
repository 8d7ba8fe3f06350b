"""Attacks fail on a removed word and succeed without the removal; what is left of the concept is measured."""

from __future__ import annotations

import dataclasses
import json
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from splade.config.model import SensesRecord
from splade.data.rows import Sentences, Texts
from splade.errors import ConfigError
from splade.intervene import apply, word_ids
from splade.intervene.attack import hostile, search
from splade.intervene.certificate import certify, measure
from splade.intervene.closure import propose, read_together, stem
from splade.intervene.leakage import contain, features, leakage, nearest, probe
from splade.models.build import add_senses
from splade.report.certificate import certificate_page
from tests.tiny import SENTENCES, tiny_model

TEXTS = [f"{frame} {word}" for frame in SENTENCES[5:] for word in ("slow", "late", "wet", "cup", "slow two")]


@pytest.mark.parametrize("honesty", ["grounded", "licensed-static", "licensed-contextual"])
@pytest.mark.parametrize("pooling", ["max", "attention"])
def test_a_search_fails_on_removed_words_and_succeeds_without(honesty: str, pooling: str) -> None:
    model = tiny_model(honesty=honesty, pooling=pooling)
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    ids = word_ids(model, ["film", "paris"])
    found = search(model, ids, steps=30)
    assert found.logit_after > found.logit_before + 1
    assert found.attempt.checked > 0
    assert found.attempt.not_zero == 0
    assert found.attempt.opened_without == len(ids)
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())
    assert not any(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("gate", ["jumprelu", "drelu", "gated_jumprelu"])
def test_hostile_hidden_states_fail_and_some_succeed_without_the_removal(gate: str) -> None:
    model = tiny_model(gate=gate, topk=4)
    found = {attempt.kind: attempt for attempt in hostile(model, word_ids(model, ["film", "paris"]))}
    assert all(attempt.not_zero == 0 and attempt.checked > 0 for attempt in found.values())
    assert found["along the word"].opened_without == 2
    assert found["NaN"].opened_without == 0
    assert model.lexicon.keep_V.all()


def test_an_attack_notices_a_removal_that_does_not_hold() -> None:
    model = tiny_model()
    model.lexicon.register_buffer("keep_V", _Stubborn(model.lexicon.keep_V))
    assert hostile(model, word_ids(model, ["film"]))[-1].not_zero > 0


class _Stubborn(torch.Tensor):
    """A mask that cannot be written to."""

    def __new__(cls, values):
        return values.as_subclass(cls)

    def __setitem__(self, ids, value):
        pass


def test_every_sense_of_a_word_is_attacked() -> None:
    model = tiny_model()
    add_senses(model, SensesRecord(token_ids=model.lexicon.ids("film"), num_senses=3))
    apply(model, "remove", ["film"])
    found = certify(model, steps=5)
    assert found.names == ["film#1", "film#2", "film#3"]
    assert found.holds


def test_a_probe_reads_what_is_there_and_guesses_what_is_not() -> None:
    rng = np.random.default_rng(0)
    contains_N = np.arange(200) % 2 == 0
    noise_NV = rng.random((200, 30)) * (rng.random((200, 30)) < 0.3)
    told_NV = noise_NV.copy()
    told_NV[:, 7] = contains_N * 2.0
    before, after = probe(csr_matrix(told_NV), contains_N), probe(csr_matrix(noise_NV), contains_N)
    assert before.auc > 0.99
    assert max(before.weights, key=before.weights.__getitem__) == 7
    assert after.low <= after.auc <= after.high
    assert after.low < 0.5 < after.high + 0.1
    assert probe(csr_matrix((200, 30)), contains_N).auc == 0.5


def test_leakage_falls_when_the_word_was_all_that_told_of_it() -> None:
    model = tiny_model()
    ids = word_ids(model, ["slow"])
    others = [j for j in model.lexicon.words().tolist() if j not in ids]
    model.lexicon.keep_V[others] = False
    found = leakage(model, ids, TEXTS)
    assert found is not None
    assert (found.texts, found.containing) == (25, 10)
    assert found.after.auc <= found.before.auc
    assert found.after.auc == 0.5  # nothing is left to read
    assert found.probe_words == []


@pytest.mark.parametrize("pooling", ["max", "attention"])
def test_the_probe_after_sees_what_the_edited_model_gives(pooling: str) -> None:
    model = tiny_model(pooling=pooling, opened=30)
    ids = word_ids(model, ["slow"])
    found = leakage(model, ids, TEXTS)
    assert found is not None
    apply(model, "remove", ["slow"])
    expected = probe(features(model, TEXTS), contain(TEXTS, ["slow"]))
    assert found.after.auc == expected.auc
    assert found.after.weights == pytest.approx(expected.weights)


def test_too_few_texts_are_not_probed() -> None:
    model = tiny_model()
    assert leakage(model, word_ids(model, ["slow"]), TEXTS[:8]) is None


def test_a_word_is_found_whole_and_in_any_case() -> None:
    assert contain(["A SLOW film", "slowly", "slow-burning", "", "ﬁlm"], ["slow", "film"]).tolist() == [
        True,
        False,
        True,
        False,
        True,
    ]


def test_only_words_in_use_are_near() -> None:
    model = tiny_model()
    ids = word_ids(model, ["slow"])
    (first, cosine), *_ = nearest(model, ids)
    assert -1 <= cosine <= 1
    apply(model, "remove", [first])
    assert first not in dict(nearest(model, ids))
    assert not {"slow", "the", "[CLS]"} & set(dict(nearest(model, ids, most=50)))


@pytest.mark.parametrize(
    "forms",
    [
        ("city", "cities", "City"),
        ("stop", "stops", "stopped", "stopping"),
        ("hope", "hoped", "hoping", "hopes"),
        ("quick", "quickly", "quicker", "quickest", "quickness"),
        ("boston", "boston's", "bostons"),
    ],
)
def test_forms_of_a_word_have_one_stem(forms: tuple[str, ...]) -> None:
    assert len({stem(form) for form in forms}) == 1


@pytest.mark.parametrize(
    "pair", [("paris", "par"), ("bus", "bu"), ("red", "r"), ("class", "clas"), ("as", "a")]
)
def test_other_words_have_other_stems(pair: tuple[str, str]) -> None:
    assert stem(pair[0]) != stem(pair[1])


def test_proposals_name_forms_neighbours_and_words_read_together_and_change_nothing() -> None:
    model = tiny_model(opened=30)
    [twin] = model.lexicon.ids("summer")
    model.lexicon.surfaces = list(model.lexicon.surfaces)
    model.lexicon.names[twin] = model.lexicon.surfaces[twin] = "slowly"
    with torch.no_grad():
        [slow], [late] = model.lexicon.ids("slow"), model.lexicon.ids("late")
        model.backbone.E_VH[late] = 2 * model.backbone.E_VH[slow]
    found = {proposal.word: proposal for proposal in propose(model, ["slow"], SENTENCES, most=1000)}
    assert found["slowly"].inflection
    assert found["late"].nearness == pytest.approx(1.0)
    assert any(p.read >= 0.5 and not p.inflection for p in found.values())
    scores = [p.score for p in found.values()]
    assert scores == sorted(scores, reverse=True)
    assert model.lexicon.keep_V.all()
    assert model.lexicon.edits == []


def test_a_word_is_always_read_with_itself() -> None:
    model = tiny_model(opened=30)
    ids = word_ids(model, ["film", "slow"])
    share_V = read_together(model, ids, SENTENCES * 3)
    assert bool(((share_V >= 0) & (share_V <= 1 + 1e-6)).all())
    assert torch.allclose(share_V[ids], torch.ones(len(ids)))


def test_quality_is_measured_with_the_words_and_without() -> None:
    model = tiny_model(classes=2)
    ids = model.lexicon.words().tolist()
    found = measure(model, ids, Texts(list(SENTENCES), [0] * len(SENTENCES)))
    assert found.rows == len(SENTENCES)
    assert found.accuracy_after in (0.0, 1.0)  # without any word every text gets the same label
    moved = round(abs(found.accuracy_after - found.accuracy_before) * found.rows)
    assert found.changed == moved
    assert measure(model, ids, Texts(list(SENTENCES))).accuracy_before is None


def test_a_taggers_removal_is_measured_word_by_word() -> None:
    model = tiny_model(task="tagging", classes=5)
    apply(model, "remove", ["paris"])
    rows = Sentences([["They", "visited", "Paris"]] * 2, [["O", "O", "B-LOC"]] * 2)
    found = certify(model, rows, steps=5)
    assert found.holds
    assert found.measured is not None
    assert found.measured.rows == 6


@pytest.mark.parametrize(
    ("pooling", "told"), [("max", "to the bit"), ("attention", "can change their values")]
)
def test_a_certificate_states_what_its_model_does(pooling: str, told: str) -> None:
    model = tiny_model(pooling=pooling, topk=7)
    apply(model, "remove", ["Slow"], reason="<script>alert(1)</script>")
    apply(model, "scale", ["film"], 0.5)
    found = certify(model, Texts(TEXTS, [0] * len(TEXTS)), steps=5)
    values = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert values["holds"] is True
    assert values["words"] == ["slow"]
    assert values["model_hash"] == model.lexicon.edits[-1].hash_after
    assert told in " ".join(values["caveats"])
    assert "7 largest" in " ".join(values["caveats"])
    page = certificate_page(values)
    HTMLParser().feed(page)
    assert "<script" not in page
    assert values["model_hash"] in page
    assert "Area after" in page


def test_a_certificate_that_does_not_hold_says_so() -> None:
    model = tiny_model()
    apply(model, "remove", ["slow"])
    found = certify(model, steps=1)
    broken = dataclasses.replace(found.hostile[0], not_zero=3)
    found = dataclasses.replace(found, hostile=[broken])
    assert not found.holds
    page = certificate_page(found.to_dict())
    assert "Not removed" in page
    assert "was not measured" in page


def test_nothing_removed_is_nothing_to_certify() -> None:
    model = tiny_model()
    apply(model, "scale", ["slow"], 0.5)
    with pytest.raises(ConfigError, match="no word of this model was removed"):
        certify(model)
