"""The fitted temperature is where the loss is least, and what is calibrated has no calibration error."""

from __future__ import annotations

import pytest
import torch

from splade.circuits.calibration import COLDEST, HOTTEST, expected_calibration_error, fit_temperature
from splade.circuits.prediction import prediction_loss, probabilities


def drawn(several: bool, heat: float, rows: int = 4000) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits that are `heat` times too large, and labels drawn from what they should say."""
    maker = torch.Generator().manual_seed(3)
    true = 2 * torch.randn(rows, 4, generator=maker)
    if several:
        labels = (torch.rand(rows, 4, generator=maker) < true.sigmoid()).float()
    else:
        labels = torch.multinomial(true.softmax(-1), 1, generator=maker)[:, 0]
    return heat * true, labels


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("heat", [0.5, 1.0, 4.0])
def test_the_temperature_of_overconfident_logits_is_found(several: bool, heat: float) -> None:
    assert fit_temperature(*drawn(several, heat)) == pytest.approx(heat, rel=0.1)


@pytest.mark.parametrize("several", [False, True])
def test_no_temperature_has_a_smaller_loss(several: bool) -> None:
    logits, labels = drawn(several, 2.7, 300)
    logits = logits.double()
    best = float(prediction_loss(logits / fit_temperature(logits, labels), labels))
    tried = [float(prediction_loss(logits / t, labels)) for t in torch.logspace(-1, 1, 400).tolist()]
    assert best <= min(tried) + 1e-9
    assert best == pytest.approx(min(tried), abs=1e-4)


@pytest.mark.parametrize("several", [False, True])
def test_calibrated_probabilities_have_hardly_any_error(several: bool) -> None:
    logits, labels = drawn(several, 3.0)
    before = expected_calibration_error(probabilities(logits, several), labels)
    temperature = fit_temperature(logits, labels)
    after = expected_calibration_error(probabilities(logits, several, temperature), labels)
    assert after < 0.02 < 0.07 < before


def test_rows_that_say_nothing_leave_one_and_the_bounds_hold() -> None:
    ids = torch.tensor([0, 1])
    assert fit_temperature(torch.zeros(0, 2), ids[:0]) == 1.0
    assert fit_temperature(torch.zeros(2, 2), ids) == 1.0
    assert fit_temperature(torch.zeros(2, 2), torch.ones(2, 2)) == 1.0
    assert fit_temperature(torch.tensor([[float("nan"), 1.0]]), ids[:1]) == 1.0
    right = torch.tensor([[5.0, 0.0], [0.0, 5.0]])
    assert fit_temperature(right, ids) == pytest.approx(COLDEST)
    assert fit_temperature(right, 1 - ids) == pytest.approx(HOTTEST)


def test_the_error_is_counted_by_hand() -> None:
    # 2 rows say .9 and 1 is right; 2 rows say .6 and both are right
    probability = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.4, 0.6], [0.4, 0.6]])
    labels = torch.tensor([0, 1, 1, 1])
    assert expected_calibration_error(probability, labels) == pytest.approx((2 * 0.4 + 2 * 0.4) / 4)
    # with one bin gaps cancel: mean probability .75, mean frequency .75
    assert expected_calibration_error(probability, labels, bins=1) == pytest.approx(0, abs=1e-7)


def test_the_error_of_several_labels_is_about_each_of_them() -> None:
    probability = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    assert expected_calibration_error(probability, torch.tensor([[1.0, 0.0], [1.0, 0.0]])) == 0
    assert expected_calibration_error(probability, torch.tensor([[1.0, 0.0], [0.0, 0.0]])) == 0.25
    assert expected_calibration_error(1 - probability, torch.tensor([[1.0, 0.0], [1.0, 0.0]])) == 1


@pytest.mark.parametrize("labels", [torch.zeros(0, dtype=torch.long), torch.zeros(0, 3)])
def test_without_rows_there_is_no_error(labels: torch.Tensor) -> None:
    assert expected_calibration_error(torch.zeros(0, 3), labels) == 0
