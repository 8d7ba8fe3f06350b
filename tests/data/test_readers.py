"""Every file form gives the same rows, and what is wrong with a file is told by line."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splade.data.files import Table, decode, short
from splade.data.readers import WHOLE_LINE, file_kind, read_table
from splade.errors import DataError

Rows = list[tuple[str, str]]
PLAIN: Rows = [
    ("a good, long film", "pos"),
    ('it is "bad", she said', "neg"),
    ('"quoted whole"', "neg"),
    ("naïve 東京 😀\u2028still the same line", "pos"),
    ("<b>&amp;</b>", "neg"),
]
MULTILINE: Rows = [*PLAIN, ("two\nlines", "pos"), ("tab\there", "neg"), ("", "neg")]
FIELD = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)


def as_csv(rows: Rows) -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out).writerows([("text", "label"), *rows])
    return out.getvalue().encode()


def as_tsv(rows: Rows) -> bytes:
    return "".join(f"{text}\t{label}\n" for text, label in [("text", "label"), *rows]).encode()


def as_jsonl(rows: Rows) -> bytes:
    return "\n".join(json.dumps({"text": t, "label": y}, ensure_ascii=False) for t, y in rows).encode()


def as_json(rows: Rows) -> bytes:
    return json.dumps([{"text": t, "label": y} for t, y in rows], indent=1).encode()


def as_parquet(rows: Rows) -> bytes:
    out = io.BytesIO()
    columns = {"text": [text for text, _ in rows], "label": [label for _, label in rows]}
    pyarrow.parquet.write_table(pyarrow.table(columns), out)
    return out.getvalue()


WRITERS: dict[str, Callable[[Rows], bytes]] = {
    ".csv": as_csv,
    ".tsv": as_tsv,
    ".jsonl": as_jsonl,
    ".json": as_json,
    ".parquet": as_parquet,
}
COMPRESSORS = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}


def put(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def pairs(table: Table) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in table.rows]


@pytest.mark.parametrize("kind", WRITERS)
def test_every_form_gives_the_same_rows(kind: str, tmp_path: Path) -> None:
    rows = PLAIN if kind == ".tsv" else MULTILINE
    table = read_table(put(tmp_path, f"data{kind}", WRITERS[kind](rows)))
    assert table.columns == ["text", "label"]
    assert pairs(table) == rows
    assert table.nuls == 0


@pytest.mark.parametrize("kind", [".csv", ".tsv", ".jsonl", ".json"])
@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_compression_changes_nothing(kind: str, suffix: str, tmp_path: Path) -> None:
    path = put(tmp_path, f"DATA{kind}{suffix}".upper(), COMPRESSORS[suffix](WRITERS[kind](PLAIN)))
    assert file_kind(path) == kind
    assert pairs(read_table(path)) == PLAIN


@given(rows=st.lists(st.tuples(FIELD, FIELD), min_size=1, max_size=5))
def test_any_text_survives_csv_and_json(rows: Rows, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp()
    for kind in (".csv", ".jsonl", ".json"):
        assert pairs(read_table(put(folder, f"any{kind}", WRITERS[kind](rows)))) == rows


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_byte_order_mark_and_line_endings_are_no_content(ending: str, tmp_path: Path) -> None:
    for name, lines in {
        "a.csv": ["text,label", '"x, y",1', ""],
        "a.tsv": ["text\tlabel", "x, y\t1", "", ""],
        "a.jsonl": ['{"text": "x, y", "label": "1"}', ""],
    }.items():
        table = read_table(put(tmp_path, name, b"\xef\xbb\xbf" + ending.join(lines).encode()))
        assert table.rows == [{"text": "x, y", "label": "1"}]


def test_a_column_has_its_number_where_there_is_no_header(tmp_path: Path) -> None:
    for name, content in {"a.csv": '3,"a ""b"", c"\n4,d\n', "a.tsv": '3\ta "b", c\n4\td\n'}.items():
        table = read_table(put(tmp_path, name, content), header=False)
        assert table.rows == [{"1": "3", "2": 'a "b", c'}, {"1": "4", "2": "d"}]
        assert table.numbers == [1, 2]


def test_a_field_of_a_megabyte_is_read_whole(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    rows = [("word " * 210_000, "pos"), ("x", "neg")]
    for kind in (".csv", ".tsv", ".jsonl"):
        assert pairs(read_table(put(tmp_path, f"big{kind}", WRITERS[kind](rows)))) == rows
    assert csv.field_size_limit() == before


def test_nuls_are_removed_and_counted(tmp_path: Path) -> None:
    table = read_table(put(tmp_path, "a.csv", "text,label\na\0b\0,1\n"))
    assert (table.rows, table.nuls) == ([{"text": "ab", "label": "1"}], 2)
    assert decode(b"\0x", "name") == ("x", 1)


def test_rows_know_their_lines(tmp_path: Path) -> None:
    table = read_table(put(tmp_path, "a.csv", 'text,label\n"one\ntwo",1\nthree,2\n'))
    assert table.numbers == [2, 4]
    assert table.at(1).endswith("a.csv, line 4")
    array = read_table(put(tmp_path, "a.json", as_json(PLAIN)))
    assert array.at(1).endswith("a.json, record 2")


def test_plain_lines_are_kept_even_if_blank(tmp_path: Path) -> None:
    table = read_table(put(tmp_path, "a.txt", "one\n\nthree\r\n"))
    assert [row[WHOLE_LINE] for row in table.rows] == ["one", "", "three"]


CONLL = "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\n\n\nPeter NNP I-NP I-PER\n"


@pytest.mark.parametrize("name", ["a.conll", "a.bio", "eng.train", "eng.testa", "a.conll.gz"])
def test_conll_columns_become_sentences(name: str, tmp_path: Path) -> None:
    content = gzip.compress(CONLL.encode()) if name.endswith("gz") else CONLL.encode()
    table = read_table(put(tmp_path, name, content))
    assert table.rows == [
        {"words": ["EU", "rejects"], "tags": ["I-ORG", "O"]},
        {"words": ["Peter"], "tags": ["I-PER"]},
    ]
    assert table.numbers == [3, 7]


def test_conll_tabs_keep_words_with_spaces(tmp_path: Path) -> None:
    table = read_table(put(tmp_path, "a.conll", "New York\tB-LOC\r\n\u00a0\tO\r\n\t\r\nx\tO\r\n"))
    assert [row["words"] for row in table.rows] == [["New York", "\u00a0"], ["x"]]


WRONG = {
    "field count": ("a.csv", "text,label\nx,1\ny\n", r"line 3: has 1 fields, not 2 .*quote"),
    "field count after a long record": ("a.csv", 'text,label\n"a\nb",1\nx,1,2\n', "line 4: has 3 fields"),
    "field count in TSV": ("a.tsv", "text\tlabel\nx\t1\ny\tz\t1\n", "line 3: has 3 fields"),
    "open quote": ("a.csv", 'text,label\nx,1\n"y,1\n', "line 3: quotes do not match"),
    "text after a quote": ("a.csv", 'text,label\n"x" y,1\n', "line 2: quotes do not match"),
    "column twice": ("a.csv", "\ntext,text\nx,1\n", "line 2: names column 'text' twice"),
    "no rows": ("a.csv", "text,label\n", "holds no rows"),
    "empty CSV": ("a.csv", "", "is empty"),
    "empty JSONL": ("a.jsonl", "\n\n", "holds no rows"),
    "broken JSONL": ("a.jsonl", '{"text": "x"}\n\n{"text": \n', "line 3: is not JSON .*one object per line"),
    "broken JSON array": ("a.json", '[\n{"text": "x"},\n{"text"}\n]', "line 3: is not JSON"),
    "JSONL of lists": ("a.jsonl", '{"text": "x"}\n3\n', "line 2: is not an object"),
    "JSON array of texts": ("a.json", '[{"text": "x"}, "y"]', "record 2: is not an object"),
    "deep JSON": ("a.json", "[" * 200_000, "nesting too large"),
    "columns in CoNLL": ("a.conll", "EU NNP O\n\nx O\n", "line 3: has 2 columns, not 3"),
    "one column in CoNLL": ("a.conll", "EU\n", "line 1: has 1 columns, not 2"),
    "not UTF-8": ("a.csv", b"text,label\nx,1\ncaf\xe9,1\n", "line 3: byte 0xe9 is not UTF-8.*iconv"),
    "not gzip": ("a.csv.gz", b"text,label\n", "cannot be read"),
    "cut gzip": ("a.csv.gz", gzip.compress(b"text,label\n" * 99)[:-12], "cannot be read"),
    "not xz": ("a.csv.xz", b"text,label\n", "cannot be read"),
    "not Parquet": ("a.parquet", b"text,label\n", "not a readable Parquet file"),
    "packed Parquet": ("a.parquet.gz", b"", "decompress the file first"),
    "unknown kind": ("a.docx", "x", r"unknown kind of file; give \.csv"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_told_in_one_line(case: str, tmp_path: Path) -> None:
    name, content, message = WRONG[case]
    with pytest.raises(DataError, match=message) as caught:
        read_table(put(tmp_path, name, content))
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet", "a.conll", "a.txt"])
def test_a_missing_file_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"{name}: no such file"):
        read_table(tmp_path / name)


def test_a_long_value_is_shown_short_and_on_one_line() -> None:
    assert short("a\nb") == r"'a\nb'"
    assert len(short("x" * 1000)) == 40
