"""Classes have reasons of their own: centroids part, rows keep to their class, and the margin stays."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from splade.circuits.losses import (
    MARGIN,
    cosine_to,
    margin_drift,
    separation_contrastive,
    separation_cosine,
)
from tests.circuits.test_losses import V, drawn, marked, rows_of, training_rows
from tests.mechanistic.draws import SEEDS
from tests.tiny import Sizes, tiny_rows


@given(SEEDS, st.integers(0, 5), st.integers(0, 5))
def test_separation_is_the_mean_cosine_of_pairs_of_present_classes(seed: int, here: int, gone: int) -> None:
    centroid_CV = torch.cat([drawn(here, V, seed=seed), torch.zeros(gone, V)])
    pairs = [
        float(F.cosine_similarity(centroid_CV[i], centroid_CV[j], 0)) for i in range(here) for j in range(i)
    ]
    expected = sum(pairs) / max(len(pairs), 1)
    assert float(separation_cosine(centroid_CV)) == pytest.approx(expected, abs=1e-5)


def test_separation_knows_its_limits() -> None:
    one_V = drawn(V)
    assert float(separation_cosine(torch.stack([one_V, one_V * 3]))) == pytest.approx(1, abs=1e-5)
    assert float(separation_cosine(torch.stack([one_V, -one_V]))) == pytest.approx(-1, abs=1e-5)
    assert float(separation_cosine(torch.eye(4))) == 0


@pytest.mark.parametrize("present", [0, 1, 2])
def test_absent_classes_are_not_moved_by_separation(present: int) -> None:
    centroid_CV = torch.zeros(3, V)
    centroid_CV[:present] = drawn(present, V)
    centroid_CV.requires_grad_()
    (slope_CV,) = torch.autograd.grad(separation_cosine(centroid_CV), centroid_CV)
    assert slope_CV.isfinite().all()
    assert not slope_CV[present:].any()
    assert bool(slope_CV.any()) == (present == 2)


@given(SEEDS)
def test_cosines_to_centroids_are_those_of_dense_vectors(seed: int) -> None:
    rows, centroid_CV = training_rows(seed), drawn(3, V, seed=seed + 1)
    a_P = drawn(len(rows.row_P), seed=seed)
    dense_NV = rows.dense(a_P)
    expected_NC = F.cosine_similarity(dense_NV[:, None], centroid_CV[None], dim=-1)
    torch.testing.assert_close(cosine_to(rows, a_P, centroid_CV), expected_NC, atol=1e-5, rtol=1e-4)


def test_zero_vectors_have_cosine_zero_and_finite_slopes() -> None:
    rows = rows_of([[1.0, 1.0], [1.0], []])
    a_P = torch.tensor([0.0, 0.0, 2.0], requires_grad=True)
    centroid_CV = torch.stack([torch.zeros(V), torch.ones(V)]).requires_grad_()
    found_NC = cosine_to(rows, a_P, centroid_CV)
    assert not found_NC[[0, 2]].any()
    assert found_NC[1].tolist() == pytest.approx([0, 1 / math.sqrt(V)])
    for slope in torch.autograd.grad(found_NC.square().sum() + found_NC.sum(), (a_P, centroid_CV)):
        assert slope.isfinite().all()
        assert slope.abs().max() < 10


def test_cosines_make_nothing_as_large_as_rows_by_vocabulary() -> None:
    rows, centroid_CV = tiny_rows(40, 4000, 0.002), drawn(3, 4000)
    a_P = drawn(len(rows.row_P)).requires_grad_()
    with Sizes() as sizes:
        cosine_to(rows, a_P, centroid_CV).sum().backward()
    assert 0 < sizes.largest <= centroid_CV.numel()


def test_the_contrast_is_with_the_hardest_other_present_centroid() -> None:
    similarity_NC = torch.tensor([[0.9, 0.2, 0.95], [0.5, 0.3, 0.9], [0.1, 0.2, 0.3]])
    present_C = marked(True, True, False)
    found = separation_contrastive(similarity_NC, torch.tensor([0, 1, 2]), present_C, 0.1)
    assert float(found) == pytest.approx((0 + (0.1 + 0.5 - 0.3)) / 2), "row 2 has no centroid of its own"
    found = separation_contrastive(similarity_NC, torch.tensor([0, 1, 2]), marked(True, True, True), 0.1)
    assert float(found) == pytest.approx((0.15 + 0.7 + 0.0) / 3)


@pytest.mark.parametrize("present", [(False, False), (True, False), (False, True)])
def test_without_another_centroid_nothing_is_contrasted(present: tuple[bool, bool]) -> None:
    similarity_NC = drawn(4, 2).requires_grad_()
    margin = torch.tensor(0.1, requires_grad=True)
    term = separation_contrastive(similarity_NC, torch.tensor([0, 1, 0, 1]), marked(*present), margin)
    assert float(term.detach()) == 0
    for slope in torch.autograd.grad(term, (similarity_NC, margin)):
        assert not slope.any()


@given(SEEDS)
def test_the_contrast_pulls_a_row_to_its_class_and_off_the_hardest_other(seed: int) -> None:
    similarity_NC, labels_N = drawn(5, 4, seed=seed).requires_grad_(), torch.tensor([0, 1, 2, 3, 0])
    term = separation_contrastive(similarity_NC, labels_N, torch.ones(4).bool(), 100.0)
    (slope_NC,) = torch.autograd.grad(term, similarity_NC)
    own_NC = F.one_hot(labels_N, 4).bool()
    hardest_N = torch.where(own_NC, -torch.inf, similarity_NC.detach()).argmax(-1)
    expected_NC = (F.one_hot(hardest_N, 4).float() - own_NC.float()) / 5
    torch.testing.assert_close(slope_NC, expected_NC)


@pytest.mark.parametrize("breaking", [0.2, 0.6, 1.0])
def test_a_learned_margin_vanishes_unless_it_is_held(breaking: float) -> None:
    """Rows break it by share `breaking`; the drift weighs as much as the contrast."""

    def learn(held: bool) -> float:
        margin = torch.tensor(MARGIN, requires_grad=True)
        gap_N = (torch.arange(10) < 10 * breaking).float() * 0.8 - 0.4  # hardest - own
        similarity_NC = torch.stack([torch.zeros(10), gap_N], -1)
        for _ in range(2000):
            labels_N, present_C = torch.zeros(10, dtype=torch.long), torch.ones(2).bool()
            loss = separation_contrastive(similarity_NC, labels_N, present_C, margin)
            loss = loss + margin_drift(margin) if held else loss
            (slope,) = torch.autograd.grad(loss, margin)
            margin = (margin - 0.002 * slope).detach().requires_grad_()
        return float(margin.detach())

    assert learn(held=True) == pytest.approx(MARGIN - breaking * MARGIN**2 / 2, abs=1e-4)
    assert learn(held=True) >= 0.95 * MARGIN - 1e-4
    assert learn(held=False) < 0


def test_a_margin_at_its_start_does_not_drift() -> None:
    margin = torch.tensor(MARGIN, requires_grad=True)
    (slope,) = torch.autograd.grad(margin_drift(margin), margin)
    assert float(margin_drift(margin).detach()) == 0
    assert float(slope) == 0
