"""Files and folders become datasets, and whatever is wrong with one is told in a single line."""

from __future__ import annotations

import gzip
import io
import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from splade.data.datasets import load_dataset, read_texts
from splade.data.rows import Dataset, Sentences, Texts
from splade.errors import ConfigError, DataError

CONLL = "EU NNP B-ORG\nrejects VBZ O\n\nPeter NNP B-PER\nspoke VBD O\n\nrain NN O\n"
EMOJI = "😀🎉👩‍👩‍👧"


def put(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def csv_of(rows: list[tuple[str, str]], header: str = "text,label\n") -> str:
    return header + "".join(f"{text},{label}\n" for text, label in rows)


def numbered(count: int, classes: str = "ab") -> list[tuple[str, str]]:
    """Distinct texts whose classes alternate."""
    return [(f"text {i}", classes[i % len(classes)]) for i in range(count)]


def pairs(dataset: Dataset, split: str = "train") -> list[tuple[str, str]]:
    rows = dataset.splits()[split]
    assert isinstance(rows, Texts)
    return [(text, dataset.label_names[label]) for text, label in zip(rows.texts, rows.labels, strict=True)]


def refused(path: Path, **options: object) -> str:
    """The one line that a `DataError` says."""
    with pytest.raises(DataError) as caught:
        load_dataset(path, **options)
    assert "\n" not in str(caught.value)
    assert ";" in str(caught.value), "the message says what is wrong; then what to do"
    return str(caught.value)


# --- columns and splits -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("text,label", ("text", "label")),
        ("Sentence,CLASS", ("Sentence", "CLASS")),
        ("review,category", ("review", "category")),
        ("content,target", ("content", "target")),
    ],
)
def test_common_column_names_are_guessed_and_reported(
    header: str, columns: tuple[str, str], tmp_path: Path
) -> None:
    dataset = load_dataset(put(tmp_path / "a.csv", csv_of(numbered(4), header + "\n")), validation_share=0)
    assert dataset.about["columns"] == {"text": columns[0], "label": columns[1]}
    assert dataset.about["guessed"] == ["text", "label"]
    assert pairs(dataset) == numbered(4)
    assert (dataset.name, dataset.task, dataset.label_names) == ("a", "classification", ["a", "b"])


def test_named_columns_win_over_common_names(tmp_path: Path) -> None:
    content = "text,label,body,stars\n" + "".join(f"x,y,{text},{label}\n" for text, label in numbered(4))
    dataset = load_dataset(put(tmp_path / "a.csv", content), text="body", label="stars", validation_share=0)
    assert pairs(dataset) == numbered(4)
    assert dataset.about["guessed"] == []


