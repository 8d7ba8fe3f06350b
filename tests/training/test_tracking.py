"""Epochs reach the tracker that a config names, and a tracker that is not there is said at once."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from splade import pipelines
from splade.config.load import load_config
from splade.config.schema import ExperimentConfig
from splade.errors import ConfigError
from splade.training import tracking
from splade.training.history import Epoch
from splade.training.progress import Progress
from splade.training.tracking import epoch_figures, tracked
from splade.training.validation import Validation

OUTPUT = Path("runs") / "model"


def an_epoch(number: int) -> Epoch:
    found = Validation(0.75, 0.5, 12.0, None, None)
    return Epoch(number, "warm-up", 0.9, {"ce": 0.5, "active": 12.0}, None, {"ce": 0.2}, found, 1e-4, 3.0)


def configured(tracker: str) -> ExperimentConfig:
    return load_config(overrides={"training.tracker": tracker})


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What an accelerate that takes only what TensorBoard takes was told."""
    calls: list[tuple[Any, ...]] = []

    class Accelerator:
        def __init__(self, log_with: str, project_dir: str) -> None:
            calls.append(("made", log_with, project_dir))

        def init_trackers(self, name: str, config: dict[str, Any]) -> None:
            assert all(isinstance(value, str | int | float) for value in config.values())
            calls.append(("begun", name, config["training.learning_rate"], config["vpe.token_ids"]))

        def log(self, values: dict[str, Any], step: int) -> None:
            assert all(isinstance(value, float) for value in values.values())
            calls.append(("log", step, values["validation/score"]))

        def end_training(self) -> None:
            calls.append(("ended",))

    monkeypatch.setitem(sys.modules, "accelerate", SimpleNamespace(Accelerator=Accelerator))
    monkeypatch.setattr(tracking, "_installed", lambda _: True)
    return calls


def test_every_epoch_reaches_the_tracker_beside_the_model(told: list[tuple[Any, ...]]) -> None:
    with tracked(Progress(), configured("tensorboard"), OUTPUT) as watched:
        watched.epoch(an_epoch(0))
        watched.epoch(an_epoch(1))
    begun = [("made", "tensorboard", str(Path("runs/model.tracker"))), ("begun", "model", "None", "[]")]
    assert told == [*begun, ("log", 1, 0.75), ("log", 2, 0.75), ("ended",)]


def test_a_tracker_is_closed_when_training_fails(told: list[tuple[Any, ...]]) -> None:
    with pytest.raises(KeyboardInterrupt), tracked(Progress(), configured("wandb"), OUTPUT):
        raise KeyboardInterrupt
    assert told[-1] == ("ended",)


def test_without_a_tracker_progress_is_itself(told: list[tuple[Any, ...]]) -> None:
    progress = Progress()
    with tracked(progress, configured("none"), OUTPUT) as watched:
        assert watched is progress
    assert told == []


def test_what_was_not_measured_is_left_out() -> None:
    figures = epoch_figures(an_epoch(0))
    assert {"train/loss", "train/ce", "validation/score", "multiplier/ce", "rate", "seconds"} <= set(figures)
    assert {"tau", "validation/outside"}.isdisjoint(figures)


@pytest.mark.parametrize("tracker", ["tensorboard", "wandb"])
def test_a_missing_tracker_is_said_before_rows_are_read(
    tracker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracking, "_installed", lambda name: name == "accelerate")
    config = load_config(overrides={"training.tracker": tracker, "data.path": str(tmp_path / "none.csv")})
    with pytest.raises(ConfigError, match=f"{tracker} needs {tracker}: pip install {tracker}$"):
        pipelines.train(config, tmp_path / "model", Progress())
