"""After LEACE no linear probe reads the concept on the rows it was fitted on; what that costs is measured."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("concept_erasure")

from splade.errors import ConfigError, DataError
from splade.inference import Predictor
from splade.intervene import SuppressedModel, apply
from splade.intervene.leace import (
    MOST_WORDS,
    Leace,
    LeaceFitter,
    columns,
    damage,
    erased,
    fit_leace_eraser,
    most_active,
)
from splade.intervene.leakage import encoded
from splade.models.materialised import rows_of
from splade.models.state import SparseRows
from tests.mechanistic.draws import SEEDS
from tests.tiny import SENTENCES, tiny_model, tiny_rows

V = 12
IDS = [1, 2, 3, 5, 8, 11]
TEXTS = [f"{text} {word}" for text in SENTENCES for word in ("slow", "late", "wet", "cup")]
SLOW = ["slow" in text for text in TEXTS]


def told(n_rows: int, seed: int, rate: float = 0.4) -> tuple[SparseRows, torch.Tensor]:
    """Random rows, and a concept that words 2 and 5 tell of; word 0, outside the subspace, too."""
    maker = torch.Generator().manual_seed(seed)
    s_NV = tiny_rows(n_rows + 1, V, seed=seed).dense()[:-1]
    concept_N = torch.rand(n_rows, generator=maker) < rate
    concept_N[:2] = torch.tensor([True, False])
    for j in (0, 2, 5):
        s_NV[:, j] += concept_N * 0.8
    return rows_of(s_NV[None]), concept_N


def fitted(rows: SparseRows, concept: torch.Tensor, ids: list[int] | None = None) -> Leace:
    fitter = LeaceFitter(IDS if ids is None else ids)
    fitter.update(rows, concept)
    return fitter.result()


def gap(s_NA: torch.Tensor, concept_N: torch.Tensor) -> float:
    return float((s_NA[concept_N].mean(0) - s_NA[~concept_N].mean(0)).abs().max())


@given(SEEDS, st.integers(5, 80), st.sampled_from([0.03, 0.4]))
def test_means_are_equal_with_the_concept_and_without(seed: int, n_rows: int, rate: float) -> None:
    """Equal class means leave every linear probe nothing (the theorem LEACE rests on), rare concepts too."""
    rows, concept_N = told(n_rows, seed, rate)
    leace = fitted(rows, concept_N)
    before_NA = columns(rows, leace.ids_A).double()
    after_NA = leace.project(before_NA)
    assert gap(before_NA, concept_N) > 0.1
    assert gap(after_NA, concept_N) < 1e-6
    assert torch.allclose(after_NA.mean(0), before_NA.mean(0))  # nothing moves on average


def test_no_probe_does_better_than_the_constant() -> None:
    from sklearn.linear_model import LogisticRegression

    rows, concept_N = told(200, 0)
    leace = fitted(rows, concept_N)
    s_NA, truth_N = columns(rows, leace.ids_A).double(), concept_N.numpy()
    scores = [
        LogisticRegression(C=1e6, max_iter=5000).fit(x.numpy(), truth_N).predict_proba(x.numpy())[:, 1]
        for x in (s_NA, leace.project(s_NA))
    ]
    loss_before, loss_after = (-np.log(np.where(truth_N, p, 1 - p)).mean() for p in scores)
    rate = truth_N.mean()
    constant = -(rate * np.log(rate) + (1 - rate) * np.log(1 - rate))
    assert loss_before < 0.6 * constant
    assert loss_after == pytest.approx(constant, abs=1e-5)


@pytest.mark.parametrize("scale", [1.0, 2.11, 2.48])
def test_words_alike_in_spread_and_unrelated_are_erased_too(scale: float) -> None:
    """Their covariance is a multiple of the identity, which the package's shrinkage divides by zero for."""
    s_NV = torch.cartesian_prod(*[torch.tensor([0.0, scale])] * 4)
    concept_N = s_NV[:, 1] > 0
    leace = fitted(rows_of(s_NV[None]), concept_N, [0, 1, 2, 3])
    after_NA = leace.project(s_NV.double())
    assert gap(after_NA, concept_N) < 1e-9
    assert torch.allclose(after_NA[:, [0, 2, 3]], s_NV[:, [0, 2, 3]].double())