def test_a_file_without_header_is_read_by_position(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", "".join(f"{label},7,{text}\n" for text, label in numbered(4)))
    assert pairs(load_dataset(path, text="3", label="1", validation_share=0)) == numbered(4)


def test_a_folder_has_its_splits(tmp_path: Path) -> None:
    for name in ("train", "dev", "test"):
        put(
            tmp_path / "mine" / f"{name}.csv",
            csv_of([(f"{name} {i}", label) for i, label in enumerate("ab")]),
        )
    put(tmp_path / "mine" / "README.md", "not data")
    put(tmp_path / "mine" / "notes.txt", "not data")
    dataset = load_dataset(tmp_path / "mine")
    assert dataset.name == "mine"
    for split, name in {"train": "train", "validation": "dev", "test": "test"}.items():
        assert pairs(dataset, split) == [(f"{name} 0", "a"), (f"{name} 1", "b")]
    assert dataset.about["validation"] == "given"
    assert dataset.about["files"] == {"train": "train.csv", "validation": "dev.csv", "test": "test.csv"}


def test_splits_may_differ_in_kind_compression_and_name(tmp_path: Path) -> None:
    put(tmp_path / "Train.TSV", "text\tlabel\nx\ta\ny\tb\n")
    put(tmp_path / "valid.jsonl", '{"text": "z", "label": "a"}\n')
    put(tmp_path / "test.csv.gz", gzip.compress(csv_of([("w", "b")]).encode()))
    dataset = load_dataset(tmp_path)
    assert pairs(dataset, "validation") == [("z", "a")]
    assert pairs(dataset, "test") == [("w", "b")]


def test_conll_files_are_tagging_whatever_their_ending(tmp_path: Path) -> None:
    for name in ("eng.train", "eng.testa", "eng.testb"):
        put(tmp_path / name, CONLL)
    dataset = load_dataset(tmp_path)
    assert (dataset.task, dataset.about["scheme"]) == ("tagging", "BIO")
    assert dataset.label_names == ["O", "B-ORG", "I-ORG", "B-PER", "I-PER"]
    assert list(dataset.splits()) == ["train", "validation", "test"]
    assert isinstance(dataset.train, Sentences)
    assert dataset.train.words[0] == ["EU", "rejects"]
    assert dataset.train.tags[0] == ["B-ORG", "O"]


def test_plain_text_files_are_conll_columns_when_tagging(tmp_path: Path) -> None:
    for name in ("train.txt", "dev.txt"):
        put(tmp_path / name, CONLL)
    assert len(load_dataset(tmp_path, task="tagging").train) == 3


def test_lists_of_words_and_tags_are_tagging(tmp_path: Path) -> None:
    lines = [{"tokens": ["Peter", "spoke"], "ner_tags": ["S-PER", "O"]}, {"tokens": ["x"], "ner_tags": ["O"]}]
    path = put(tmp_path / "a.jsonl", "\n".join(map(json.dumps, lines)))
    dataset = load_dataset(path, validation_share=0)
    assert isinstance(dataset.train, Sentences)
    assert dataset.train.tags == [["B-PER", "O"], ["O"]]
    assert dataset.about["scheme"] == "BIOES"


def test_an_embedded_corpus_refuses_another_task() -> None:
    with pytest.raises(ConfigError, match="is for classification, not tagging"):
        load_dataset("reviews", task="tagging")


# --- labels -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "order"),
    [
        (["10", "9", "2", "-1"], ["-1", "2", "9", "10"]),
        (["b", "10", "9"], ["10", "9", "b"]),
        (["neg", "Pos", "éclair"], ["Pos", "neg", "éclair"]),
    ],
)
def test_whole_numbers_sort_by_value_and_other_names_by_text(
    labels: list[str], order: list[str], tmp_path: Path
) -> None:
    path = put(tmp_path / "a.csv", csv_of([(f"t{i}", label) for i, label in enumerate(labels)]))
    dataset = load_dataset(path, validation_share=0)
    assert dataset.label_names == order
    assert [label for _, label in pairs(dataset)] == labels


def test_whole_numbers_are_one_label_however_they_are_stored(tmp_path: Path) -> None:
    lines = ['{"text": "x", "label": 1}', '{"text": "y", "label": 1.0}', '{"text": "z", "label": "0"}']
    dataset = load_dataset(put(tmp_path / "a.jsonl", "\n".join(lines)), validation_share=0)
    assert dataset.label_names == ["0", "1"]


def test_training_rows_without_text_are_dropped_and_test_rows_kept(tmp_path: Path) -> None:
    put(tmp_path / "train.csv", csv_of([*numbered(4), (" ", "a"), ("", "b")]))
    put(tmp_path / "test.csv", csv_of([("", "a"), ("x", "b")]))
    dataset = load_dataset(tmp_path, validation_share=0)
    assert len(dataset.train) == 4
    assert dataset.about["dropped_empty"] == 2
    assert pairs(dataset, "test") == [("", "a"), ("x", "b")]


# --- limits and validation rows ---------------------------------------------------------------------------


