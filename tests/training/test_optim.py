"""Every parameter learns, at one rate each; averages are what the formulas say; state is all there is."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from splade.errors import ConfigError
from splade.training import optim
from splade.training.optim import Kind, Optimiser, OptimiserSettings, parameter_groups, rate_factor
from tests.tiny import FAMILIES, tiny_model
from tests.training.small import EVERY, KINDS, SETTINGS, Small, batch_loss, same, train, weights

# --- who learns how fast -----------------------------------------------------------------------------------


def assert_each_once(model: nn.Module) -> None:
    grouped = Counter(id(p) for group in parameter_groups(model, SETTINGS) for p in group["params"])
    trainable = {id(p): name for name, p in model.named_parameters() if p.requires_grad}
    assert sorted(trainable[key] for key in trainable if key not in grouped) == []
    assert set(grouped) == set(trainable)
    assert set(grouped.values()) == {1}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_trainable_parameter_is_in_one_group(family: str) -> None:
    assert_each_once(tiny_model(family))


@pytest.mark.parametrize(
    "changes",
    [
        {"head": "bcos"},
        {"pooling": "attention"},
        {"gate": "drelu"},
        {"task": "tagging"},
        {"honesty": "licensed-contextual"},
    ],
    ids=str,
)
def test_every_part_of_a_model_learns(changes: dict[str, str]) -> None:
    assert_each_once(tiny_model(**changes))


def test_a_model_without_a_gate_learns_too() -> None:
    model = Small()
    model.gate = None
    assert_each_once(model)


def test_a_part_that_has_no_name_here_learns_with_the_head() -> None:
    model = Small()
    model.senses = nn.Linear(6, 2)
    assert_each_once(model)
    rates = {id(p): group["lr"] for group in parameter_groups(model, SETTINGS) for p in group["params"]}
    assert rates[id(model.senses.weight)] == SETTINGS.head_learning_rate


def test_a_frozen_backbone_leaves_the_rest_to_learn() -> None:
    model = Small()
    model.backbone.requires_grad_(False)
    assert_each_once(model)
    before = weights(model.backbone)
    train(Optimiser(model, SETTINGS, 5), model, range(5))
    assert same(before, weights(model.backbone))


def test_a_tied_decoder_learns_once_with_the_backbone() -> None:
    model = tiny_model("bert")
    decoder = model.backbone.E_VH
    assert decoder is model.backbone.mlm.get_input_embeddings().weight, "the weights are tied"
    groups = parameter_groups(model, SETTINGS)
    rates = [group["lr"] for group in groups for parameter in group["params"] if parameter is decoder]
    assert rates == [SETTINGS.learning_rate]


def test_each_part_has_its_rate_and_only_matrices_decay() -> None:
    model, margin = tiny_model(), nn.Parameter(torch.tensor(0.1))
    found = {
        id(parameter): (group["lr"], group["weight_decay"])
        for group in parameter_groups(model, SETTINGS, [margin])
        for parameter in group["params"]
    }
    for parameter in model.backbone.parameters():
        assert found[id(parameter)] == (1e-4, 0.1 if parameter.ndim > 1 else 0.0)
    for parameter in model.head.parameters():
        assert found[id(parameter)] == (1e-2, 0.1 if parameter.ndim > 1 else 0.0)
    assert found[id(model.gate.raw_V)] == (optim.GATE_RATE * 1e-2, 0.0)
    assert found[id(margin)] == (1e-2, 0.0)


def test_parameters_of_the_objective_learn() -> None:
    model, margin = Small(), nn.Parameter(torch.tensor(0.1))
    optimiser = Optimiser(model, SETTINGS, 10, extra=[margin])
    optimiser.backward(batch_loss(model, 0) + margin**2)
    optimiser.step()
    assert margin.detach().item() < 0.1


def test_what_is_not_given_is_derived() -> None:
    model = tiny_model()
    hidden_size = model.backbone.mlm.config.hidden_size
    first = parameter_groups(model, OptimiserSettings())[0]
    assert first["lr"] == pytest.approx(2e-4 * (384 / hidden_size) ** 2)
    assert first["weight_decay"] == 0.01
    for kind in ("adamw-cosine", "schedule-free"):
        groups = parameter_groups(model, OptimiserSettings(kind=kind, learning_rate=3e-4))
        assert groups[0]["weight_decay"] == pytest.approx(3e-5)


def test_one_kind_of_average_at_a_time() -> None:
    with pytest.raises(ConfigError, match="schedule-free averages"):
        OptimiserSettings(kind="schedule-free", weight_ema=True)


# --- schedules ---------------------------------------------------------------------------------------------


@given(kind=st.sampled_from(KINDS), steps=st.integers(1, 200), warmup=st.floats(0, 0.9))
def test_rates_rise_in_a_straight_line_and_then_never_again(kind: Kind, steps: int, warmup: float) -> None:
    factors = [rate_factor(kind, step, steps, warmup) for step in range(steps + 1)]
    rise = max(1, round(steps * warmup), min(20, steps // 3) if warmup else 0)
    assert factors[:rise] == pytest.approx([(step + 1) / rise for step in range(rise)])
    assert all(0 < factor <= 1 for factor in factors[:-1])
    assert factors[rise:] == sorted(factors[rise:], reverse=True)
    assert max(factors[:-1]) == 1
    assert factors[-1] == (1 if kind == "schedule-free" else 0)
    assert rate_factor(kind, steps + 5, steps, warmup) == factors[-1]


@pytest.mark.parametrize(
    ("steps", "share", "rise"),
    [(1000, 0.06, 60), (200, 0.06, 20), (52, 0.06, 17), (30, 0.06, 10), (52, 0.0, 1)],
)
def test_a_rise_has_at_least_twenty_steps_or_a_third_of_a_run(steps: int, share: float, rise: int) -> None:
    factors = [rate_factor("adamw-linear", step, steps, share) for step in range(steps)]
    assert factors.index(1.0) == rise - 1


def test_falls_have_their_shapes() -> None:
    left = [1.0, 0.75, 0.5, 0.25, 0.0]
    assert [optim.FALLS["adamw-linear"](share) for share in left] == left
    cosine = [(1 + math.cos(math.pi * (1 - share))) / 2 for share in left]
    assert [optim.FALLS["adamw-cosine"](share) for share in left] == pytest.approx(cosine)


@pytest.mark.parametrize("kind", KINDS)
def test_the_rate_told_is_the_rate_used(kind: Kind) -> None:
    model = Small()
    optimiser = Optimiser(model, OptimiserSettings(kind, learning_rate=1e-2, rate_warmup_fraction=0.5), 20)
    for number in range(20):
        told = optimiser.rate
        train(optimiser, model, range(number, number + 1))
        assert told == pytest.approx(1e-2 * rate_factor(kind, number, 20, 0.5))
        if kind == "schedule-free":
            assert told == pytest.approx(optimiser._inner.param_groups[0]["scheduled_lr"])
        else:
            assert optimiser.rate == optimiser._inner.param_groups[0]["lr"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_held_rate_is_the_backbones_alone(kind: Kind) -> None:
    model = Small()
    optimiser = Optimiser(model, OptimiserSettings(kind, learning_rate=1e-2), 10)
    optimiser.hold(0.0)
    before = weights(model.backbone), weights(model.head)
    train(optimiser, model, range(5))
    assert optimiser.rate == 0
    assert same(before[0], weights(model.backbone))
    assert not same(before[1], weights(model.head))


@pytest.mark.parametrize("kind", KINDS)
def test_a_held_rate_has_no_rise(kind: Kind) -> None:
    held, early = Small(), Small()
    for model, fraction in ((held, 0.0), (early, 0.9)):
        settings = OptimiserSettings(
            kind, learning_rate=1e-2, weight_decay=0.0, rate_warmup_fraction=fraction
        )
        optimiser = Optimiser(model, settings, 50)
        optimiser.hold(3e-3)
        train(optimiser, model, range(1))
    assert same(weights(held.backbone), weights(early.backbone))


# --- one step ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", EVERY, ids=lambda s: s.kind)
def test_training_lowers_the_loss_of_the_weights_it_leaves(settings: OptimiserSettings) -> None:
    model = Small()
    before = batch_loss(model, 1000).item()
    optimiser = Optimiser(model, settings, 150)
    train(optimiser, model, range(150))
    with optimiser.averaged():
        assert batch_loss(model, 1000).item() < 0.7 * before


def test_gradients_accumulate_until_the_step() -> None:
    whole, halves = Small(), Small()
    together, apart = Optimiser(whole, SETTINGS, 10), Optimiser(halves, SETTINGS, 10)
    together.backward((batch_loss(whole, 0) + batch_loss(whole, 1)) / 2)
    for number in (0, 1):
        apart.backward(batch_loss(halves, number) / 2)
    gradients = [[p.grad for p in model.parameters()] for model in (whole, halves)]
    for first, second in zip(*gradients, strict=True):
        torch.testing.assert_close(first, second)
    together.step()
    assert all(p.grad is None for p in whole.parameters())


def test_clipping_bounds_the_backbone_and_leaves_the_head() -> None:
    model = Small()
    optimiser = Optimiser(model, SETTINGS, 10)
    seen: list[tuple[float, float]] = []

    def look(*_: object) -> None:
        seen.append((norm(model.backbone), norm(model.head)))

    optimiser._inner.register_step_pre_hook(look)
    optimiser.backward(1e4 * batch_loss(model, 0))
    raw_head = norm(model.head)
    optimiser.step()
    assert seen[0][0] == pytest.approx(1, abs=1e-4)
    assert seen[0][1] == raw_head


def norm(part: nn.Module) -> float:
    gradients = [p.grad.flatten() for p in part.parameters() if p.grad is not None]
    return torch.cat(gradients).norm().item()


@pytest.mark.parametrize("centralised", [True, False])
def test_only_gradients_of_backbone_matrices_are_centralised(centralised: bool) -> None:
    model = Small()
    settings = OptimiserSettings(centralise=centralised, learning_rate=1e-3, clip_norm=math.inf)
    optimiser = Optimiser(model, settings, 10)
    raw: dict[str, Tensor] = {}
    seen: dict[str, Tensor] = {}

    def look(*_: object) -> None:
        seen.update({name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None})

    optimiser._inner.register_step_pre_hook(look)
    optimiser.backward(batch_loss(model, 0))
    raw.update({name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None})
    optimiser.step()
    for name, gradient in raw.items():
        expected = gradient
        if centralised and name.startswith("backbone") and gradient.ndim > 1:
            assert gradient.mean(1).abs().max() > 1e-4, "there is something to centralise"
            expected = gradient - gradient.mean(1, keepdim=True)
        torch.testing.assert_close(seen[name], expected)


def test_centralising_takes_the_mean_over_all_dims_but_the_first() -> None:
    kernel = nn.Parameter(torch.zeros(2, 3, 4))
    kernel.grad = torch.arange(24.0).view(2, 3, 4)
    optim.centralise([kernel])
    torch.testing.assert_close(kernel.grad.mean((1, 2)), torch.zeros(2))
    assert kernel.grad[0, 0, 1] - kernel.grad[0, 0, 0] == 1


@pytest.mark.parametrize("kind", KINDS)
def test_thresholds_stay_in_their_domain_in_training_and_in_the_average(kind: Kind) -> None:
    model = Small()
    optimiser = Optimiser(model, OptimiserSettings(kind, learning_rate=1e-2), 60)
    pull = -1.0
    for number in range(60):
        pull = -1.0 if number < 40 else 1.0
        optimiser.backward(batch_loss(model, number) - pull * model.gate.raw_V.sum())
        optimiser.step()
        assert bool((model.gate.raw_V >= 0).all())
        with optimiser.averaged():
            assert bool((model.gate.raw_V >= 0).all())
        if number == 39:
            assert bool((model.gate.raw_V == 0).all())
    assert bool((model.gate.raw_V > 0).all()), "thresholds held at 0 rise at once when they should"


# --- precision ---------------------------------------------------------------------------------------------


def test_autocast_is_on_only_where_asked_for_or_fast() -> None:
    cpu = torch.device("cpu")
    for precision, expected in (
        ("bf16", True),
        ("fp16", True),
        ("fp32", False),
        ("auto", optim._fast_bf16(cpu)),
    ):
        with optim.autocast(cpu, precision):
            assert torch.is_autocast_enabled("cpu") is expected
            if precision != "auto" and expected:
                dtype = torch.float16 if precision == "fp16" else torch.bfloat16
                assert torch.get_autocast_dtype("cpu") == dtype


def test_scaled_gradients_train_as_unscaled_ones_do() -> None:
    scaled, plain = Small(), Small()
    for model, precision in ((scaled, "fp16"), (plain, "fp32")):
        settings = OptimiserSettings(learning_rate=1e-2, precision=precision)
        train(Optimiser(model, settings, 20), model, range(10))
    for first, second in zip(weights(scaled), weights(plain), strict=True):
        torch.testing.assert_close(first, second)


def test_an_overflow_in_half_precision_skips_the_step_and_lowers_the_scale() -> None:
    model = Small()
    optimiser = Optimiser(model, OptimiserSettings(learning_rate=1e-2, precision="fp16"), 20)
    train(optimiser, model, range(3))
    before, scale = weights(model), optimiser.state_dict()["scaler"]["scale"]
    optimiser.backward(batch_loss(model, 3) * math.inf)
    optimiser.step()
    assert same(before, weights(model))
    assert optimiser.state_dict()["scaler"]["scale"] < scale
    train(optimiser, model, range(4, 6))
    assert not same(before, weights(model))
    assert all(bool(w.isfinite().all()) for w in weights(model))
