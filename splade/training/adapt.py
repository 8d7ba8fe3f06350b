"""Masked-LM training of any encoder on raw text: domain adaptation, or a head for one that has none.

1. The loss on held-out text is measured in windows of each length.
2. Each step has windows of one length, about `tokens_per_step` tokens. Some are masked, and only they are
   decoded. AdamW; the rate rises over the first steps and falls to 0 with the steps or the time.
3. What a step draws depends on the seed and its number alone, so that a resumed run takes the same steps.
4. The loss is measured again on the same masks.

Legend: B windows, L positions, T tokens of a shard.
"""

from __future__ import annotations

import contextlib
import copy
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from splade.data.tokens import Frame, Ids, Place, Source
from splade.errors import ConfigError, TrainingError
from splade.models.backbone import Backbone, quiet_hub
from splade.models.saving import whole_folder
from splade.training import optim
from splade.training.adapt_settings import Settings, optimizer
from splade.training.checkpoint import Checkpoints, Saved, flatten, unflatten
from splade.training.held_out import Filled, HeldOut, fill_blanks, held_out_loss
from splade.training.masking import Masker, gather, mean_loss
from splade.training.progress import Progress
from splade.training.windows import Windows, deal, pack, pack_apart

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_LINES = 20  # lines of progress over a run
_SYNC = 8  # steps a GPU may be behind the clock
_SEED = 1_000_003  # steps of two seeds share no generator
_MAY_CHANGE = ("checkpoint_seconds", "checkpoint_steps", "compile", "seconds")  # when a run is resumed

T = TypeVar("T")


@dataclass(frozen=True)
class Adapted:
    """What a run reached: held-out losses and filled blanks before and after; `seconds` are of the steps."""

    settings: Settings
    steps: int
    tokens: int
    seconds: float
    before: list[HeldOut]
    after: list[HeldOut]
    samples_before: list[Filled]
    samples_after: list[Filled]


@dataclass
class State:
    """How far a run is, and what the shard it is in began with."""

    place: Place
    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    done: int = 0  # steps of this shard
    carry: Ids = field(default_factory=lambda: np.zeros(0, dtype=np.uint16))


def adapt(
    backbone: Backbone,
    tokenizer: PreTrainedTokenizerBase,
    source: Source,
    held_out: Ids,
    settings: Settings,
    progress: Progress,
    checkpoints: Checkpoints | None = None,
) -> Adapted:
    """Train `backbone` in place, from the newest checkpoint on where there is one."""
    added = Frame.of(tokenizer).added
    settings.check(backbone.max_length, added)
    fitting = [n for n in settings.lengths if len(held_out) >= n - added] or settings.lengths[:1]

    def measured(when: str) -> tuple[list[HeldOut], list[Filled]]:
        found = [held_out_loss(backbone, tokenizer, held_out, length) for length in fitting]
        told = (f"{one.loss:.3f} in windows of {one.length}" for one in found)
        progress.line(f"{when}: held-out loss {', '.join(told)}")
        return found, fill_blanks(backbone, tokenizer)

    before, samples_before = measured("before")
    run = Adapter(backbone, tokenizer, source, settings, progress, checkpoints).run()
    after, samples_after = measured("after")
    return Adapted(settings, run.step, run.tokens, run.seconds, before, after, samples_before, samples_after)


def save_adapted(
    backbone: Backbone,
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    record: Mapping[str, Any],
    half: bool = False,
) -> None:
    """Write an ordinary Hugging Face folder with `record` as adapt.json; `half` stores float16."""
    mlm = copy.deepcopy(backbone.mlm).half() if half else backbone.mlm
    with whole_folder(folder) as fresh, quiet_hub():
        mlm.save_pretrained(fresh)
        tokenizer.save_pretrained(fresh)
        (fresh / "adapt.json").write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", "utf-8")


