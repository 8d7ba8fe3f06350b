"""Experiments from a YAML file to tables, on tiny models and the smallest data."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from splade import pipelines
from splade.config.load import load_config
from splade.config.schema import ExperimentConfig
from splade.data.rows import Dataset, Texts
from splade.errors import ConfigError
from splade.models.lexical_sae import LexicalSAE
from splade.scripts import run_ablation, run_bcos_ablation, run_experiment, run_multi_dataset, run_ner
from splade.training.progress import Progress
from tests.tiny import SENTENCES

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # the tiny masked LM is untrained

ROOT = Path(__file__).parents[1]
Command = Callable[[list[str]], int]


@pytest.fixture
def rows(tmp_path: Path) -> str:
    folder = tmp_path / "rows"
    folder.mkdir()
    for split, count in (("train", 6), ("test", 2)):
        lines = [f"{text} {i}\tclass {'ab'[i % 2]}" for i in range(count) for text in SENTENCES]
        (folder / f"{split}.tsv").write_text("\n".join(["text\tlabel", *lines]) + "\n", encoding="utf-8")
    return str(folder)


@pytest.fixture
def tagged(tmp_path: Path) -> str:
    folder = tmp_path / "tagged"
    folder.mkdir()
    sentences = [f"Paris B-LOC\nis O\nfar O\n\nno O\nrain O\n{i} O\n" for i in range(12)]
    for split in ("train", "test"):
        (folder / f"{split}.conll").write_text("\n".join(sentences), encoding="utf-8")
    return str(folder)


@pytest.fixture
def settings(rows: str, masked_lm: str, tmp_path: Path) -> dict[str, Any]:
    return {
        "experiment_name": "small",
        "output_dir": str(tmp_path / "results"),
        "target_active": 8,
        "data": {"path": rows, "validation_share": 0.2},
        "model": {"name": masked_lm, "width": 8},
        "training": {"epochs": 1, "batch_size": 8},
        "evaluation": {"seeds": [0, 1]},
    }


@pytest.fixture
def start(settings: dict[str, Any], tmp_path: Path) -> Callable[..., int]:
    """Runs a command on the settings, changed under dotted keys."""

    def call(command: Any, *options: str, **changes: Any) -> int:
        path = tmp_path / "run.yaml"
        path.write_text(yaml.safe_dump({**settings, **changes}))
        code: int = command.main(["--config", str(path), *options])
        return code

    return call


@pytest.fixture
def untrained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Training is a mistake from here on."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("nothing should be trained")

    monkeypatch.setattr(pipelines, "fit", refuse)


def saved(settings: dict[str, Any], *more: str) -> dict[str, Any]:
    place = Path(settings["output_dir"], settings["experiment_name"], *more, "results.json")
    found: dict[str, Any] = json.loads(place.read_text())
    return found


def test_an_experiment_is_a_model_for_each_seed_and_one_table(
    start: Callable[..., int], settings: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert start(run_experiment) == 0
    out = capsys.readouterr().out
    assert "accuracy" in out
    assert "±" in out
    results = saved(settings)
    assert results["complete"]
    assert results["variants"]["default"]["summary"]["dla.max_relative_residual"]["mean"] < 1e-5
    folder = Path(settings["output_dir"], "small")
    assert (folder / "report.html").read_text().startswith("<!")
    for seed in (0, 1):
        run = saved(settings, f"seed-{seed}")
        assert run["complete"]
        assert run["settings"]["seed"] == seed
        rows = json.loads((folder / f"seed-{seed}" / "rows.json").read_text())
        right, found, there = (sum(column) for column in zip(*rows, strict=True))
        assert 2 * right / (found + there) == pytest.approx(run["accuracy"])
        assert isinstance(LexicalSAE.from_pretrained(folder / f"seed-{seed}"), LexicalSAE)
    assert not list(folder.glob(".seed-*"))  # neither checkpoints nor marks of what has begun


def test_a_second_start_trains_nothing(
    start: Callable[..., int], settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert start(run_experiment, "--seeds", "0") == 0
    first = saved(settings)
    monkeypatch.setattr(pipelines, "fit", None)
    assert start(run_experiment, "--seeds", "0") == 0
    assert saved(settings) == first


def test_recipes_are_compared_on_the_same_rows(start: Callable[..., int], settings: dict[str, Any]) -> None:
    assert start(run_ablation) == 0
    results = saved(settings)
    assert list(results["variants"]) == ["baseline", "dense", "default"]
    assert [c["variant"] for c in results["comparisons"]] == ["baseline", "dense"]
    for comparison in results["comparisons"]:
        assert comparison["over_rows"]["n"] == 2 * len(SENTENCES)
        assert comparison["over_seeds"]["n"] == 2
    dense = results["variants"]["dense"]["summary"]
    assert "accuracy" in dense
    assert not any(key.startswith(("dla", "dictionary", "active_words")) for key in dense)
    runs = [saved(settings, name, "seed-0") for name in results["variants"]]
    for run in runs:
        run["settings"].pop("recipe")
        for place in ("output_dir", "experiment_name"):
            run["settings"].pop(place)
    assert runs[0]["settings"] == runs[1]["settings"] == runs[2]["settings"]
    assert runs[0]["rows"] == runs[1]["rows"] == runs[2]["rows"]


def test_both_heads_are_trained(start: Callable[..., int], settings: dict[str, Any]) -> None:
    assert start(run_bcos_ablation, "--seeds", "0") == 0
    results = saved(settings, "heads")
    assert list(results["variants"]) == ["bcos", "relu_mlp"]
    assert [c["variant"] for c in results["comparisons"]] == ["bcos"]


def test_a_dataset_that_fails_does_not_stop_the_others(
    start: Callable[..., int],
    settings: dict[str, Any],
    rows: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = {"datasets": ["missing.csv", rows], "evaluation": {"seeds": [0]}}
    assert start(run_multi_dataset, **options) == 1
    variants = saved(settings)["variants"]
    assert "no such file" in variants["missing.csv"]["error"]
    assert variants[rows]["runs"] == 1
    assert "missing.csv" in capsys.readouterr().out
    monkeypatch.setattr(pipelines, "fit", None)
    assert start(run_multi_dataset, **options) == 1
    assert saved(settings)["variants"][rows]["runs"] == 1


def test_a_tagger_is_measured_by_entities(
    start: Callable[..., int], settings: dict[str, Any], tagged: str
) -> None:
    changes = {"data": {"path": tagged, "validation_share": 0.2}, "training": {"epochs": 1, "batch_size": 2}}
    assert start(run_ner, "--seeds", "3", **changes) == 0
    variant = saved(settings)["variants"]["default"]
    assert (variant["task"], variant["metric"]) == ("tagging", "f1")


@pytest.mark.usefixtures("untrained")
def test_mistakes_are_one_line_and_train_nothing(
    start: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    for command, changes, told in (
        (run_ner, {"data": {"path": "reviews"}}, "is for classification"),
        (run_multi_dataset, {}, "no datasets are given"),
        (run_experiment, {"data": {"dataset_name": "sst-2"}}, "sst2, ag_news"),
        (run_experiment, {"epochs": 3}, "unknown setting"),
    ):
        assert start(command, **changes) == 2
        out, err = capsys.readouterr()
        assert out == ""
        line = err.strip().splitlines()[-1]
        assert line.startswith("lexical-sae: error: ")
        assert told in line


def test_training_is_not_lost_when_the_evaluation_crashes(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object, **__: object) -> None:
        raise MemoryError

    config, output = ExperimentConfig.model_validate(settings), tmp_path / "run"
    monkeypatch.setattr(pipelines, "evaluate", crash)
    with pytest.raises(MemoryError):
        pipelines.train(config, output, Progress())
    left = json.loads((output / "results.json").read_text())
    assert not left["complete"]
    assert left["history"]
    assert left["timing"]["train_seconds"] > 0
    assert load_config(output / "training.yaml") == config
    assert isinstance(LexicalSAE.from_pretrained(output), LexicalSAE)


def test_only_the_same_run_is_continued(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def interrupted(config: ExperimentConfig, place: Path, progress: Progress, resume: bool) -> None:
        asked.append(resume)
        raise KeyboardInterrupt

    monkeypatch.setattr(pipelines, "train", interrupted)
    for changes in ({}, {}, {"target_active": 9}):
        config = ExperimentConfig.model_validate({**settings, **changes})
        with pytest.raises(KeyboardInterrupt):
            pipelines.run_experiment(config, tmp_path / "out", Progress())
    assert asked == [False, True, False]


def test_a_named_dataset_gets_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def named(name: str, revision: str, *sizes: float, seed: int) -> Dataset:
        asked.update(name=name, revision=revision, sizes=sizes, seed=seed)
        return Dataset(name, "classification", ["a", "b"], Texts(["x", "y"], [0, 1]))

    monkeypatch.setattr(pipelines, "load_named", named)
    data = {"dataset_name": "imdb", "revision": "abc", "train_samples": 5, "test_samples": 3}
    config = ExperimentConfig.model_validate({"seed": 4, "data": data})
    assert pipelines.load(config).name == "imdb"
    assert asked == {"name": "imdb", "revision": "abc", "sizes": (5, 3, 0.1), "seed": 4}
    config.data.task = "tagging"
    with pytest.raises(ConfigError, match="imdb is for classification"):
        pipelines.load(config)


def test_an_embedded_corpus_is_a_named_one_too_and_can_be_sampled() -> None:
    data = {"dataset_name": "topics", "train_samples": 40, "test_samples": 30, "validation_share": 0.1}
    dataset = pipelines.load(ExperimentConfig.model_validate({"data": data}))
    assert dataset.name == "topics"
    assert len(dataset.test or []) == 30
    assert len(dataset.train) <= 40


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "name"), [(run_experiment, "verify_full"), (run_ner, "ner/conll2003_verify")]
)
def test_the_quick_checks_take_less_than_five_minutes(command: Any, name: str, tmp_path: Path) -> None:
    start = time.perf_counter()
    code = command.main(
        ["--config", str(ROOT / f"experiments/{name}.yaml"), "--output", str(tmp_path / "out")]
    )
    assert code == 0
    assert time.perf_counter() - start < 300
