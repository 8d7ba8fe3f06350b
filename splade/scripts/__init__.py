"""Experiments and studies as commands, `python -m splade.scripts.NAME --config FILE`, and their launch."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from splade.cli.streams import progress, say, screen
from splade.errors import LexicalError

if TYPE_CHECKING:
    from splade.config.schema import ExperimentConfig
    from splade.pipelines import Results
    from splade.report.comparison import Table
    from splade.training.progress import Progress

    Runner = Callable[[ExperimentConfig, Path, Progress, Sequence[int]], Results]


class Shown(NamedTuple):
    """How results are shown: tables under their titles on a terminal, and a page."""

    tables: Callable[[Results], Mapping[str, Table]]
    page: Callable[[Results], str]


def launch(
    run: Runner,
    description: str | None,
    argv: Sequence[str] | None = None,
    within: str = "",
    shown: Shown | None = None,
) -> int:
    """Run an experiment, print its tables, write its page; 0 well, 1 a part failed, 2 a mistake to mend.

    Without --output it goes to the folder the config names, or to the one called `within` in it. Runs side by
    side are shown as such; a study says how it is `shown`.
    """
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    options = _options(description, argv)
    try:
        results = _performed(run, options, within, shown or _runs_shown())
    except LexicalError as problem:
        say(f"error: {problem}")
        return 2
    except OSError as problem:
        say(f"error: {problem.filename or 'files'}: {problem.strerror or problem}; check path and space")
        return 2
    except KeyboardInterrupt:
        say("interrupted; the same command continues")
        return 130
    return 0 if results["complete"] else 1


def _options(description: str | None, argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description, allow_abbrev=False)
    add = parser.add_argument
    add("--config", required=True, metavar="FILE", help="settings in YAML, such as those in experiments/")
    add("--output", type=Path, metavar="FOLDER", help="default: output_dir/experiment_name of the config")
    add("--seeds", type=int, nargs="+", default=[], metavar="N", help="default: those of the config")
    return parser.parse_args(argv)


def _performed(run: Runner, options: argparse.Namespace, within: str, shown: Shown) -> Results:
    from splade.cli.files import write_text
    from splade.config.load import load_config

    config = load_config(options.config)
    output = options.output or Path(config.output_dir) / config.experiment_name / within
    results = run(config, output, progress(), options.seeds)
    write_text(output / "report.html", shown.page(results))
    _print(shown.tables(results))
    return results


def _runs_shown() -> Shown:
    from splade.report.comparison import comparison_page, failures, paired_table, summary_table

    def tables(results: Results) -> Mapping[str, Table]:
        return {
            "": summary_table(results),
            "Paired tests": paired_table(results),
            "Failed": failures(results),
        }

    return Shown(tables, comparison_page)


def _print(tables: Mapping[str, Table]) -> None:
    from splade.render.terminal import table

    console = screen()
    for title, (columns, rows) in tables.items():
        if rows:
            table(console, title, columns, rows)
    sys.stdout.flush()