@given(SEEDS)
def test_erasing_twice_is_erasing_once(seed: int) -> None:
    rows, concept_N = told(30, seed)
    leace = fitted(rows, concept_N)
    once_NA = leace.project(columns(rows, leace.ids_A).double())
    assert torch.allclose(leace.project(once_NA), once_NA, atol=1e-9)


def test_a_concept_that_no_word_tells_of_changes_nothing() -> None:
    """Every row once with the concept and once without."""
    s_NV = tiny_rows(20, V).dense()
    rows = rows_of(torch.cat([s_NV, s_NV])[None])
    leace = fitted(rows, torch.arange(40) < 20)
    s_NA = columns(rows, leace.ids_A)
    assert torch.allclose(leace.project(s_NA), s_NA, atol=1e-6)
    assert torch.allclose(leace.apply(rows).dense(), rows.dense(), atol=1e-6)


def test_several_concepts_go_together() -> None:
    rows, first_N = told(60, 1)
    second_N = columns(rows, torch.tensor([8]))[:, 0] > 0.3
    leace = fitted(rows, torch.stack([first_N, second_N], 1))
    after_NA = leace.project(columns(rows, leace.ids_A).double())
    assert max(gap(after_NA, first_N), gap(after_NA, second_N)) < 1e-6


@given(SEEDS, st.lists(st.integers(1, 9), min_size=1, max_size=5))
def test_any_division_into_batches_gives_the_same_map(seed: int, sizes: list[int]) -> None:
    rows, concept_N = told(sum(sizes) + 10, seed)
    fitter = LeaceFitter(IDS)
    for s_NV, part_N in zip(rows.dense().split([10, *sizes]), concept_N.split([10, *sizes]), strict=True):
        fitter.update(rows_of(s_NV[None]), part_N)
    whole, parts, s_NA = fitted(rows, concept_N), fitter.result(), columns(rows, torch.tensor(IDS)).double()
    assert torch.allclose(parts.project(s_NA), whole.project(s_NA), atol=1e-8)
    assert parts.rows == whole.rows == len(concept_N)


def test_a_result_does_not_change_with_later_rows() -> None:
    rows, concept_N = told(30, 0)
    fitter = LeaceFitter(IDS)
    fitter.update(rows, concept_N)
    early = fitter.result()
    before = [early.left_AK.clone(), early.right_KA.clone(), early.mean_A.clone()]
    fitter.update(*told(40, 1))
    after = [early.left_AK, early.right_KA, early.mean_A]
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert fitter.result().rows == 70


@given(SEEDS)
def test_rows_become_dense_in_the_subspace_and_stay_outside_it(seed: int) -> None:
    rows, concept_N = told(25, seed)
    leace = fitted(rows, concept_N)
    after = leace.apply(rows)
    outside = [j for j in range(V) if j not in IDS]
    assert torch.equal(after.dense()[:, outside], rows.dense()[:, outside])
    assert torch.allclose(after.dense()[:, IDS], leace.project(columns(rows, leace.ids_A)))
    key = after.row_P * V + after.word_P
    assert bool((key.diff() > 0).all())
    share_P = torch.zeros(len(after.row_P)).index_add_(0, after.source_pair_Q, after.source_share_Q)
    assert torch.allclose(share_P, torch.ones_like(share_P))


def test_a_model_decides_on_the_erased_words_and_as_before_afterwards() -> None:
    model = tiny_model(opened=20)
    ids = most_active(model, TEXTS)
    leace = fit_leace_eraser(model, TEXTS, SLOW, ids)
    before = Predictor(model).predict(TEXTS)
    with erased(model, leace) as lent:
        inside = Predictor(lent).predict(TEXTS)
        explanations = Predictor(lent).explain(TEXTS[:4])
    assert [p.probability for p in inside] != [p.probability for p in before]
    assert Predictor(model).predict(TEXTS) == before
    for found in explanations:
        assert found.residual < 1e-5
        total = found.bias + sum(span.contribution for span in found.spans)
        assert total == pytest.approx(found.logit, abs=1e-4)
    [(_, rows)] = encoded(model, TEXTS[:1])
    logits_1C = model.decide(leace.apply(rows)).logits.detach()
    assert float(logits_1C.softmax(-1).max()) == pytest.approx(inside[0].probability, abs=1e-6)