def test_a_limit_keeps_the_proportions_of_the_classes(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", csv_of(numbered(400, "aaab")))
    dataset = load_dataset(path, limit=100, validation_share=0)
    assert Counter(label for _, label in pairs(dataset)) == {"a": 75, "b": 25}
    assert dataset.about["limit"] == 100


def test_a_limit_never_loses_a_class(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", csv_of([*numbered(500, "a"), ("rare", "b")]))
    assert load_dataset(path, limit=2, validation_share=0).label_names == ["a", "b"]
    assert ("rare", "b") in pairs(load_dataset(path, limit=2, validation_share=0))
    with pytest.raises(ConfigError, match="set it to 2 or more"):
        load_dataset(path, limit=1)


def test_a_limit_above_the_rows_changes_nothing(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", csv_of(numbered(6)))
    assert pairs(load_dataset(path, limit=10, validation_share=0)) == numbered(6)


def test_validation_rows_are_held_out_of_train_by_class(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", csv_of(numbered(200, "aaab")))
    dataset = load_dataset(path, validation_share=0.2)
    held = pairs(dataset, "validation")
    assert len(held) == 40
    assert abs(Counter(label for _, label in held)["b"] - 10) <= 1
    assert sorted(pairs(dataset) + held) == sorted(numbered(200, "aaab"))
    assert dataset.about["validation"] == "40 rows held out of train"
    assert dataset.test is None


def test_the_same_text_is_never_in_both_train_and_validation(tmp_path: Path) -> None:
    copies = [(text, label) for text, label in numbered(50) for _ in range(3)]
    shouted = [(f"  {text.upper()} ", label) for text, label in numbered(50)]
    dataset = load_dataset(put(tmp_path / "a.csv", csv_of([*copies, *shouted])), validation_share=0.3)
    assert dataset.validation is not None
    kept, held = ({text.strip().lower() for text, _ in pairs(dataset, split)} for split in dataset.splits())
    assert not kept & held
    assert len(dataset.train) + len(dataset.validation) == 200


def test_one_text_repeated_most_often_stays_in_train(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", csv_of([("ok", "a")] * 900 + numbered(100)))
    for seed in range(20):
        assert len(load_dataset(path, seed=seed).train) >= 900


def test_the_seed_decides_which_rows_are_held_out(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", csv_of(numbered(100)))
    assert load_dataset(path, seed=1) == load_dataset(path, seed=1)
    assert load_dataset(path, seed=1).validation != load_dataset(path, seed=2).validation


def test_without_rows_to_spare_nothing_is_held_out(tmp_path: Path) -> None:
    dataset = load_dataset(put(tmp_path / "a.csv", csv_of(numbered(2))))
    assert (len(dataset.train), dataset.validation, dataset.about["validation"]) == (2, None, "none")


@pytest.mark.parametrize("options", [{"limit": 0}, {"validation_share": 1.0}, {"validation_share": -0.1}])
def test_a_setting_out_of_range_is_refused(options: dict[str, float], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="give a"):
        load_dataset(put(tmp_path / "a.csv", csv_of(numbered(4))), **options)


# --- hostile input that is data all the same --------------------------------------------------------------


def test_a_megabyte_of_text_and_only_emoji_are_texts(tmp_path: Path) -> None:
    rows = [("word " * 200_000 + "end", "a"), (EMOJI, "b"), ("<script>alert(1)</script>", "a"), ("=1+1", "b")]
    assert pairs(load_dataset(put(tmp_path / "a.csv", csv_of(rows)), validation_share=0)) == rows


def test_nuls_are_removed_from_texts_labels_and_tags(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a.jsonl", '{"text": "a\\u0000b", "label": "x\\u0000"}\n{"text": "c", "label": "y"}'
    )
    dataset = load_dataset(path, validation_share=0)
    assert pairs(dataset) == [("ab", "x"), ("c", "y")]
    assert dataset.about["nul_removed"] == 2
    line = '{"words": ["Eu\\u0000"], "tags": ["B-ORG\\u0000"]}\n'
    for split in ("train", "test"):
        put(tmp_path / "tags" / f"{split}.jsonl", line)
    dataset = load_dataset(tmp_path / "tags")
    assert (dataset.train, dataset.test) == (Sentences([["Eu"]], [["B-ORG"]]),) * 2
    assert dataset.label_names == ["O", "B-ORG", "I-ORG"]


# --- bad input --------------------------------------------------------------------------------------------

GOOD = csv_of(numbered(4))
HALF = '{"text": "x", "label": "a"}\n{"text": "\\ud83d", "label": "b"}\n'
WRONG: dict[str, tuple[str, str | bytes, dict[str, object], str]] = {
    "wrong text column": ("a.csv", GOOD, {"text": "body"}, r"no column 'body'; .*'text', 'label'.* as text"),
    "wrong label column": ("a.csv", GOOD, {"label": "y"}, r"no column 'y'; .*'text', 'label'.* as label"),
    "no common name": ("a.csv", csv_of(numbered(4), "x,y\n"), {}, r"which column is the text; .*'x', 'y'"),
    "position past the last": (
        "a.csv",
        "x,a\ny,b\n",
        {"text": "3", "label": "2"},
        r"no column '3'.*'1', '2'",
    ),
    "position 0": ("a.csv", "x,a\ny,b\n", {"text": "0", "label": "1"}, r"no column '0'.*'1', '2'"),
    "one column twice": ("a.csv", GOOD, {"text": "label"}, "text and label are both column 'label'"),
    "one class": ("a.csv", csv_of(numbered(4, "a")), {}, "two classes and has 'a'; add rows of another"),
    "one class with text": ("a.csv", csv_of([("x", "a"), ("", "b")]), {}, "two classes and has 'a'"),
    "no text at all": ("a.csv", csv_of([("", "a"), (" ", "b")]), {}, "no row with text; add rows"),
    "label gap": ("a.csv", csv_of([("x", "a"), ("y", " "), ("z", "b")]), {}, "line 3: has no label; fill"),
    "label gap in JSON": (
        "a.jsonl",
        '{"text": "x", "label": "a"}\n{"text": "y"}',
        {},
        "line 2: has no label",
    ),
    "label null": ("a.jsonl", '{"text": "x", "label": null}', {}, "line 1: has no label"),
    "label NaN": ("a.csv", csv_of([("x", "NaN")]), {}, "line 2: has no label"),
    "label a fraction": ("a.jsonl", '{"text": "x", "label": 0.5}', {}, r"label is 0.5; give one string"),
    "label a list where one is asked for": (
        "a.jsonl",
        '{"text": "x", "label": ["a"]}',
        {"multi_label": False},
        r"label is \['a'\]; give one string",
    ),
    "text an object": ("a.jsonl", '{"text": {"a": 1}, "label": "a"}', {}, r"text is \{'a': 1\}; give text"),
    "half a surrogate": ("a.jsonl", HALF, {}, "line 2: holds half a surrogate pair; write"),
    "half a surrogate in a label": (
        "a.jsonl",
        '{"text": "x", "label": "\\ud83d"}',
        {},
        "line 1: holds half a surrogate pair",
    ),
    "half a surrogate in a tag": (
        "a.jsonl",
        '{"words": ["x"], "tags": ["B-\\ud83d"]}',
        {},
        "line 1: holds half a surrogate pair",
    ),
    "empty file": ("a.csv", "", {}, "is empty; give a file with a header line"),
    "only NULs": ("a.csv", "\0\0\0", {}, "a.csv: is empty;"),
    "no rows": ("a.csv", "text,label\n", {}, "holds no rows; give"),
    "ragged CSV": (
        "a.csv",
        "text,label\nx,a\ny, and z,b\n",
        {},
        r"line 3: has 3 fields, not 2 .*; quote texts",
    ),
    "broken JSON": (
        "a.jsonl",
        '{"text": "x", "label": "a"}\n{"text": "y"\n',
        {},
        r"line 2: is not JSON .*; write",
    ),
    "not UTF-8": ("a.csv", b"text,label\ncaf\xe9,a\n", {}, "line 2: byte 0xe9 is not UTF-8; convert"),
    "a picture": ("a.csv", b"\x89PNG\r\n\x1a\n\0\0", {}, "line 1: byte 0x89 is not UTF-8; convert"),
    "unknown kind": ("a.docx", "x", {}, r"unknown kind of file; give \.csv"),
    "plain lines": ("a.txt", "one\ntwo\n", {}, "plain lines have no labels; give a .csv"),
    "tags and words of unequal number": (
        "a.jsonl",
        '{"words": ["x", "y"], "tags": ["O"]}',
        {},
        "line 1: has 2 words, 1 tags; give each word",
    ),
    "a tag of no scheme": (
        "a.jsonl",
        '{"words": ["x"], "tags": ["person"]}',
        {},
        "line 1, word 1: tag 'person' is not BIO.*; write",
    ),
    "no entity": ("a.conll", "x O\ny O\n", {}, "no sentence for training has an entity; add"),
    "text for tagging": (
        "a.csv",
        "words,tags\nx y,O O\n",
        {"task": "tagging"},
        "list of strings, or a .conll",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_bad_input_is_told_in_one_line_that_says_what_to_do(case: str, tmp_path: Path) -> None:
    name, content, options, message = WRONG[case]
    told = refused(put(tmp_path / name, content), **options)
    assert name in told
    assert re.search(message, told), told


def test_a_missing_path_names_what_may_be_given(tmp_path: Path) -> None:
    assert "no such file or folder; give a .csv" in refused(tmp_path / "nothing.csv")


def test_a_text_given_as_a_path_is_no_crash() -> None:
    assert len(refused(Path("a very long review " * 1000))) < 200
    assert "no such file" in refused(Path("a\0b"))


def test_a_folder_without_train_names_what_it_holds(tmp_path: Path) -> None:
    assert "has no training file (found no data file); name it train.csv" in refused(tmp_path)
    put(tmp_path / "test.csv", GOOD)
    put(tmp_path / "notes.md", "x")
    assert "has no training file (found 'test.csv'); name it" in refused(tmp_path)


def test_two_files_for_one_split_are_refused(tmp_path: Path) -> None:
    put(tmp_path / "train.csv", GOOD)
    put(tmp_path / "train.jsonl", HALF)
    assert "'train.csv', 'train.jsonl' could each be the train split; leave one" in refused(tmp_path)


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ("text,label\nx,a\ny,c\n", r"test.csv, line 3: label 'c' is not among .* \('a', 'b'\); correct it"),
        ("text,class\nx,a\n", r"test.csv: has no column 'label'; columns found: 'text', 'class'"),
        ("text,label\nx,\n", r"test.csv, line 2: has no label; fill it in"),
        ("text,label\n", r"test.csv: holds no rows; give"),
    ],
)
def test_a_test_split_that_does_not_fit_train_is_refused(test: str, message: str, tmp_path: Path) -> None:
    put(tmp_path / "train.csv", GOOD)
    put(tmp_path / "test.csv", test)
    assert re.search(message, refused(tmp_path))


def test_an_entity_type_that_train_lacks_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "train.conll", CONLL)
    put(tmp_path / "test.conll", "x NN O\n\nParis NNP B-LOC\n")
    assert re.search(r"test.conll, line 3: label 'LOC' is not among .*'ORG', 'PER'", refused(tmp_path))


# --- texts to predict on ----------------------------------------------------------------------------------


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Callable[[str | bytes], None]:
    """Sets what stands on standard input."""

    def into(content: str | bytes) -> None:
        data = content if isinstance(content, bytes) else content.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return into


FORMS = {
    "a.txt": 'one\n\n"two", 3\n',
    "a.csv": 'id,text\n1,one\n2,\n3,"""two"", 3"\n',
    "a.tsv": 'id\ttext\n1\tone\n2\t\n3\t"two", 3\n',
    "a.jsonl": '{"text": "one"}\n{"text": null}\n{"text": "\\"two\\", 3"}\n',
    "a.json": '[{"text": "one"}, {"id": 2}, {"text": "\\"two\\", 3"}]',
}


@pytest.mark.parametrize("name", FORMS)
def test_texts_come_from_every_form_empty_ones_too(name: str, tmp_path: Path) -> None:
    assert read_texts(put(tmp_path / name, FORMS[name])) == ["one", "", '"two", 3']


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl"])
def test_texts_come_from_standard_input(name: str, pipe: Callable[[str], None]) -> None:
    pipe(FORMS[name])
    assert read_texts("-") == ["one", "", '"two", 3']


def test_a_column_may_be_named_or_numbered(tmp_path: Path, pipe: Callable[[str], None]) -> None:
    assert read_texts(put(tmp_path / "a.csv", "text,body\nx,y\n"), text="body") == ["y"]
    assert read_texts(put(tmp_path / "b.csv", "x,y\nz,w\n"), text="2") == ["y", "w"]
    pipe('{"body": "x", "text": "y"}\n')
    assert read_texts("-", text="body") == ["x"]
    pipe("plain\n")
    assert read_texts("-", text="body") == ["plain"]


def test_words_of_sentences_are_joined(tmp_path: Path) -> None:
    assert read_texts(put(tmp_path / "a.conll", CONLL)) == ["EU rejects", "Peter spoke", "rain"]


def test_hostile_texts_arrive_whole(tmp_path: Path, pipe: Callable[[str], None]) -> None:
    texts = [EMOJI, "word " * 210_000, "<img src=x onerror=alert(1)>", "[CLS] [MASK]", "ab", " "]
    pipe("\n".join(texts).replace("ab", "a\0b") + "\n")
    assert read_texts("-") == texts
    assert read_texts(put(tmp_path / "a.txt", "\r\n".join(texts))) == texts


def test_a_broken_line_of_json_on_standard_input_is_told(pipe: Callable[[str], None]) -> None:
    pipe('{"text": "x"}\n\n{"text": \n')
    with pytest.raises(DataError, match=r"^standard input, line 3: is not JSON .*; write one object"):
        read_texts("-")


def test_plain_lines_that_look_like_json_stay_plain(pipe: Callable[[str], None]) -> None:
    pipe('3\n{"text": "x"}\n')
    assert read_texts("-") == ["3", '{"text": "x"}']


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "standard input is empty; pipe in"),
        (b"caf\xe9\n", "standard input, line 1: byte 0xe9 is not UTF-8; convert"),
        (b'{"id": 1}\n', r"which column is the text; columns found: 'id'; name it"),
        (b'{"text": "\\ud83d"}\n', "standard input, line 1: holds half a surrogate pair; write"),
    ],
)
def test_standard_input_that_cannot_be_read_is_told(
    content: bytes, message: str, pipe: Callable[[bytes], None]
) -> None:
    pipe(content)
    with pytest.raises(DataError, match=message):
        read_texts("-")


def test_a_path_without_texts_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nothing.csv: no such file; check"):
        read_texts(tmp_path / "nothing.csv")
    with pytest.raises(DataError, match=r"unknown kind of file; give"):
        read_texts(tmp_path)
