"""Every trainable parameter learns, at one rate each; rates rise, then fall to nothing."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from splade.config.schema import TrainingConfig
from splade.training import optim
from tests.tiny import FAMILIES, tiny_model

CONFIG = TrainingConfig(learning_rate=1e-4, head_learning_rate=1e-2, weight_decay=0.1)


def assert_each_once(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    grouped = Counter(id(p) for group in optimizer.param_groups for p in group["params"])
    trainable = {id(p): name for name, p in model.named_parameters() if p.requires_grad}
    assert sorted(trainable[key] for key in trainable if key not in grouped) == []
    assert set(grouped) == set(trainable)
    assert set(grouped.values()) == {1}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_trainable_parameter_is_in_one_group(family: str) -> None:
    model = tiny_model(family)
    assert_each_once(model, optim.optimizer(model, CONFIG))


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
    model = tiny_model(**changes)
    assert_each_once(model, optim.optimizer(model, CONFIG))


def test_a_tied_decoder_learns_once_with_the_backbone() -> None:
    model = tiny_model("bert")
    decoder = model.backbone.E_VH
    assert decoder is model.backbone.mlm.get_input_embeddings().weight, "the weights are tied"
    rates = [
        group["lr"]
        for group in optim.optimizer(model, CONFIG).param_groups
        for parameter in group["params"]
        if parameter is decoder
    ]
    assert rates == [CONFIG.learning_rate]


def test_each_part_has_its_rate_and_only_matrices_decay() -> None:
    model = tiny_model()
    settings = {
        id(parameter): (group["lr"], group["weight_decay"])
        for group in optim.optimizer(model, CONFIG).param_groups
        for parameter in group["params"]
    }
    for parameter in model.backbone.parameters():
        assert settings[id(parameter)] == (1e-4, 0.1 if parameter.ndim > 1 else 0.0)
    assert settings[id(model.head.W_in)][0] == 1e-2
    assert settings[id(model.gate.raw_V)] == (optim.GATE_RATE * 1e-2, 0.0)


def factors(steps: int, warmup: float) -> list[float]:
    """The rate of every step of training, and what it is after the last."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = optim.schedule(optimizer, steps, warmup)
    found = []
    for _ in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return [*found, optimizer.param_groups[0]["lr"]]


@given(steps=st.integers(1, 200), warmup=st.floats(0, 0.9))
def test_rates_rise_and_fall_in_straight_lines_and_end_at_zero(steps: int, warmup: float) -> None:
    rates = factors(steps, warmup)
    rise = max(1, round(steps * warmup))
    assert rates[-1] == 0
    assert all(0 < rate <= 1 for rate in rates[:-1])
    assert rates[:rise] == pytest.approx([(step + 1) / rise for step in range(rise)])
    left = range(rise, steps + 1)
    assert rates[rise:] == pytest.approx([(steps - step) / max(steps - rise, 1) for step in left])


def test_the_full_rate_is_reached() -> None:
    assert max(factors(100, 0.06)) == 1


def test_autocast_is_on_only_where_asked_for_or_fast() -> None:
    cpu = torch.device("cpu")
    for precision, expected in (("bf16", True), ("fp32", False), ("auto", optim._fast_bf16(cpu))):
        with optim.autocast(cpu, precision):
            assert torch.is_autocast_enabled("cpu") is expected


def test_clipping_bounds_the_norm_of_all_gradients() -> None:
    parameters = [torch.nn.Parameter(torch.zeros(3)) for _ in range(2)]
    for parameter in parameters:
        parameter.grad = torch.full((3,), 10.0)
    optim.clip(parameters)
    norm = torch.cat([p.grad for p in parameters if p.grad is not None]).norm()
    assert float(norm) == pytest.approx(1, abs=1e-4)
