"""Raw text as a stream of documents: one at a time, decompressed on the way, always in the same order.

1. A path is a file, a tar archive (members as they stand) or a folder (files by name, sub-folders too).
2. The ending says the form: JSON lines, CSV, TSV, Parquet with a text column; every other file is plain text.
3. Plain text is told apart by its first lines: `<doc …>` to `</doc>`, WikiText articles under ` = Title = `,
   paragraphs between blank lines, and where no line is blank a document a line.
4. NULs go, blank documents are left out, and what cannot be read is a `DataError` of one line.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import itertools
import json
import lzma
import re
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from splade.data.files import bare_name, short
from splade.errors import DataError

COLUMNS = ("text", "sentence", "review", "content", "body", "tweet", "words", "tokens")
_OPENERS: dict[str, Callable[[Any], Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
_ARCHIVES = (".tar", ".tgz", ".txz", ".tbz2")
_PLAIN = ("", ".txt", ".text", ".md", ".tokens")
_LOOKAHEAD = 1000  # lines that tell what kind of plain text it is
_DOC = re.compile(r"<doc[ >]")
_TITLE = re.compile(r"\s?= [^=]+ =\s*$")
_BROKEN = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, tarfile.TarError)


def documents(path: str | Path, column: str | None = None, start: int = 0) -> Iterator[str]:
    """The documents of `path` from number `start` on, counted from 0; `column` names the text column."""
    path = Path(path)
    found = itertools.islice(_read(path, column), start, None)
    first = next(found, None)
    if first is None:
        raise DataError(f"{path}: holds no text{f' after document {start}' if start else ''}; give another")
    return itertools.chain([first], found)


def _read(path: Path, column: str | None) -> Iterator[str]:
    for file in _files(path):
        texts = (_archive if _suffix(file) in _ARCHIVES else _file)(file, column)
        yield from (text for text in (_clean(text) for text in texts) if text)


def _clean(text: str) -> str:
    return text.replace("\0", "").strip()


def _files(path: Path) -> list[Path]:
    """The files of a folder by name; of a file only itself, whatever its ending."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise DataError(f"{short(str(path))}: no such file or folder; check the path")
    found = sorted(file for file in path.rglob("*") if file.is_file() and _wanted(file.relative_to(path)))
    if not found:
        raise DataError(f"{path}: has no text; give .txt, .jsonl, .csv, .tsv, .parquet or .tar files")
    return found


def _wanted(inside: Path) -> bool:
    """Whether a file of a folder or archive is text: not hidden, and of a known ending or none."""
    hidden = any(part.startswith(".") for part in inside.parts)
    return not hidden and _suffix(inside) in (*_PLAIN, *_ARCHIVES, *_RECORDS, ".parquet")


def _suffix(path: Path) -> str:
    return Path(bare_name(path)).suffix


def _file(path: Path, column: str | None) -> Iterator[str]:
    with _one_line_errors(path), path.open("rb") as file:
        yield from _texts(file, path, str(path), column)


def _archive(path: Path, column: str | None) -> Iterator[str]:
    with _one_line_errors(path), tarfile.open(path, "r|*") as archive:
        for member in archive:
            inside = Path(member.name)
            file = archive.extractfile(member) if member.isfile() and _wanted(inside) else None
            if file is not None:
                yield from _texts(file, inside, f"{path}, {member.name}", column)


@contextmanager
def _one_line_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except _BROKEN as problem:
        reason = " ".join(str(getattr(problem, "strerror", None) or problem).split())
        raise DataError(f"{path}: cannot be read ({reason}); fetch or write it again") from problem


def _texts(file: IO[bytes], path: Path, name: str, column: str | None) -> Iterator[str]:
    """The documents of one open file, which `path` names the form of and messages call `name`."""
    if _suffix(path) == ".parquet":
        return _parquet(file, name, column)
    opener = _OPENERS.get(path.suffix.lower())
    lines = _decoded(file if opener is None else opener(file), name)
    if _suffix(path) in _RECORDS:
        records = _RECORDS[_suffix(path)](lines, name)
        return (_cell(record, column, f"{name}, line {number}") for number, record in records)
    return _plain(lines)


def _decoded(file: Iterable[bytes], name: str) -> Iterator[str]:
    """Lines with their ends; a byte-order mark goes."""
    for number, raw in enumerate(file, 1):
        try:
            yield raw.decode("utf-8-sig" if number == 1 else "utf-8").replace("\0", "")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{name}, line {number}: byte 0x{raw[error.start]:02x} is not UTF-8; "
                "convert the file, for example with iconv -t UTF-8"
            ) from None


