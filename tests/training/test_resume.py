"""A run that was stopped anywhere and continued ends at the same bits as one that was not."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from splade.circuits.recipes import RECIPES
from splade.config.schema import ExperimentConfig
from splade.data.rows import Dataset
from splade.errors import TrainingError
from splade.training.checkpoint import Checkpoints
from splade.training.history import History
from splade.training.loop import Model, Trainer
from splade.training.progress import Progress
from tests.tiny import tiny_model
from tests.training.toys import sentences, settings, texts


class StoppedError(Exception):
    """Stands for the end of a process."""


def fresh(recipe: str, dataset: Dataset) -> Model:
    torch.manual_seed(0)
    random.seed(0)
    classes = len(dataset.label_names)
    return tiny_model(task=dataset.task, gate=RECIPES[recipe].gate, classes=classes, opened=12)


def configured(recipe: str, every: int = 1) -> ExperimentConfig:
    config = settings(8, recipe)
    config.training.checkpoint_every = every
    config.training.backbone_dropout = True  # so that random numbers are drawn in every step
    return config


def stopped_after(saves: int, folder: Path) -> Checkpoints:
    """Checkpoints whose process ends after so many of them."""
    checkpoints = Checkpoints(folder)
    whole, left = checkpoints.save, [saves]

    def save(*arguments: object) -> None:
        whole(*arguments)  # type: ignore[arg-type]
        left[0] -= 1
        if not left[0]:
            raise StoppedError

    checkpoints.save = save  # type: ignore[method-assign]
    return checkpoints


def same(one: Model, other: Model) -> bool:
    states = one.state_dict(), other.state_dict()
    return all(torch.equal(states[0][name], states[1][name]) for name in states[0])


@pytest.mark.parametrize(
    ("recipe", "saves"),
    [("default", 3), ("default", 17), ("cis", 21), ("lexical-sae", 9), ("cajt", 22), ("ltt", 12)],
)
def test_a_stopped_run_continues_to_the_same_bits(recipe: str, saves: int, tmp_path: Path) -> None:
    dataset = texts() if saves % 2 else sentences()
    config = configured(recipe)
    whole = fresh(recipe, dataset)
    expected = Trainer(whole, dataset, config, Progress()).run()
    with pytest.raises(StoppedError):
        Trainer(
            fresh(recipe, dataset),
            dataset,
            config,
            Progress(),
            checkpoints=stopped_after(saves, tmp_path / "c"),
        ).run()
    random.seed(123)
    torch.manual_seed(456)  # a new process starts anywhere
    model = fresh(recipe, dataset)
    torch.manual_seed(789)
    found = Trainer(model, dataset, config, Progress(), checkpoints=Checkpoints(tmp_path / "c")).run()
    assert same(whole, model)
    assert [without_time(found)] == [without_time(expected)]


def without_time(history: History) -> list[object]:
    return [(e.epoch, e.phase, e.loss, e.terms, e.tau, e.multipliers, e.validation) for e in history.epochs]


def test_a_checkpoint_of_other_settings_is_refused(tmp_path: Path) -> None:
    dataset = texts()
    with pytest.raises(StoppedError):
        Trainer(
            fresh("default", dataset),
            dataset,
            configured("default"),
            Progress(),
            checkpoints=stopped_after(2, tmp_path),
        ).run()
    other = configured("default")
    other.target_active = 3
    with pytest.raises(TrainingError, match=r"another target_active.*--resume"):
        Trainer(
            fresh("default", dataset), dataset, other, Progress(), checkpoints=Checkpoints(tmp_path)
        ).run()


def newest(place: Path) -> int:
    """The step of the newest whole checkpoint; 0 before there is one."""
    return max((int(path.name.removeprefix("step-")) for path in place.glob("step-??????????")), default=0)


@pytest.mark.slow
def test_a_killed_process_continues_to_the_same_bits(tmp_path: Path) -> None:
    """kill -9 at random moments, many times over; the last run ends where an unbroken one does."""
    from safetensors.torch import load_file

    command = [
        *(sys.executable, "-m", "splade", "train", "--data", "reviews", "--limit", "160", "--epochs", "3"),
        *(
            "--set",
            "training.checkpoint_every=2",
            "--set",
            "data.test_samples=16",
            "--set",
            "model.max_length=32",
        ),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}

    def start(output: str, *more: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*command, "--output", str(tmp_path / output), *more],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    assert start("whole").wait() == 0
    draw = random.Random(0)
    process, kills, reached = start("broken"), 0, 0
    while kills < 6:
        place = tmp_path / "broken.checkpoints"
        deadline = time.monotonic() + 60
        while newest(place) <= reached and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(draw.uniform(0, 2))
        if process.poll() is not None:
            break
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills, reached = kills + 1, newest(place)
        print(f"kill -9 number {kills}: left {sorted(path.name for path in place.glob('*'))}")
        process = start("broken", "--resume")
    assert kills
    assert process.wait() == 0
    print(f"continued after {kills} kills, and ended")
    for file in ("model.safetensors", "backbone/model.safetensors"):
        one, other = (load_file(tmp_path / name / file) for name in ("whole", "broken"))
        assert one.keys() == other.keys()
        assert all(torch.equal(one[key], other[key]) for key in one), file
        print(f"{file}: {len(one)} tensors, every bit as in the unbroken run")
    assert not (tmp_path / "broken.checkpoints").exists()


def test_what_was_found_out_at_the_start_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Free memory has changed when a run continues; its batch size has not."""
    from splade.training import fit as fitting

    dataset, config = texts(), configured("default")
    config = config.model_copy(update={"training": config.training.model_copy(update={"batch_size": None})})
    settled = []
    for size in (8, 16):
        monkeypatch.setattr(fitting, "_batch_size", lambda *_, size=size: size)
        model = fresh("default", dataset)
        settled.append(fitting._settled(config, model, dataset, Progress(), Checkpoints(tmp_path)))
        if size == 8:
            with pytest.raises(StoppedError):
                Trainer(model, dataset, settled[0], Progress(), checkpoints=stopped_after(2, tmp_path)).run()
    assert settled[1].training.batch_size == settled[0].training.batch_size == 8
