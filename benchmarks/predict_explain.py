"""What does an explained prediction cost over a dense one?

1. Backbones with random weights and, of each, a model of every honesty mode that opens 100 words a text.
2. Dense: the backbone and a linear head over the mean of h. Explained: what every open word adds to the
   predicted class's logit, divided among the positions it was read at, as tensors.
3. All of one shape are timed in turn. Then the largest residual, and what a decision of 64 texts weighs.

    python benchmarks/predict_explain.py --device cuda --output docs/results/performance.md

Legend: B documents, V words, C classes.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, TypeVar

import torch
from measure import interleaved_seconds, peak_bytes, ratio
from models import SIZES, Batch, config_of, full_batch, lexicon_of, model_of, sized_backbone, to
from table import Section, Shape, attempt, parser, report, shapes, with_device, with_shapes
from torch import Tensor

from splade.evaluation.identity import IdentityFitter
from splade.mechanistic.attribution import compute_active_slice_weff, compute_attribution_tensor
from splade.models.backbone import Backbone
from splade.models.dense import DenseModel
from splade.models.lexical_sae import LexicalSAE
from splade.models.lexicon import HONESTY_MODES
from splade.models.state import CircuitState

WORDS, QUICK_WORDS = 100, 10  # open in a text
ROUNDS = {"cpu": 7, "cuda": 30}
WEIGHED = 64  # texts of the decision that is weighed
BARS = {"free": 1.10, "grounded": 1.10, "licensed-static": 1.05}
DENSE = ("", "dense")
COLUMNS = (
    "backbone", "texts × tokens", "dictionary", "path", "ms", "× dense", "bar", "× with decoder", "MiB",
    "open", "residual",
)  # fmt: skip

Key = tuple[str, str]  # honesty, path
Result = TypeVar("Result")


@dataclass(frozen=True)
class Bench:
    """A backbone, a batch, and models of them all on one device."""

    dense: DenseModel
    models: dict[str, LexicalSAE]
    batch: Batch

    @property
    def device(self) -> torch.device:
        """Where it runs."""
        return self.batch[0].device

    def paths(self) -> dict[Key, Callable[[], object]]:
        """Everything that is timed."""
        dense, batch = self.dense, self.batch
        runs: dict[Key, Callable[[], object]] = {
            DENSE: lambda: dense.decide(dense.encode(*batch)),
            ("", "backbone + decoder"): lambda: dense.backbone.logits(*batch),
        }
        for honesty, model in self.models.items():
            runs[honesty, "predict"] = partial(decided, model, batch)
            runs[honesty, "predict + explain"] = partial(explained, model, batch)
        runs["free", "the same through [B, L, V]"] = partial(materialised, self.models["free"], batch)
        return {key: partial(in_half, self.device, run) for key, run in runs.items()}


def main() -> None:
    """Measure, print, and write if asked to."""
    asked = with_shapes(with_device(parser("An explained prediction over a dense one.")))
    asked.add_argument("--backbone", choices=SIZES, nargs="+", help="default: all, on a CPU minilm")
    options = asked.parse_args()
    on_gpu = options.device.type == "cuda"
    rows: list[Sequence[object]] = []
    notes = _notes(options)
    for size in options.backbone or (tuple(SIZES) if on_gpu else ("minilm",)):
        for shape in shapes(options):
            if size != "modernbert-base" and shape.length > 512:
                continue  # their position tables end there
            rows += _guarded(size, shape, options, notes)
    question = "What does an explained prediction cost over a dense one?"
    report(Section(f"predict_explain-{options.device.type}", question, COLUMNS, rows, notes), options.output)


def _guarded(
    size: str, shape: Shape, options: argparse.Namespace, notes: list[str]
) -> list[Sequence[object]]:
    """The rows of one backbone and shape, or the one that says why there are none."""
    found: list[Sequence[object]] = []

    def measure() -> list[object]:
        found.extend(_measured(size, shape, options, notes))
        return []

    failed = attempt((size, str(shape)), COLUMNS, measure)
    return found or [failed]


def _measured(
    size: str, shape: Shape, options: argparse.Namespace, notes: list[str]
) -> list[Sequence[object]]:
    """The rows of one backbone and shape; a path that fails has a row that says why."""
    device = options.device
    torch.manual_seed(0)
    bench = _bench(sized_backbone(size, options.quick, shape.length), shape, device, options.quick)
    runs, failed = bench.paths(), []
    for key, run in list(runs.items()):
        row = attempt((size, str(shape), *key), COLUMNS, partial(_tried, run))
        if len(row) > 4:
            failed.append(row)
            del runs[key]
    seconds = interleaved_seconds(runs, ROUNDS[device.type], device=device)
    names = size, str(shape)
    shown = [attempt((*names, *key), COLUMNS, partial(_row, bench, key, runs[key], seconds)) for key in runs]
    notes.append(f"{size}, {shape}: {in_half(device, _weight, bench)}")
    return [*shown, *failed]


def _tried(run: Callable[[], object]) -> list[object]:
    run()
    return []


@torch.no_grad()
def in_half(device: torch.device, run: Callable[..., Result], *arguments: Any) -> Result:
    """The run without gradients, on a GPU under bf16 autocast, which forgets its copies of weights after."""
    with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
        return run(*arguments)


def _bench(backbone: Backbone, shape: Shape, device: torch.device, quick: bool) -> Bench:
    batch = full_batch(backbone.vocab_size, shape.texts, shape.length)
    few = batch[0][:16], batch[1][:16]
    dense = DenseModel(config_of(backbone), backbone).to(device).eval()
    models: dict[str, LexicalSAE] = {}
    for honesty in HONESTY_MODES:
        config = config_of(backbone, honesty=honesty)
        lexicon = lexicon_of(config, backbone.vocab_size)
        words = QUICK_WORDS if quick else WORDS
        models[honesty] = model_of(config, backbone, lexicon, few, words, device)
    return Bench(dense, models, to(batch, device))


def decided(model: LexicalSAE, batch: Batch) -> CircuitState:
    """Sparse rows, then the decision over them."""
    return model.decide(model.encode(*batch))


def explained(model: LexicalSAE, batch: Batch) -> Tensor:
    """Of the predicted class, what every word adds, by the position it was read at."""
    state = decided(model, batch)
    return compute_attribution_tensor(state, state.logits.argmax(-1)).by_read


def materialised(model: LexicalSAE, batch: Batch) -> Tensor:
    """The same words' contributions from [B, L, V] and W_eff [B, C, V]."""
    state = model.classify(model(*batch)[0], batch[1])
    row_N = torch.arange(len(state.logits), device=batch[0].device)
    return state.sparse_vector * state.W_eff[row_N, state.logits.argmax(-1)]


