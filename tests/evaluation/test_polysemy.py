"""Uses of a word are told apart by the slot they take, over the pairs that can be judged at all."""

from __future__ import annotations

import json

import pytest
import torch
from torch import Tensor

from splade.config.model import SensesRecord
from splade.data.wic import Use, WordPair
from splade.errors import ConfigError, DataError
from splade.evaluation.polysemy import best_threshold, evaluate_polysemy, single_tokens
from splade.models.build import add_senses
from splade.models.lexical_sae import LexicalSAE
from tests.tiny import tiny_model

NEAR, FAR = "the clever film was slow", "a film without a cup"


def pair(word: str, first: str, second: str, same: bool) -> WordPair:
    uses = [Use(text, text.index(word), text.index(word) + len(word)) for text in (first, second)]
    return WordPair(word, *uses, same)


PAIRS = [
    pair("film", NEAR, "a slow film", True),
    pair("film", NEAR, FAR, False),
    pair("film", FAR, "a film and a cup", True),
    pair("film", FAR, "a slow film", False),
]


def with_senses(*words: str, family: str = "bert") -> LexicalSAE:
    """A model that means sense 2 of a word exactly where 'cup' stands in the sentence."""
    model = tiny_model(family)
    ids = [model.lexicon.ids(word)[-1] for word in words]
    add_senses(model, SensesRecord(token_ids=ids, num_senses=2))
    cups = torch.tensor(model.lexicon.ids("cup"))
    own = model.backbone.forward

    def forward(ids_BL: Tensor, mask_BL: Tensor) -> Tensor:
        h_BLH = own(ids_BL, mask_BL).clone()
        h_BLH[..., 0] = torch.isin(ids_BL, cups).any(1, keepdim=True).float() * 20 - 10
        return h_BLH

    model.backbone.forward = forward  # type: ignore[method-assign]
    with torch.no_grad():
        model.expander.P_KMH[:, 1, 0] = 1.0
        model.backbone.E_VH[ids, 0] = 5.0
    return model


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta"])
def test_slots_that_follow_the_context_are_all_right(family: str) -> None:
    found = evaluate_polysemy(with_senses("film", family=family), PAIRS, PAIRS)
    assert (found.pairs, found.covered, found.tuned_on) == (4, 4, 4)
    assert found.accuracy == found.coverage == 1
    assert found.majority == 0.5
    assert found.baseline == 1, "here the logit follows the context as well"


def test_senses_that_ignore_the_context_say_same_always() -> None:
    model = with_senses("film")
    with torch.no_grad():
        model.expander.P_KMH.zero_()
        model.expander.c_KM[:, 0] = 1.0
    found = evaluate_polysemy(model, PAIRS[:3], PAIRS)
    assert found.accuracy == pytest.approx(2 / 3)
    assert found.majority == pytest.approx(2 / 3)


def test_only_pairs_of_one_expanded_token_are_covered() -> None:
    model = with_senses("film")
    outside = [
        pair("slow", "a slow film", NEAR, True),  # not expanded
        pair("charming", "a charming film", "the charming story", True),  # two pieces
        pair("the", "the film", "the cup", True),  # no word of the dictionary
        WordPair("film", Use(NEAR, 11, 15), Use("a slow cup", 7, 10), False),  # two words
    ]
    found = evaluate_polysemy(model, [PAIRS[0], *outside], PAIRS + outside)
    assert (found.pairs, found.covered) == (5, 1)
    assert found.coverage == pytest.approx(0.2)
    assert found.tuned_on == 5
    film, slow = model.lexicon.ids("film")[0], model.lexicon.ids("slow")[0]
    assert single_tokens(model, PAIRS + outside) == sorted([film, slow])


def test_a_target_past_the_models_limit_is_not_covered() -> None:
    model = with_senses("film")
    late = pair("film", "slow " * 80 + "film", NEAR, True)
    found = evaluate_polysemy(model, [late], PAIRS)
    assert found.covered == 0
    assert found.accuracy is found.baseline is found.majority is None
    assert json.loads(json.dumps(found.to_dict()))["accuracy"] is None


def test_the_answers_of_the_test_pairs_change_no_answer_of_the_model() -> None:
    model = with_senses("film")
    turned = [WordPair(p.lemma, p.first, p.second, not p.same) for p in PAIRS]
    one, other = evaluate_polysemy(model, PAIRS, PAIRS), evaluate_polysemy(model, turned, PAIRS)
    assert one.threshold == other.threshold
    assert other.accuracy == pytest.approx(1 - one.accuracy)
    assert other.baseline == pytest.approx(1 - one.baseline)


def brute(difference_n: Tensor, same_n: Tensor) -> float:
    tries = [-1.0, *difference_n.tolist()]
    right = [float(((difference_n <= t) == same_n).float().mean()) for t in tries]
    return max(right)


@pytest.mark.parametrize("seed", range(8))
def test_the_threshold_is_the_best_there_is(seed: int) -> None:
    maker = torch.Generator().manual_seed(seed)
    difference_n = torch.randint(0, 6, (12,), generator=maker).float()  # with ties
    same_n = torch.rand(12, generator=maker) < 0.5
    chosen = best_threshold(difference_n, same_n)
    right = float(((difference_n <= chosen) == same_n).float().mean())
    assert right == pytest.approx(brute(difference_n, same_n))


def test_nothing_to_compare_is_said_in_one_line() -> None:
    with pytest.raises(ConfigError, match="expand it first"):
        evaluate_polysemy(tiny_model(), PAIRS, PAIRS)
    with pytest.raises(DataError, match="no training pair"):
        evaluate_polysemy(with_senses("film"), PAIRS, [])
