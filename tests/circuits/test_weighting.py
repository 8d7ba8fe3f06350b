"""Terms of any size are brought to size 1, or weighed by what they are worth; neither can explode."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from splade.circuits.weighting import LEAST_SCALE, Scales, Uncertainty, newest_share

sizes = st.floats(-1e6, 1e6, allow_subnormal=False)


def scaled(scales: Scales, value: float, name: str = "term") -> float:
    return float(scales({name: torch.tensor(value)})[name])


def test_uncertainties_start_as_a_plain_sum() -> None:
    weighting = Uncertainty(["a", "b"])
    assert weighting({"a": torch.tensor(2.0), "b": torch.tensor(3.0)}).item() == 5


def test_an_uncertainty_settles_at_one_over_its_term() -> None:
    weighting = Uncertainty(["small", "large"])
    terms = {"small": torch.tensor(0.05), "large": torch.tensor(20.0)}
    optimiser = torch.optim.Adam(weighting.parameters(), lr=0.05)
    for _ in range(1000):
        optimiser.zero_grad()
        torch.autograd.backward(weighting(terms))
        optimiser.step()
    weights = {name: float(weight) for name, weight in weighting.weights().items()}
    assert weights == pytest.approx({"small": 20, "large": 0.05}, rel=1e-3)


def test_the_gradient_of_a_term_is_its_weight() -> None:
    weighting = Uncertainty(["a", "b"])
    with torch.no_grad():
        weighting.raw_K.copy_(torch.tensor([1.0, -2.0]))
    a = torch.tensor(0.3, requires_grad=True)
    torch.autograd.backward(weighting({"a": a}))
    assert a.grad is not None
    assert float(a.grad) == pytest.approx(float(weighting.weights()["a"]))
    assert weighting.raw_K.grad is not None
    assert weighting.raw_K.grad[0] != 0
    assert weighting.raw_K.grad[1] == 0, "a term that is not there teaches nothing"


def test_a_term_at_zero_gains_a_bounded_weight_and_can_come_back() -> None:
    weighting = Uncertainty(["term"])
    optimiser = torch.optim.Adam(weighting.parameters(), lr=0.1)
    seen = []
    for value in [0.0] * 300 + [10.0] * 1200:
        optimiser.zero_grad()
        torch.autograd.backward(weighting({"term": torch.tensor(value)}))
        optimiser.step()
        seen.append(float(weighting.weights()["term"]))
    assert max(seen) <= math.exp(5) * 1.001
    assert seen[299] > 100
    assert seen[-1] == pytest.approx(0.1, rel=0.05)


def test_uncertainties_round_trip() -> None:
    weighting, other = Uncertainty(["a"]), Uncertainty(["a"])
    with torch.no_grad():
        weighting.raw_K.fill_(0.7)
    other.load_state_dict(weighting.state_dict())
    assert torch.equal(weighting.s_K(), other.s_K())


@given(st.floats(2e-3, 1e6), st.integers(1, 50))
def test_a_constant_term_has_size_one_from_the_first_step_on(size: float, steps: int) -> None:
    scales = Scales()
    for _ in range(steps):
        assert scaled(scales, size) == pytest.approx(1, rel=1e-5)
        assert scaled(scales, -size, "negative") == pytest.approx(-1, rel=1e-5)


@given(st.lists(sizes, min_size=1, max_size=60))
def test_no_term_comes_out_larger_than_the_smoothing_allows(values: list[float]) -> None:
    scales = Scales(smoothing=0.9)
    for value in values:
        assert abs(scaled(scales, value)) <= 10.001


def test_a_term_that_vanishes_is_not_blown_up() -> None:
    scales = Scales(smoothing=0.9)
    for _ in range(20):
        scaled(scales, 1.0)
    for step in range(500):
        assert scaled(scales, 1e-9) <= 1e-9 / LEAST_SCALE + 1e-12, step
    assert scaled(scales, 0.0) == 0


def test_a_term_that_jumps_is_held_and_then_taken_for_normal() -> None:
    scales = Scales(smoothing=0.9)
    for _ in range(20):
        scaled(scales, 1.0)
    jumped = [scaled(scales, 1e6) for _ in range(100)]
    assert jumped[0] < 10
    assert jumped == sorted(jumped, reverse=True)
    assert jumped[-1] == pytest.approx(1, abs=1e-3)


def test_the_size_is_the_bias_corrected_mean() -> None:
    scales, values = Scales(smoothing=0.9), [3.0, 1.0, 4.0, 1.5]
    for value in values:
        scaled(scales, value)
    weighed = [0.1 * 0.9 ** (3 - i) * value for i, value in enumerate(values)]
    expected = sum(weighed) / (1 - 0.9**4)
    assert float(scales.means["term"]) == pytest.approx(expected)


def test_terms_do_not_mix_and_may_come_later() -> None:
    scales = Scales()
    scaled(scales, 100.0, "first")
    both = scales({"second": torch.tensor(0.5), "first": torch.tensor(100.0)})
    assert {name: float(value) for name, value in both.items()} == pytest.approx({"second": 1, "first": 1})
    assert scales({}) == {}


def test_no_gradient_reaches_the_size() -> None:
    scales = Scales()
    scaled(scales, 4.0)
    term = torch.tensor(4.0, requires_grad=True)
    torch.autograd.backward(scales({"term": term})["term"])
    assert term.grad is not None
    assert float(term.grad) == pytest.approx(0.25)
    assert not scales.means["term"].requires_grad


def test_scales_continue_bit_for_bit() -> None:
    values = torch.rand(20, generator=torch.Generator().manual_seed(0)).tolist()
    first, second = Scales(), Scales()
    for value in values[:7]:
        scaled(first, value)
    state = first.state_dict()
    rest = [scaled(first, value) for value in values[7:]]
    second.load_state_dict(state)
    assert [scaled(second, value) for value in values[7:]] == rest


@given(st.floats(0, 0.999), st.integers(1, 1000))
def test_shares_of_all_values_add_up_to_one(smoothing: float, count: int) -> None:
    kept = 1.0
    shares = []
    for number in range(count, 0, -1):
        share = newest_share(smoothing, number)
        shares.append(kept * share)
        kept *= 1 - share
    assert sum(shares) == pytest.approx(1)
