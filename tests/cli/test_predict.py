"""Predictions as JSON lines, CSV, Parquet and a table, from arguments, files and standard input."""

import csv
import errno
import io
import json
import shutil
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

from splade.inference import Predictor

TEXTS = ["the film was charming", 'a "slow", tedious\nfilm', "", "👍 👎", "<b>wet & broken</b>"]


def given(monkeypatch, content: bytes) -> None:
    """Puts `content` on standard input."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_one_json_object_a_text(run, model) -> None:
    found = run("predict", model, *TEXTS)
    assert found.code == 0
    assert [line["text"] for line in found.lines] == TEXTS
    expected = Predictor.from_pretrained(model).predict(TEXTS)
    for line, prediction in zip(found.lines, expected, strict=True):
        assert list(line) == ["text", "prediction", "probability", "probabilities", "truncated"]
        assert line["prediction"] == prediction.label
        assert line["probabilities"] == prediction.probabilities
        assert line["truncated"] is False


def test_a_cut_text_is_flagged(run, model) -> None:
    assert run("predict", model, "film " * 500).lines[0]["truncated"] is True


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_files_read_and_written_hold_the_same_rows(run, model, tmp_path, ending) -> None:
    source, first, second = (tmp_path / f"{name}.{ending}" for name in ("source", "first", "second"))
    rows = [{"text": text} for text in TEXTS]
    if ending == "parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), source)
    elif ending == "csv":
        with source.open("w", newline="") as file:
            writer = csv.DictWriter(file, ["text"])
            writer.writeheader()
            writer.writerows([row for row in rows if row["text"]])
    else:
        source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run("predict", model, "--input", source, "--output", first).code == 0
    found = run("predict", model, "--input", first, "--output", second)  # an output is an input again
    assert (found.code, found.out) == (0, "")
    assert first.read_bytes() == second.read_bytes()
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []
    printed = run("predict", model, "--input", source).lines
    assert [row["prediction"] for row in written(second)] == [line["prediction"] for line in printed]
    assert [row["probabilities"] for row in written(second)] == [line["probabilities"] for line in printed]


def written(path: Path) -> list[dict]:
    if path.suffix == ".parquet":
        return pyarrow.parquet.read_table(path).to_pylist()
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [{**row, "probabilities": json.loads(row["probabilities"])} for row in rows]


def test_csv_goes_to_stdout_when_asked(run, model) -> None:
    found = run("predict", model, *TEXTS, "--format", "csv")
    assert [row["text"] for row in csv.DictReader(io.StringIO(found.out))] == TEXTS


@pytest.mark.parametrize(
    "content",
    [b"a slow film\n\nthe film\n", b'{"text": "a slow film"}\n{"text": ""}\n{"text": "the film"}\n'],
)
def test_standard_input_holds_lines_or_json(run, model, monkeypatch, content) -> None:
    given(monkeypatch, content)
    found = run("predict", model, "--input", "-")
    assert [line["text"] for line in found.lines] == ["a slow film", "", "the film"]


def test_nul_bytes_are_left_out(run, model, monkeypatch) -> None:
    given(monkeypatch, b"a slow\0 film\n")
    assert run("predict", model, "--input", "-").lines[0]["text"] == "a slow film"


def test_a_terminal_gets_a_table(run, model, monkeypatch) -> None:
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda self: True, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    found = run("predict", model, "the film", "a slow\x1b[2J film")
    header, *lines = found.out.splitlines()
    assert header.split() == ["prediction", "probability", "text"]
    assert len(lines) == 2
    assert "\x1b" not in found.out


def test_a_tagger_gives_words_and_tags(run, tagger, tmp_path) -> None:
    [line] = run("predict", tagger, "Paris was lovely.").lines
    assert line["words"] == ["Paris", "was", "lovely", "."]
    assert len(line["tags"]) == len(line["probabilities"]) == 4
    columns = tmp_path / "rows.conll"
    columns.write_text("St.Paul\tB-LOC\nwas\tO\n\nlovely\tO\n")
    found = run("predict", tagger, "--input", columns)
    assert [row["words"] for row in found.lines] == [["St.Paul", "was"], ["lovely"]]


def test_texts_come_from_one_place(refused, model, tmp_path) -> None:
    assert "--input FILE" in refused("predict", model)
    assert "one of the two" in refused("predict", model, "a", "--input", tmp_path / "x.txt")


def test_an_unusable_input_is_named(refused, model, tmp_path, monkeypatch) -> None:
    table = tmp_path / "rows.csv"
    table.write_text("body,team\nthe film,a\n")
    assert "columns found: 'body', 'team'" in refused("predict", model, "--input", table)
    assert "no column 'boddy'" in refused("predict", model, "--input", table, "--text", "boddy")
    table.write_text("")
    assert "empty" in refused("predict", model, "--input", table)
    given(monkeypatch, b"")
    assert "standard input is empty" in refused("predict", model, "--input", "-")
    assert "no such file" in refused("predict", model, "--input", tmp_path / "none.csv")


def test_a_missing_or_damaged_model_is_named(refused, model, tmp_path) -> None:
    assert "holds no model" in refused("predict", tmp_path, "a")
    assert "no model folder" in refused("predict", tmp_path / "none", "a")
    damaged = Path(shutil.copytree(model, tmp_path / "damaged"))
    (damaged / "config.json").write_text('{"task": ')
    assert "config.json is damaged" in refused("predict", damaged, "a")


def test_an_output_that_cannot_be_written_is_named(refused, model, tmp_path, monkeypatch) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot write" in refused("predict", model, "a", "--output", tmp_path / "file" / "out.csv")
    assert ".jsonl, .csv or .parquet" in refused("predict", model, "a", "--output", tmp_path / "out.xlsx")


def test_a_full_disk_leaves_the_older_file(refused, model, tmp_path, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    output = tmp_path / "out.jsonl"
    output.write_text("older")
    monkeypatch.setattr(Path, "replace", full)
    assert "No space left on device" in refused("predict", model, "a", "--output", output)
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]
    assert output.read_text() == "older"
