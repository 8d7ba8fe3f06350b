"""What does a training step cost over dense fine-tuning, in time and in memory?

1. One backbone with random weights, and for each kind of training a trainer of its own (`steps.py`).
2. Warm-up; then steps timed one by one, then as many with no wait between them, looks at held-out rows
   included. Memory: the most held during the first of these; on a GPU weights and moments count.
3. After it, in evaluation mode, the open words of a text and the largest residual of an explanation.

    python benchmarks/training_step.py --device cuda --output docs/results/performance.md
    python benchmarks/training_step.py --shape 32x512 --only default --profile
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from measure import now, peak_bytes, seconds_of
from models import SIZES, sized_backbone
from steps import KINDS, WORDS, Kind, ask_frozen, steps_of, trainer_of
from table import Section, Shape, attempt, parser, report, shapes, with_device, with_shapes
from torch.profiler import ProfilerActivity, profile

from splade.evaluation.identity import IdentityFitter
from splade.inference.rows import decide
from splade.mechanistic.attribution import compute_attribution_tensor
from splade.models.backbone import Backbone
from splade.models.lexical_sae import LexicalSAE
from splade.models.lexicon import GROUNDING_RANK
from splade.training import optim
from splade.training.loop import Trainer

WARM_UP, STEPS, IN_A_ROW = {"cpu": 1, "cuda": 10}, {"cpu": 3, "cuda": 16}, {"cpu": 3, "cuda": 32}
PROFILED, TOP = 4, 25
COLUMNS = (
    "texts × tokens", "training", "step ms", "× dense", "in a row, ms", "× dense", "peak GiB", "× dense",
    "open", "pairs", "residual",
)  # fmt: skip


@dataclass(frozen=True)
class Cost:
    """Seconds of a step (median of single ones, mean of many in a row) and the most bytes held in one."""

    single: float
    steady: float
    peak: int


@dataclass
class Bench:
    """One backbone and shape on a device; `dense` is what everything is compared with."""

    backbone: Backbone
    shape: Shape
    options: argparse.Namespace
    dense: Cost | None = None

    def row(self, kind: Kind) -> list[object]:
        """Its cells after shape and name."""
        device = self.options.device
        trainer = trainer_of(kind, self.backbone, self.shape, device, self.options.quick)
        ask_frozen(trainer)
        stepping = steps_of(trainer)
        cost = measured(stepping, device)
        if self.options.profile:
            print(f"\n{self.shape}, {kind.name}\n{profiled(stepping, device)}")
        if kind.name == "dense":
            self.dense = cost
        return [*self.cells(cost), *_words(trainer)]

    def frozen_pass(self) -> list[object]:
        """What is paid once for a text: the frozen LM's reading of it, and where its words are kept."""
        kind = next(kind for kind in KINDS if kind.honesty == "grounded")
        trainer = trainer_of(kind, self.backbone, self.shape, self.options.device, self.options.quick)
        seconds = ask_frozen(trainer) * self.shape.texts
        assert trainer.train.top is not None
        kept = GROUNDING_RANK * trainer.train.top._dtype.itemsize * self.shape.length
        times = f"{1e3 * seconds:,.1f}", _over(seconds, None if self.dense is None else self.dense.single)
        return [*times, "", "", f"disk: {kept / 2**10:,.0f} KiB a text", "", "", "", ""]

    def cells(self, cost: Cost) -> list[object]:
        """Times, memory and their ratios."""
        dense = self.dense or Cost(0, 0, 0)
        return [
            f"{1e3 * cost.single:,.1f}", _over(cost.single, dense.single),
            f"{1e3 * cost.steady:,.1f}", _over(cost.steady, dense.steady),
            f"{cost.peak / 2**30:,.2f}", _over(cost.peak, dense.peak),
        ]  # fmt: skip


def main() -> None:
    """Measure, print, and write if asked to."""
    options = _options()
    device, rows = options.device, []
    for shape in shapes(options):
        bench = Bench(sized_backbone(options.backbone, options.quick, shape.length), shape, options)
        for kind in KINDS:
            if kind.recipe == "dense" or options.only in kind.name:
                names = (str(shape), kind.name)
                rows.append(attempt(names, COLUMNS, partial(bench.row, kind)))
        names = (str(shape), "frozen LM, once a text")
        rows.append(attempt(names, COLUMNS, bench.frozen_pass))
    question = "What does a training step cost over dense fine-tuning?"
    section = Section(f"training_step-{device.type}", question, COLUMNS, rows, _notes(options))
    report(section, options.output)


