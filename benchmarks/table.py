"""What every benchmark shares: its arguments, and a table for the terminal and for a Markdown file.

A file of results holds one section a benchmark, between two marker comments that carry its name, so that
each benchmark can write its own section again and leave the others alone.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import gc
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
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


@dataclass(frozen=True)
class Shape:
    """How many texts of how many tokens."""

    texts: int
    length: int

    @classmethod
    def of(cls, name: str) -> Shape:
        """`32x512`: 32 texts of 512 tokens."""
        texts, length = name.split("x")
        return cls(int(texts), int(length))

    def __str__(self) -> str:
        return f"{self.texts}×{self.length}"


QUICK = (Shape(4, 16),)
CPU_SHAPES = (Shape(8, 64),)
GPU_SHAPES = (Shape(64, 128), Shape(32, 512), Shape(8, 2048))


def parser(description: str) -> argparse.ArgumentParser:
    """What every benchmark takes: `--quick` and `--output FILE`."""
    _commit()  # asked before a long run, during which it may change
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="tiny shapes, to see that it runs")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the table's section in this file")
    return parser


def arguments(description: str) -> argparse.Namespace:
    """The arguments of a benchmark that takes no others."""
    return parser(description).parse_args()


def with_device(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add `--device`, the GPU where there is one."""
    found = "cuda" if torch.cuda.is_available() else "cpu"
    parser.add_argument("--device", type=torch.device, default=torch.device(found), help="cpu or cuda")
    return parser


def with_shapes(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add `--shape 32x512 ...`."""
    parser.add_argument("--shape", type=Shape.of, nargs="+", metavar="BxL", help="texts x tokens (several)")
    return parser


def shapes(options: argparse.Namespace) -> Sequence[Shape]:
    """Those asked for; by default small ones on a CPU, and those of the budgets on a GPU."""
    if options.shape or options.quick:
        return tuple(options.shape or QUICK)
    return GPU_SHAPES if options.device.type == "cuda" else CPU_SHAPES


def attempt(
    names: Sequence[object], columns: Sequence[str], run: Callable[[], Sequence[object]]
) -> list[object]:
    """A row of the table, `names` first; one that fails says why instead, and the others go on."""
    try:
        return [*names, *run()]
    except Exception as problem:
        reason = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
        print(f"{' '.join(map(str, names))}: {reason}", file=sys.stderr)
        blank = [""] * (len(columns) - len(names) - 1)
        return [*names, f"failed: {reason[:60]}", *blank]
    finally:
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def report(section: Section, output: Path | None) -> None:
    """Print the section, and write it to a file if one is given."""
    console = make_console()
    if not sys.stdout.isatty():
        console.width = 160  # a pipe has no width, and a table should not fold in it
    print(" · ".join(value for _, value in machine()))
    table(console, section.question, section.columns, section.rows)
    for note in section.notes:
        print(note)
    if output is not None:
        put(section.key, markdown(section), output)


def put(key: str, text: str, path: Path) -> None:
    """Put a section in the file in place of its older self, or at the end."""
    begin, end = f"<!-- {key}: begin -->", f"<!-- {key}: end -->"
    old = path.read_text(encoding="utf-8") if path.exists() else f"# Measurements: {path.stem}\n"
    new = f"{begin}\n{text}{end}"
    there = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    text, count = there.subn(lambda _: new, old)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if count else f"{old}\n{new}\n", encoding="utf-8")


def markdown(section: Section) -> str:
    """The section as Markdown: question, command, machine, table, notes."""
    facts = [("Command", f"`{command()}`"), ("Date", datetime.date.today().isoformat()), *machine()]
    lines = [f"## {section.question}", "", *(f"- {name}: {value}" for name, value in facts), ""]
    lines += [*aligned(section.columns, section.rows), "", *(f"- {note}" for note in section.notes)]
    return "\n".join(lines).rstrip() + "\n"


def aligned(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """The lines of a table, numbers to the right."""
    rules = [_rule(rows, column) for column in range(len(columns))]
    return [_line(columns), _line(rules), *(_line([number(value) for value in row]) for row in rows)]


def command() -> str:
    """The command that is running, from the root of the repository."""
    script = Path(sys.argv[0]).resolve()
    shown = script.relative_to(ROOT) if script.is_relative_to(ROOT) else script
    return shlex.join(["python", str(shown), *sys.argv[1:]])


def machine() -> list[tuple[str, str]]:
    """CPU, memory, threads, GPU, versions and commit."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cpu = f"{_cpu_model()}, {os.cpu_count()} cores, threads: {torch.get_num_threads()}, {memory:.0f} GiB"
    installed = {d.metadata["Name"] for d in metadata.distributions()}
    named = [name for name in ("torch", "triton", "transformers") if name in installed]
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in named)
    gpu = [("GPU", torch.cuda.get_device_name())] if torch.cuda.is_available() else []
    return [
        ("Machine", cpu),
        *gpu,
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
