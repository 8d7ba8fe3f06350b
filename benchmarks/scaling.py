"""How does the vocabulary head grow with length, vocabulary, batch and classes?

1. h is given, so nothing but the head runs: scan, exact logits, gate, decision, contributions.
2. One size varies at a time. A line is flat in what it does not depend on, and beside the matrix product that
   it cannot do without it should keep its distance.

    python benchmarks/scaling.py --device cuda --output docs/results/performance.md
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch
from measure import interleaved_seconds, peak_bytes, product, ratio
from models import full_batch, head_alone, to
from table import Section, attempt, parser, report, with_device

from splade.mechanistic.attribution import compute_attribution_tensor

ROUNDS = {"cpu": 5, "cuda": 20}
WORDS, QUICK_WORDS = 100, 10  # open in a text
COLUMNS = (
    "varied", "texts", "tokens", "V", "classes", "open", "encode ms", "× product", "decide + explain ms",
    "MiB",
)  # fmt: skip


@dataclass(frozen=True)
class Sizes:
    """Everything that the head's cost depends on."""

    B: int
    L: int
    V: int
    C: int
    H: int


BASE = {
    "quick": Sizes(B=2, L=16, V=800, C=3, H=32),
    "cpu": Sizes(B=4, L=64, V=30_522, C=5, H=384),
    "cuda": Sizes(B=8, L=512, V=50_368, C=5, H=768),
}
VARIED: dict[str, dict[str, tuple[int, ...]]] = {
    "quick": {"L": (8, 16), "C": (2, 20)},
    "cpu": {"L": (32, 64, 128, 256), "V": (30_522, 61_044), "B": (1, 4, 16), "C": (2, 20, 200)},
    "cuda": {
        "L": (128, 512, 2048, 8192),
        "V": (30_522, 50_368, 131_072, 262_144),
        "B": (1, 8, 32, 128),
        "C": (2, 20, 200),
    },
}


def main() -> None:
    """Measure, print, and write if asked to."""
    options = with_device(
        parser("The vocabulary head's cost by length, vocabulary, batch and classes.")
    ).parse_args()
    preset = "quick" if options.quick else options.device.type
    rows = [
        attempt((name, sizes.B, sizes.L, sizes.V, sizes.C), COLUMNS, partial(measured, sizes, options))
        for name, sizes in varied(preset)
    ]
    question = "How does the vocabulary head grow with length, vocabulary, batch and classes?"
    section = Section(
        f"scaling-{options.device.type}", question, COLUMNS, rows, _notes(options, BASE[preset])
    )
    report(section, options.output)


def varied(preset: str) -> Iterator[tuple[str, Sizes]]:
    """The base with one size changed at a time."""
    for name, values in VARIED[preset].items():
        for value in values:
            yield name, replace(BASE[preset], **{name: value})


@torch.no_grad()
def measured(sizes: Sizes, options: argparse.Namespace) -> list[object]:
    """The cells of one row after its sizes."""
    torch.manual_seed(0)
    device, on_gpu = options.device, options.device.type == "cuda"
    h_BLH = torch.randn(sizes.B, sizes.L, sizes.H, device=device)
    model = head_alone(h_BLH, sizes.V, QUICK_WORDS if options.quick else WORDS, sizes.C)
    batch = to(full_batch(sizes.V, sizes.B, sizes.L), device)
    low = torch.bfloat16 if on_gpu else torch.float32
    h_NH, E_VH = h_BLH.flatten(0, 1).to(low), model.backbone.E_VH.detach().to(low)
    with torch.autocast(device.type, torch.bfloat16, enabled=on_gpu):
        rows = model.encode(*batch)

        def explain() -> None:
            state = model.decide(rows)
            _ = compute_attribution_tensor(state, state.logits.argmax(-1)).by_read

        runs: dict[str, Callable[[], object]] = {
            "product": partial(product, h_NH, E_VH),
            "encode": partial(model.encode, *batch),
            "explain": explain,
        }
        seconds = interleaved_seconds(runs, ROUNDS[device.type], device=device)
        peak = peak_bytes(runs["encode"], device) / 2**20
    ms = {name: f"{1e3 * statistics.median(taken):,.2f}" for name, taken in seconds.items()}
    beside = f"{ratio(seconds['encode'], seconds['product']):.2f}"
    return [round(float(rows.active_N.mean())), ms["encode"], beside, ms["explain"], round(peak)]


def _notes(options: argparse.Namespace, base: Sizes) -> list[str]:
    kind = options.device.type
    return [
        f"h random, H = {base.H}, {'bf16 autocast' if kind == 'cuda' else 'float32'}, free dictionary, no "
        f"padding, seed 0; thresholds open about {WORDS} words a text.",
        f"Medians of {ROUNDS[kind]} interleaved rounds; × product: by h Eᵀ alone. Encode: from h to sparse "
        "rows. MiB: tensors held at once in it, beyond h and the weights.",
    ]


if __name__ == "__main__":
    main()
