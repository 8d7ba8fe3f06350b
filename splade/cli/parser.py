"""The verbs, their options and examples."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from splade import __version__
from splade.cli import adapt, compare, edit, verbs

EXAMPLES = {
    "demo": """
  lexical-sae demo
  lexical-sae demo --output my-demo --seed 1""",
    "train": """
  lexical-sae train --data reviews --output model
  lexical-sae train --data tickets.csv --text body --label team --epochs 4 --output model
  lexical-sae train --config run.yaml --set training.learning_rate=3e-4 --output model
  lexical-sae train --config run.yaml --output model --resume
  lexical-sae train --settings""",
    "adapt": adapt.EXAMPLES.rstrip(),
    "predict": """
  lexical-sae predict model "The staff were kind."
  lexical-sae predict model --input tickets.csv --text body --output labels.csv
  cat lines.txt | lexical-sae predict model --input - > labels.jsonl""",
    "explain": """
  lexical-sae explain model "The staff were kind."
  lexical-sae explain model --counterfactual "The staff were kind."
  lexical-sae explain model --input tickets.csv --text body --html why.html
  lexical-sae explain model --input lines.txt --json > why.jsonl""",
    "evaluate": """
  lexical-sae evaluate model --data test.csv
  lexical-sae evaluate model --data reviews --output measured""",
    "compare": compare.EXAMPLES.rstrip(),
    "edit": edit.EXAMPLES.rstrip(),
    "data": """
  lexical-sae data tickets.csv --text body --label team
  lexical-sae data reviews --reference
  lexical-sae data reviews --export reviews""",
    "doctor": """
  lexical-sae doctor
  lexical-sae doctor --json""",
}

Adder = Callable[..., object]


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of one verb, with the function to `run` on them."""
    parser = argparse.ArgumentParser(
        prog="lexical-sae",
        description="A text classifier and tagger whose every prediction is an exact sum of named words.",
        epilog="examples:\n  lexical-sae demo\n  lexical-sae train --help",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"lexical-sae {__version__}")
    subparsers = parser.add_subparsers(metavar="VERB", required=True)

    def verb(name: str, run: Callable[[argparse.Namespace], int], description: str) -> Adder:
        added = subparsers.add_parser(
            name,
            help=description.split(":")[0].rstrip("."),
            description=description,
            epilog=f"examples:{EXAMPLES[name]}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        added.set_defaults(run=run)
        return added.add_argument

    _demo(verb("demo", verbs.demo, "Train, explain and repair a small model: the whole tour in minutes."))
    _train(verb("train", verbs.train, "Train a model: on a file, a folder or an embedded corpus."))
    adapt.options(verb("adapt", adapt.adapt, adapt.DESCRIPTION))
    _predict(verb("predict", verbs.predict, "Label texts: JSON lines, CSV, Parquet or a table."))
    _explain(verb("explain", verbs.explain, "Explain predictions: the words that sum to each of them."))
    _evaluate(verb("evaluate", verbs.evaluate, "Measure a model: quality, exactness, honesty of its words."))
    compare.options(verb("compare", compare.compare, compare.DESCRIPTION))
    edit.options(verb("edit", edit.edit, edit.DESCRIPTION))
    _data(verb("data", verbs.data, "Describe a dataset: sizes, classes, lengths, leaks between splits."))
    _doctor(verb("doctor", verbs.doctor, "Check the installation: exit code 0 if all is well, else 1."))
    return _with_late_texts(parser, argv)


def _with_late_texts(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> argparse.Namespace:
    """Texts may stand after options too, which argparse by itself does not take."""
    options, rest = parser.parse_known_args(argv)
    late = rest[1:] if rest[:1] == ["--"] else rest
    if rest and (not hasattr(options, "texts") or (late == rest and any(t.startswith("-") for t in rest))):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if late:
        options.texts = [*options.texts, *late]
    return options


def _demo(add: Adder) -> None:
    add("--output", type=Path, default=Path("results/demo"), metavar="FOLDER", help="default: results/demo")
    add("--seed", type=int, default=0, metavar="N", help="default: 0")


def _train(add: Adder) -> None:
    add("--data", metavar="PATH", help="a file, a folder with train.*, or reviews (default), topics, tagging")
    _columns(add)
    add("--limit", type=int, metavar="N", help="use only N training rows, sampled by class")
    add("--config", metavar="FILE", help="settings in YAML; options here come before them")
    add("--model", metavar="NAME", help="masked LM: embedded name (default), folder or hub id")
    add("--recipe", metavar="NAME", help="default, cis, lexical-sae, cajt, ltt, baseline or dense")
    add("--honesty", metavar="MODE", help="grounded (default), free, licensed-static, licensed-contextual")
    add("--target-active", type=int, metavar="N", help="active words per text (default: 100)")
    add("--epochs", type=int, metavar="N", help="passes over the training rows, at most")
    add("--seed", type=int, metavar="N", help="of every random choice (default: 0)")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="any setting; may be repeated")
    add(
        "--output",
        type=Path,
        metavar="FOLDER",
        help="model, results and report (default: results/experiment)",
    )
    add("--resume", action="store_true", help="continue a run to this output that was interrupted")
    add("--settings", action="store_true", help="list every setting with its default, then stop")


def _predict(add: Adder) -> None:
    _model_and_texts(add)
    add("--output", type=Path, metavar="FILE", help=".jsonl, .csv or .parquet (default: standard output)")
    add("--format", choices=["jsonl", "csv"], help="form of the output (default: by its ending, else jsonl)")


def _explain(add: Adder) -> None:
    _model_and_texts(add)
    add(
        "--method",
        choices=["dla", "ablation", "path"],
        default="dla",
        help="dla: the exact sum (default); ablation: the effect of removing each word; "
        "path: the exact sum along the way from the empty text",
    )
    add("--class", dest="explained", metavar="NAME", help="explain this class (default: the predicted one)")
    add("--counterfactual", action="store_true", help="add the fewest words whose removal changes the label")
    add("--top", type=_count, default=12, metavar="N", help="words shown (default: 12; --json has all)")
    add("--json", action="store_true", help="one JSON object per explanation")
    add("--html", type=Path, metavar="FILE", help="write one page with all explanations")
    add("--svg", type=Path, metavar="FILE", help="write the only explanation as a picture")
    add("--color", choices=["auto", "always", "never"], default="auto", help="colours (default: auto)")


def _evaluate(add: Adder) -> None:
    add("model", metavar="MODEL", help="a model folder or hub id")
    add(
        "--data", required=True, metavar="PATH", help="labelled rows: a file, a folder, or an embedded corpus"
    )
    _columns(add, task=False)
    add("--json", action="store_true", help="all figures as JSON")
    add("--output", type=Path, metavar="FOLDER", help="write results.json and report.html there")


def _data(add: Adder) -> None:
    add("path", metavar="PATH", help="a file, a folder with train.*, or reviews, topics, tagging")
    _columns(add)
    add("--reference", action="store_true", help="add the score of a bag of words")
    add("--json", action="store_true", help="the description as JSON")
    add("--export", type=Path, metavar="FOLDER", help="write the splits there: JSON lines, CoNLL for tagging")


def _doctor(add: Adder) -> None:
    add("--json", action="store_true", help="the findings as JSON")


def _columns(add: Adder, task: bool = True) -> None:
    add("--text", metavar="COLUMN", help="text column (guessed from common names)")
    add("--label", metavar="COLUMN", help="label column (guessed from common names)")
    if task:
        add("--task", choices=["classification", "tagging"], help="guessed from the columns")


def _model_and_texts(add: Adder) -> None:
    add("model", metavar="MODEL", help="a model folder or hub id")
    add("texts", metavar="TEXT", nargs="*", help="texts, in quotes")
    add(
        "--input",
        metavar="FILE",
        help="texts from a data file, the lines of a .txt file, or - for standard input",
    )
    add("--text", metavar="COLUMN", help="text column of the file (guessed from common names)")
    add("--batch-size", type=_count, default=32, metavar="N", help="texts run together (default: 32)")


def _count(text: str) -> int:
    """A whole number from 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number
