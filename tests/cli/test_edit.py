"""Editing a saved model from the command line."""

import json
import shutil
from pathlib import Path

import pytest

from splade.models.lexical_sae import LexicalSAE


@pytest.fixture
def mine(model, tmp_path) -> Path:
    """A copy of a model folder, with a file that is not the model's."""
    folder = tmp_path / "mine"
    shutil.copytree(model, folder)
    (folder / "results.json").write_text("{}", encoding="utf-8")
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_removal_is_saved_listed_certified_and_undone(run, mine, rows, tmp_path) -> None:
    before = content(mine)
    found = run("edit", mine, "--remove", "film", "slow", "--reason", "no reason at all")
    assert found.code == 0
    assert "removed film, slow" in found.err
    model = LexicalSAE.from_pretrained(mine)
    assert not model.lexicon.keep_V[model.lexicon.ids("film")].any()
    changed = {name for name, data in content(mine).items() if before.get(name) != data}
    assert changed == {"model.safetensors", "edits.json"}
    assert "no reason at all" in run("edit", mine, "--list").out
    page = tmp_path / "page.html"
    found = run("edit", mine, "--certificate", page, "--data", rows, "--text", "body", "--label", "team")
    assert found.code == 0
    figures = json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))
    assert figures["holds"]
    assert figures["measured"]["rows"] == 40
    assert figures["model_hash"] in page.read_text(encoding="utf-8")
    assert "took back edit 1" in run("edit", mine, "--undo", "1").err
    after = content(mine)
    assert after.pop("edits.json").strip() == b"[]"
    before.pop("edits.json")
    assert after == before


def test_words_are_weighed_and_the_journal_is_json(run, mine) -> None:
    found = run("edit", mine, "--scale", "film=0.5", "slow=2", "--json")
    assert found.code == 0
    assert [entry["factor"] for entry in json.loads(found.out)["edits"]] == [0.5, 2.0]
    assert "nothing changed" in run("edit", mine, "--scale", "film=0.5").err


def test_an_edited_model_explains_without_the_word(run, mine) -> None:
    text = "a slow and tedious film"
    [before] = run("explain", mine, "--json", text).lines
    word = before["words"][0]["word"]
    assert run("edit", mine, "--remove", word).code == 0
    [after] = run("explain", mine, "--json", text).lines
    assert word not in [entry["word"] for entry in after["words"]]
    assert abs(after["residual"]) < 1e-5


def test_a_model_without_edits_says_what_to_do(run, mine) -> None:
    found = run("edit", mine)
    assert found.code == 0
    assert "--remove WORD" in found.err


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--remove", "zyzzyva"], "'zyzzyva' is not one word"),
        (["--scale", "film=0"], "remove the word"),
        (["--scale", "film=nan"], "factor nan"),
        (["--undo", "1"], "nothing to undo"),
        (["--undo", "0"], "give the number"),
        (["--undo", "1", "--remove", "film"], "--undo stands alone"),
        (["--reason", "x"], "--reason goes with"),
        (["--certificate", "page.txt"], "name it .html"),
        (["--certificate", "page.html"], "no word of this model was removed"),
        (["--data", "reviews"], "add --certificate"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_changes_nothing(refused, mine, options, line) -> None:
    before = content(mine)
    assert line in refused("edit", mine, *options)
    assert content(mine) == before


def test_a_hub_name_is_not_edited(refused) -> None:
    assert "is no folder" in refused("edit", "someone/model", "--list")


@pytest.mark.parametrize("value", ["film", "=2", "film=", "film=x"])
def test_a_scale_is_a_word_and_a_number(run, mine, value) -> None:
    found = run("edit", mine, "--scale", value)
    assert found.code == 2
    assert "--scale" in found.err
