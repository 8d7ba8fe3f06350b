"""Removals tried on texts read once are those of the edited model; the order found keeps to its budget."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from splade.data.rows import Texts
from splade.errors import ConfigError
from splade.inference import Predictor
from splade.intervene import apply, word_ids
from splade.intervene.cached import Cached
from splade.intervene.closure import close, read_together
from splade.intervene.harm import PairGap, ProbeLeakage
from splade.intervene.suppress import masked
from splade.models.lexical_sae import LexicalSAE
from tests.tiny import SENTENCES, tiny_batch, tiny_model

PAIRS = [(f"{text} slow film", f"{text} late cup") for text in SENTENCES]
ROWS = Texts(list(SENTENCES), [i % 2 for i in range(len(SENTENCES))])


def decided(model: LexicalSAE, texts: list[str]) -> torch.Tensor:
    """Logits, each text by itself."""
    with torch.no_grad():
        return torch.cat([model.decide(model.encode(*tiny_batch(model, [text]))).logits for text in texts])


def gap(model: LexicalSAE, pairs: list[tuple[str, str]]) -> float:
    """The gap as a user would measure it."""
    name = model.config.label_names[1]
    first, second = (Predictor(model).predict([pair[side] for pair in pairs]) for side in (0, 1))
    gaps = [a.probabilities[name] - b.probabilities[name] for a, b in zip(first, second, strict=True)]
    return abs(float(np.mean(gaps)))


@pytest.mark.parametrize("head", ["relu_mlp", "bcos"])
@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_what_is_left_of_texts_read_once_is_what_the_edited_model_gives(head: str, family: str) -> None:
    model = tiny_model(head=head, family=family, opened=30)
    sets = [word_ids(model, words) for words in (["Paris"], ["film"], ["muslim", "slow", "film"])]
    texts = Cached.read(model, SENTENCES)
    assert torch.allclose(texts.logits(), decided(model, list(SENTENCES)), atol=1e-5)
    for ids, tried_NC in zip(sets, texts.without_each(sets), strict=True):
        with masked(model, ids, keep=False):
            expected_NC = decided(model, list(SENTENCES))
        assert torch.allclose(tried_NC, expected_NC, atol=1e-5)
        assert torch.allclose(texts.without(ids).logits(), expected_NC, atol=1e-5)


def test_only_max_pooling_lets_texts_be_read_once() -> None:
    with pytest.raises(ConfigError, match="max pooling"):
        Cached.read(tiny_model(pooling="attention"), SENTENCES)


def test_the_order_found_brings_the_gap_of_the_edited_model_down() -> None:
    model = tiny_model(classes=2, opened=30)
    before = gap(model, PAIRS)
    found = close(model, ["slow"], ["paris"], PairGap(model, PAIRS, 1), ROWS, cost=1.0)
    assert found
    apply(model, "remove", ["slow"])
    left = gap(model, PAIRS)
    for step in found:
        apply(model, "remove", [step.word])
        assert gap(model, PAIRS) == pytest.approx(step.harm, abs=1e-6)
        assert step.harm < left
        left = step.harm
    assert left < before


def test_a_step_that_would_cost_too_much_is_not_taken() -> None:
    model = tiny_model(classes=2, opened=30)
    labels = decided(model, list(SENTENCES)).argmax(-1).tolist()
    right = Texts(list(SENTENCES), labels)  # every row is right, so any change costs
    free, frugal = (close(model, ["slow"], [], PairGap(model, PAIRS, 1), right, cost) for cost in (1.0, 0.0))
    assert all(step.accuracy == 1.0 for step in frugal)
    assert frugal[-1].harm >= free[-1].harm
    assert close(model, ["slow"], [], PairGap(model, PAIRS, 1), right, most=1) == frugal[:1]


def test_a_probe_names_the_word_that_tells_and_guesses_without_it() -> None:
    model = tiny_model()
    rng = np.random.default_rng(0)
    about_N = np.arange(200) % 2 == 0
    s_NV = rng.random((200, 30)) * (rng.random((200, 30)) < 0.3)
    s_NV[:, 7] = about_N * 2.0
    harm = ProbeLeakage(_of(csr_matrix(s_NV), model), about_N)
    assert harm.now() > 0.99
    assert harm.suspects(3)[0] == 7
    tried, other = harm.without_each([[7], [8]])
    assert tried < 0.7 < other
    harm.remove([7])
    assert harm.now() < 0.65
    harm.remove(list(range(30)))
    assert harm.now() == 0.5


def _of(matrix: csr_matrix, model: LexicalSAE) -> Cached:
    class Given(Cached):
        def matrix(self) -> csr_matrix:
            return matrix

    return Given(Cached.read(model, SENTENCES[:1]).rows, model.head)


def test_a_word_that_is_never_active_is_where_it_stands() -> None:
    model = tiny_model(opened=30)
    [paris] = word_ids(model, ["Paris"])
    model.lexicon.dictionary_V[paris] = False
    texts = list(SENTENCES) * 3
    share_V = read_together(model, [paris], texts)
    told: dict[str, list[float]] = {}
    for explanation in Predictor(model).explain(texts):
        for word in explanation.words:
            at = sum(read.share for read in word.read_at if read.text == "Paris")
            told.setdefault(word.word, []).append(at * word.activation)
            told.setdefault(f"{word.word} ", []).append(word.activation)
    assert share_V.max() > 0.5
    for j in share_V.nonzero()[:, 0].tolist():
        name = model.lexicon.names[j]
        if model.lexicon.names.count(name) > 1:  # explanations name a word and a piece alike
            continue
        assert float(share_V[j]) == pytest.approx(sum(told[name]) / sum(told[f"{name} "]), abs=1e-4)
