"""The verb `edit`: remove words from a model or weigh them, list and undo that, and certify a removal."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from splade.cli.files import emit_one, write_text
from splade.cli.streams import say, screen
from splade.errors import ConfigError

if TYPE_CHECKING:
    from torch import Tensor

    from splade.data.rows import Sentences, Texts
    from splade.models.edits import Edit
    from splade.models.lexical_sae import LexicalSAE

DESCRIPTION = "Edit a model: remove words for good or weigh them, undo that, certify a removal."
EXAMPLES = """
  lexical-sae edit model --remove boston --reason "a city is no reason"
  lexical-sae edit model --scale service=0.5 --reason "counts too much"
  lexical-sae edit model --list
  lexical-sae edit model --undo 1
  lexical-sae edit model --certificate removal.html --data test.csv"""


def options(add: Callable[..., object]) -> None:
    """Declare the options of `edit`."""
    add("model", type=Path, metavar="MODEL", help="a model folder; it is changed in place")
    add("--remove", nargs="+", metavar="WORD", help="words that shall be 0 for every input")
    add(
        "--scale",
        nargs="+",
        type=_scaled,
        metavar="WORD=X",
        help="words whose activations shall count X times (1: as they are)",
    )
    add("--reason", default="", metavar="TEXT", help="why, for the journal")
    add("--list", action="store_true", help="show the journal of edits (the default)")
    add("--undo", type=int, metavar="N", help="take back edit N of the journal")
    add(
        "--certificate",
        type=Path,
        metavar="FILE.html",
        help="attack and measure the removal; figures go to FILE.json",
    )
    add("--data", metavar="PATH", help="rows to measure the removal on: file, folder or embedded corpus")
    add("--text", metavar="COLUMN", help="text column (guessed from common names)")
    add("--label", metavar="COLUMN", help="label column (guessed from common names)")
    add("--json", action="store_true", help="the journal as JSON")


def edit(options: argparse.Namespace) -> int:
    """Change the journal of a model, or show it."""
    _require(options)
    from splade.models.lexical_sae import LexicalSAE

    model = LexicalSAE.from_pretrained(options.model)
    rows = _rows(options, model)
    if options.undo is not None or options.remove or options.scale:
        _change(options, model)
    holds = _certify(options, model, rows) if options.certificate else True
    if options.list or options.json or not (options.remove or options.scale or options.certificate):
        _show(options, model)
    return 0 if holds else 1


def _require(options: argparse.Namespace) -> None:
    changes = bool(options.remove or options.scale)
    if options.undo is not None and (changes or options.certificate):
        raise ConfigError("--undo stands alone: take back first, then edit or certify")
    if options.undo is not None and options.undo < 1:
        raise ConfigError(f"--undo {options.undo}: give the number of an edit, as --list shows it")
    if options.reason and not changes:
        raise ConfigError("--reason goes with --remove or --scale: say what to edit")
    if options.certificate and options.certificate.suffix != ".html":
        raise ConfigError(f"{options.certificate}: the certificate is a page; name it .html")
    if options.data and not options.certificate:
        raise ConfigError("--data is what a removal is measured on: add --certificate FILE.html")
    if not options.model.is_dir():
        raise ConfigError(f"{options.model} is no folder: give the folder `train` wrote")


def _change(options: argparse.Namespace, model: LexicalSAE) -> None:
    from splade.intervene import apply, undo
    from splade.models.saving import save_edits

    if options.undo is not None:
        say(f"took back edit {options.undo}: {_told(undo(model, options.undo))}")
        save_edits(model, options.model)
        return
    made = [apply(model, "remove", options.remove, reason=options.reason)] if options.remove else []
    for word, factor in options.scale or ():
        made.append(apply(model, "scale", [word], factor, options.reason))
    changes = [entry for entry in made if entry is not None]
    if not changes:
        say("nothing changed: the model is as asked already")
        return
    save_edits(model, options.model)
    for entry in changes:
        say(_told(entry))
    if options.remove:
        _propose(options, model)


def _propose(options: argparse.Namespace, model: LexicalSAE) -> None:
    from splade.intervene.closure import propose

    related = [proposal.word for proposal in propose(model, options.remove, most=8)]
    if related:
        say(f"still in use and related: {', '.join(related)}; to remove some too, run --remove again")


def _certify(options: argparse.Namespace, model: LexicalSAE, rows: Texts | Sentences | None) -> bool:
    """Write the certificate, and answer whether the removal holds."""
    from splade.intervene.certificate import certify
    from splade.report.certificate import certificate_page

    found = certify(model, rows, _pretrained(model))
    values = found.to_dict()
    write_text(options.certificate, certificate_page(values))
    figures = json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(options.certificate.with_suffix(".json"), figures + "\n")
    if not found.holds:
        say("error: an attack moved a removed word: see the certificate, and do not use this model")
    return found.holds


def _pretrained(model: LexicalSAE) -> Tensor | None:
    """The decoder as it was before supervised training, where it can be found."""
    import warnings

    from splade.evaluation.frozen import find_frozen

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the page says which decoder it shows
        frozen = find_frozen(model)
    return None if frozen is None else frozen.backbone.E_VH


def _rows(options: argparse.Namespace, model: LexicalSAE) -> Texts | Sentences | None:
    """The test rows of --data, or its only ones."""
    if not options.data:
        return None
    from splade.pipelines import rows_for

    return rows_for(model, options.data, options.text, options.label)[1]


def _show(options: argparse.Namespace, model: LexicalSAE) -> None:
    from splade.render.terminal import table

    edits = model.lexicon.edits
    if options.json:
        emit_one({"edits": [entry.model_dump() for entry in edits]})
        return
    if not edits:
        place = shlex.quote(str(options.model))
        say(f"no edits yet; to remove a word: lexical-sae edit {place} --remove WORD --reason WHY")
        return
    rows = [_line(number, entry) for number, entry in enumerate(edits, 1)]
    table(screen(), "", ["edit", "what", "reason", "time", "model after"], rows)


def _line(number: int, entry: Edit) -> list[Any]:
    return [str(number), _told(entry), entry.reason, entry.time, entry.hash_after[:12]]


def _told(entry: Edit) -> str:
    """An edit in a few words."""
    words = ", ".join(entry.words)
    return f"removed {words}" if entry.factor is None else f"scaled {words} by {entry.factor:g}"


def _scaled(text: str) -> tuple[str, float]:
    """`WORD=X` as its parts."""
    word, equals, factor = text.rpartition("=")
    if not (word and equals):
        raise argparse.ArgumentTypeError(f"{text}: write WORD=X, for example service=0.5")
    return word, float(factor)
