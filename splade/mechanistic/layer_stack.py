"""The layers of any masked LM as a row of calls: what each was given and made, and the model without one.

1. Watch a pass over one text. A layer is the innermost module that was given one recorded hidden state and
   returned the next; a module that runs twice (shared weights) is two layers.
2. If the base model returns something else than the last layer does, the module between is its final norm.
3. `read_out` puts any state at the end of the base model and lets the masked-LM head run on it; `without`
   hands a layer's input on in place of its output.

No model type is named, and everything is as it was afterwards.

Legend: B documents, L positions, H hidden size, K layers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from splade.errors import ModelError
from splade.models.backbone import Backbone

_Slot = int | str  # an argument by place or by name


@dataclass(frozen=True)
class _Call:
    """The `nth` of a module's `calls` in a pass (from 0), and which of its arguments is the hidden state."""

    module: nn.Module
    nth: int
    calls: int
    slot: _Slot


@dataclass(frozen=True)
class _Seen:
    """A call as it was watched."""

    module: nn.Module
    nth: int
    arguments: dict[_Slot, Any]
    output: object

    def slot_of(self, tensor: Tensor) -> _Slot | None:
        """Which argument is this very tensor."""
        return next((slot for slot, value in self.arguments.items() if value is tensor), None)


@dataclass(frozen=True)
class LayerStack:
    """The K layers of a base model in the order they run, and the norm after the last of them, if any."""

    backbone: Backbone
    layers: list[_Call]
    norm: nn.Module | None

    @classmethod
    @torch.no_grad()
    def of(cls, backbone: Backbone, input_ids: Tensor, attention_mask: Tensor) -> LayerStack:
        """Find the layers by watching a pass over the first text of a batch."""
        seen: list[_Seen] = []
        with _watched(_base(backbone), seen):
            output, states = _run(backbone, input_ids[:1], attention_mask[:1])
        layers = [_between(seen, a, b) for a, b in itertools.pairwise(states)]
        found = _end(seen, states, output, None not in layers)
        if found is None:
            raise _lost(backbone)
        norm, last = found
        # what is recorded last may be behind the norm; the last layer ends before it
        layers[-1] = layers[-1] or _between(seen, states[-2], last)
        known = [call for call in layers if call is not None]
        if not known or len(known) < len(layers):
            raise _lost(backbone)
        return cls(backbone, known, norm)

    @torch.no_grad()
    def states(self, input_ids: Tensor, attention_mask: Tensor) -> list[Tensor]:
        """The embeddings and what every layer makes of them, [B, L, H] each, before any final norm."""
        last: list[Tensor] = []
        end = nn.Identity() if self.norm is None else self.norm
        handle = end.register_forward_pre_hook(lambda _, inputs: last.append(inputs[0]))
        try:
            output, states = _run(self.backbone, input_ids, attention_mask)
        finally:
            handle.remove()
        return [*states[:-1], last[-1] if last else output]

    @torch.no_grad()
    def read_out(self, state: Tensor, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """What would enter the decoder [B, L, H] if the layers ended in `state`; no layer runs."""
        end = state if self.norm is None else self.norm(state)
        with _forward(_base(self.backbone), lambda *_, **__: _ending_in(end)):
            h_BLH: Tensor = self.backbone(input_ids, attention_mask)
        return h_BLH

    @contextmanager
    def without(self, k: int) -> Iterator[None]:
        """Inside, layer k (from 0) hands on what it was given."""
        call, count = self.layers[k], 0

        def skip(_module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any], output: Any) -> Any:
            nonlocal count
            now, count = count % call.calls, count + 1
            if now != call.nth:
                return output
            state = _arguments(inputs, named)[call.slot]
            return state if isinstance(output, Tensor) else (state, *output[1:])

        handle = call.module.register_forward_hook(skip, with_kwargs=True)
        try:
            yield
        finally:
            handle.remove()


# --- watching a pass --------------------------------------------------------------------------------------


def _base(backbone: Backbone) -> nn.Module:
    base: nn.Module = backbone.mlm.base_model
    if base is backbone.mlm:
        raise _lost(backbone)
    return base


def _lost(backbone: Backbone) -> ModelError:
    return ModelError(
        f"{backbone.name}: cannot tell its layers apart, so it has no layerwise view; leave that view out"
    )


@contextmanager
def _forward(module: nn.Module, function: Callable[..., Any]) -> Iterator[None]:
    """Inside, `function` stands in for the module's own forward."""
    before = vars(module).get("forward")
    module.forward = function
    try:
        yield
    finally:
        if before is None:
            del module.forward
        else:
            module.forward = before


def _run(backbone: Backbone, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Sequence[Tensor]]:
    """What the base model returns, and its K + 1 hidden states as it records them."""
    base = _base(backbone)
    own, outputs = base.forward, []

    def forward(*inputs: Any, **named: Any) -> Any:
        outputs.append(own(*inputs, **{**named, "output_hidden_states": True}))
        return outputs[-1]

    with _forward(base, forward):
        backbone(input_ids, attention_mask)
    states = getattr(outputs[0], "hidden_states", None)
    if len(outputs) != 1 or not states or len(states) < 2:
        raise _lost(backbone)
    return outputs[0][0], states


def _ending_in(end: Tensor) -> Any:
    from transformers.modeling_outputs import BaseModelOutput

    return BaseModelOutput(last_hidden_state=end)


@contextmanager
def _watched(base: nn.Module, seen: list[_Seen]) -> Iterator[None]:
    counts: dict[nn.Module, int] = {}

    def watch(module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any], output: Any) -> None:
        nth = counts.get(module, 0)
        counts[module] = nth + 1
        first = output[0] if isinstance(output, tuple) and output else output
        seen.append(_Seen(module, nth, _arguments(inputs, named), first))

    handles = [module.register_forward_hook(watch, with_kwargs=True) for module in base.modules()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _arguments(inputs: tuple[Any, ...], named: dict[str, Any]) -> dict[_Slot, Any]:
    slots: dict[_Slot, Any] = dict(enumerate(inputs))
    return slots | dict(named)


def _between(seen: list[_Seen], before: Tensor, after: Tensor) -> _Call | None:
    """The innermost call that was given one state and returned the other."""
    for call in seen:
        slot = call.slot_of(before)
        if slot is not None and call.output is after and before is not after:
            calls = sum(other.module is call.module for other in seen)
            return _Call(call.module, call.nth, calls, slot)
    return None


def _end(
    seen: list[_Seen], states: Sequence[Tensor], output: Tensor, complete: bool
) -> tuple[nn.Module | None, Tensor] | None:
    """(the final norm or None, what the last layer returned); None where neither can be told.

    A model may record the last state before its norm or after it, and then `output` is that state itself.
    """
    if output is states[-1] and complete:
        return None, output
    if output is not states[-1]:
        norm = _between(seen, states[-1], output)
        return None if norm is None else (norm.module, states[-1])
    after = next((call for call in seen if call.output is output), None)
    given = None if after is None else after.arguments.get(0)
    return (after.module, given) if after is not None and isinstance(given, Tensor) else None
