"""Who learns how fast: parameter groups, schedules, precision, and which weights are the trained ones.

A step: unscale -> centralise -> clip the backbone -> optimiser -> thresholds return to their domain -> next
rate -> average. The weights of every averaging kind are read in one place, `Optimiser.averaged`.

    adamw-linear     a linear rise, then a linear fall to 0
    adamw-cosine     a linear rise, then half a cosine to 0
    schedule-free    a linear rise, then constant; the average x of the weights is what was learned
                     (Defazio et al. 2024)
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from schedulefree import AdamWScheduleFree
from torch import Tensor, nn

from splade.errors import ConfigError
from splade.training.averaging import WeightAverage

LEAST_RISE = 20  # steps; a backbone that learns at once from a random head shuts every word
GATE_RATE = 5  # times the head's rate: one step moves log θ by at most the rate
BACKBONE_RATE, AT_HIDDEN_SIZE = 2e-4, 384  # wider backbones learn slower: 5e-5 at 768
BACKBONE_GROUPS = 2  # come first
LINEAR_DECAY = 0.01
DECAY_OF_RATE = 0.1

Kind = Literal["adamw-linear", "adamw-cosine", "schedule-free"]
Precision = Literal["auto", "bf16", "fp16", "fp32"]

FALLS: dict[Kind, Callable[[float], float]] = {
    "adamw-linear": lambda left: left,
    "adamw-cosine": lambda left: (1 - math.cos(math.pi * left)) / 2,
    "schedule-free": lambda left: 1.0,  # noqa: ARG005
}


@dataclass(frozen=True)
class OptimiserSettings:
    """How to learn; None is derived: the rate from the hidden size, the decay from kind and rate."""

    kind: Kind = "adamw-linear"
    weight_ema: bool = False
    centralise: bool = False
    learning_rate: float | None = None
    head_learning_rate: float = 1e-3
    weight_decay: float | None = None
    rate_warmup_fraction: float = 0.06
    clip_norm: float = 1.0
    precision: Precision = "auto"

    def __post_init__(self) -> None:
        if self.weight_ema and self.kind == "schedule-free":
            raise ConfigError("schedule-free averages the weights already: turn off the average of weights")

    def decay(self, rate: float) -> float:
        """Weight decay of matrices that learn at `rate`."""
        if self.weight_decay is not None:
            return self.weight_decay
        return LINEAR_DECAY if self.kind == "adamw-linear" else DECAY_OF_RATE * rate


class Optimiser:
    """Everything between a loss and better weights: `backward`, `step`, and `averaged` to evaluate."""

    def __init__(
        self,
        model: nn.Module,
        settings: OptimiserSettings,
        steps_total: int,
        extra: Sequence[nn.Parameter] = (),
    ) -> None:
        """`extra` parameters, of the objective for instance, learn at the head's rate without decay."""
        self.settings, self.steps_total, self.steps = settings, steps_total, 0
        self._gate: Any = getattr(model, "gate", None)
        groups = parameter_groups(model, settings, extra)
        self._parameters: list[nn.Parameter] = [p for group in groups for p in group["params"]]
        self._backbone = [p for group in groups[:BACKBONE_GROUPS] for p in group["params"]]
        self._rates = [float(group["lr"]) for group in groups]
        self._held: float | None = None
        self._inside = False
        self._inner = _inner(groups, settings, steps_total)
        self._ema = WeightAverage(self._parameters, steps_total) if settings.weight_ema else None
        device = self._parameters[0].device.type
        self._scaler = torch.amp.GradScaler(device, enabled=settings.precision == "fp16")
        self._set_rates()

    @property
    def rate(self) -> float:
        """The backbone's rate in the coming step."""
        return self._rates[0] * self._factor() if self._held is None else self._held

    def backward(self, loss: Tensor) -> None:
        """Add a loss's gradients; several before one `step` accumulate."""
        torch.autograd.backward(self._scaler.scale(loss))

    def step(self) -> None:
        """Move the weights by the gradients gathered, and forget these."""
        assert not self._inside, "averaged weights are not for training"
        self._scaler.unscale_(self._inner)
        if self.settings.centralise:
            centralise(self._backbone)
        clip(self._backbone, self.settings.clip_norm)
        self._scaler.step(self._inner)
        self._scaler.update()
        self._clamp()
        self.steps += 1
        self._set_rates()
        if self._ema is not None:
            self._ema.update(self._parameters)
        self._inner.zero_grad(set_to_none=True)

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Inside, the model has its averaged weights, to evaluate and save; after, every bit is as before."""
        assert not self._inside, "the weights are averaged already"
        if self._ema is None and not isinstance(self._inner, AdamWScheduleFree):
            yield
            return
        kept = [parameter.detach().clone() for parameter in self._parameters]
        self._inside = True
        try:
            self._swap_in()
            yield
        finally:
            self._swap_out(kept)
            self._inside = False

    def hold(self, rate: float) -> None:
        """From now on the backbone learns at `rate`, whatever the schedule: for a sweep over rates."""
        self._held = rate
        if isinstance(self._inner, AdamWScheduleFree):
            for group in self._inner.param_groups[:BACKBONE_GROUPS]:
                group["warmup_steps"] = 0
        self._set_rates()

    def state_dict(self) -> dict[str, Any]:
        """All that continues training bit for bit; its tensors are live: write or copy them at once."""
        assert not self._inside, "a checkpoint holds the weights that are trained, not their average"
        return {
            "steps": self.steps,
            "inner": self._inner.state_dict(),
            "ema": None if self._ema is None else self._ema.state_dict(),
            "scaler": self._scaler.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict()` of an optimiser made the same way; the model is loaded by others."""
        self.steps = int(state["steps"])
        inner = state["inner"]
        moments = copy.deepcopy(inner["state"])  # the optimiser would share memory with the caller's
        self._inner.load_state_dict({"state": moments, "param_groups": inner["param_groups"]})
        if self._ema is not None:
            self._ema.load_state_dict(state["ema"])
        self._scaler.load_state_dict(dict(state["scaler"]))
        self._set_rates()

    def _factor(self) -> float:
        settings = self.settings
        return rate_factor(settings.kind, self.steps, self.steps_total, settings.rate_warmup_fraction)

    def _set_rates(self) -> None:
        # the schedule-free optimiser knows its own rise
        factor = 1.0 if isinstance(self._inner, AdamWScheduleFree) else self._factor()
        for index, (group, rate) in enumerate(zip(self._inner.param_groups, self._rates, strict=True)):
            held = index < BACKBONE_GROUPS and self._held is not None
            group["lr"] = self._held if held else rate * factor

    @torch.no_grad()
    def _clamp(self) -> None:
        """Thresholds, and the sequence behind them that schedule-free averages, return to their domain."""
        if self._gate is None:
            return
        self._gate.clamp_()
        for threshold in self._gate.parameters():
            z = self._inner.state.get(threshold, {}).get("z")
            if z is not None:
                kept = threshold.detach().clone()
                threshold.copy_(z)
                self._gate.clamp_()
                z.copy_(threshold)
                threshold.copy_(kept)

    def _swap_in(self) -> None:
        if isinstance(self._inner, AdamWScheduleFree):
            self._inner.eval()
        elif self._ema is not None:
            self._ema.copy_to(self._parameters)
        if self._gate is not None:
            self._gate.clamp_()

    @torch.no_grad()
    def _swap_out(self, kept: Sequence[Tensor]) -> None:
        if isinstance(self._inner, AdamWScheduleFree):
            self._inner.train()
        for parameter, weights in zip(self._parameters, kept, strict=True):
            parameter.copy_(weights)


