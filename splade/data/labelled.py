"""Tables of named columns as labelled texts and tagged sentences.

1. Training rows without text are left out and counted; rows to evaluate on are all kept. All rows are to
   evaluate on where the labels of a trained model are given.
2. A label is a string or a whole number, and its name is its text; names sort by value if all are whole.
3. Several labels a text come as a list, or as one string split at | or ;. Without being told, strings are
   split only if at least half of the pieces also stand in other strings: names that hold a mark do not so.
4. Tags in any scheme become BIO; every entity type of the training rows has both B- and I-.
5. A label that the training rows lack is an error: a model could never predict it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from splade.data.files import Table, short
from splade.data.rows import Dataset, Sentences, Texts
from splade.data.tagging import OUTSIDE, detect_scheme, parse_tag, to_bio
from splade.errors import DataError

_SEPARATORS = "|;"


@dataclass
class Counts:
    """What was mended on the way in."""

    dropped_empty: int = 0
    nul_removed: int = 0


@dataclass(frozen=True)
class _Writing:
    """How the labels of a text are written: one, or several in a list or between separators."""

    several: bool
    separator: str | None = None

    def __str__(self) -> str:
        return f"split at {self.separator!r}" if self.separator else "given as lists"


@dataclass(frozen=True)
class _Part:
    """The usable rows of one table: texts with the names of their labels."""

    table: Table
    texts: list[str] = field(default_factory=list)
    labels: list[list[str]] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)


def text_value(table: Table, row: int, column: str, counts: Counts) -> str:
    """A cell as text without NULs; "" where nothing is there; a list of words joined by spaces."""
    value = table.rows[row].get(column)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        value = " ".join(value)
    if not isinstance(value, str | int | float):
        raise DataError(f"{table.at(row)}: {column} is {short(value)}; give text")
    return _clean(table, row, str(value), counts)


def classification(
    name: str,
    tables: dict[str, Table],
    text: str,
    label: str,
    labels: list[str] | None = None,
    multi_label: bool | None = None,
) -> Dataset:
    """Labelled texts; label ids follow `labels`, or the names of the training labels.

    Whether a text has several labels is seen in the column, unless `multi_label` says so.
    """
    counts = Counts(nul_removed=sum(table.nuls for table in tables.values()))
    writing = _find_writing(tables.values(), label, multi_label, labels or [])
    parts = {
        split: _labelled_texts(table, text, label, writing, split == "train" and not labels, counts)
        for split, table in tables.items()
    }
    train = parts["train"]
    names = labels or _sorted_names({name for row in train.labels for name in row})
    if len(names) < 2:
        found = short(names[0]) if names else "no row with text"
        raise DataError(
            f"{train.table.path}: training needs two classes and has {found}; add rows of another"
        )
    ids = {label_name: i for i, label_name in enumerate(names)}
    texts = {split: _texts(part, ids, writing.several) for split, part in parts.items()}
    about: dict[str, object] = {"dropped_empty": counts.dropped_empty, "nul_removed": counts.nul_removed}
    return Dataset(
        name,
        "classification",
        names,
        texts["train"],
        texts.get("test"),
        texts.get("validation"),
        about | ({"several_labels": str(writing)} if writing.several else {}),
    )


def tagging(
    name: str, tables: dict[str, Table], words: str, tags: str, labels: list[str] | None = None
) -> Dataset:
    """Tagged sentences in BIO; labels are `labels`, or O and then B- and I- of each type in training."""
    counts = Counts(nul_removed=sum(table.nuls for table in tables.values()))
    sentences = {
        split: _sentences(table, words, tags, split == "train" and not labels, counts)
        for split, table in tables.items()
    }
    scheme = detect_scheme([tag_list for split in sentences.values() for tag_list in split.tags])
    kinds = _kinds([labels or []]) or _kinds(sentences["train"].tags)
    if not kinds:
        raise DataError(
            f"{tables['train'].path}: no sentence for training has an entity; add tagged sentences"
        )
    for split, rows in sentences.items():
        if labels or split != "train":
            _refuse_new_kinds(tables[split], rows, set(kinds))
    bio = {
        split: Sentences(rows.words, [to_bio(tag_list) for tag_list in rows.tags])
        for split, rows in sentences.items()
    }
    return Dataset(
        name,
        "tagging",
        labels or [OUTSIDE, *(f"{prefix}-{kind}" for kind in kinds for prefix in "BI")],
        bio["train"],
        bio.get("test"),
        bio.get("validation"),
        {"scheme": scheme, "dropped_empty": counts.dropped_empty, "nul_removed": counts.nul_removed},
    )


def _find_writing(
    tables: Iterable[Table], column: str, multi_label: bool | None, known: Sequence[str]
) -> _Writing:
    if multi_label is False:
        return _Writing(False)
    cells = [row.get(column) for table in tables for row in table.rows]
    if any(isinstance(cell, list) for cell in cells):
        return _Writing(True)
    texts = {cell for cell in cells if isinstance(cell, str)} - set(known)
    for separator in _SEPARATORS:
        if _recur(texts, separator) or (multi_label and any(separator in text for text in texts)):
            return _Writing(True, separator)
    return _Writing(bool(multi_label))


def _recur(texts: set[str], separator: str) -> bool:
    """Whether at least half of the pieces that the separator makes stand in more than one text."""
    pieces = [{piece.strip() for piece in text.split(separator)} - {""} for text in texts]
    frequency = Counter(piece for found in pieces for piece in found)
    joined = {piece for found in pieces if len(found) > 1 for piece in found}
    return bool(joined) and 2 * sum(frequency[piece] > 1 for piece in joined) >= len(joined)


def _labelled_texts(
    table: Table, text: str, label: str, writing: _Writing, drop_empty: bool, counts: Counts
) -> _Part:
    part = _Part(table)
    for row in range(len(table.rows)):
        value = text_value(table, row, text, counts)
        if drop_empty and not value.strip():
            counts.dropped_empty += 1
            continue
        part.texts.append(value)
        part.labels.append(_label_names(table, row, label, writing, counts))
        part.rows.append(row)
    return part


def _label_names(table: Table, row: int, column: str, writing: _Writing, counts: Counts) -> list[str]:
    """The names in a cell, each once; of several there may be none."""
    cell = table.rows[row].get(column)
    values = cell if isinstance(cell, list) and writing.several else [cell]
    if isinstance(cell, str) and writing.several:
        pieces = cell.split(writing.separator) if writing.separator else [cell]
        values = [piece for piece in pieces if piece.strip()]
    return list(dict.fromkeys(_label_name(table, row, column, value, counts) for value in values))


def _label_name(table: Table, row: int, column: str, value: object, counts: Counts) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # a whole-number column with a gap comes as floats
    if value is None or str(value).strip().lower() in ("", "nan"):
        raise DataError(f"{table.at(row)}: has no {column}; fill it in or remove the row")
    if not isinstance(value, str | int):
        raise DataError(f"{table.at(row)}: {column} is {short(value)}; give one string or whole number")
    return _clean(table, row, str(value), counts).strip()


def _clean(table: Table, row: int, text: str, counts: Counts) -> str:
    """The text without NULs; half a surrogate pair, which no tokenizer takes, is refused."""
    counts.nul_removed += text.count("\0")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DataError(
            f"{table.at(row)}: holds half a surrogate pair; write the character in full"
        ) from None
    return text.replace("\0", "")


def _sorted_names(names: set[str]) -> list[str]:
    """By value if all are whole numbers, else by text."""
    if all(re.fullmatch(r"-?[0-9]{1,18}", name) for name in names):
        return sorted(names, key=lambda name: (int(name), name))
    return sorted(names)


def _texts(part: _Part, ids: dict[str, int], several: bool) -> Texts:
    for row, names in zip(part.rows, part.labels, strict=True):
        for name in names:
            if name not in ids:
                raise _unknown(part.table, row, name, ids)
    labels = [[ids[name] for name in names] for names in part.labels]
    return Texts(part.texts, label_sets=labels) if several else Texts(part.texts, [i for (i,) in labels])


def _unknown(table: Table, row: int, name: str, known: Iterable[str]) -> DataError:
    return DataError(
        f"{table.at(row)}: label {short(name)} is not among the training labels "
        f"({listed(known)}); correct it, remove the row, or add training rows with it"
    )


def listed(names: Iterable[str]) -> str:
    """Names for a message, the first ten of them."""
    shown = [short(name) for name in names]
    return ", ".join(shown[:10]) + (f", … ({len(shown)} in all)" if len(shown) > 10 else "")


def _sentences(table: Table, words: str, tags: str, drop_empty: bool, counts: Counts) -> Sentences:
    kept = Sentences([], [])
    for row in range(len(table.rows)):
        row_words, row_tags = _strings(table, row, words), _strings(table, row, tags)
        if len(row_words) != len(row_tags):
            raise DataError(
                f"{table.at(row)}: has {len(row_words)} words, {len(row_tags)} tags; give each word one tag"
            )
        if drop_empty and not "".join(row_words).strip():
            counts.dropped_empty += 1
            continue
        kept.words.append([_clean(table, row, word, counts) for word in row_words])
        kept.tags.append([_clean(table, row, tag, counts) for tag in row_tags])
        _check_tags(table, row, kept.tags[-1])
    return kept


def _strings(table: Table, row: int, column: str) -> list[str]:
    value = table.rows[row].get(column)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise DataError(
            f"{table.at(row)}: {column} is {short(value)}; tagging needs a list of strings, "
            "or a .conll file with a word and its tag on each line"
        )
    return value


def _check_tags(table: Table, row: int, tags: Sequence[str]) -> None:
    for position, tag in enumerate(tags, 1):
        try:
            parse_tag(tag)
        except DataError as error:
            raise DataError(f"{table.at(row)}, word {position}: {error}") from None


def _kinds(tag_lists: Iterable[Sequence[str]]) -> list[str]:
    return sorted({parse_tag(tag)[1] for tags in tag_lists for tag in tags} - {""})


def _refuse_new_kinds(table: Table, sentences: Sentences, known: set[str]) -> None:
    for row, tags in enumerate(sentences.tags):  # all rows of the table: only train drops some
        for kind in _kinds([tags]):
            if kind not in known:
                raise _unknown(table, row, kind, sorted(known))
