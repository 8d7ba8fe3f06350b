"""Is every logit the sum it claims to be, in float32, whatever masked LM gave the words?

1. Every backbone family with random weights at realistic shapes (4 layers), and the embedded backbone.
2. 64 random texts each (the embedded backbone reads 64 generated reviews), both tasks, both heads.
3. The predicted class's logit, recomputed in float64, against Σ contributions + bias as float32 gave them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import torch
from models import (
    FAMILIES,
    Batch,
    config_of,
    lexicon_of,
    model_of,
    random_backbone,
    random_batch,
    review_batch,
)
from table import Section, arguments, report
from transformers import PreTrainedTokenizerBase

from splade.evaluation.identity import Identity, IdentityFitter
from splade.mechanistic.attribution import compute_attribution_tensor
from splade.models.backbone import EMBEDDED, Backbone, load_backbone
from splade.models.lexical_sae import LexicalSAE

TEXTS, QUICK_TEXTS, LENGTH, AT_ONCE = 64, 8, 32, 8
TASKS, HEADS = ("classification", "tagging"), ("relu_mlp", "bcos")
OPEN_WORDS = {"classification": 100, "tagging": 30}  # of a row, about
COLUMNS = (
    "backbone", "H", "V", "task", "head", "rows", "words a row",
    "dla max", "dla mean", "path max", "path mean", "abs max",
)  # fmt: skip


@dataclass(frozen=True)
class Source:
    """A backbone with texts for it."""

    backbone: Backbone
    batch: Batch
    tokenizer: PreTrainedTokenizerBase | None = None


@dataclass(frozen=True)
class Result:
    """Residuals of one backbone, task and head."""

    names: tuple[object, ...]
    rows: int
    words: float
    dla: Identity
    path: Identity

    @property
    def largest(self) -> float:
        """The larger of the two methods' largest relative residuals."""
        return max(self.dla.max_relative_residual, self.path.max_relative_residual)

    def cells(self) -> list[object]:
        """Its row of the table."""
        both = (self.dla, self.path)
        relative = [x for i in both for x in (i.max_relative_residual, i.mean_relative_residual)]
        absolute = max(i.max_abs_error for i in both)
        shown = [f"{value:.1e}" for value in (*relative, absolute)]
        return [*self.names, self.rows, round(self.words), *shown]


def main() -> None:
    """Measure, print, and write if asked to."""
    options = arguments("Identity residual of every backbone family.")
    torch.manual_seed(0)
    report(_section([r for source in _sources(options.quick) for r in _results(source)]), options.output)


def _sources(quick: bool) -> Iterator[Source]:
    """One backbone at a time, so that only one is in memory."""
    for family in FAMILIES:
        backbone = random_backbone(family, quick)
        yield Source(backbone, random_batch(backbone.vocab_size, QUICK_TEXTS if quick else TEXTS, LENGTH))
    if not quick:
        backbone, tokenizer = load_backbone()
        yield Source(backbone.eval(), review_batch(tokenizer, TEXTS, LENGTH), tokenizer)


def _section(results: list[Result]) -> Section:
    worst = max(results, key=lambda result: result.largest)
    notes = [
        f"Largest relative residual: {worst.largest:.1e} ({', '.join(map(str, worst.names))}).",
        "dla and path: |logit - Σa - b| / (|logit| + Σ|a| + |b|) for the predicted class of each row, "
        "the logit recomputed in float64; abs max: the largest |logit - Σa - b| of the two.",
        "H: width of what enters the decoder; V: rows of the decoder; a row is a text, or a token of one.",
        f"Random weights in 4 layers, {TEXTS} random texts of {LENGTH // 4} to {LENGTH} tokens; "
        f"{EMBEDDED}: its own weights, {TEXTS} generated reviews cut at {LENGTH} tokens. "
        "Random heads with biases; seed 0.",
    ]
    question = "Is every logit its sum of words, in float32, on every backbone family?"
    return Section("families", question, COLUMNS, [result.cells() for result in results], notes)


def _results(source: Source) -> Iterator[Result]:
    backbone = source.backbone
    few = (source.batch[0][:AT_ONCE], source.batch[1][:AT_ONCE])
    for task, head in product(TASKS, HEADS):
        config = config_of(backbone, task=task, head=head)
        lexicon = lexicon_of(config, backbone.vocab_size, source.tokenizer)
        model = model_of(config, backbone, lexicon, few, OPEN_WORDS[task])
        names = (backbone.name, *reversed(backbone.E_VH.shape), task, head)
        yield _measure(model, source.batch, names)


@torch.no_grad()
def _measure(model: LexicalSAE, batch: Batch, names: tuple[object, ...]) -> Result:
    dla, path, active = IdentityFitter(), IdentityFitter(), []
    for ids, mask in zip(*(torch.split(part, AT_ONCE) for part in batch), strict=True):
        labelled = model.lexicon.valid(ids, mask) if model.config.task == "tagging" else None
        state = model.decide(model.encode(ids, mask, labelled))
        classes = state.logits.argmax(-1)
        dla.update(compute_attribution_tensor(state, classes, "dla"))
        path.update(compute_attribution_tensor(state, classes, "path"))
        active.append(state.rows.active_N)
    active_N = torch.cat(active)
    return Result(names, len(active_N), float(active_N.mean()), dla.result(), path.result())


if __name__ == "__main__":
    main()
