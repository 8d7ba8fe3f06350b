"""Gates are monotone, learn through the written surrogate, and keep their thresholds where they belong."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from splade.models.build import calibrate
from splade.models.layers.activation import GATES, DReLU, Gate, GatedJumpReLU, JumpReLU
from tests.tiny import SENTENCES, tiny_batch, tiny_model

SEEDS = st.integers(0, 2**16)
NAMES = st.sampled_from(sorted(GATES))
WORDS = 50


def draw_gate(name: str, seed: int) -> Gate:
    torch.manual_seed(seed)
    gate = GATES[name](WORDS)
    with torch.no_grad():
        gate.raw_V.uniform_(-1, 1)
    gate.clamp_()
    return gate


def read(gate: Gate, z: Tensor) -> Tensor:
    return gate(z, gate.theta())


@given(NAMES, SEEDS)
def test_gates_are_monotone_in_z_and_never_negative(name: str, seed: int) -> None:
    gate = draw_gate(name, seed)
    z = torch.randn(200, WORDS).mul(2).sort(0).values
    s = read(gate, z)
    assert (s.diff(dim=0) >= 0).all()
    assert (s >= 0).all()
    assert not read(gate, torch.zeros(WORDS)).any()


@given(NAMES, SEEDS)
def test_the_largest_activation_is_the_activation_of_the_largest_logit(name: str, seed: int) -> None:
    gate = draw_gate(name, seed)
    z_LV = torch.randn(9, WORDS) * 2
    assert torch.equal(read(gate, z_LV).amax(0), read(gate, z_LV.amax(0)))


def test_each_gate_is_its_equation() -> None:
    z = torch.linspace(-3, 3, WORDS)
    jump, gated, rectified = (draw_gate(name, 3) for name in ("jumprelu", "gated_jumprelu", "drelu"))
    torch.testing.assert_close(jump.theta(), jump.raw_V.exp())
    torch.testing.assert_close(read(jump, z), z * (z > jump.theta()))
    torch.testing.assert_close(read(gated, z), z.relu() * (z > gated.theta()))
    torch.testing.assert_close(read(rectified, z), (z - rectified.theta()).relu())
    saturated = DReLU(WORDS, saturate=True)
    torch.testing.assert_close(read(saturated, z), torch.log1p(z.relu()))


def test_thresholds_start_where_each_gate_says() -> None:
    assert GatedJumpReLU(4).theta().tolist() == [1.0] * 4
    assert GatedJumpReLU(4).epsilon == 1.0
    assert DReLU(4).theta().tolist() == [0.0] * 4


def test_a_built_gated_jumprelu_keeps_its_unit_width() -> None:
    assert tiny_model(gate="gated_jumprelu").gate.epsilon == 1.0


@given(st.sampled_from(["jumprelu", "gated_jumprelu"]), SEEDS)
def test_threshold_gradient_is_the_sigmoid_surrogate_inside_four_widths_and_zero_outside(
    name: str, seed: int
) -> None:
    gate = draw_gate(name, seed)
    z = (gate.theta().detach() + torch.linspace(-6, 6, WORDS) * gate.epsilon).requires_grad_()
    weight = torch.randn(WORDS)
    (read(gate, z) * weight).sum().backward()
    theta, x = gate.theta().detach(), z.detach()
    margin = (x - theta) / gate.epsilon
    slope = margin.sigmoid() * (1 - margin.sigmoid()) / gate.epsilon
    expected = -x.clamp(min=0) * slope * weight * (theta if name == "jumprelu" else 1.0)
    inside = margin.abs() <= gate.truncate
    assert gate.raw_V.grad is not None
    assert inside.any()
    torch.testing.assert_close(gate.raw_V.grad[inside], expected[inside])
    assert not gate.raw_V.grad[~inside].any()
    assert z.grad is not None
    assert torch.equal(z.grad, torch.where(x > theta, weight, 0.0))


def test_an_untruncated_surrogate_reaches_every_logit() -> None:
    gate = JumpReLU(WORDS, epsilon=0.5, truncate=math.inf)
    read(gate, torch.linspace(0.1, 6, WORDS)).sum().backward()
    assert gate.raw_V.grad is not None
    assert (gate.raw_V.grad < 0).all()
    gate.train()
    assert (gate.floor() == -math.inf).all()


def test_drelu_learns_its_threshold_without_a_surrogate() -> None:
    gate = draw_gate("drelu", 5)
    z = torch.linspace(-2, 2, WORDS)
    read(gate, z).sum().backward()
    learns = (z > gate.theta()) & (gate.raw_V > 0)
    assert gate.raw_V.grad is not None
    torch.testing.assert_close(gate.raw_V.grad[learns], -torch.ones(int(learns.sum())))


@given(NAMES, SEEDS)
def test_the_count_of_open_gates_is_exact_with_a_surrogate_that_ends_at_four_widths(
    name: str, seed: int
) -> None:
    gate = draw_gate(name, seed)
    z = (gate.theta().detach() + torch.linspace(-6, 6, WORDS) * gate.epsilon).requires_grad_()
    count = gate.opened(z, gate.theta())
    assert torch.equal(count, (z > gate.theta()).float())
    count.sum().backward()
    margin = (z.detach() - gate.theta().detach()) / gate.epsilon
    slope = margin.sigmoid() * (1 - margin.sigmoid()) / gate.epsilon
    assert z.grad is not None
    torch.testing.assert_close(z.grad, torch.where(margin.abs() <= gate.truncate, slope, 0.0))


@given(NAMES, SEEDS, st.floats(0.1, 50))
def test_thresholds_are_never_negative_whatever_a_step_does(name: str, seed: int, rate: float) -> None:
    gate = draw_gate(name, seed)
    with torch.no_grad():
        gate.raw_V.sub_(rate * torch.randn(WORDS))
    assert (gate.theta() >= 0).all()
    gate.clamp_()
    assert (gate.theta() >= 0).all()
    if name != "jumprelu":
        assert (gate.raw_V >= 0).all()


@pytest.mark.parametrize("name", sorted(GATES))
def test_thresholds_work_in_float32_on_bf16_logits(name: str) -> None:
    gate = GATES[name](1)
    gate.set_threshold(1.0009765625)  # bf16 would round it to 1, and 1 + 2**-7 is its next number
    z = torch.tensor([1.0, 1.0078125], dtype=torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        s = read(gate, z)
        assert s.dtype == gate.opened(z, gate.theta()).dtype == gate.probability(z).dtype == torch.float32
    assert (s > 0).tolist() == [False, True]


@pytest.mark.parametrize("name", sorted(GATES))
def test_infinite_logits_leave_finite_gradients(name: str) -> None:
    gate = GATES[name](3)
    z = torch.tensor([math.inf, -math.inf, 1.5], requires_grad=True)
    read(gate, z)[1:].sum().backward()
    assert gate.raw_V.grad is not None
    assert gate.raw_V.grad.isfinite().all()
    assert z.grad is not None
    assert z.grad.isfinite().all()


@given(NAMES, SEEDS, st.integers(1, 300))
def test_calibration_opens_the_requested_number_and_measures_the_width(
    name: str, seed: int, opened: int
) -> None:
    torch.manual_seed(seed)
    gate = GATES[name](1)
    z = torch.randperm(2000) / 500  # no two are equal or nearly so
    width = gate.epsilon
    gate.calibrate(z, opened)
    assert int((z > gate.theta()).sum()) == opened
    expected = width if gate.fixed_width else 0.1 * float(z.std(unbiased=False))
    assert gate.epsilon == pytest.approx(expected)


@pytest.mark.parametrize("honesty", ["grounded", "free", "licensed-static", "licensed-contextual"])
@pytest.mark.parametrize("task", ["classification", "tagging"])
def test_a_calibrated_model_opens_the_requested_words_on_average(honesty: str, task: str) -> None:
    model = tiny_model(honesty=honesty, task=task)
    ids, mask = tiny_batch(model)
    row_mask = model.lexicon.valid(ids, mask) if task == "tagging" else None
    wanted = 4 if task == "classification" else 2
    calibrate(model, [(ids, mask, row_mask)], wanted)
    mean = float(model.encode(ids, mask, row_mask).active_N.mean())
    assert mean == pytest.approx(wanted, abs=1 / len(SENTENCES))
    assert model.config.gate_epsilon == model.gate.epsilon