def test_damage_counts_what_was_never_read() -> None:
    model = tiny_model(opened=20)
    leace = fit_leace_eraser(model, TEXTS, SLOW)
    found = damage(model, leace, TEXTS)
    assert found.rows == len(TEXTS)
    assert found.present_after > found.active_before
    assert 0 < found.negative < 1
    assert 0 < found.unread < 1
    nothing = Leace(leace.ids_A, leace.left_AK * 0, leace.right_KA, leace.mean_A, 0)
    idle = damage(model, nothing, TEXTS)
    assert (idle.present_after, idle.negative, idle.unread) == (idle.active_before, 0.0, 0.0)


def test_most_active_words_are_those_of_most_texts() -> None:
    model = tiny_model(opened=20)
    counts = sum((rows.dense() > 0).sum(0) for _, rows in encoded(model, TEXTS))
    found = most_active(model, TEXTS, most=5)
    assert len(found) == 5
    others = [j for j in range(model.lexicon.vocab_size) if j not in found]
    assert int(counts[found].min()) >= int(counts[others].max())
    assert 0 < len(most_active(model, TEXTS)) == int((counts > 0).sum())


def test_removed_words_are_not_brought_back() -> None:
    model = tiny_model(opened=20)
    leace = fit_leace_eraser(model, TEXTS, SLOW)
    word = model.lexicon.names[int(leace.ids_A[0])]
    with (
        erased(model, leace),
        SuppressedModel(model, [word]) as without,
        pytest.raises(ConfigError, match="bring removed words back"),
    ):
        Predictor(without).predict(TEXTS[:1])
    apply(model, "remove", [word])
    again = fit_leace_eraser(model, TEXTS, SLOW)
    assert not set(again.ids_A.tolist()) & set(model.lexicon.ids(word))
    with erased(model, again):
        assert len(Predictor(model).predict(TEXTS[:1])) == 1


def test_blocks_within_blocks_are_left_in_order() -> None:
    model = tiny_model(opened=20)
    first = fit_leace_eraser(model, TEXTS, SLOW)
    second = fit_leace_eraser(model, TEXTS, ["film" in text for text in TEXTS])
    rows = next(encoded(model, TEXTS))[1]
    plain = model.decide(rows).logits
    with erased(model, first):
        alone = model.decide(rows).logits
        with erased(model, second):
            assert not torch.equal(model.decide(rows).logits, alone)
        assert torch.equal(model.decide(rows).logits, alone)
    assert torch.equal(model.decide(rows).logits, plain)
    assert "decide" not in vars(model)


def test_what_cannot_be_fitted_says_what_to_give(monkeypatch) -> None:
    rows, concept_N = told(10, 0)
    with pytest.raises(DataError, match="texts of both kinds"):
        fitted(rows, torch.ones_like(concept_N))
    with pytest.raises(DataError, match="texts of both kinds"):
        LeaceFitter(IDS).result()
    with pytest.raises(ConfigError, match="from 1 to 2,000"):
        LeaceFitter(range(MOST_WORDS + 1))
    with pytest.raises(DataError, match="one label a text"):
        fit_leace_eraser(tiny_model(), TEXTS, [True])
    with pytest.raises(ConfigError, match="tagging model"):
        fit_leace_eraser(tiny_model(task="tagging", classes=5), TEXTS, SLOW)
    monkeypatch.setitem(sys.modules, "concept_erasure", None)
    with pytest.raises(ConfigError, match=r'pip install "lexical-sae\[erasure\]"'):
        LeaceFitter(IDS)
