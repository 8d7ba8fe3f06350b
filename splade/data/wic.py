"""Word-in-context data in the form of MCL-WiC: is a word used in the same sense in two sentences?

A `.data` file is a JSON list of items with `lemma`, `sentence1`, `start1`, `end1` and the same of the second
sentence; its `.gold` file is a JSON list of items with `id` and `tag`, T (same) or F. Files are read where
they lie, in a folder or in a zip archive (`zipfile.Path`).
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from splade.errors import DataError

File = Path | zipfile.Path
TAGS = {"T": True, "F": False}
MCL_WIC = {  # split -> (archive, data file, archive, gold file) of the distribution
    "train": ("all-datasets", "MCL-WiC/training/training.", "all-datasets", "MCL-WiC/training/training."),
    "dev": ("all-datasets", "MCL-WiC/dev/multilingual/dev.", "all-datasets", "MCL-WiC/dev/multilingual/dev."),
    "test": ("all-datasets", "MCL-WiC/test/multilingual/test.", "test-gold-data", "test."),
}


@dataclass(frozen=True)
class Use:
    """A word in a sentence: text[start:end]."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class WordPair:
    """Two uses of a word, and whether its sense is the same."""

    lemma: str
    first: Use
    second: Use
    same: bool


def read_wic(data: File, gold: File) -> list[WordPair]:
    """The pairs of a data file with the answers of its gold file."""
    tags = {_text(item, "id", gold): _text(item, "tag", gold) for item in _items(gold)}
    return [_pair(item, tags, data, gold) for item in _items(data)]


def read_mcl_wic(folder: Path, split: str, languages: str = "en-en") -> list[WordPair]:
    """A split (train, dev, test) of MCL-WiC from the two archives as distributed."""
    if split not in MCL_WIC:
        raise DataError(f"MCL-WiC has no split '{split}': choose one of {', '.join(MCL_WIC)}")
    where, data, gold_where, gold = MCL_WIC[split]
    return read_wic(
        _inside(folder, where, f"{data}{languages}.data"),
        _inside(folder, gold_where, f"{gold}{languages}.gold"),
    )


def _inside(folder: Path, archive: str, name: str) -> zipfile.Path:
    path = folder / f"SemEval-2021_MCL-WiC_{archive}.zip"
    try:
        return zipfile.Path(path, name)
    except (OSError, zipfile.BadZipFile) as problem:
        raise DataError(f"{path}: cannot be read ({problem}); fetch the MCL-WiC archives again") from None


def _items(file: File) -> Sequence[Mapping[str, Any]]:
    try:
        items = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, KeyError, ValueError) as problem:  # a zip says KeyError of a file it does not hold
        raise DataError(f"{file}: cannot be read ({problem}); give a JSON file of MCL-WiC's form") from None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise DataError(f"{file}: holds no list of items; give a JSON file of MCL-WiC's form")
    return items


def _pair(item: Mapping[str, Any], tags: Mapping[str, str], data: File, gold: File) -> WordPair:
    key = _text(item, "id", data)
    if tags.get(key) not in TAGS:
        raise DataError(f"{gold}: item '{key}' has no tag T or F; give the gold file of {data}")
    lemma = _text(item, "lemma", data)
    return WordPair(lemma, _use(item, "1", data), _use(item, "2", data), TAGS[tags[key]])


def _use(item: Mapping[str, Any], number: str, data: File) -> Use:
    text = _text(item, f"sentence{number}", data)
    start, end = (_text(item, f"{edge}{number}", data) for edge in ("start", "end"))
    if not (start.isdecimal() and end.isdecimal() and 0 <= int(start) < int(end) <= len(text)):
        raise DataError(
            f"{data}: item '{item['id']}' marks no word of its sentence {number}; mend its offsets"
        )
    return Use(text, int(start), int(end))


def _text(item: Mapping[str, Any], field: str, file: File) -> str:
    if field not in item:
        raise DataError(f"{file}: an item has no '{field}'; give a JSON file of MCL-WiC's form")
    return str(item[field])