def _row(bench: Bench, key: Key, run: Callable[[], object], seconds: dict[Key, list[float]]) -> list[object]:
    honesty, path = key
    taken, explains = seconds[key], path == "predict + explain"
    beside = [
        f"{ratio(taken, seconds[base]):.2f}" if base in seconds else "–"
        for base in (DENSE, ("", "backbone + decoder"))
    ]
    bar = f"{BARS[honesty]:.2f}" if explains and honesty in BARS else ""
    peak = round(peak_bytes(run, bench.device) / 2**20)
    model = bench.models.get(honesty)
    words = in_half(bench.device, _words, model, bench.batch) if explains else ["", ""]
    return [f"{1e3 * statistics.median(taken):,.1f}", beside[0], bar, beside[1], peak, *words]


def _words(model: LexicalSAE, batch: Batch) -> list[object]:
    """Open words of a text, and the largest residual."""
    state, fitter = decided(model, batch), IdentityFitter()
    fitter.update(compute_attribution_tensor(state, state.logits.argmax(-1)))
    residual = f"{fitter.result().max_relative_residual:.1e}"
    return [round(float(state.rows.active_N.mean())), residual]


def _weight(bench: Bench) -> str:
    """What a decision and its effective weights weigh on the open words, and as dense views."""
    model = bench.models["free"]
    repeats = -(-WEIGHED // len(bench.batch[0]))
    ids_BL, mask_BL = (part.repeat(repeats, 1)[:WEIGHED] for part in bench.batch)
    state = decided(model, (ids_BL, mask_BL))
    kept = [getattr(state.rows, field.name) for field in fields(state.rows)]
    tensors = [part for part in kept if isinstance(part, Tensor)]
    tensors += [state.logits, *compute_active_slice_weff(state)]
    sparse = sum(tensor.nbytes for tensor in tensors)
    dense = 4 * WEIGHED * (1 + state.head.classes) * state.rows.vocab_size
    return (
        f"the decision of {WEIGHED} texts, with W_eff on all their open words, weighs "
        f"{sparse / 2**20:.1f} MiB; s [B, V] and W_eff [B, C, V] {dense / 2**20:.1f} MiB."
    )


def _notes(options: argparse.Namespace) -> list[str]:
    precision = "bf16 autocast" if options.device.type == "cuda" else "float32"
    return [
        f"Random weights, {precision}, attention sdpa, random texts without padding, 5 classes, seed 0; "
        f"thresholds open about {WORDS} words a text. A grounded model predicts as a free one does.",
        f"ms: median of {ROUNDS[options.device.type]} interleaved rounds; ratios: medians over rounds of the "
        "quotient. MiB: tensors held at once beyond weights. Residual: the largest relative one, in float64.",
    ]


if __name__ == "__main__":
    main()
