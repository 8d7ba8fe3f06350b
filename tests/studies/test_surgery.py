"""Words are proposed and nothing is removed until a person confirms; then all of it is measured and saved."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from splade import LexicalSAE, pipelines
from splade.data.rows import Texts
from splade.errors import DataError
from splade.intervene import word_ids
from splade.scripts import run_surgery
from splade.studies.groups import by_mention, centroid_words, grouped_file
from tests.tiny import SENTENCES, tiny_model

Start = Callable[..., int]
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # the tiny masked LM is untrained


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows to learn from and rows with groups, for all tests here; results are kept beside them."""
    folder = tmp_path_factory.mktemp("surgery")
    for split, count in (("train", 8), ("test", 3)):
        lines = [f"{text} {i}\tclass {'ab'[i % 2]}" for i in range(count) for text in SENTENCES]
        (folder / f"{split}.tsv").write_text("\n".join(["text\tlabel", *lines]) + "\n", encoding="utf-8")
    named = [
        f"{text} {i},class {'ab'[i % 2]},{group}"
        for i in range(6)
        for text, group in (
            ("Paris was lovely", "paris"),
            ("muslim families visited", "muslim"),
            ("the cup was late", ""),
        )
    ]
    (folder / "named.csv").write_text("\n".join(["text,label,group", *named]) + "\n", encoding="utf-8")
    return folder


@pytest.fixture
def start(place: Path, masked_lm: str) -> Start:
    """Runs the command on small settings, its results beside the rows."""
    settings: dict[str, Any] = {
        "experiment_name": "small",
        "output_dir": str(place / "results"),
        "target_active": 60,
        "honesty": "free",
        "data": {"path": str(place), "text": "text", "label": "label", "validation_share": 0.2},
        "model": {"name": masked_lm, "width": 8},
        "training": {"epochs": 2, "batch_size": 8},
    }

    def call(*options: str, **surgery: Any) -> int:
        given = {"test_path": str(place / "named.csv"), "closure": 3, **surgery}
        (place / "run.yaml").write_text(yaml.safe_dump({**settings, "surgery": given}))
        return run_surgery.main(["--config", str(place / "run.yaml"), *options])

    return call


def test_words_are_proposed_then_removed_when_confirmed(
    start: Start, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # what sets a group apart has a test of its own, below; after eight steps little does
    monkeypatch.setattr("splade.studies.groups._OFTENER", 0.0)
    assert start() == 0
    out, err = capsys.readouterr()
    folder = place / "results" / "small" / "surgery"
    proposed = json.loads((folder / "proposals.json").read_text())
    assert {"paris", "muslim"} >= {word["group"] for word in proposed}
    assert "Words proposed" in out
    assert "--confirm all" in err
    assert not (folder / "model").exists()

    monkeypatch.setattr(pipelines, "fit", None)  # nothing is trained again
    assert start("--confirm", "Paris", "slow") == 0
    study = json.loads((folder / "study.json").read_text())
    assert study["complete"]
    assert "proposals" not in study["parts"]
    removed = ["Paris", "slow", *study["parts"]["closure"]]
    assert study["parts"]["curve"]["removed"] == removed
    edited = LexicalSAE.from_pretrained(folder / "model")
    assert not edited.lexicon.keep_V[word_ids(edited, removed)].any()
    assert all(edit.reason for edit in edited.lexicon.edits)
    before, after = (study["parts"]["bias"][when] for when in ("before", "after"))
    assert [group["group"] for group in before["groups"]] == ["muslim", "paris"]
    assert before["overall"]["rows"] == after["overall"]["rows"] == 18
    assert [way["removal"] for way in study["parts"]["removals"]][:3] == ["none", "surgery", "LEACE"]
    assert study["parts"]["certificate"]["holds"]
    for page, told in (("report.html", "By group"), ("certificate.html", "Certificate of removal")):
        written = (folder / page).read_text()
        assert told in written
        assert "<script" not in written


def test_a_model_that_never_had_the_words_stands_beside_the_others(start: Start, place: Path) -> None:
    assert start("--confirm", "slow", retrain=True) == 0
    folder = place / "results" / "small" / "surgery"
    parts = json.loads((folder / "study.json").read_text())["parts"]
    assert [way["removal"] for way in parts["removals"]][-1] == "retrained"
    model = LexicalSAE.from_pretrained(folder / "models" / "retrained" / "seed-0")
    without = word_ids(model, ["slow", *parts["closure"]])
    assert not model.lexicon.keep_V[without].any()
    assert int(model.lexicon.keep_V.sum()) == model.lexicon.vocab_size - len(without)


def test_mistakes_are_told_in_a_line(
    start: Start, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for options, surgery, told in (
        (["--confirm", "all", "--output", str(tmp_path)], {}, "holds no proposals"),
        ([], {"positive": "class c"}, "name one of class a, class b"),
        ([], {"group": "who"}, "has no column 'who'"),
        ([], {"test_path": None}, "nothing tells the groups"),
    ):
        assert start(*options, **surgery) == 2
        line = capsys.readouterr().err.strip().splitlines()[-1]
        assert line.startswith("lexical-sae: error: ")
        assert told in line


def test_groups_are_read_from_a_column_or_from_scores(tmp_path: Path) -> None:
    column, scored, none = (tmp_path / f"{name}.csv" for name in ("column", "scored", "none"))
    column.write_text("text,label,Identity\nx,a,gay|old\ny,b,\n")
    scored.write_text("text,label,muslim,female\nx,a,0.5,0.1\ny,b,,0.9\n")
    none.write_text("text,label\nx,a\ny,b\n")
    names = ["a", "b"]
    assert grouped_file(str(column), None, names).groups == [{"gay", "old"}, frozenset()]
    assert grouped_file(str(scored), None, names).groups == [{"muslim"}, {"female"}]
    with pytest.raises(DataError, match=r"surgery\.group"):
        grouped_file(str(none), None, names)


def test_a_word_is_proposed_for_its_group_not_for_its_label() -> None:
    model = tiny_model(classes=2, opened=30)
    texts = [f"{text} {more}" for more in ("paris", "cup") for text in SENTENCES for _ in range(2)]
    rows = by_mention(Texts(texts, [i % 2 for i in range(len(texts))]), ["paris"])
    found = centroid_words(model, rows, 1)
    assert {word.group for word in found} == {"paris"}
    assert all(word.active_inside >= 2 * word.active_outside for word in found)
    sizes = [abs(word.difference) for word in found]
    assert sizes == sorted(sizes, reverse=True)
    assert centroid_words(model, by_mention(Texts(texts, rows.labels), ["zebra"]), 1) == []
