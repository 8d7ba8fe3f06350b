"""Rows and pages into files, each written whole and then put in its place, or into stdout."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from splade.cli.streams import plain_stdout, say
from splade.errors import ConfigError, DataError

if TYPE_CHECKING:
    from splade.data.rows import Dataset

Row = dict[str, Any]


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A fresh path beside `path` that takes its place only when the block ends well."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield fresh
        fresh.replace(path)
    except OSError as problem:
        raise DataError(
            f"cannot write {path}: {problem.strerror or problem}; choose another place"
        ) from problem
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)
    say(f"wrote {path}")


def write_text(path: Path, text: str) -> None:
    """A text file."""
    with whole_file(path) as fresh:
        fresh.write_text(text, encoding="utf-8", newline="")


def emit_one(values: Row) -> None:
    """One JSON object on stdout, for reading."""
    plain_stdout().write(json.dumps(values, indent=2, ensure_ascii=False) + "\n")


def emit(rows: Iterable[Row], path: Path | None = None, kind: str | None = None) -> None:
    """Rows to stdout, or to a file in the form its ending names."""
    kind = kind or (path.suffix[1:].lower() if path else "jsonl")
    if kind not in ("jsonl", "csv", "parquet"):
        raise ConfigError(f"{path}: name the output .jsonl, .csv or .parquet, or give --format")
    if path is None:
        plain_stdout().writelines(_lines(rows, kind))
        return
    with whole_file(path) as fresh:
        if kind == "parquet":
            _write_parquet(rows, fresh)
            return
        with fresh.open("w", encoding="utf-8", newline="") as file:
            file.writelines(_lines(rows, kind))


def export(dataset: Dataset, folder: Path) -> None:
    """Each split as a file that `load_dataset` reads back: JSON lines, or CoNLL columns."""
    from splade.data.rows import Texts

    if folder.exists() and (folder.is_file() or any(folder.iterdir())):
        raise ConfigError(f"{folder} is not empty; name a new folder to --export")
    for name, rows in dataset.splits().items():
        if isinstance(rows, Texts) and rows.label_sets:
            several = ([dataset.label_names[i] for i in ids] for ids in rows.label_sets)
            pairs_of = zip(rows.texts, several, strict=True)
            emit(({"text": text, "labels": found} for text, found in pairs_of), folder / f"{name}.jsonl")
        elif isinstance(rows, Texts):
            names = (dataset.label_names[label] for label in rows.labels)
            pairs = zip(rows.texts, names, strict=True)
            emit(({"text": text, "label": label} for text, label in pairs), folder / f"{name}.jsonl")
        else:
            sentences = (_columns(*pair) for pair in zip(rows.words, rows.tags, strict=True))
            write_text(folder / f"{name}.conll", "\n".join(sentences))


def _columns(words: list[str], tags: list[str]) -> str:
    for word in words:
        if word != " ".join(word.split()) or not word:
            raise DataError(f"the word {word!r} cannot stand in CoNLL columns; remove its blanks")
    return "".join(f"{word}\t{tag}\n" for word, tag in zip(words, tags, strict=True))


def _lines(rows: Iterable[Row], kind: str) -> Iterator[str]:
    """JSON lines, or CSV whose header is the first row's keys and whose nested cells are JSON."""
    for index, row in enumerate(rows):
        if kind == "jsonl":
            yield json.dumps(row, ensure_ascii=False) + "\n"
            continue
        cells = [v if isinstance(v, str | float) else json.dumps(v, ensure_ascii=False) for v in row.values()]
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerows([list(row), cells] if index == 0 else [cells])
        yield line.getvalue()


def _write_parquet(rows: Iterable[Row], path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), path)
