"""Averages of weights are what the formulas say, and state is all there is to a run."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from splade.training.averaging import WeightAverage
from splade.training.optim import Optimiser, OptimiserSettings
from tests.training.small import AVERAGING, EVERY, Small, same, train, weights


def test_the_average_is_the_bias_corrected_sum_of_the_weights() -> None:
    model, decay = Small(), 1 - 1 / 20
    optimiser = Optimiser(
        model, OptimiserSettings("adamw-cosine", weight_ema=True, learning_rate=1e-2), steps_total=200
    )
    total, steps = [torch.zeros_like(p) for p in model.parameters()], 30
    for number in range(steps):
        train(optimiser, model, range(number, number + 1))
        total = [decay * t + (1 - decay) * w for t, w in zip(total, weights(model), strict=True)]
    with optimiser.averaged():
        for mean, t in zip(weights(model), total, strict=True):
            torch.testing.assert_close(mean, t / (1 - decay**steps))


def test_weights_that_do_not_move_are_their_own_average() -> None:
    weight = [torch.randn(5)]
    average = WeightAverage([torch.zeros(5)], steps_total=10_000)
    for _ in range(50):
        average.update(weight)
    target = [torch.zeros(5)]
    average.copy_to(target)
    assert same(target, weight)
    assert average.decay == pytest.approx(0.999)


def test_before_the_first_step_the_average_is_the_model_as_it_is() -> None:
    for settings in AVERAGING:
        model = Small()
        optimiser = Optimiser(model, settings, 10)
        with torch.no_grad():  # as thresholds are calibrated after the optimiser is made
            model.gate.raw_V.fill_(0.25)
        with optimiser.averaged():
            assert bool((model.gate.raw_V == 0.25).all())


@pytest.mark.parametrize("settings", AVERAGING, ids=lambda s: s.kind)
def test_looking_at_the_average_changes_no_bit_of_training(settings: OptimiserSettings) -> None:
    looked, left = Small(), Small()
    first, second = Optimiser(looked, settings, 20), Optimiser(left, settings, 20)
    for number in range(20):
        for optimiser, model in ((first, looked), (second, left)):
            train(optimiser, model, range(number, number + 1))
        trained = weights(looked)
        with first.averaged():
            assert number == 0 or not same(trained, weights(looked))
        assert same(trained, weights(looked))
    assert same(weights(looked), weights(left))


@pytest.mark.parametrize("settings", AVERAGING, ids=lambda s: s.kind)
def test_the_weights_come_back_after_an_error_too(settings: OptimiserSettings) -> None:
    model = Small()
    optimiser = Optimiser(model, settings, 20)
    train(optimiser, model, range(5))
    trained = weights(model)
    with pytest.raises(RuntimeError, match="out of memory"), optimiser.averaged():
        raise RuntimeError("out of memory")
    assert same(trained, weights(model))
    train(optimiser, model, range(5, 6))


@pytest.mark.parametrize("settings", AVERAGING, ids=lambda s: s.kind)
def test_what_is_saved_inside_is_the_average(settings: OptimiserSettings) -> None:
    model, loaded = Small(), Small(seed=1)
    optimiser = Optimiser(model, settings, 50)
    train(optimiser, model, range(50))
    x_NI = torch.randn(7, 4)
    with optimiser.averaged():
        saved = copy.deepcopy(model.state_dict())
        expected = model(x_NI)
    loaded.load_state_dict(saved)
    assert torch.equal(loaded(x_NI), expected)
    assert not torch.equal(model(x_NI), expected)


@pytest.mark.parametrize("act", ["step", "state_dict", "averaged"])
def test_averaged_weights_are_neither_trained_nor_kept_for_training(act: str) -> None:
    model = Small()
    optimiser = Optimiser(model, AVERAGING[1], 10)
    train(optimiser, model, range(2))
    acts: dict[str, Callable[[], Any]] = {
        "step": optimiser.step,
        "state_dict": optimiser.state_dict,
        "averaged": lambda: optimiser.averaged().__enter__(),
    }
    with optimiser.averaged(), pytest.raises(AssertionError):
        acts[act]()


class PaperScheduleFree:
    """Schedule-Free AdamW as the paper writes it (Defazio et al. 2024), Adam's moment corrected for bias.

    y = (1-β1) z + β1 x;  v ← β2 v + (1-β2) g²;  γ_t = γ min(1, t / rise);
    z ← z - γ_t (g / (sqrt(v / (1-β2^t)) + ε) + λ y);  c = γ_t² / Σ γ_i²;  x ← (1-c) x + c z
    """

    beta1, beta2, epsilon = 0.9, 0.999, 1e-8

    def __init__(self, start: Tensor, rate: float, weight_decay: float, rise: int) -> None:
        self.x, self.z, self.v = start.clone(), start.clone(), torch.zeros_like(start)
        self.rate, self.weight_decay, self.rise = rate, weight_decay, rise
        self.steps, self.total = 0, 0.0

    def y(self) -> Tensor:
        return (1 - self.beta1) * self.z + self.beta1 * self.x

    def step(self, gradient: Tensor) -> None:
        self.steps += 1
        y = self.y()
        self.v = self.beta2 * self.v + (1 - self.beta2) * gradient**2
        rate = self.rate * min(1.0, self.steps / self.rise)
        root = (self.v / (1 - self.beta2**self.steps)).sqrt() + self.epsilon
        self.z = self.z - rate * (gradient / root + self.weight_decay * y)
        self.total += rate**2
        self.x = torch.lerp(self.x, self.z, rate**2 / self.total)


def test_schedule_free_agrees_with_the_paper_over_100_steps() -> None:
    model = nn.Module()
    model.backbone = nn.Linear(5, 5, bias=False)
    model.backbone.weight.data.copy_(torch.eye(5) * 2)
    model.double()
    settings = OptimiserSettings(
        "schedule-free",
        learning_rate=0.02,
        weight_decay=0.1,
        rate_warmup_fraction=0.2,
        clip_norm=math.inf,
    )
    optimiser = Optimiser(model, settings, 100)
    twin = PaperScheduleFree(model.backbone.weight.detach(), 0.02, 0.1, rise=20)
    maker = torch.Generator().manual_seed(0)
    for _ in range(100):
        target = torch.randn(5, 5, generator=maker, dtype=torch.float64)
        torch.testing.assert_close(model.backbone.weight.detach(), twin.y())
        twin.step(2 * (twin.y() - target))
        optimiser.backward(((model.backbone.weight - target) ** 2).sum())
        optimiser.step()
        with optimiser.averaged():
            torch.testing.assert_close(model.backbone.weight.detach(), twin.x)
    assert (twin.x - twin.y()).abs().max() > 1e-3, "the average is not where gradients are taken"


# --- state -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("settings", EVERY, ids=lambda s: s.kind)
def test_a_run_continues_bit_for_bit(settings: OptimiserSettings, precision: str) -> None:
    settings = OptimiserSettings(**{**vars(settings), "precision": precision})
    model, resumed = Small(), Small(seed=1)
    extra, extra_resumed = (nn.Parameter(torch.tensor(0.1)) for _ in range(2))
    optimiser = Optimiser(model, settings, 20, extra=[extra])
    train(optimiser, model, range(8))
    with optimiser.averaged():
        pass
    resumed.load_state_dict(model.state_dict())
    other = Optimiser(resumed, settings, 20, extra=[extra_resumed])
    state = optimiser.state_dict()
    other.load_state_dict(state)
    for one, its in ((optimiser, model), (other, resumed)):
        train(one, its, range(8, 20))
    assert same(weights(model), weights(resumed))
    assert optimiser.rate == other.rate
    assert optimiser.state_dict()["scaler"] == other.state_dict()["scaler"]
    with optimiser.averaged(), other.averaged():
        assert same(weights(model), weights(resumed))


def test_loading_a_state_shares_no_memory_with_it() -> None:
    model, settings = Small(), AVERAGING[0]
    optimiser = Optimiser(model, settings, 20)
    train(optimiser, model, range(3))
    state = copy.deepcopy(optimiser.state_dict())
    untouched = copy.deepcopy(state)
    optimiser.load_state_dict(state)
    train(optimiser, model, range(3, 6))
    for key, values in untouched["inner"]["state"].items():
        assert same(list(values.values()), list(state["inner"]["state"][key].values()))
    assert same(untouched["ema"]["weights"], state["ema"]["weights"])


def test_state_is_tensors_and_plain_values() -> None:
    def leaves(value: Any) -> list[Any]:
        if isinstance(value, dict):
            return [leaf for item in value.values() for leaf in leaves(item)]
        return (
            [leaf for item in value for leaf in leaves(item)] if isinstance(value, list | tuple) else [value]
        )

    for settings in EVERY:
        model = Small()
        optimiser = Optimiser(model, settings, 20)
        train(optimiser, model, range(3))
        for leaf in leaves(optimiser.state_dict()):
            assert leaf is None or isinstance(leaf, Tensor | bool | int | float | str)
