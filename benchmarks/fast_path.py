"""What does the fast path cost beside the tensor interface, on a CPU, in time and in memory?

1. One backbone, one batch, and a model of each honesty mode that opens about 100 words a text.
2. Forward in evaluation mode without gradients; then forward + backward in training mode.
3. What is compared: `paths.py`. How time and memory are taken: `measure.py`.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from functools import partial

import torch
from measure import interleaved_seconds, peak_bytes, ratio
from models import Batch, config_of, lexicon_of, model_of, random_backbone, random_batch, review_batch
from paths import BASE, Key, Run, fast, paths, tensors
from table import Section, arguments, report

from splade.mechanistic.attribution import compute_attribution_tensor, residual
from splade.models.backbone import Backbone, load_backbone
from splade.models.lexical_sae import LexicalSAE
from splade.models.lexicon import HONESTY_MODES

HONESTY = tuple(mode for mode in HONESTY_MODES if mode != "licensed-contextual")
OPEN_WORDS = 100
JOINED = 12  # reviews a text, more than enough for its length
COLUMNS = (
    "dictionary", "path", "forward ms", "× base", "MiB", "fwd+bwd ms", "× base", "MiB",
)  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """How much is measured."""

    texts: int
    length: int
    rounds: int


@dataclass(frozen=True)
class Setup:
    """One backbone, one batch, and over them a model of each honesty mode."""

    backbone: Backbone
    batch: Batch
    models: dict[str, LexicalSAE]

    def train(self, mode: bool) -> None:
        """Training or evaluation mode of everything."""
        for model in self.models.values():
            model.train(mode)


def main() -> None:
    """Measure, print, and write if asked to."""
    options = arguments("The fast path beside the tensor interface, on a CPU.")
    torch.manual_seed(0)
    shape = Shape(4, 16, 3) if options.quick else Shape(16, 128, 9)
    setup = _setup(shape, options.quick)
    forward = _measure(setup, shape.rounds, backward=False)
    both = _measure(setup, shape.rounds, backward=True)
    rows = [[*key, *forward[key], *both[key]] for key in forward]
    notes = [*_checks(setup), *_conditions(setup, shape)]
    question = "What does the fast path cost beside the tensor interface, on a CPU?"
    report(Section("fast_path", question, COLUMNS, rows, notes), options.output)


def _setup(shape: Shape, quick: bool) -> Setup:
    if quick:
        backbone, tokenizer = random_backbone("bert", quick), None
        batch = random_batch(backbone.vocab_size, shape.texts, shape.length)
    else:
        backbone, tokenizer = load_backbone()
        batch = review_batch(tokenizer, shape.texts, shape.length, JOINED)
    models: dict[str, LexicalSAE] = {}
    for honesty in HONESTY:
        config = config_of(backbone, honesty=honesty)
        lexicon = lexicon_of(config, backbone.vocab_size, tokenizer)
        models[honesty] = model_of(config, backbone, lexicon, batch, OPEN_WORDS)
    return Setup(backbone, batch, models)


def _measure(setup: Setup, rounds: int, backward: bool) -> dict[Key, list[object]]:
    """Milliseconds, their ratio to the base, and MiB of every path."""
    setup.train(backward)
    named = paths(setup.backbone, setup.models, setup.batch)
    runs = {key: partial(_step if backward else _look, setup, run) for key, run in named.items()}
    seconds = interleaved_seconds(runs, rounds)
    return {
        key: [
            round(1000 * statistics.median(taken)),
            f"{ratio(taken, seconds[BASE]):.2f}",
            round(peak_bytes(runs[key]) / 2**20),
        ]
        for key, taken in seconds.items()
    }


def _look(_: Setup, run: Run) -> None:
    with torch.no_grad():
        run()


def _step(setup: Setup, run: Run) -> None:
    torch.autograd.backward(run())
    for model in setup.models.values():
        model.zero_grad(set_to_none=True)


@torch.no_grad()
def _checks(setup: Setup) -> list[str]:
    """That both ways compute the same, and exactly what they claim."""
    setup.train(False)
    notes = []
    for honesty, model in setup.models.items():
        state, twin = fast(model, setup.batch), tensors(model, setup.batch)
        words = float(state.rows.active_N.mean())
        apart = float((state.logits - twin.logits).abs().max() / state.logits.abs().max())
        exact = float(residual(compute_attribution_tensor(state, state.logits.argmax(-1))).max())
        notes.append(
            f"{honesty}: {words:.0f} open words a text; logits of the two ways differ by {apart:.1e} of the "
            f"largest; largest relative residual of an explanation {exact:.1e}."
        )
    return notes


def _conditions(setup: Setup, shape: Shape) -> list[str]:
    B, L = setup.batch[0].shape
    V, classes = setup.backbone.vocab_size, setup.models["grounded"].head.classes
    return [
        f"{setup.backbone.name}, {B} texts of up to {L} tokens, V = {V:,}, {classes} classes, float32, "
        "seed 0. Forward: evaluation mode, no gradients; fwd+bwd: training mode.",
        f"Times: medians of {shape.rounds} interleaved rounds after two of warm-up. Ratios: medians over "
        "rounds of the quotient by backbone + decoder.",
        "MiB: the most tensor memory held at once beyond the weights; gradients count.",
        "Explained: with what every active word adds to the predicted class, which is part of the loss.",
    ]


if __name__ == "__main__":
    main()
