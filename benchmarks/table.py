"""What every benchmark shares: its arguments, and a table for the terminal and for a Markdown file.

A file of results holds one section a benchmark, between two marker comments that carry its name, so that
each benchmark can write its own section again and leave the others alone.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import torch

import splade
from splade.render.ledger import number
from splade.render.terminal import make_console, table

ROOT = Path(__file__).resolve().parents[1]
_NUMBER = re.compile(r"[\d.,]+(e[+-]\d+)?|–")


@dataclass(frozen=True)
class Section:
    """A benchmark's question, its table, and what a reader must know of it."""

    key: str
    question: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    notes: Sequence[str]


def arguments(description: str) -> argparse.Namespace:
    """`--quick` and `--output FILE`."""
    _commit()  # asked before a long run, during which it may change
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="tiny shapes, to see that it runs")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the table's section in this file")
    return parser.parse_args()


def report(section: Section, output: Path | None) -> None:
    """Print the section, and write it to a file if one is given."""
    console = make_console()
    if not sys.stdout.isatty():
        console.width = 140  # a pipe has no width, and a table should not fold in it
    table(console, section.question, section.columns, section.rows)
    for note in section.notes:
        print(note)
    if output is not None:
        write(section, output)


def write(section: Section, path: Path) -> None:
    """Put the section in the file in place of its older self, or at the end."""
    begin, end = f"<!-- {section.key}: begin -->", f"<!-- {section.key}: end -->"
    old = path.read_text(encoding="utf-8") if path.exists() else f"# Measurements: {path.stem}\n"
    new = f"{begin}\n{markdown(section)}{end}"
    there = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    text, count = there.subn(lambda _: new, old)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if count else f"{old}\n{new}\n", encoding="utf-8")


def markdown(section: Section) -> str:
    """The section as Markdown: question, command, machine, table, notes."""
    facts = [("Command", f"`{command()}`"), ("Date", datetime.date.today().isoformat()), *machine()]
    lines = [f"## {section.question}", "", *(f"- {name}: {value}" for name, value in facts), ""]
    lines += [_line(section.columns), _line([_rule(section.rows, k) for k in range(len(section.columns))])]
    lines += [_line([number(value) for value in row]) for row in section.rows]
    lines += ["", *(f"- {note}" for note in section.notes)]
    return "\n".join(lines).rstrip() + "\n"


def command() -> str:
    """The command that is running, from the root of the repository."""
    script = Path(sys.argv[0]).resolve()
    shown = script.relative_to(ROOT) if script.is_relative_to(ROOT) else script
    return shlex.join(["python", str(shown), *sys.argv[1:]])


def machine() -> list[tuple[str, str]]:
    """CPU, memory, threads, versions and commit."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cpu = f"{_cpu_model()}, {os.cpu_count()} cores, threads: {torch.get_num_threads()}, {memory:.0f} GiB"
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("torch", "transformers"))
    return [
        ("Machine", cpu),
        ("Versions", f"lexical-sae {splade.__version__}, {versions}, Python {platform.python_version()}"),
        ("Commit", _commit()),
    ]


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.*)", cpuinfo.read_text()) if cpuinfo.exists() else None
    return found.group(1).strip() if found else platform.processor() or platform.machine()


@functools.cache
def _commit() -> str:
    """The commit, and whether the measured code has changes that it lacks."""
    commit = _git("rev-parse", "--short", "HEAD")
    changed = _git("status", "--porcelain", "--", "splade", "benchmarks")
    return (commit or "unknown") + (" with changes" if changed else "")


def _git(*words: str) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip()


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _rule(rows: Sequence[Sequence[object]], column: int) -> str:
    """Numbers stand to the right."""
    return "--:" if all(_NUMBER.fullmatch(number(row[column])) for row in rows) else "---"
