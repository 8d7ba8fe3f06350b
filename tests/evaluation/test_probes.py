"""Probes of planted features: what they choose, what they fit on, and what absorption is."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from splade.data.rows import Texts
from splade.errors import ConfigError, DataError
from splade.evaluation.probes import Read, absorption, dense_features, mean_gap, probe_classes, probes
from splade.models.dense import DenseModel
from tests.tiny import SENTENCES, tiny_batch, tiny_model

WORDS = [f"word {j}" for j in range(30)]


def planted(n: int = 400, seed: int = 0, knows: float = 1.0, noise: float = 0.3) -> Read:
    """Two classes; word 7 fires in a share `knows` of the second and never elsewhere, the rest is noise."""
    maker = np.random.default_rng(seed)
    is_N = np.arange(n) % 2 == 1
    s_NV = maker.random((n, len(WORDS))) * (maker.random((n, len(WORDS))) < noise)
    s_NV[:, 7] = is_N & (maker.random(n) < knows)
    h_NH = np.where(is_N, 1.0, -1.0)[:, None] + maker.normal(size=(n, 4))
    return Read(csr_matrix(s_NV), h_NH, np.stack([~is_N, is_N], 1))


def of(found, label):
    return next(c for c in found.classes if c.label == label)


def test_one_word_that_knows_is_all_a_probe_needs() -> None:
    found = of(probe_classes(planted(), planted(seed=1), "ab", WORDS), "b")
    assert found.words[1] == ["word 7"]
    assert found.probe_word == "word 7"
    assert found.accuracy[1] == found.accuracy_all == 1
    assert found.probe_loss < 0.1 < found.guess_loss
    assert found.guess_loss == pytest.approx(np.log(2))
    assert 0.9 < found.accuracy_dense < 1  # four noisy copies


def test_what_knows_nothing_is_at_chance() -> None:
    maker = np.random.default_rng(5)
    train, test = (
        read._replace(h_NH=maker.normal(size=(1000, 4)))
        for read in (planted(1000, knows=0), planted(1000, seed=1, knows=0))
    )
    found = of(probe_classes(train, test, "ab", WORDS), "b")
    assert found.accuracy_all == pytest.approx(0.5, abs=0.07)
    assert found.accuracy_dense == pytest.approx(0.5, abs=0.07)
    assert found.probe_loss == pytest.approx(np.log(2), abs=0.02)


def test_both_sides_count_alike_however_rare_a_class_is() -> None:
    read = planted(400, knows=0)
    rare_N = np.arange(400) % 40 == 0
    read = read._replace(is_NC=np.stack([~rare_N, rare_N], 1))
    s_NV = read.s_NV.toarray()
    s_NV[:, 7] = 0
    found = of(probe_classes(read._replace(s_NV=csr_matrix(s_NV * 0)), read, "ab", WORDS, [1]), "b")
    assert found.accuracy[1] == 0.5  # 0.975 by saying no to all


def test_words_are_chosen_on_training_rows() -> None:
    """Test rows with a word that gives them away change no choice and no probe."""
    train, test = planted(knows=0.6), planted(seed=1, knows=0.6)
    telling = test.s_NV.tolil()
    telling[:, 11] = test.is_NC[:, 1].astype(float)[:, None]
    one = of(probe_classes(train, test, "ab", WORDS), "b")
    other = of(probe_classes(train, test._replace(s_NV=telling.tocsr()), "ab", WORDS), "b")
    assert one.words == other.words
    assert one.probe_word == other.probe_word
    assert one.accuracy[1] == other.accuracy[1] == pytest.approx(0.8, abs=0.05)  # word 7 in 60 % of a half


def test_more_words_are_the_ones_of_largest_gap() -> None:
    train = planted(knows=0.6)
    found = of(probe_classes(train, planted(seed=1), "ab", WORDS, [2, 1, 5]), "b")
    scaled = train.s_NV.toarray() / train.s_NV.toarray().max(0)
    order = np.argsort(-np.abs(mean_gap(csr_matrix(scaled), train.is_NC[:, 1])), kind="stable")
    assert list(found.accuracy) == [1, 2, 5]
    assert found.words[5] == [WORDS[j] for j in order[:5]]


# --- absorption ----------------------------------------------------------------------------------------


def absorbed_read(n: int, seed: int, absorber: bool) -> Read:
    """Word 7 fires in 70 % of the class; in the other 30 % word 3 stands for it, or five together do."""
    maker = np.random.default_rng(seed)
    is_N = np.arange(n) % 2 == 1
    own_N = is_N & (np.arange(n) % 20 < 14)
    s_NV = np.zeros((n, len(WORDS)))
    s_NV[:, 7] = own_N
    instead = [3] if absorber else [1, 2, 3, 4, 5]
    s_NV[np.ix_(is_N & ~own_N, instead)] = 1
    s_NV[:, 20:] = maker.random((n, 10)) * (maker.random((n, 10)) < 0.2)
    return Read(csr_matrix(s_NV), np.zeros((n, 2)), np.stack([~is_N, is_N], 1))


def test_a_word_that_takes_over_alone_absorbs() -> None:
    read = absorbed_read(2000, 0, absorber=True)
    found = of(probe_classes(read, read, "ab", WORDS), "b").absorption
    assert (found.word, found.recognised) == ("word 7", 1000)
    assert found.silent == found.absorbed == pytest.approx(0.3)
    assert found.absorbers == {"word 3": 300}


def test_absorption_of_a_hand_made_probe() -> None:
    weight_V = np.array([5.0, 2.0, 1.0, 1.5, -9.0])
    probe = SimpleNamespace(coef_=weight_V[None], decision_function=lambda x_NV: x_NV @ weight_V - 1)
    s_NV = csr_matrix(
        [
            [1, 1, 0, 0, 0],  # its own word fires
            [0, 1, 0, 1, 0],  # silent; 2 of 3.5 from one word
            [0, 1, 1, 1, 0],  # silent; 2 of 4.5, no word has half
            [0, 1, 0, 0, 1],  # not recognised
            [0, 9, 0, 0, 0],  # of the other class
        ],
        dtype=float,
    )
    read = Read(s_NV, np.zeros((5, 1)), np.array([1, 1, 1, 1, 0], dtype=bool)[:, None])
    found = absorption(probe, read, 0, 0, WORDS)
    assert (found.recognised, found.absorbers) == (3, {"word 1": 1})
    assert (found.silent, found.absorbed) == (pytest.approx(2 / 3), pytest.approx(1 / 3))


def test_many_weak_words_together_do_not_absorb() -> None:
    read = absorbed_read(2000, 0, absorber=False)
    found = of(probe_classes(read, read, "ab", WORDS), "b").absorption
    assert (found.word, found.recognised) == ("word 7", 1000)
    assert found.silent == pytest.approx(0.3)
    assert (found.absorbed, found.absorbers) == (0, {})


def test_a_word_that_always_fires_is_never_silent() -> None:
    found = of(probe_classes(planted(), planted(seed=1), "ab", WORDS), "b").absorption
    assert (found.word, found.silent, found.absorbed, found.absorbers) == ("word 7", 0, 0, {})


# --- models --------------------------------------------------------------------------------------------


def test_dense_features_are_what_a_dense_twin_reads() -> None:
    model = tiny_model()
    twin = DenseModel(model.config, model.backbone, model.tokenizer)
    expected = twin.encode(*tiny_batch(model)).detach().numpy()
    found = dense_features(model, Texts(list(SENTENCES)), batch_size=3)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_model_is_probed_for_every_class_that_has_two_sides() -> None:
    model = tiny_model()
    train = Texts([*SENTENCES, *SENTENCES], [0, 1] * 10)
    found = probes(model, train, Texts(list(SENTENCES), [0, 1] * 5), [1, 3])
    assert [c.label for c in found.classes] == ["class a", "class b"]  # nothing is of the third
    assert (found.train, found.test) == (20, 10)
    assert found.accuracy_all == found.accuracy_dense == 1  # the very rows it was fitted on
    assert found.to_dict()["classes"][0]["absorption"]["recognised"] == 5


def test_texts_with_several_labels_are_one_question_a_label() -> None:
    model = tiny_model()
    sets = [[0], [0, 1], [], [1], [2]] * 2
    rows = Texts(list(SENTENCES), label_sets=sets)
    assert len(probes(model, rows, rows, [1]).classes) == 3


def test_mistakes_are_answered_in_one_line() -> None:
    with pytest.raises(DataError, match="both sides"):
        probes(tiny_model(), Texts(["a film"], [0]), Texts(["a film"], [0]))
    with pytest.raises(ConfigError, match="classification model"):
        probes(tiny_model(task="tagging"), Texts([]), Texts([]))
