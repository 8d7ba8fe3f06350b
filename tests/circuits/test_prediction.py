"""One loss for one label a row and for several: torch's where torch has it, what weights and limits ask."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.utils.class_weight import compute_class_weight

from splade.circuits.geco import smoothing_floor
from splade.circuits.prediction import class_weights, decided, prediction_loss, probabilities

LOGITS = torch.randn(7, 4, generator=torch.Generator().manual_seed(1))
IDS = torch.tensor([0, 3, 1, 1, 2, 0, 3])
HOT = torch.tensor(
    [[1, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0], [0, 1, 0, 1.0]]
)
WEIGHTS = torch.tensor([1.0, 2.0, 0.5, 4.0])


@pytest.mark.parametrize(("smoothing", "weights"), [(0.0, None), (0.1, None), (1.0, None), (0.0, WEIGHTS)])
def test_ids_have_torchs_cross_entropy(smoothing: float, weights: torch.Tensor | None) -> None:
    expected = F.cross_entropy(LOGITS, IDS, weights, label_smoothing=smoothing)
    assert torch.allclose(prediction_loss(LOGITS, IDS, smoothing, weights), expected)


def test_smoothed_rows_of_a_common_class_are_not_best_guessed_as_a_rare_and_heavy_one() -> None:
    """Whatever the weights, the least loss is at the smoothed labels themselves."""
    weights, epsilon = torch.tensor([0.5, 100.0]), 0.1
    least = torch.tensor([[0.95, 0.05]]).log().requires_grad_()
    prediction_loss(least, torch.tensor([0]), epsilon, weights).backward()
    several = torch.logit(torch.tensor([[0.95, 0.05]])).requires_grad_()
    prediction_loss(several, torch.tensor([[1.0, 0.0]]), epsilon, weights).backward()
    for logits in (least, several):
        assert logits.grad is not None
        assert logits.grad.abs().max() < 1e-5


def test_with_class_weights_the_least_loss_is_still_the_entropy_of_smoothed_labels() -> None:
    smoothed_NC = F.one_hot(IDS, 4) * 0.9 + 0.1 / 4
    found = prediction_loss(smoothed_NC.log(), IDS, 0.1, WEIGHTS)
    assert float(found) == pytest.approx(smoothing_floor(0.1, 4), abs=1e-6)


def test_several_labels_have_the_mean_of_binary_cross_entropies() -> None:
    by_hand = [
        -math.log(p if y else 1 - p)
        for row, golds in zip(LOGITS.sigmoid().tolist(), HOT.tolist(), strict=True)
        for p, y in zip(row, golds, strict=True)
    ]
    assert float(prediction_loss(LOGITS, HOT)) == pytest.approx(sum(by_hand) / len(by_hand), abs=1e-6)
    assert torch.allclose(prediction_loss(LOGITS, HOT), F.binary_cross_entropy_with_logits(LOGITS, HOT))


def test_two_classes_apart_with_opposite_logits_are_one_softmax() -> None:
    z = torch.randn(9, generator=torch.Generator().manual_seed(0))
    ids = torch.arange(9) % 2
    pair = prediction_loss(torch.stack([-z / 2, z / 2], 1), ids)
    assert torch.allclose(pair, prediction_loss(z[:, None], ids[:, None].float()))


def test_a_weight_multiplies_the_rows_that_have_the_class() -> None:
    only_second = torch.tensor([1.0, 3.0, 1.0, 1.0])
    plain = F.binary_cross_entropy_with_logits(LOGITS, HOT, reduction="none")
    expected = (plain * torch.where(HOT.bool(), only_second, 1.0)).mean()
    assert torch.allclose(prediction_loss(LOGITS, HOT, 0.0, only_second), expected)
    ones = torch.ones(4)
    assert torch.allclose(prediction_loss(LOGITS, HOT, 0.1, ones), prediction_loss(LOGITS, HOT, 0.1))


def test_smoothing_sets_where_the_loss_is_least() -> None:
    epsilon, wanted = 0.2, torch.tensor([1 - 0.1, 0.1])
    least = torch.logit(wanted)[None].requires_grad_()
    prediction_loss(least, torch.tensor([[1.0, 0.0]]), epsilon).backward()
    assert least.grad is not None
    assert least.grad.abs().max() < 1e-7
    assert torch.allclose(prediction_loss(LOGITS, HOT, 1.0), prediction_loss(LOGITS, 1 - HOT, 1.0))


def test_sure_and_right_costs_nothing_and_sure_and_wrong_stays_finite() -> None:
    sure = 200 * (2 * HOT - 1)
    assert float(prediction_loss(sure, HOT)) == 0
    assert float(prediction_loss(-sure, HOT)) == pytest.approx(200)
    one = 200 * F.one_hot(IDS, 4).float()
    assert float(prediction_loss(one, IDS)) == 0
    assert float(prediction_loss(-one, IDS)) > 200


@pytest.mark.parametrize("labels", [torch.zeros(0, dtype=torch.long), torch.zeros(0, 4)])
def test_no_rows_cost_nothing(labels: torch.Tensor) -> None:
    empty = torch.zeros(0, 4, requires_grad=True)
    loss = prediction_loss(empty, labels)
    loss.backward()
    assert loss.item() == 0


@pytest.mark.parametrize("labels", [IDS, HOT])
def test_the_gradient_is_probability_less_label(labels: torch.Tensor) -> None:
    logits = LOGITS.clone().requires_grad_()
    prediction_loss(logits, labels).backward()
    several = labels.ndim == 2
    gold = labels if several else F.one_hot(labels, 4)
    error = probabilities(LOGITS, several).float() - gold
    assert torch.allclose(logits.grad, error / (LOGITS.numel() if several else len(LOGITS)), atol=1e-7)


def test_probabilities_sum_to_one_only_where_classes_compete() -> None:
    assert torch.allclose(probabilities(LOGITS, False).sum(1), torch.ones(7).double())
    assert torch.allclose(probabilities(LOGITS, True, 2.0), (LOGITS.double() / 2).sigmoid())


def test_several_labels_are_those_at_least_as_probable_as_not() -> None:
    assert decided(torch.tensor([[0.0, -0.1, 2.0], [-1, -2, -3]]), True) == [[0, 2], []]
    assert decided(torch.tensor([[0.0, -0.1, 2.0], [-1, -2, -3]]), False) == [[2], [0]]
    assert decided(torch.zeros(0, 3), True) == decided(torch.zeros(0, 3), False) == []


def test_balanced_weights_are_scikit_learns() -> None:
    labels = [0, 0, 0, 0, 1, 1, 2]
    expected = compute_class_weight("balanced", classes=np.arange(3), y=labels)
    assert class_weights(labels, 3, "balanced").tolist() == pytest.approx(expected.tolist())
    assert class_weights(labels, 3, "none") is None


def test_balanced_classes_have_the_same_say() -> None:
    """All rows of a class together weigh the same, whichever class."""
    labels = [0] * 30 + [1] * 6 + [2]
    weights = class_weights(labels, 3, "balanced")
    mass = [sum(float(weights[label]) for label in labels if label == c) for c in range(3)]
    assert mass == pytest.approx([37 / 3] * 3)
    hot = [[1.0, 0.0]] * 9 + [[1.0, 1.0]]
    several = class_weights(hot, 2, "balanced")
    assert float(several[1]) * 1 == 9, "one row with the class weighs as much as the nine without"


def test_a_class_without_rows_has_a_finite_weight() -> None:
    assert class_weights([0, 0, 1], 3, "balanced").isfinite().all()
    weights = class_weights([[1.0, 0.0], [1.0, 0.0]], 2, "balanced")
    assert weights.isfinite().all()
    assert (weights > 0).all()