def _options() -> argparse.Namespace:
    asked = with_shapes(with_device(parser("A training step of every recipe over dense fine-tuning.")))
    asked.add_argument("--backbone", choices=SIZES, help="default: modernbert-base, on a CPU minilm")
    asked.add_argument("--only", default="", help="kinds of training whose name holds this, beside dense")
    asked.add_argument("--profile", action="store_true", help="print what takes the device's time")
    options = asked.parse_args()
    options.backbone = options.backbone or ("modernbert-base" if options.device.type == "cuda" else "minilm")
    return options


def measured(stepping: Iterator[None], device: torch.device) -> Cost:
    """Steps one by one, then in a row."""

    def step() -> None:
        next(stepping)

    for _ in range(WARM_UP[device.type]):
        step()
    count, many = STEPS[device.type], IN_A_ROW[device.type]
    held = torch.cuda.memory_allocated(device) if device.type == "cuda" else 0
    peak = held + peak_bytes(step, device)
    single = statistics.median(seconds_of(step, device) for _ in range(count))
    start = now(device)
    for _ in range(many):
        step()
    return Cost(single, (now(device) - start) / many, peak)


def profiled(stepping: Iterator[None], device: torch.device) -> str:
    """Operations by the device's own time, and how often a step makes the host wait."""
    kinds = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    with profile(activities=kinds) as recorded:
        for _ in range(PROFILED):
            next(stepping)
        now(device)
    averages = recorded.key_averages()
    table: str = averages.table(sort_by=f"self_{device.type}_time_total", row_limit=TOP)
    waits = {
        name: sum(event.count for event in averages if event.key.startswith(name)) / PROFILED
        for name in ("cudaStreamSynchronize", "cudaDeviceSynchronize", "Memcpy DtoH", "Memcpy HtoD")
    }
    return f"{table}\na step: " + ", ".join(f"{name} {count:g}" for name, count in waits.items())


@torch.no_grad()
def _words(trainer: Trainer) -> list[object]:
    """Open words of a text, pairs that training keeps of it, and the largest residual."""
    model, rows = trainer.model, trainer.train
    if not isinstance(model, LexicalSAE):
        return ["", "", ""]
    batch, fitter = rows.batch(list(range(trainer.batch_size))), IdentityFitter()
    with optim.autocast(rows.device, trainer.settings.precision):
        kept = decide(model, batch, rows.top_words(batch)).rows
        model.eval()
        state = decide(model, batch, rows.top_words(batch))
    fitter.update(compute_attribution_tensor(state, state.logits.argmax(-1)))
    pairs = len(kept.row_P) / kept.n_rows
    residual = f"{fitter.result().max_relative_residual:.1e}"
    return [round(float(state.rows.active_N.mean())), round(pairs), residual]


def _notes(options: argparse.Namespace) -> Sequence[str]:
    kind = options.device.type
    precision = "bf16 autocast" if kind == "cuda" else "float32"
    looks = ", one look at held-out rows included" if kind == "cuda" else ""
    memory = (
        "Peak: all tensors on the GPU, the frozen LM, weights and moments too."
        if kind == "cuda"
        else "Peak: what a step holds beyond weights and moments."
    )
    return [
        f"{options.backbone} with random weights, {precision}, attention sdpa, random texts without padding, "
        f"5 classes, seed 0; thresholds where about {WORDS} words of a text are open, learning rates next to "
        "0, so that these stay open.",
        f"Step: median of {STEPS[kind]}, each waited for; in a row: mean of {IN_A_ROW[kind]} more without a "
        f"wait{looks}; {WARM_UP[kind]} of warm-up. Constrained phase, τ = 1.",
        f"{memory} The frozen LM's words are read from disk; what it costs to write them is the row of its "
        "own (ms for as many texts as a step has).",
        "[B, L, V]: the same loss through `forward` and `classify`. Open: words of a text in evaluation; "
        "pairs: (text, word) pairs that training keeps of a text, near misses included; residual: largest "
        "relative one of the predicted class, against float64.",
    ]


def _over(value: float, base: float | None) -> str:
    return f"{value / base:.2f}" if base else "–"


if __name__ == "__main__":
    main()
