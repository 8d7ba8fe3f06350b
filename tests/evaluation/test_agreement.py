"""Agreement in sign with human word labels: what is held out, and what the figures are."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import torch

from splade.data.rows import Texts
from splade.errors import ConfigError, DataError
from splade.evaluation.agreement import Said, agreed, agreement, concept_words, input_words, one_word_rows
from splade.evaluation.explainers import inputs
from splade.evaluation.explainers.questions import Settings, ask, decide
from splade.models.lexicon import normalise
from tests.tiny import SENTENCES, tiny_model

REAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "sst2"
HUMAN = {"good": 1, "dull": 0, "warm": 1}
LITTLE = Settings(batch_size=16)


def signed_model(seed: int = 0):
    """A model whose every word speaks for one of two classes by construction, and for which (by id)."""
    model = tiny_model(classes=2, seed=seed, opened=12)
    head = model.head
    with torch.no_grad():
        side_V = torch.randint(
            0, 2, (model.lexicon.vocab_size,), generator=torch.Generator().manual_seed(seed)
        )
        head.W_in.zero_()
        head.W_in[torch.arange(len(side_V)), side_V] = 1.0
        head.b1.zero_()
        head.out.weight.zero_()
        head.out.weight[0, 0] = head.out.weight[1, 1] = 1.0
    return model, side_V


# --- rows of one word ----------------------------------------------------------------------------------


def test_rows_of_one_word_leave_training_with_their_duplicates() -> None:
    rows = Texts(["Good", "a good film", "good ", "dull !", "dull film", "", "so-so"], [1, 1, 1, 0, 0, 0, 0])
    words, rest = one_word_rows(rows)
    assert words == {"good": 1, "dull": 0}
    assert rest == Texts(["a good film", "dull film", "", "so-so"], [1, 0, 0, 0])


def test_a_word_that_people_disagree_on_has_no_label_and_is_held_out_all_the_same() -> None:
    words, rest = one_word_rows(Texts(["odd", "Odd", "fine"], [0, 1, 1]))
    assert (words, len(rest)) == ({"fine": 1}, 0)


def test_rows_without_single_labels_are_refused() -> None:
    with pytest.raises(DataError, match="single labels"):
        one_word_rows(Texts(["good"], label_sets=[[0, 1]]))


@pytest.mark.skipif(not REAL.exists(), reason="the data is not here")
def test_one_word_rows_of_real_phrases() -> None:
    with (REAL / "train.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    words, rest = one_word_rows(Texts([r["sentence"] for r in rows], [int(r["label"]) for r in rows]))
    assert words["charming"] == 1
    assert words["tedious"] == 0
    assert len(words) > 2000
    assert not set(words) & set(rest.keys())


# --- the figures ---------------------------------------------------------------------------------------


def test_shares_of_hand_computed_texts() -> None:
    texts = [
        [Said("good", 3.0), Said("dull", 1.0), Said("plot", -4.0)],  # right, wrong; half the mass is labelled
        [Said("warm", -2.0), Said("Dull", -6.0), Said("good", 0.0)],  # wrong, right; the last has no sign
        [Said("plot", 1.0)],
        [],
    ]
    found = agreed(texts, HUMAN)
    assert found is not None
    assert found.words.mean == 0.5
    assert found.mass.mean == 0.75
    assert found.coverage.mean == pytest.approx((0.5 + 1.0 + 0.0) / 3)
    assert (found.occurrences, found.vocabulary, found.texts) == (4, 3, 2)


def test_turning_all_labels_turns_all_signs() -> None:
    maker = np.random.default_rng(0)
    texts = [[Said(word, maker.normal()) for word in HUMAN] for _ in range(20)]
    one, other = agreed(texts, HUMAN), agreed(texts, {word: 1 - label for word, label in HUMAN.items()})
    assert one is not None
    assert other is not None
    assert one.words.mean + other.words.mean == pytest.approx(1)
    assert one.mass.mean + other.mass.mean == pytest.approx(1)
    assert one.coverage == other.coverage


def test_without_a_labelled_word_there_is_nothing_to_say() -> None:
    assert agreed([[Said("plot", 1.0)], [Said("good", 0.0)]], HUMAN) is None


# --- models --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
def test_concept_words_agree_with_labels_read_off_the_weights(seed: int) -> None:
    model, side_V = signed_model(seed)
    lexicon = model.lexicon
    human = {normalise(lexicon.surfaces[j]): -1 for j in range(lexicon.vocab_size)}
    for j, side in enumerate(side_V.tolist()):  # ids of one surface may speak for both classes
        surface = normalise(lexicon.surfaces[j])
        human[surface] = side if human[surface] in (-1, side) else 2
    human = {word: side for word, side in human.items() if side < 2}
    [concepts, *_] = agreement(model, SENTENCES, human, LITTLE)
    assert concepts.view == "concepts"
    assert concepts.agreed is not None
    assert concepts.agreed.words.mean == concepts.agreed.mass.mean == 1
    turned = {word: 1 - side for word, side in human.items()}
    [concepts, *_] = agreement(model, SENTENCES, turned, LITTLE)
    assert concepts.agreed is not None
    assert concepts.agreed.words.mean == 0


@pytest.mark.parametrize("pooling", ["max", "attention"])
def test_both_views_sum_to_the_gap_between_the_logits(pooling: str) -> None:
    model = tiny_model(classes=2, pooling=pooling)
    questions = ask(model, SENTENCES)
    [(indices, _, state)] = decide(model, questions, LITTLE)
    gap_N = (state.logits[:, 1] - state.logits[:, 0]) - (state.b_eff[:, 1] - state.b_eff[:, 0])
    concepts = concept_words(model, questions, LITTLE)
    words = input_words(inputs.ours, model, questions, LITTLE)
    for gap, i in zip(gap_N.tolist(), indices, strict=True):
        assert sum(said.margin for said in concepts[i]) == pytest.approx(gap, abs=1e-4)
        assert sum(said.margin for said in words[i]) == pytest.approx(gap, abs=1e-4)


def test_what_cannot_tell_the_classes_apart_has_no_figures() -> None:
    human = {"clever": 1, "slow": 0, "the": 1}
    rows = agreement(tiny_model(classes=2), SENTENCES, human, LITTLE, ["attention_rollout", "random"])
    assert [row.explainer for row in rows] == ["ours", "attention_rollout", "random", "prediction"]
    assert [row.note for row in rows[1:3]] == ["no labelled word has a sign"] * 2


def test_the_prediction_agrees_where_it_is_the_words_label_and_function_words_do_not_count() -> None:
    model = tiny_model(classes=2)
    texts = ["clever", "slow film", "the film"]
    labels = [question.label for question in ask(model, texts)]
    [*_, row] = agreement(model, texts, {"clever": labels[0], "slow": 1 - labels[1], "the": 1}, LITTLE)
    assert row.agreed is not None
    assert (row.agreed.words.mean, row.agreed.vocabulary) == (0.5, 2)


def test_mistakes_are_answered_in_one_line() -> None:
    with pytest.raises(ConfigError, match="exactly two"):
        agreement(tiny_model(classes=3), SENTENCES, HUMAN)
    with pytest.raises(ConfigError, match="no explainer 'dla'"):
        agreement(tiny_model(classes=2), SENTENCES, HUMAN, explainers=["dla"])
    with pytest.raises(ConfigError, match="classification"):
        agreement(tiny_model(classes=2, task="tagging"), SENTENCES, HUMAN)