def parameter_groups(
    model: nn.Module, settings: OptimiserSettings, extra: Sequence[nn.Parameter] = ()
) -> list[dict[str, Any]]:
    """Backbone (two groups, the first), head and pooling and all else, gate, extra; told apart by identity.

    Only matrices decay: not thresholds, biases, norms.
    """
    backbone, gate = (_identities(_part(model, name)) for name in ("backbone", "gate"))
    rate, head_rate = settings.learning_rate, settings.head_learning_rate
    if rate is None:
        rate = default_rate(_part(model, "backbone"))
    learning = [p for p in model.parameters() if p.requires_grad]
    first = [p for p in learning if id(p) in backbone]
    thresholds = [p for p in learning if id(p) in gate]
    rest = [p for p in learning if id(p) not in backbone | gate]
    known = {id(p) for p in learning}
    added = [p for p in extra if p.requires_grad and id(p) not in known]
    return [
        _group([p for p in first if p.ndim > 1], rate, settings.decay(rate)),
        _group([p for p in first if p.ndim <= 1], rate),
        _group([p for p in rest if p.ndim > 1], head_rate, settings.decay(head_rate)),
        _group([p for p in rest if p.ndim <= 1], head_rate),
        _group(thresholds, GATE_RATE * head_rate),
        _group(added, head_rate),
    ]


