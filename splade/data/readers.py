"""Files as tables: CSV, TSV, JSON lines, JSON arrays, Parquet, CoNLL columns and plain lines.

1. A reader chosen by the file's extension gives rows, each with the line or record it came from.
2. Whatever is wrong is a `DataError` that names the file and that line or record.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from splade.data.files import COMPRESSED, Table, bare_name, numbered_lines, read_text, short, text_lines
from splade.errors import DataError

WHOLE_LINE = "(line)"


def file_kind(path: Path) -> str | None:
    """The extension that says how a file is read; None for a file that is not data."""
    suffix = Path(bare_name(path)).suffix
    return suffix if suffix in _READERS else None


def read_table(path: Path, *, kind: str | None = None, header: bool = True) -> Table:
    """Rows of a file; without `header`, a CSV or TSV file's columns are named "1", "2", …"""
    kind = kind or file_kind(path)
    if kind is None:
        raise DataError(
            f"{path}: unknown kind of file; give .csv, .tsv, .jsonl, .json, .parquet or .conll, "
            "all but Parquet also as .gz, .xz or .bz2"
        )
    table = _READERS[kind](path, header)
    if not table.rows:
        raise DataError(f"{path}: holds no rows; give a file with data")
    return table


def json_objects(lines: list[tuple[int, str]], name: object) -> tuple[list[dict[str, object]], list[int]]:
    """One object from each numbered line."""
    rows = []
    for number, line in lines:
        rows.append(_object(_parse(line, name, number), f"{name}, line {number}"))
    return rows, [number for number, _ in lines]


def _csv(path: Path, header: bool) -> Table:
    text, nuls = read_text(path)
    with _unlimited_fields():
        return _tabular(path, list(_csv_records(path, text)), header, nuls)


@contextmanager
def _unlimited_fields() -> Iterator[None]:
    """The csv module refuses fields over 128 KiB unless told otherwise; a text may be longer."""
    before = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _csv_records(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    while True:
        number = reader.line_num + 1
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(
                f"{path}, line {number}: quotes do not match ({error}); "
                'double each quote inside a quoted field ("") or save the file as .tsv or .jsonl'
            ) from None
        if record:
            yield number, record


def _tsv(path: Path, header: bool) -> Table:
    text, nuls = read_text(path)  # no quoting: a quote in a text is a character like any other
    return _tabular(path, [(n, line.split("\t")) for n, line in numbered_lines(text)], header, nuls)


def _tabular(path: Path, records: list[tuple[int, list[str]]], header: bool, nuls: int) -> Table:
    if not records:
        raise DataError(f"{path}: is empty; give a file with a header line and rows")
    at, first = records[0]
    columns = [name.strip() for name in first] if header else [str(i + 1) for i in range(len(first))]
    twice = next((name for name in columns if name and columns.count(name) > 1), None)
    if twice:
        raise DataError(f"{path}, line {at}: names column {short(twice)} twice; rename one")
    records = records[1:] if header else records
    for number, record in records:
        if len(record) != len(columns):
            raise DataError(
                f"{path}, line {number}: has {len(record)} fields, not {len(columns)} as the first line; "
                "quote texts that hold the separator, or save the file as .jsonl"
            )
    rows: list[dict[str, object]] = [dict(zip(columns, record, strict=True)) for _, record in records]
    return Table(path, "line", columns, rows, [number for number, _ in records], nuls)


def _json(path: Path, _header: bool) -> Table:
    text, nuls = read_text(path)
    if text.lstrip().startswith("["):
        parsed = _parse(text, path, 1)
        assert isinstance(parsed, list)
        rows = [_object(value, f"{path}, record {n}") for n, value in enumerate(parsed, 1)]
        numbers, unit = list(range(1, len(rows) + 1)), "record"
    else:
        rows, numbers = json_objects(numbered_lines(text), path)
        unit = "line"
    return Table(path, unit, all_keys(rows), rows, numbers, nuls)


def all_keys(rows: list[dict[str, object]]) -> list[str]:
    """The keys of all objects, in the order they first appear."""
    return list(dict.fromkeys(key for row in rows for key in row))


def _parse(text: str, name: object, line: int) -> object:
    """The JSON value of a text that begins on the given line."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line += error.lineno - 1
        reason = f"{error.msg}, column {error.colno}"
    except (ValueError, RecursionError):
        reason = "a number or a nesting too large"
    raise DataError(f"{name}, line {line}: is not JSON ({reason}); write one object per line, or one array")


def _object(value: object, where: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise DataError(f'{where}: is not an object; write {{"text": …, "label": …}}')
    return value


def _parquet(path: Path, _header: bool) -> Table:
    import pyarrow.parquet

    if path.suffix.lower() in COMPRESSED:
        raise DataError(f"{path}: Parquet compresses by itself; decompress the file first")
    if not path.is_file():
        raise DataError(f"{path}: no such file; check the path")
    try:
        table = pyarrow.parquet.ParquetFile(path).read()
        rows = table.to_pylist()
    except (OSError, ValueError, NotImplementedError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{path}: is not a readable Parquet file ({reason}); write it again") from None
    return Table(path, "record", list(table.column_names), rows, list(range(1, len(rows) + 1)))


def _conll(path: Path, _header: bool) -> Table:
    """One row per sentence, with `words` (first column) and `tags` (last column)."""
    text, nuls = read_text(path)
    sentences: list[list[tuple[int, list[str]]]] = [[]]
    for number, cells in _conll_lines(path, text):
        if cells:
            sentences[-1].append((number, cells))
        elif sentences[-1]:
            sentences.append([])
    sentences = [sentence for sentence in sentences if sentence]
    rows: list[dict[str, object]] = [
        {"words": [cells[0] for _, cells in sentence], "tags": [cells[-1] for _, cells in sentence]}
        for sentence in sentences
    ]
    return Table(path, "line", ["words", "tags"], rows, [sentence[0][0] for sentence in sentences], nuls)


def _conll_lines(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """The columns of each line; none for a line between sentences or documents."""
    width = 0
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("-DOCSTART-"):
            yield number, []
            continue
        line = line.rstrip(" \t\r")
        cells = line.split("\t") if "\t" in line else [cell for cell in line.split(" ") if cell]
        width = width or len(cells)
        if len(cells) < 2 or len(cells) != width:
            raise DataError(
                f"{path}, line {number}: has {len(cells)} columns, not {max(width, 2)}; "
                "write the same columns on every line, the word first and its tag last"
            )
        yield number, cells


def _lines(path: Path, _header: bool) -> Table:
    text, nuls = read_text(path)
    return line_table(path, text_lines(text), nuls)


def line_table(path: Path, lines: list[str], nuls: int) -> Table:
    """Plain lines as rows of one nameless column."""
    rows: list[dict[str, object]] = [{WHOLE_LINE: line} for line in lines]
    return Table(path, "line", [WHOLE_LINE], rows, list(range(1, len(lines) + 1)), nuls)


_COLUMN_FILES = (".conll", ".iob", ".iob2", ".bio", ".bioes", ".bilou")
_SPLIT_FILES = (".train", ".dev", ".valid", ".test", ".testa", ".testb")
_READERS: dict[str, Callable[[Path, bool], Table]] = {
    ".csv": _csv,
    ".tsv": _tsv,
    ".jsonl": _json,
    ".json": _json,
    ".parquet": _parquet,
    ".txt": _lines,
    **dict.fromkeys(_COLUMN_FILES + _SPLIT_FILES, _conll),
}