class Adapter:
    """The steps of a run."""

    def __init__(
        self,
        backbone: Backbone,
        tokenizer: PreTrainedTokenizerBase,
        source: Source,
        settings: Settings,
        progress: Progress,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        self.backbone, self.source, self.settings = backbone, source, settings
        self.progress, self.checkpoints = progress, checkpoints
        self.device, self.frame = backbone.E_VH.device, Frame.of(tokenizer)
        self.masker = Masker(tokenizer, self.device)
        self.generator = torch.Generator(self.device)
        self.parameters = list(backbone.parameters())
        self.optimizer = optimizer(backbone, settings)
        self.peak = float(self.optimizer.param_groups[0]["lr"])
        self.batches = [settings.tokens_per_step // length for length in settings.lengths]
        self.mean_loss = torch.compile(mean_loss, dynamic=False) if settings.compile else mean_loss
        self.state = State(Place(0, source.begin))

    def run(self) -> State:
        """All steps, or those after the newest checkpoint."""
        saved = None if self.checkpoints is None else self.checkpoints.latest()
        if saved is not None:
            self._restore(saved)
        self.backbone.eval()  # no dropout: few passes over much text do not overfit
        with self.progress.task("adapt", 1000) as advance, _compiled(self.backbone, self.settings.compile):
            self._train(advance)
        return self.state

    def _train(self, advance: Callable[[int], None]) -> None:
        state, begun, earlier = self.state, time.perf_counter(), self.state.seconds
        shown, saved_at, losses = self._fraction(), earlier, []
        for k, windows, shard_T in self._steps():
            if self._fraction() >= 1:
                break
            losses.append(self._step(k, windows, shard_T))
            if self.device.type == "cuda" and state.step % _SYNC == 0:
                torch.cuda.synchronize()  # the clock must not run behind the steps
            before, state.seconds = self._fraction(), earlier + time.perf_counter() - begun
            advance(int(1000 * self._fraction()) - int(1000 * before))
            due = self._due(saved_at)
            if due or self._fraction() >= shown + 1 / _LINES:
                self._line(losses)
                shown, losses = self._fraction(), []
            if due:
                self._save()
                saved_at = state.seconds
        self._line(losses)

    def _steps(self) -> Iterator[tuple[int, Windows, Tensor]]:
        """(length, windows, the shard they are of) from where the run is, without end."""
        state, shares = self.state, self.settings.shares
        texts = [length - self.frame.added for length in self.settings.lengths]
        for place, fresh in _ahead(self.source.shards(state.place)):
            ids = np.concatenate([state.carry.astype(fresh.dtype), fresh])
            rng = np.random.default_rng([self.settings.seed, place.number, place.at])
            packed, used = pack(len(ids), texts, shares, rng)
            if not self.settings.joined:
                packed, used = pack_apart(ids, self.frame.boundary, texts, shares, rng), len(ids)
            state.place, shard_T = place, _on(self.device, ids)
            for k, windows in deal(packed, self.batches, rng)[state.done :]:
                yield k, windows, shard_T
            state.carry, state.done = ids[used:], 0

    def _step(self, k: int, windows: Windows, shard_T: Tensor) -> Tensor:
        state, length = self.state, self.settings.lengths[k]
        self.generator.manual_seed(self.settings.seed * _SEED + state.step)
        ids_BL, mask_BL = gather(shard_T, windows, length, self.frame)
        rate, n_text = self.settings.rate, len(windows.starts) * (length - self.frame.added)
        number = max(1, round(rate * int(windows.counts.sum())))
        masked = self.masker(ids_BL, number, self.generator, room=round(rate * n_text))
        rise = min(1.0, (state.step + 1) / self._warmup())
        for group in self.optimizer.param_groups:
            group["lr"] = self.peak * rise * (1 - self._fraction())
        with optim.autocast(self.device, "auto"):
            h_BLH = self.backbone(masked.input_ids_BL, mask_BL)
            loss = self.mean_loss(h_BLH, masked.at_N, masked.labels_N, self.backbone.E_VH, self.backbone.e_V)
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        optim.clip(self.parameters)
        self.optimizer.step()
        state.step, state.done = state.step + 1, state.done + 1
        state.tokens += ids_BL.numel()
        return loss.detach()

    def _warmup(self) -> int:
        """Steps in which the rate rises: at most a tenth of them all."""
        few = self.settings.warmup_steps if self.settings.steps is None else self.settings.steps // 10
        return max(1, min(self.settings.warmup_steps, few))

    def _fraction(self) -> float:
        """How much of the steps or the time is spent, whichever is the more."""
        of_steps = self.state.step / self.settings.steps if self.settings.steps else 0.0
        of_time = self.state.seconds / self.settings.seconds if self.settings.seconds else 0.0
        return min(1.0, max(of_steps, of_time))

    def _due(self, saved_at: float) -> bool:
        """Whether it is time for a checkpoint."""
        settings, state = self.settings, self.state
        if self.checkpoints is None or self._fraction() >= 1:
            return False
        if settings.checkpoint_steps is not None:
            return state.step % settings.checkpoint_steps == 0
        return state.seconds - saved_at >= settings.checkpoint_seconds

    def _line(self, losses: list[Tensor]) -> None:
        """One line of progress; what is no number ends the run before it is saved."""
        if not losses:
            return
        loss, state = float(torch.stack(losses).mean()), self.state
        if not (math.isfinite(loss) and all(bool(p.isfinite().all()) for p in self.parameters)):
            raise TrainingError(
                f"the loss is {loss}, or a weight is no number, at step {state.step}: training stopped, "
                "earlier checkpoints are kept; lower --learning-rate"
            )
        speed = state.tokens / max(state.seconds, 1e-9)
        self.progress.line(
            f"step {state.step:,}   loss {loss:.3f}   {state.tokens:,} tokens   {speed:,.0f} a second"
        )

    def _save(self) -> None:
        assert self.checkpoints is not None
        state = self.state
        nested = {
            "weights": dict(self.backbone.mlm.named_parameters()),
            "optimizer": self.optimizer.state_dict(),
            "carry": torch.from_numpy(state.carry.astype(np.int64)),
            "place": (state.place.number, state.place.at),
            "progress": (state.step, state.tokens, state.seconds, state.done),
            "settings": asdict(self.settings),
        }
        self.checkpoints.save(state.step, *flatten(nested))

    def _restore(self, saved: Saved) -> None:
        nested = unflatten(saved.tensors, saved.values)
        for name, value in asdict(self.settings).items():
            if name not in _MAY_CHANGE and nested["settings"][name] != value:
                raise ConfigError(
                    f"the run in {saved.path} had {name} {nested['settings'][name]}, not {value}; "
                    "give it the same to resume it, or remove that folder"
                )
        with torch.no_grad():
            for name, parameter in self.backbone.mlm.named_parameters():
                parameter.copy_(nested["weights"][name])
        self.optimizer.load_state_dict(nested["optimizer"])
        step, tokens, seconds, done = nested["progress"]
        carry = nested["carry"].numpy()
        self.state = State(Place(*nested["place"]), step, tokens, seconds, done, carry)


@contextlib.contextmanager
def _compiled(backbone: Backbone, wanted: bool) -> Iterator[None]:
    """The encoder compiled while the block runs, once for each length; the decoder keeps its hook."""
    encoder = backbone.mlm.base_model
    if wanted:
        encoder.compile(dynamic=False)
    try:
        yield
    finally:
        encoder._compiled_call_impl = None


def _ahead(found: Iterator[T]) -> Iterator[T]:
    """The same items, the next one being made while one is used."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, found, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, found, None)
            yield item


def _on(device: torch.device, ids: Ids) -> Tensor:
    """Ids on a device in as few bytes; uint16, which few kernels take, as the same bits in int16."""
    signed = np.int16 if ids.dtype == np.uint16 else np.int32
    return torch.from_numpy(np.ascontiguousarray(ids).view(signed)).to(device)