def _plain(lines: Iterator[str]) -> Iterator[str]:
    head = list(itertools.islice(lines, _LOOKAHEAD))
    lines = itertools.chain(head, lines)
    first = next((i for i, line in enumerate(head) if line.strip()), len(head))
    last = max((i for i, line in enumerate(head) if line.strip()), default=0)
    if _DOC.match("".join(head[first : first + 1])):
        return _marked(lines)
    if any(_TITLE.match(line) for line in head):
        return _blocks(lines, lambda line: bool(_TITLE.match(line)))
    if all(line.strip() for line in head[first:last]):
        return lines
    return _blocks(lines, lambda line: not line.strip())


def _marked(lines: Iterator[str]) -> Iterator[str]:
    """What stands between `<doc …>` and `</doc>` lines."""
    for block in _blocks(lines, lambda line: bool(_DOC.match(line))):
        _, _, inside = block.partition("\n")
        yield inside.rpartition("</doc>")[0] or inside


def _blocks(lines: Iterator[str], opens: Callable[[str], bool]) -> Iterator[str]:
    """Lines joined up to the next one that opens a block."""
    block: list[str] = []
    for line in lines:
        if opens(line) and block:
            yield "".join(block)
            block = []
        block.append(line)
    yield "".join(block)


def _json(lines: Iterator[str], name: str) -> Iterator[tuple[int, Mapping[str, object]]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise DataError(f'{name}, line {number}: is not an object; write {{"text": …}} on each line')
        yield number, value


def _csv(lines: Iterator[str], name: str) -> Iterator[tuple[int, Mapping[str, object]]]:
    yield from _table(csv.reader(lines, strict=True), name)


def _tsv(lines: Iterator[str], name: str) -> Iterator[tuple[int, Mapping[str, object]]]:
    cells = (line.rstrip("\r\n") for line in lines)
    yield from _table(csv.reader(cells, delimiter="\t", quoting=csv.QUOTE_NONE), name)


def _table(reader: Any, name: str) -> Iterator[tuple[int, Mapping[str, object]]]:
    header: list[str] = []
    csv.field_size_limit(2**31 - 1)  # a text may be longer than the 128 KiB of the csv module
    try:
        for record in reader:
            if header and record:
                yield reader.line_num, dict(zip(header, record, strict=False))
            header = header or [title.strip() for title in record]
    except csv.Error as problem:
        raise DataError(
            f"{name}, line {reader.line_num}: quotes do not match ({problem}); "
            'double each quote inside a quoted field ("") or save the file as .jsonl'
        ) from None


def _parquet(file: IO[bytes], name: str, column: str | None) -> Iterator[str]:
    import pyarrow.parquet

    source = io.BytesIO(file.read()) if isinstance(file, tarfile.ExFileObject) else file  # it must seek
    table = pyarrow.parquet.ParquetFile(source)
    column = _choose(table.schema_arrow.names, column, name)
    number = 0
    for batch in table.iter_batches(columns=[column]):
        for record in batch.to_pylist():
            number += 1
            yield _cell(record, column, f"{name}, record {number}")


def _cell(record: Mapping[str, object], column: str | None, where: str) -> str:
    """The text of a record; a list of words is joined by spaces, nothing is blank."""
    value = record[_choose(list(record), column, where)]
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return " ".join(value)
    if value is not None and not isinstance(value, str):
        raise DataError(f"{where}: the text is {short(value)}; give a column of texts with --text")
    return value or ""


def _choose(columns: list[str], given: str | None, where: str) -> str:
    known = {column.lower(): column for column in reversed(columns)}
    found = (given,) if given in columns else tuple(known[name] for name in COLUMNS if name in known)
    if found and given in (None, found[0]):
        return str(found[0])
    missing = "no text column" if given is None else f"no column {given!r}"
    raise DataError(f"{where}: has {missing} (there are {', '.join(columns)}); name it with --text")


_RECORDS: dict[str, Callable[[Iterator[str], str], Iterator[tuple[int, Mapping[str, object]]]]] = {
    ".jsonl": _json,
    ".ndjson": _json,
    ".json": _json,
    ".csv": _csv,
    ".tsv": _tsv,
}
