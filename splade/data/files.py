"""A file's bytes as text, and the table its rows are read into."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from splade.errors import DataError

COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.decompress,
    ".xz": lzma.decompress,
    ".bz2": bz2.decompress,
}


@dataclass(frozen=True)
class Table:
    """Rows of one file; `numbers[i]` is the line (or record) of row i, counted from 1."""

    path: Path
    unit: str
    columns: list[str]
    rows: list[dict[str, object]]
    numbers: list[int]
    nuls: int = 0

    def at(self, row: int) -> str:
        """Where a row stands, for a message."""
        return f"{self.path}, {self.unit} {self.numbers[row]}"


def bare_name(path: Path) -> str:
    """The file's name in lower case, without the suffix of a compression."""
    name = path.name.lower()
    return name[: -len(path.suffix)] if path.suffix.lower() in COMPRESSED else name


def read_text(path: Path) -> tuple[str, int]:
    """The whole file as text, decompressed, and how many NULs went."""
    try:
        data = path.read_bytes()
        data = COMPRESSED.get(path.suffix.lower(), bytes)(data)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; check the path") from None
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
        raise DataError(f"{path}: cannot be read ({error}); check permissions or fetch it again") from None
    return decode(data, path)


def decode(data: bytes, name: object) -> tuple[str, int]:
    """UTF-8 text without byte-order mark and NUL characters, and how many NULs went."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{name}, line {line}: byte 0x{data[error.start]:02x} is not UTF-8; "
            "convert the file, for example with iconv -t UTF-8"
        ) from None
    return text.replace("\0", ""), text.count("\0")


def numbered_lines(text: str) -> list[tuple[int, str]]:
    """Lines that are not blank, with their numbers; only newlines separate lines."""
    return [(n, line.rstrip("\r")) for n, line in enumerate(text.split("\n"), 1) if line.strip()]


def text_lines(text: str) -> list[str]:
    """All lines, blank ones too; a newline at the end opens no further one."""
    lines = [line.rstrip("\r") for line in text.split("\n")]
    return lines if lines[-1] else lines[:-1]


def short(value: object) -> str:
    """A value as it appears in a message: quoted, on one line, cut to 40 characters."""
    shown = repr(value)
    return shown if len(shown) <= 40 else shown[:39] + "…"
