"""Texts with several labels, however the labels are written, and class names that only look like several."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from splade.data.datasets import load_dataset
from splade.data.rows import Dataset, Texts
from splade.errors import ConfigError, DataError

SEVERAL = [("x", ["b", "a"]), ("y", []), ("z", ["c"]), ("w", ["a", "c"])]


def put(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


def csv_of(rows: list[tuple[str, str]]) -> str:
    return "text,label\n" + "".join(f"{text},{label}\n" for text, label in rows)


def numbered(count: int) -> list[tuple[str, str]]:
    """Distinct texts whose classes alternate."""
    return [(f"text {i}", "ab"[i % 2]) for i in range(count)]


def several(dataset: Dataset, split: str = "train") -> list[tuple[str, list[str]]]:
    rows = dataset.splits()[split]
    assert isinstance(rows, Texts)
    assert not rows.labels
    names = [[dataset.label_names[i] for i in ids] for ids in rows.label_sets]
    return list(zip(rows.texts, names, strict=True))


def write_several(path: Path, form: str) -> Path:
    if form == "jsonl":
        return put(path / "a.jsonl", "\n".join(json.dumps({"text": t, "label": ls}) for t, ls in SEVERAL))
    if form == "parquet":
        table = pyarrow.table({"text": [t for t, _ in SEVERAL], "labels": [ls for _, ls in SEVERAL]})
        pyarrow.parquet.write_table(table, path / "a.parquet")
        return path / "a.parquet"
    return put(path / "a.csv", csv_of([(t, f" {form} ".join(ls)) for t, ls in SEVERAL]))


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("jsonl", "given as lists"),
        ("parquet", "given as lists"),
        ("|", "split at '|'"),
        (";", "split at ';'"),
    ],
)
def test_several_labels_come_from_every_form(form: str, said: str, tmp_path: Path) -> None:
    dataset = load_dataset(write_several(tmp_path, form), validation_share=0)
    assert dataset.multi_label
    assert dataset.task == "classification"
    assert dataset.label_names == ["a", "b", "c"]
    assert several(dataset) == SEVERAL
    assert dataset.about["several_labels"] == said


def test_one_label_a_text_is_no_several_labels(tmp_path: Path) -> None:
    dataset = load_dataset(put(tmp_path / "a.csv", csv_of(numbered(4))), validation_share=0)
    assert not dataset.multi_label
    assert "several_labels" not in dataset.about


@pytest.mark.parametrize(
    "names",
    [
        ["Arts; crafts", "Sports", "News; local"],
        ["yes|no", "perhaps"],
        ["Sport; ball", "Sport; water", "Art; oil"],
    ],
)
def test_class_names_that_hold_a_mark_stay_whole(names: list[str], tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", csv_of([(f"t{i}", names[i % len(names)]) for i in range(9)]))
    dataset = load_dataset(path, validation_share=0)
    assert not dataset.multi_label
    assert dataset.label_names == sorted(names)


def test_what_is_said_decides_how_labels_are_read(tmp_path: Path) -> None:
    path = write_several(tmp_path, "|")
    single = load_dataset(put(tmp_path / "b.csv", csv_of([("x", "a | b"), ("y", "a")])), multi_label=False)
    assert single.label_names == ["a", "a | b"]
    assert load_dataset(path, multi_label=True, validation_share=0) == load_dataset(path, validation_share=0)
    plain = load_dataset(put(tmp_path / "c.csv", csv_of(numbered(4))), multi_label=True, validation_share=0)
    assert several(plain) == [(text, [label]) for text, label in numbered(4)]


def test_labels_of_a_trained_model_stay_whole_and_in_its_order(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", csv_of([("x", "a|b"), ("y", "b"), ("z", "a")]))
    known = ["b", "a", "a|b"]
    single = load_dataset(path, labels=known, validation_share=0)
    assert isinstance(single.train, Texts)
    assert single.train.labels == [2, 0, 1]
    split = load_dataset(path, labels=["b", "a"], multi_label=True, validation_share=0)
    assert several(split) == [("x", ["a", "b"]), ("y", ["b"]), ("z", ["a"])]


def test_a_label_of_several_that_train_lacks_is_named(tmp_path: Path) -> None:
    put(tmp_path / "train.csv", csv_of([("x", "a|b"), ("y", "b|a"), ("z", "a")]))
    put(tmp_path / "test.csv", csv_of([("x", "a|d")]))
    with pytest.raises(DataError, match=r"test.csv, line 2: label 'd' is not among .*\('a', 'b'\)"):
        load_dataset(tmp_path)


def test_a_label_given_twice_is_one_and_whole_numbers_are_names(tmp_path: Path) -> None:
    lines = ['{"text": "x", "label": [10, "2", 2.0]}', '{"text": "y", "label": [2]}']
    dataset = load_dataset(put(tmp_path / "a.jsonl", "\n".join(lines)), validation_share=0)
    assert dataset.label_names == ["2", "10"]
    assert several(dataset) == [("x", ["10", "2"]), ("y", ["2"])]


def test_held_out_and_sampled_rows_keep_their_labels(tmp_path: Path) -> None:
    rows = [(f"text {i}", ["|".join(c for k, c in enumerate("abc") if i >> k & 1)]) for i in range(80)]
    path = put(tmp_path / "a.csv", csv_of([(text, labels[0]) for text, labels in rows]))
    dataset = load_dataset(path, limit=40, validation_share=0.25)
    expected = {text: sorted(filter(None, labels[0].split("|"))) for text, labels in rows}
    found = several(dataset) + several(dataset, "validation")
    assert len(found) == 40
    assert all(labels == expected[text] for text, labels in found)
    assert {label for _, labels in several(dataset) for label in labels} == {"a", "b", "c"}


def test_tags_and_embedded_corpora_have_no_several_labels(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="leave multi_label out"):
        load_dataset("reviews", multi_label=True)
    with pytest.raises(ConfigError, match="leave multi_label out"):
        load_dataset(put(tmp_path / "a.conll", "Paris B-LOC\nrains O\n"), multi_label=True)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('{"text": "x", "label": [["a"], "b"]}', r"line 1: label is \['a'\]; give one string"),
        ('{"text": "x", "label": ["a", "b"]}\n{"text": "y"}', "line 2: has no label; fill it in"),
        ('{"text": "x", "label": ["a"]}', "two classes and has 'a'; add rows of another"),
    ],
)
def test_labels_that_cannot_be_several_are_told(lines: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        load_dataset(put(tmp_path / "a.jsonl", lines))
