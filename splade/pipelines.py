"""From a config to a model folder: data -> model -> training -> evaluation -> records.

The folder is a model (`LexicalSAE.from_pretrained`) with its records beside it:

results.json     everything measured
training.yaml    the settings, resolved
"""

from __future__ import annotations

import json
import os
import platform
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import yaml

from splade.config.schema import ExperimentConfig
from splade.data.datasets import load_dataset
from splade.data.rows import Dataset, Sentences, Texts
from splade.errors import DataError
from splade.evaluation.frozen import find_frozen
from splade.evaluation.suite import evaluate
from splade.models.frozen import FrozenLM
from splade.models.lexical_sae import LexicalSAE
from splade.models.saving import require_place
from splade.training.fit import fit
from splade.training.progress import Progress

Results = dict[str, Any]


@dataclass(frozen=True)
class Trained:
    """A trained model, what it learned from, and what was measured of it."""

    model: LexicalSAE
    dataset: Dataset
    results: Results


def train(config: ExperimentConfig, output: Path, progress: Progress) -> Trained:
    """Train on `config.data`, evaluate on its test rows (validation rows without any), write `output`."""
    start = time.perf_counter()
    require_place(output)
    dataset = _load(config)
    progress.line(_introduction(dataset))
    model, history = fit(config, dataset, progress, on_best=lambda best: best.save_pretrained(output))
    train_seconds = time.perf_counter() - start
    split, rows = _measured_split(dataset)
    results: Results = {
        "task": dataset.task,
        "dataset": dataset.name,
        "labels": dataset.label_names,
        "rows": {name: len(part) for name, part in dataset.splits().items()},
        "model": _about_model(model),
        **_evaluate(model, rows, find_frozen(model), progress),
        "measured_on": split,
        "history": [asdict(epoch) for epoch in history.epochs],
    }
    results["timing"] = {"train_seconds": train_seconds, "evaluate_seconds": results.pop("seconds")}
    results["environment"] = environment()
    write_json(output / "results.json", results)
    settings = yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False)
    (output / "training.yaml").write_text(settings, encoding="utf-8")
    return Trained(model, dataset, results)


def evaluate_saved(
    model: LexicalSAE, path: str, text: str | None, label: str | None, progress: Progress
) -> Results:
    """Measure a saved model on the test rows of a dataset, or on all rows of a lone file."""
    names = model.config.label_names
    dataset = load_dataset(
        path, text=text, label=label, task=model.config.task, validation_share=0, labels=names
    )
    rows = dataset.test or dataset.train
    found = _evaluate(model, rows, find_frozen(model), progress)
    timing = {"evaluate_seconds": found.pop("seconds")}
    about = {"dataset": dataset.name, "labels": names, "model": _about_model(model)}
    about["measured_on"] = "test"
    return {**about, "rows": {"test": len(rows)}, **found, "timing": timing, "environment": environment()}


def write_json(path: Path, values: Results) -> None:
    """Write a file whole or not at all."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    fresh.replace(path)


def environment() -> dict[str, object]:
    """What a measured figure depends on besides the code."""
    import transformers

    return {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "transformers": transformers.__version__,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU",
        "threads": torch.get_num_threads(),
    }


def _load(config: ExperimentConfig) -> Dataset:
    data = config.data
    return load_dataset(
        data.path,
        text=data.text,
        label=data.label,
        task=data.task,
        limit=data.limit,
        validation_share=data.validation_share,
        seed=config.seed,
    )


def _introduction(dataset: Dataset) -> str:
    sizes = ", ".join(f"{len(rows):,} {name}" for name, rows in dataset.splits().items())
    return f"{dataset.name}: {sizes} rows, {len(dataset.label_names)} labels"


def _measured_split(dataset: Dataset) -> tuple[str, Texts | Sentences]:
    """The test rows, or else the validation rows, which chose the epoch and so flatter it."""
    if dataset.test is not None:
        return "test", dataset.test
    if dataset.validation is not None:
        return "validation", dataset.validation
    raise DataError(
        f"{dataset.name}: no test or validation rows to measure on; set data.validation_share above 0"
    )


def _evaluate(
    model: LexicalSAE, rows: Texts | Sentences, frozen: FrozenLM | None, progress: Progress
) -> Results:
    with progress.task("evaluation", len(rows)) as advance:
        found = evaluate(model, rows, frozen, advance=advance).to_dict()
    del found["rows"]  # the caller says how many rows each split has
    return found


def _about_model(model: LexicalSAE) -> Results:
    return {
        "backbone": model.config.backbone.name,
        "honesty": model.config.honesty,
        "parameters": sum(p.numel() for p in model.parameters()),
    }
