"""Local files, folders and embedded corpora as datasets, and texts to predict on.

1. A path is one file, or a folder with train.* and optionally validation.* (dev.*, valid.*) and test.*.
2. The text and label columns are those named, else guessed from common names and reported in `about`.
3. The rows of each split are read, checked and labelled.
4. A limit samples the training rows by class.
5. A missing validation split is held out of the training rows by class; a missing test split stays None.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

from splade.data import sampling
from splade.data.files import Table, bare_name, decode, numbered_lines, short, text_lines
from splade.data.labelled import Counts, classification, listed, tagging, text_value
from splade.data.readers import WHOLE_LINE, all_keys, file_kind, json_objects, line_table, read_table
from splade.data.rows import Dataset, Task
from splade.errors import ConfigError, DataError

EMBEDDED = ("reviews", "topics", "tagging")
_SPLITS = {
    "train": ("train",),
    "validation": ("validation", "dev", "valid", "testa"),
    "test": ("test", "testb"),
}
_WORD_NAMES = ("words", "tokens")
_TEXT_NAMES = ("text", "sentence", "review", "content", "tweet")
_LABEL_NAMES = ("label", "class", "category", "target", "labels")
_TAG_NAMES = ("tags", "ner_tags", "labels")


def load_dataset(
    path: str | Path,
    *,
    text: str | None = None,
    label: str | None = None,
    task: Task | None = None,
    limit: int | None = None,
    validation_share: float = 0.1,
    seed: int = 0,
    labels: list[str] | None = None,
    multi_label: bool | None = None,
) -> Dataset:
    """Train, validation and test rows of a file, a folder or an embedded corpus.

    A column given as a number is a position (from 1) in a CSV or TSV file without a header line.
    `limit` rows are drawn from the training split before validation rows are held out of it. `labels` are
    those of a trained model, which rows to evaluate it on keep to; without them the training rows say.
    `multi_label` says whether a text may have several labels; without it the label column says.
    """
    if limit is not None and limit < 1:
        raise ConfigError(f"limit is {limit}; give a number of training rows from 1, or none for all")
    if not 0 <= validation_share < 1:
        raise ConfigError(f"validation_share is {validation_share}; give a share from 0 to below 1")
    if str(path) in EMBEDDED:
        from splade.data.corpora import load_corpus

        dataset = load_corpus(str(path), seed=seed)
        if task not in (None, dataset.task):
            raise ConfigError(f"the corpus {path} is for {dataset.task}, not {task}; leave the task out")
        if multi_label:
            raise ConfigError(f"the corpus {path} has one label a text; leave multi_label out")
        if labels not in (None, dataset.label_names):
            found = ", ".join(dataset.label_names)
            raise DataError(f"the corpus {path} has the labels {found}, which are not the model's")
    else:
        dataset = _load_files(Path(path), text, label, task, labels, multi_label)
    return divide(dataset, limit, validation_share, seed)


def read_texts(path_or_dash: str | Path, text: str | None = None) -> list[str]:
    """Texts to predict on, empty ones kept: from any kind of data file, a .txt line each, or "-" for stdin.

    Lines of stdin are JSON objects if the first of them is, else plain texts.
    """
    if str(path_or_dash) == "-":
        table = _stdin_table()
    else:
        table = read_table(Path(path_or_dash), header=not _is_position(text))
    text = None if table.columns == [WHOLE_LINE] else text  # a plain line has no column to name
    column, _ = _choose(table, text, (WHOLE_LINE, *_TEXT_NAMES, *_WORD_NAMES), "text")
    counts = Counts()
    return [text_value(table, row, column, counts) for row in range(len(table.rows))]


def _stdin_table() -> Table:
    content, nuls = decode(sys.stdin.buffer.read(), "standard input")
    lines, path = text_lines(content), Path("standard input")
    if not lines:
        raise DataError("standard input is empty; pipe in one text or one JSON object per line")
    numbered = numbered_lines(content)
    try:
        json_objects(numbered[:1], path)
    except DataError:
        numbered = []  # not JSON: plain texts, as blank lines alone are
    if not numbered:
        return line_table(path, lines, nuls)
    rows, numbers = json_objects(numbered, path)
    return Table(path, "line", all_keys(rows), rows, numbers, nuls)


def _load_files(
    path: Path,
    text: str | None,
    label: str | None,
    task: Task | None,
    labels: list[str] | None,
    multi_label: bool | None,
) -> Dataset:
    files = _find_splits(path, task)
    header = not (_is_position(text) or _is_position(label))
    tables = {split: read_table(file, kind=_kind(file, task), header=header) for split, file in files.items()}
    for table in tables.values():
        _refuse_plain_lines(table)
    task = task or _guess_task(tables["train"], text, label)
    text_names, label_names = (
        (_TEXT_NAMES, _LABEL_NAMES) if task == "classification" else (_WORD_NAMES, _TAG_NAMES)
    )
    text, text_guessed = _choose(tables["train"], text, text_names, "text")
    label, label_guessed = _choose(tables["train"], label, label_names, "label")
    if text == label:
        raise DataError(f"{path}: text and label are both column {short(text)}; name two columns")
    for table in tables.values():
        _choose(table, text, (), "text")
        _choose(table, label, (), "label")
    name = path.resolve().name if path.is_dir() else Path(bare_name(path)).stem
    if task == "tagging":
        if multi_label:
            raise ConfigError("a word has one tag; leave multi_label out, or set the task to classification")
        dataset = tagging(name, tables, text, label, labels)
    else:
        dataset = classification(name, tables, text, label, labels, multi_label)
    about = {
        "files": {split: file.name for split, file in files.items()},
        "columns": {"text": text, "label": label},
        "guessed": [role for role, by_us in (("text", text_guessed), ("label", label_guessed)) if by_us],
        **dataset.about,
    }
    return dataclasses.replace(dataset, about=about)


def _find_splits(path: Path, task: Task | None) -> dict[str, Path]:
    """The file of each split that is there; a lone file is the training split."""
    try:
        there = path.exists()
        inside = sorted(path.iterdir()) if path.is_dir() else None
    except OSError as error:
        raise DataError(f"{short(str(path))}: cannot be read ({error.strerror}); check the path") from None
    if not there:
        raise DataError(
            f"{path}: no such file or folder; give a .csv, .tsv, .jsonl, .json, .parquet or .conll file, "
            f"a folder with train.*, or one of {', '.join(EMBEDDED)}"
        )
    if inside is None:
        return {"train": path}
    files = [file for file in inside if _kind(file, task) not in (None, ".txt")]
    found = {split: [file for file in files if _is_split(file, split)] for split in _SPLITS}
    for split, candidates in found.items():
        if len(candidates) > 1:
            names = listed(file.name for file in candidates)
            raise DataError(f"{path}: {names} could each be the {split} split; leave one of them there")
    if not found["train"]:
        names = listed(file.name for file in files) or "no data file"
        raise DataError(
            f"{path}: has no training file (found {names}); name it train.csv or train.jsonl, say"
        )
    return {split: candidates[0] for split, candidates in found.items() if candidates}


def _is_split(file: Path, split: str) -> bool:
    """Whether a name like train.csv, dev.tsv.gz or eng.testa is that of the split."""
    bare = Path(bare_name(file))
    return bare.stem in _SPLITS[split] or bare.suffix[1:] in _SPLITS[split]


def _kind(file: Path, task: Task | None) -> str | None:
    """How a file is read: for tagging a .txt file holds CoNLL columns."""
    kind = file_kind(file)
    return ".conll" if kind == ".txt" and task == "tagging" else kind


def _refuse_plain_lines(table: Table) -> None:
    if table.columns == [WHOLE_LINE]:
        raise DataError(
            f"{table.path}: plain lines have no labels; give a .csv, .tsv or .jsonl file with a text and a "
            "label column, or say that the task is tagging if the lines are CoNLL columns"
        )


def _guess_task(table: Table, text: str | None, label: str | None) -> Task:
    """Tagging if words and tags both come as lists, as they do in every CoNLL file."""

    def lists(given: str | None, names: Sequence[str]) -> bool:
        return any(isinstance(table.rows[0].get(column), list) for column in ([given] if given else names))

    return "tagging" if lists(text, _WORD_NAMES) and lists(label, _TAG_NAMES) else "classification"


def _is_position(column: str | None) -> bool:
    return column is not None and column.isdecimal()


def _choose(table: Table, given: str | None, names: Sequence[str], role: str) -> tuple[str, bool]:
    """The column named, else the first common name there is; and whether that was a guess."""
    columns = f"columns found: {listed(table.columns)}"
    if given is not None:
        if given not in table.columns:
            raise DataError(f"{table.path}: has no column {given!r}; {columns}; give one of them as {role}")
        return given, False
    known = {column.lower(): column for column in reversed(table.columns)}
    for name in names:
        if name in known:
            return known[name], True
    raise DataError(
        f"{table.path}: cannot tell which column is the {role}; {columns}; "
        f"name it as {role}, or give its number if the file has no header line"
    )


def divide(dataset: Dataset, limit: int | None, share: float, seed: int) -> Dataset:
    """The training rows sampled down to `limit`, and validation rows held out where there are none."""
    train, validation, about = dataset.train, dataset.validation, dict(dataset.about)
    if limit is not None and limit < len(train):
        train = train.take(sampling.sample(train.marks(), limit, seed))
        about["limit"] = limit
    about["validation"] = "given" if validation is not None else "none"
    if validation is None:
        kept, held = sampling.hold_out(train.marks(), train.keys(), share, seed)
        if held:
            train, validation = train.take(kept), train.take(held)
            about["validation"] = f"{len(held)} rows held out of train"
    return dataclasses.replace(dataset, train=train, validation=validation, about=about)
