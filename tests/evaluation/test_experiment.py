"""Several runs: what is complete is not repeated, what fails loses nothing, variants differ in one thing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from splade.config.schema import ExperimentConfig
from splade.errors import ConfigError, DataError
from splade.evaluation.experiment import Experiment, Run, changed, perform
from splade.evaluation.records import read_json, write_json

Runner = Callable[[ExperimentConfig, Path], Run]


class Bench:
    """Stands for training: writes what a run writes, remembers it, and can break down."""

    def __init__(self, output: Path) -> None:
        self.output = output
        self.ran: list[str] = []
        self.notes: list[str] = []
        self.failing: dict[str, Exception] = {}

    def run(self, config: ExperimentConfig, place: Path) -> Run:
        name = str(place.relative_to(self.output))
        self.ran.append(name)
        if name in self.failing:
            raise self.failing[name]
        right = 6 + config.seed + 2 * (config.recipe == "default")
        results: dict[str, Any] = {
            "complete": True,
            "task": "classification",
            "dataset": config.data.dataset_name or config.data.path,
            "labels": ["a", "b"],
            "rows": {"test": 10},
            "measured_on": "test",
            "accuracy": right / 10,
            "settings": config.model_dump(mode="json"),
        }
        rows = [(1, 1, 1)] * right + [(0, 1, 1)] * (10 - right)
        write_json(place / "results.json", results)
        write_json(place / "rows.json", rows)
        return Run(results, rows)

    def perform(self, experiment: Experiment, seeds: tuple[int, ...] = ()) -> dict[str, Any]:
        self.ran.clear()
        return perform(experiment, self.output, seeds, self.run, self.notes.append)

    def saved(self) -> dict[str, Any]:
        found = read_json(self.output / "results.json")
        assert isinstance(found, dict)
        return found


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "out")


def one(**settings: Any) -> Experiment:
    return Experiment("experiment", {"default": changed(ExperimentConfig(), settings)})


def two(keep_going: bool = False) -> Experiment:
    variants = {name: changed(ExperimentConfig(), {"recipe": name}) for name in ("baseline", "default")}
    return Experiment("ablation", variants, None if keep_going else "default", keep_going)


def test_a_run_for_each_seed_and_the_mean_of_all(bench: Bench) -> None:
    results = bench.perform(one(**{"evaluation.seeds": [0, 1, 1]}))
    assert bench.ran == ["seed-0", "seed-1"]
    assert results["complete"]
    score = results["variants"]["default"]["summary"]["accuracy"]
    assert score["mean"] == pytest.approx(0.85)
    assert score["values"] == [0.8, 0.9]
    assert bench.saved() == json.loads(json.dumps(results))


def test_seeds_given_come_before_those_of_the_config(bench: Bench) -> None:
    bench.perform(one(**{"evaluation.seeds": [0, 1]}), (2,))
    assert bench.ran == ["seed-2"]
    bench.perform(one(seed=1))
    assert bench.ran == ["seed-1"]


def test_what_is_complete_is_not_repeated(bench: Bench) -> None:
    first = bench.perform(one(), (0, 1))
    assert bench.perform(one(), (0, 1, 2))["seeds"] == [0, 1, 2]
    assert bench.ran == ["seed-2"]
    assert bench.perform(one(), (0, 1)) == first
    assert bench.ran == []


def test_other_settings_and_damaged_records_are_run_again(bench: Bench) -> None:
    bench.perform(one(), (0,))
    bench.perform(one(target_active=7), (0,))
    assert bench.ran == ["seed-0"]
    (bench.output / "seed-0" / "rows.json").write_text("[")
    bench.perform(one(target_active=7), (0,))
    assert bench.ran == ["seed-0"]
    found = bench.saved()
    place = bench.output / "seed-0" / "results.json"
    write_json(place, {**json.loads(place.read_text()), "complete": False})
    bench.perform(one(target_active=7), (0,))
    assert bench.ran == ["seed-0"]
    assert bench.saved() == found


def test_names_of_places_are_no_settings(bench: Bench) -> None:
    bench.perform(one(), (0,))
    bench.perform(one(experiment_name="other", output_dir="elsewhere", recipes=["dense"]), (0,))
    assert bench.ran == []


def test_a_crash_keeps_what_was_measured_and_the_next_start_continues(bench: Bench) -> None:
    bench.failing["default/seed-0"] = KeyboardInterrupt()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        bench.perform(two(), (0, 1))
    saved = bench.saved()
    assert not saved["complete"]
    assert saved["variants"]["baseline"]["runs"] == 2
    bench.failing.clear()
    assert bench.perform(two(), (0, 1))["complete"]
    assert bench.ran == ["default/seed-0", "default/seed-1"]


def test_a_failing_variant_stops_an_ablation_but_not_the_other_datasets(bench: Bench) -> None:
    bench.failing["baseline/seed-1"] = DataError("no rows;\ngive some")
    with pytest.raises(DataError):
        bench.perform(two(), (0, 1))
    results = bench.perform(two(keep_going=True), (0, 1))
    assert not results["complete"]
    assert results["variants"]["baseline"]["error"] == "no rows; give some"
    assert results["variants"]["baseline"]["runs"] == 1
    assert results["variants"]["default"]["runs"] == 2
    assert "baseline: no rows; give some" in bench.notes
    bench.failing.clear()
    assert bench.perform(two(keep_going=True), (0, 1))["complete"]
    assert bench.ran == ["baseline/seed-1"]


def test_a_bug_is_told_with_its_kind(bench: Bench) -> None:
    bench.failing["baseline/seed-0"] = ZeroDivisionError("by zero")
    results = bench.perform(two(keep_going=True), (0,))
    assert results["variants"]["baseline"] == {"error": "ZeroDivisionError: by zero"}


def test_variants_are_tested_against_the_reference(bench: Bench) -> None:
    (found,) = bench.perform(two(), (0, 1))["comparisons"]
    assert (found["variant"], found["against"], found["metric"]) == ("baseline", "default", "accuracy")
    assert found["over_seeds"]["difference"] == pytest.approx(-0.2)
    assert found["over_rows"]["difference"] == pytest.approx(-0.2)
    assert found["over_rows"]["n"] == 10
    assert bench.perform(two(), (0,))["comparisons"][0]["over_seeds"] is None


def test_paths_as_names_stay_inside_the_folder(bench: Bench) -> None:
    variants = {name: changed(ExperimentConfig(), {"data.path": name}) for name in ("../../rows.csv", "a/b")}
    bench.perform(Experiment("datasets", variants, keep_going=True), (0,))
    assert bench.ran == ["rows.csv/seed-0", "a_b/seed-0"]


def test_a_model_folder_is_not_overwritten(bench: Bench) -> None:
    bench.output.mkdir()
    (bench.output / "config.json").write_text("{}")
    with pytest.raises(ConfigError, match="holds a model"):
        bench.perform(one())
    assert bench.ran == []


def test_changed_settings_are_checked() -> None:
    with pytest.raises(ConfigError):
        changed(ExperimentConfig(), {"recipe": "no such"})
    assert changed(ExperimentConfig(), {"model.head": "bcos"}).model.head == "bcos"