def default_rate(backbone: Any) -> float:
    """2e-4 at hidden size 384, falling with its square."""
    return BACKBONE_RATE * (AT_HIDDEN_SIZE / int(backbone.mlm.config.hidden_size)) ** 2


def rate_factor(kind: Kind, step: int, steps_total: int, warmup_fraction: float) -> float:
    """What the rate of the step number `step`, from 0 on, is of the highest."""
    rise = _rise(steps_total, warmup_fraction)
    left = max(steps_total - step, 0) / max(steps_total - rise, 1)
    return min((step + 1) / rise, FALLS[kind](min(left, 1.0)))


@torch.no_grad()
def centralise(parameters: Iterable[nn.Parameter]) -> None:
    """Subtract from each matrix's gradient its mean over all dims but the first (Yong et al. 2020)."""
    for parameter in parameters:
        if parameter.grad is not None and parameter.ndim > 1:
            parameter.grad.sub_(parameter.grad.mean(tuple(range(1, parameter.ndim)), keepdim=True))


def clip(parameters: Sequence[nn.Parameter], largest: float = 1.0) -> None:
    """Scale the backbone's gradients down to a norm of at most `largest`."""
    torch.nn.utils.clip_grad_norm_(parameters, largest)


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """bf16 or fp16 autocast where `in_half` says so."""
    dtype = torch.float16 if precision == "fp16" else torch.bfloat16
    return torch.autocast(device.type, dtype=dtype, enabled=in_half(device, precision))


def in_half(device: torch.device, precision: str) -> bool:
    """Whether products are made in 16 bits: when asked for, or by `auto` where the hardware is faster so."""
    return precision in ("bf16", "fp16") or (precision == "auto" and _fast_bf16(device))


def _fast_bf16(device: torch.device) -> bool:
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    return device.type == "cpu" and bool(torch.cpu._is_avx512_bf16_supported())


def _inner(
    groups: list[dict[str, Any]], settings: OptimiserSettings, steps_total: int
) -> torch.optim.Optimizer:
    if settings.kind != "schedule-free":
        return torch.optim.AdamW(groups, fused=True)
    inner: torch.optim.Optimizer = AdamWScheduleFree(
        groups, warmup_steps=_rise(steps_total, settings.rate_warmup_fraction)
    )
    inner.train()  # type: ignore[attr-defined]
    return inner


def _rise(steps_total: int, warmup_fraction: float) -> int:
    """Steps of a rising rate: a share of all, at least `LEAST_RISE` or a third of a short run; of 0, one."""
    least = min(LEAST_RISE, steps_total // 3) if warmup_fraction else 0
    return max(1, least, round(steps_total * warmup_fraction))


def _part(model: nn.Module, name: str) -> nn.Module:
    """A part of a model; an empty one where a dense baseline has none."""
    part = getattr(model, name, None)
    return part if isinstance(part, nn.Module) else nn.Module()


def _identities(part: nn.Module) -> set[int]:
    return {id(parameter) for parameter in part.parameters()}


def _group(parameters: list[nn.Parameter], rate: float, weight_decay: float = 0.0) -> dict[str, Any]:
    return {"params": parameters, "lr": rate, "weight_decay": weight_decay}
