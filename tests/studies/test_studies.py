"""Each study from a YAML file to its page, on a tiny model: what it finds, and that it is not repeated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from splade import pipelines
from splade.evaluation import steps_words
from splade.evaluation.planted import PlantedRow
from splade.scripts import run_faithfulness, run_honesty, run_long_context, run_sota_comparison
from splade.studies import faithfulness
from tests.studies.small import small_config

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # the tiny masked LM is untrained


def started(command: Any, folder: Path, **changes: Any) -> tuple[int, dict[str, Any]]:
    """The exit code and what was found."""
    path, output = folder / "study.yaml", folder / "out"
    path.write_text(yaml.safe_dump(small_config(folder, **changes).model_dump(mode="json")))
    code = command.main(["--config", str(path), "--output", str(output)])
    return code, json.loads((output / "study.json").read_text())


def test_explainers_are_asked_about_one_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    planted = PlantedRow("ours", accuracy=1.0, followed=1.0)  # the tiny model follows no text
    monkeypatch.setattr(faithfulness, "planted_rows", lambda *_: [planted])
    asked = {"explainers": ["dla", "ours", "random"], "texts": 3, "planted_texts": 4}
    code, found = started(run_faithfulness, tmp_path, faithfulness=asked)
    assert (code, found["complete"]) == (0, True)
    assert "removed exactly" in capsys.readouterr().out
    assert (tmp_path / "out" / "report.html").read_text().startswith("<!")
    parts = found["parts"]
    assert [row["table"] for row in parts["explainer ours"]] == ["inputs", "inputs"]
    assert [row["table"] for row in parts["explainer random"]] == ["bottleneck", "inputs", "inputs"]
    assert [name for name in parts if name.startswith("planted")] == ["planted ours", "planted random"]
    assert parts["planted ours"] == [planted.to_dict()]
    second = json.loads((tmp_path / "out" / "models" / "planted" / "seed-0" / "results.json").read_text())
    assert (second["dataset"], second["rows"]["test"]) == ("planted", 4)
    monkeypatch.setattr(pipelines, "fit", None)
    monkeypatch.setattr(faithfulness, "compare", None)
    assert started(run_faithfulness, tmp_path, faithfulness=asked) == (0, found)


def test_an_explainer_that_crashes_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = faithfulness.compare

    def crash(model: Any, texts: Any, settings: Any, names: list[str]) -> Any:
        if names == ["dla"]:
            raise MemoryError("too many words")
        return real(model, texts, settings, names)

    monkeypatch.setattr(faithfulness, "compare", crash)
    asked = {"explainers": ["dla", "ours"], "texts": 2, "planted_texts": 0}
    code, found = started(run_faithfulness, tmp_path, faithfulness=asked)
    assert (code, found["failed"]) == (1, {"explainer dla": "MemoryError: too many words"})
    assert list(found["parts"]) == ["explainer ours"]


def test_an_unknown_explainer_is_a_mistake_and_trains_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(FileNotFoundError):
        started(run_faithfulness, tmp_path, faithfulness={"explainers": ["ourz"]})
    assert "choose among dla" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_needles_are_hidden_at_every_length(tmp_path: Path) -> None:
    asked = {"lengths": [24, 40], "depths": [0.0, 1.0], "texts": 3}
    code, found = started(run_long_context, tmp_path, needle=asked)
    assert (code, list(found["parts"])) == (0, ["24 tokens", "40 tokens"])
    for length, cells in found["parts"].items():
        assert [(f"{cell['length']} tokens", cell["depth"]) for cell in cells] == [
            (length, 0.0),
            (length, 1.0),
        ]
        assert {cell["texts"] for cell in cells} == {3}


def test_systems_stand_in_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps_words, "SAE_FEWEST_STEPS", 4)
    monkeypatch.setattr(steps_words, "SAE_BATCH", 64)
    code, found = started(run_sota_comparison, tmp_path, recipes=["dense", "baseline"])
    assert (code, found["failed"]) == (0, {})
    assert list(found["parts"]) == ["bag of words", "dense", "baseline", "default", "autoencoders"]
    parts = found["parts"]
    assert "words" not in parts["dense"]
    assert parts["baseline"]["note"] == "free dictionary"
    assert parts["default"]["note"] == "grounded dictionary"
    assert parts["default"]["cost"]["forward_passes"] == 1
    assert parts["default"]["residual"]["mean"] < 1e-5
    own, spliced = parts["baseline"]["accuracy"]["mean"], parts["autoencoders"][0]
    assert spliced["accuracy"]["mean"] == pytest.approx(own + spliced["autoencoder"]["accuracy_change"])


def test_every_honesty_mode_stands_beside_a_collapsed_model(tmp_path: Path) -> None:
    warmed = {"epochs": 2, "batch_size": 4, "warmup_fraction": 0.5}
    code, found = started(run_honesty, tmp_path, training=warmed)
    assert (code, found["failed"]) == (0, {})
    modes = ["grounded", "free", "licensed-static", "licensed-contextual"]
    assert list(found["parts"]) == [*modes, "collapsed"]
    for name in modes:
        run = json.loads((tmp_path / "out" / "models" / name / "seed-0" / "results.json").read_text())
        assert (run["settings"]["honesty"], run["settings"]["recipe"]) == (name, "default")
        assert found["parts"][name]["accuracy"]["mean"] == pytest.approx(run["accuracy"])
        assert found["parts"][name]["people"] is None
