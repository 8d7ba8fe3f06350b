"""Training a masked LM on raw text from the command line."""

import json
import lzma
from pathlib import Path

import numpy as np
import pytest

from splade.models.backbone import load_backbone
from tests.tiny import SENTENCES


@pytest.fixture
def text(tmp_path) -> Path:
    path = tmp_path / "corpus.jsonl.xz"
    rows = (json.dumps({"id": i, "body": text}) for i in range(12) for text in SENTENCES)
    path.write_bytes(lzma.compress("\n".join(rows).encode()))
    return path


@pytest.fixture
def quick(text, masked_lm) -> list[object]:
    sizes = ["--lengths", "16,32", "--tokens-per-step", "256", "--steps", "4"]
    return ["adapt", "--data", text, "--text", "body", "--model", masked_lm, *sizes]


def test_a_run_reports_before_and_after_and_its_folder_trains(run, quick, rows, tmp_path) -> None:
    folder = tmp_path / "adapted"
    found = run(*quick, "--output", folder, "--learning-rate", "1e-2", "--json")
    assert found.code == 0
    record = json.loads(found.out)
    assert record == json.loads((folder / "adapt.json").read_text(encoding="utf-8"))
    assert (record["steps"], record["tokens"]) == (4, 4 * 256)
    for when in ("before", "after"):
        assert [measured["length"] for measured in record[when]] == [16, 32]
        assert all(len(filled["words"]) == 5 for filled in record[f"samples_{when}"])
    assert record["settings"]["lengths"] == [16, 32]
    assert "torch" in record["environment"]
    assert "before: held-out loss" in found.err
    assert f"lexical-sae train --model {folder}" in found.err
    assert not (tmp_path / "adapted.checkpoints").exists()
    options = ["--text", "body", "--label", "team", "--epochs", "4", "--set", "training.batch_size=4"]
    trained = run("train", "--data", rows, "--model", folder, *options, "--output", tmp_path / "model")
    assert trained.code == 0


def test_the_tables_name_windows_positions_and_words(run, quick, tmp_path) -> None:
    found = run(*quick, "--output", tmp_path / "adapted", "--apart", "--half")
    assert found.code == 0
    for part in ("0 to 15", "0 to 31", "Before", "After", "We drove to the coast"):
        assert part.lower() in found.out.lower()
    weights, _ = load_backbone(tmp_path / "adapted", check=False)
    assert weights.mlm.config.model_type == "bert"


def test_tokens_are_prepared_once_and_used_directly(run, quick, text, masked_lm, tmp_path) -> None:
    ids = tmp_path / "ids.npy"
    found = run(*quick, "--prepare", ids)
    assert found.code == 0
    assert f"{len(np.load(ids)):,} tokens" in found.err
    files = ["--data", ids, "--held-out", ids, "--held-out-tokens", "100"]
    found = run(*quick, *files, "--output", tmp_path / "adapted", "--json")
    assert found.code == 0
    assert json.loads(found.out)["held_out"] == str(ids)


def test_time_may_be_given_instead_of_steps(run, quick, tmp_path) -> None:
    found = run(*quick[:-2], "--seconds", "0.5", "--output", tmp_path / "adapted", "--json")
    assert found.code == 0
    assert json.loads(found.out)["seconds"] >= 0.5


def test_an_interrupted_run_is_kept_and_resumed(run, refused, quick, tmp_path, monkeypatch) -> None:
    from splade.training.adapt import Adapter

    step = Adapter._step

    def stopping(self, *arguments):
        if self.state.step == 2:
            raise KeyboardInterrupt
        return step(self, *arguments)

    command = [*quick, "--output", tmp_path / "adapted", "--checkpoint-seconds", "0"]
    monkeypatch.setattr(Adapter, "_step", stopping)
    assert run(*command).code == 130
    assert not (tmp_path / "adapted").exists()
    monkeypatch.setattr(Adapter, "_step", step)
    assert "--resume" in refused(*command)
    found = run(*command, "--resume", "--json")
    assert found.code == 0
    assert json.loads(found.out)["steps"] == 4
    assert not (tmp_path / "adapted.checkpoints").exists()


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ([], "--output FOLDER to train, or --prepare"),
        (["--output", "a", "--prepare", "b.npy"], "--output FOLDER to train, or --prepare"),
        (["--prepare", "ids.txt"], "name the file so"),
        (["--output", "a", "--data", "gone"], "no such file or folder"),
        (["--output", "a", "--text", "missing"], "no column 'missing'"),
        (["--output", "a", "--lengths", "16,4096"], "the lengths rise within 3 to 64"),
        (["--output", "a", "--shares", "1"], "one for each length"),
        (["--output", "a", "--tokens-per-step", "8"], "the tokens of a window"),
        (["--output", "a", "--steps", "-3"], "steps or seconds"),
        (["--output", "a", "--held-out-tokens", "0"], "--held-out-tokens"),
        (["--output", "a", "--model", "gone"], "cannot load 'gone'"),
    ],
)
def test_what_cannot_be_done_is_one_line(refused, quick, tmp_path, monkeypatch, options, line) -> None:
    monkeypatch.chdir(tmp_path)
    assert line in refused(*quick, *options)
    assert not (tmp_path / "a").exists()


def test_a_folder_with_other_things_is_not_replaced(refused, quick, tmp_path) -> None:
    assert "holds no model" in refused(*quick, "--output", tmp_path)


def test_lists_of_numbers_are_read_by_the_parser(run, quick, tmp_path, capsys) -> None:
    assert run(*quick, "--lengths", "a,b", "--output", tmp_path / "a").code == 2


def test_a_list_that_is_not_of_numbers_is_named(run, tmp_path) -> None:
    found = run("adapt", "--data", tmp_path, "--output", tmp_path / "x", "--lengths", "128,long")
    assert found.code == 2
    assert "'128,long' is not numbers with commas between them" in found.err
