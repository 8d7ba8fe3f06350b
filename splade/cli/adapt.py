"""The verb `adapt`: train a masked LM on raw text."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from splade.cli.files import emit_one, whole_file
from splade.cli.streams import progress, say, screen
from splade.errors import ConfigError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from splade.data.tokens import Ids, Source
    from splade.models.backbone import Backbone
    from splade.training.adapt import Adapted
    from splade.training.adapt_settings import Settings

DESCRIPTION = "Train a masked LM on raw text: fit it to a domain, or give an encoder the head it lacks."
EXAMPLES = """
  lexical-sae adapt --data articles --steps 2000 --output adapted
  lexical-sae adapt --data notes.jsonl.xz --text body --model distilbert-base-uncased --output adapted
  lexical-sae adapt --data corpus.tar.xz --prepare corpus.npy
  lexical-sae adapt --data corpus.npy --seconds 300 --tokens-per-step 65536 --compile --output adapted
  lexical-sae train --model adapted --data tickets.csv"""
_STEPS = 1000


def options(add: Callable[..., object]) -> None:
    """Declare the options of `adapt`."""
    add(
        "--data", type=Path, required=True, metavar="PATH", help="raw text: file, folder, tar; or ids in .npy"
    )
    add("--text", metavar="COLUMN", help="text column of .jsonl, .csv, .tsv, .parquet (guessed)")
    add("--model", metavar="NAME", help="encoder: embedded name (default), folder or hub id")
    add("--output", type=Path, metavar="FOLDER", help="the trained masked LM, with adapt.json")
    add(
        "--steps",
        type=int,
        metavar="N",
        help=f"steps to take (default: {_STEPS}, or as many as --seconds allow)",
    )
    add("--seconds", type=float, metavar="S", help="time to train for; the learning rate falls with it")
    add(
        "--lengths",
        type=_numbers,
        metavar="N,N",
        help="window lengths (default: 128 and the longest up to 512)",
    )
    add("--shares", type=_numbers, metavar="X,X", help="of the tokens for each length (default: equal)")
    add("--tokens-per-step", type=int, default=16_384, metavar="N", help="default: 16384")
    add("--rate", type=float, default=0.25, metavar="X", help="share of tokens masked (default: 0.25)")
    add("--learning-rate", type=float, metavar="X", help="highest (default: 6e-4 (384 / hidden size)²)")
    add("--apart", action="store_true", help="no window holds text of two documents (default: windows may)")
    add("--held-out", type=Path, metavar="PATH", help="text to measure on (default: the first of --data)")
    add("--held-out-tokens", type=int, default=65_536, metavar="N", help="at most (default: 65536)")
    add("--compile", action="store_true", help="compile the encoder: pays on a GPU after a minute")
    add("--half", action="store_true", help="store the result in float16")
    add("--checkpoint-seconds", type=float, default=300.0, metavar="S", help="time between checkpoints: 300")
    add("--resume", action="store_true", help="go on from the last checkpoint of this --output")
    add("--seed", type=int, default=0, metavar="N", help="of every random choice (default: 0)")
    add("--prepare", type=Path, metavar="FILE.npy", help="only write the token ids of --data there")
    add("--json", action="store_true", help="all figures as JSON")


def adapt(options: argparse.Namespace) -> int:
    """Train on raw text, measure before and after, and save."""
    from splade.models.backbone import EMBEDDED, load_mlm, load_tokenizer

    name = options.model or EMBEDDED
    if (options.output is None) == (options.prepare is None):
        raise ConfigError("give --output FOLDER to train, or --prepare FILE.npy to write token ids")
    tokenizer = load_tokenizer(name)
    if options.prepare:
        return _prepare(options, tokenizer)
    checkpoints = _checkpoints(options)
    backbone, _ = load_mlm(name)  # a head that is missing is what this verb gives
    backbone.check_decoder()
    settings = _settings(options, backbone)
    source, held_out = _data(options, tokenizer)
    from splade.pipelines import environment
    from splade.training.adapt import adapt as train
    from splade.training.adapt import save_adapted
    from splade.training.fit import device

    backbone.to(device())
    found = train(backbone, tokenizer, source, held_out, settings, progress(), checkpoints)
    record = {
        **asdict(found),
        "held_out": str(options.held_out or options.data),
        "environment": environment(),
    }
    save_adapted(backbone, tokenizer, options.output, record, options.half)
    checkpoints.clear()
    _show(options, found, record)
    return 0


def _prepare(options: argparse.Namespace, tokenizer: PreTrainedTokenizerBase) -> int:
    from splade.data.tokens import prepare_tokens

    if options.prepare.suffix != ".npy":
        raise ConfigError(f"{options.prepare}: token ids are written as .npy; name the file so")
    with whole_file(options.prepare) as fresh:
        total = prepare_tokens(options.data, tokenizer, fresh, options.text)
    place = shlex.quote(str(options.prepare))
    say(f"{total:,} tokens; next: lexical-sae adapt --data {place} --output FOLDER")
    return 0


def _checkpoints(options: argparse.Namespace) -> Any:
    """Where the states of a run are kept until its folder is written."""
    from splade.models.saving import require_place
    from splade.training.checkpoint import Checkpoints

    require_place(options.output)
    kept = Checkpoints.beside(options.output)
    if not options.resume and kept.folder.exists():
        raise ConfigError(f"{kept.folder} holds an unfinished run: add --resume to go on, or remove it")
    return kept


def _settings(options: argparse.Namespace, backbone: Backbone) -> Settings:
    from splade.training.adapt_settings import Settings

    longest = min(512, backbone.max_length)
    lengths = tuple(int(length) for length in options.lengths or sorted({min(128, longest), longest}))
    steps = options.steps if options.steps or options.seconds else _STEPS
    return Settings(
        backbone.name,
        str(options.data),
        lengths,
        tuple(options.shares or [1.0] * len(lengths)),
        steps=steps,
        seconds=options.seconds,
        tokens_per_step=options.tokens_per_step,
        rate=options.rate,
        learning_rate=options.learning_rate,
        joined=not options.apart,
        compile=options.compile,
        seed=options.seed,
        checkpoint_seconds=options.checkpoint_seconds,
    )


def _data(options: argparse.Namespace, tokenizer: PreTrainedTokenizerBase) -> tuple[Source, Ids]:
    """What to train on and what to measure on, which is never trained on."""
    from splade.data.tokens import open_source, read_tokens

    if options.held_out_tokens < 1:
        raise ConfigError(f"--held-out-tokens is {options.held_out_tokens}; give a number from 1")
    source = open_source(options.data, options.text, tokenizer)
    if options.held_out is None:
        return source, source.hold_out(options.held_out_tokens)
    return source, read_tokens(options.held_out, options.text, tokenizer, options.held_out_tokens)


def _show(options: argparse.Namespace, found: Adapted, record: dict[str, Any]) -> None:
    from splade.render.terminal import table

    if options.json:
        emit_one(record)
    else:
        rows = []
        for before, after in zip(found.before, found.after, strict=True):
            for old, new in zip(before.buckets, after.buckets, strict=True):
                rows.append(
                    [str(before.length), f"{old.first} to {old.last}", f"{old.loss:.3f}", f"{new.loss:.3f}"]
                )
        table(screen(), "held-out loss", ["window", "positions", "before", "after"], rows)
        filled = [
            [old.text, ", ".join(old.words), ", ".join(new.words)]
            for old, new in zip(found.samples_before, found.samples_after, strict=True)
        ]
        table(screen(), "likeliest words", ["sentence", "before", "after"], filled)
    place = shlex.quote(str(options.output))
    say(f"the masked LM is in {place}; next: lexical-sae train --model {place} --data FILE")


def _numbers(text: str) -> list[float]:
    """Numbers with commas between them."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not numbers with commas between them") from None
