"""From a config to a model folder: data -> model -> training -> evaluation -> records; and runs of runs.

The folder of a run is a model (`LexicalSAE.from_pretrained`) with its records beside it:

results.json     everything measured so far; `complete` says that the run came to its end
training.yaml    the settings, resolved
rows.json        of a run in an experiment: right, found and there for every measured row

An experiment is a folder of runs, VARIANT/seed-N, with the results.json of all of them, which is written
anew after each. A run that is complete is not repeated; one that was interrupted continues.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from splade.config.schema import ExperimentConfig
from splade.data.datasets import EMBEDDED, load_dataset
from splade.data.hub import NAMED, find_named, load_named, sample_test
from splade.data.rows import Dataset, Sentences, Texts
from splade.errors import ConfigError, DataError
from splade.evaluation.experiment import Experiment, Results, Run, changed, perform
from splade.evaluation.frozen import find_frozen
from splade.evaluation.records import environment, read_json, write_json
from splade.evaluation.rowwise import row_counts
from splade.evaluation.suite import evaluate
from splade.models.dense import DenseModel
from splade.models.frozen import FrozenLM
from splade.models.lexical_sae import LexicalSAE
from splade.models.saving import require_place
from splade.training.checkpoint import Checkpoints
from splade.training.fit import fit
from splade.training.progress import Progress
from splade.training.tracking import require_tracker, tracked

__all__ = [
    "SCHEMA",
    "Results",
    "Trained",
    "environment",
    "evaluate_saved",
    "load",
    "rows_for",
    "run_ablation",
    "run_bcos_ablation",
    "run_experiment",
    "run_multi_dataset",
    "run_ner",
    "train",
    "write_json",
]

SCHEMA = 1  # of results.json; docs/results-schema.md says what each version holds

Model = LexicalSAE | DenseModel


@dataclass(frozen=True)
class Trained:
    """A trained model, what it learned from, and what was measured of it."""

    model: Model
    dataset: Dataset
    results: Results


def train(config: ExperimentConfig, output: Path, progress: Progress, resume: bool = False) -> Trained:
    """Train on `config.data`, evaluate on its test rows (validation rows without any), write `output`.

    With `resume` a run to the same place that was interrupted continues.
    """
    start = time.perf_counter()
    if config.recipe != "dense":  # which leaves records alone
        require_place(output)
    require_tracker(config.training.tracker)
    dataset = load(config)
    measured_on, rows = _measured_split(dataset)
    progress.line(_introduction(dataset))
    checkpoints = _checkpoints(config, output)
    if checkpoints is not None and not resume:
        checkpoints.clear()
    with tracked(progress, config, output) as watched:
        model, history = fit(config, dataset, watched, lambda best: _keep(best, output), checkpoints)
    results: Results = {
        "schema": SCHEMA,
        "complete": False,
        "task": dataset.task,
        "dataset": dataset.name,
        "labels": dataset.label_names,
        "rows": {name: len(part) for name, part in dataset.splits().items()},
        "measured_on": measured_on,
        "model": _about_model(model),
        "settings": config.model_dump(mode="json"),
        "history": [asdict(epoch) for epoch in history.epochs],
        "timing": {"train_seconds": time.perf_counter() - start},
        "environment": environment(),
    }
    output.mkdir(parents=True, exist_ok=True)
    settings = yaml.safe_dump(results["settings"], sort_keys=False)
    (output / "training.yaml").write_text(settings, encoding="utf-8")
    fitted = {"sae": config.mechanistic.sae_comparison, "probes": config.mechanistic.probes}
    asked = [name for name, wanted in fitted.items() if wanted]
    _evaluate(model, rows, _frozen(model), progress, results, output, dataset.train, asked)
    if checkpoints is not None:
        checkpoints.clear()
    return Trained(model, dataset, results)


def evaluate_saved(
    model: LexicalSAE,
    path: str,
    text: str | None,
    label: str | None,
    progress: Progress,
    output: Path | None = None,
) -> Results:
    """Measure a saved model on the test rows of a dataset, or on all rows of a lone file.

    With an `output` its results.json is written, anew after each step.
    """
    name, rows = rows_for(model, path, text, label)
    results: Results = {
        "schema": SCHEMA,
        "complete": False,
        "task": model.config.task,
        "dataset": name,
        "labels": model.config.label_names,
        "rows": {"test": len(rows)},
        "measured_on": "test",
        "model": _about_model(model),
        "timing": {},
        "environment": environment(),
    }
    _evaluate(model, rows, find_frozen(model), progress, results, output)
    return results


def rows_for(
    model: LexicalSAE, path: str, text: str | None, label: str | None
) -> tuple[str, Texts | Sentences]:
    """A dataset's name and the rows of it to measure a saved model on: its test rows, or its only ones."""
    config = model.config
    dataset = load_dataset(
        path,
        text=text,
        label=label,
        task=config.task,
        multi_label=config.multi_label,
        validation_share=0,
        labels=config.label_names,
    )
    return dataset.name, dataset.test or dataset.train


def run_experiment(
    config: ExperimentConfig, output: Path, progress: Progress, seeds: Sequence[int] = ()
) -> Results:
    """Train and measure once for each seed (those given, else of the config); means over them."""
    return _perform(Experiment("experiment", {config.recipe: config}), output, progress, seeds)


def run_ner(config: ExperimentConfig, output: Path, progress: Progress, seeds: Sequence[int] = ()) -> Results:
    """The same for tagging: a dataset for another task is refused."""
    tagging = changed(config, {"data.task": "tagging"})
    return _perform(Experiment("tagging", {config.recipe: tagging}), output, progress, seeds)


def run_ablation(
    config: ExperimentConfig, output: Path, progress: Progress, seeds: Sequence[int] = ()
) -> Results:
    """Recipes side by side with equal data and budget, each tested against the config's own.

    They are those of the key `recipes`, or else baseline, dense and the config's own.
    """
    names = [*(config.recipes or ["baseline", "dense"]), config.recipe]
    variants = {name: changed(config, {"recipe": name}) for name in names}
    return _perform(Experiment("ablation", variants, config.recipe), output, progress, seeds)


def run_bcos_ablation(
    config: ExperimentConfig, output: Path, progress: Progress, seeds: Sequence[int] = ()
) -> Results:
    """A B-cos head beside the ReLU head, all else equal."""
    variants = {name: changed(config, {"model.head": name}) for name in ("bcos", "relu_mlp")}
    return _perform(Experiment("heads", variants, "relu_mlp"), output, progress, seeds)


def run_multi_dataset(
    config: ExperimentConfig, output: Path, progress: Progress, seeds: Sequence[int] = ()
) -> Results:
    """One experiment for each of the key `datasets`; one that fails is noted, and the others run."""
    if not config.datasets:
        raise ConfigError("no datasets are given; write names or paths, such as `datasets: [sst2, imdb]`")
    variants = {name: changed(config, _dataset(name)) for name in config.datasets}
    return _perform(Experiment("datasets", variants, keep_going=True), output, progress, seeds)


def load(config: ExperimentConfig) -> Dataset:
    """The rows that a config names, from the hub, a file, a folder or an embedded corpus."""
    data, name = config.data, config.data.dataset_name
    if name in NAMED:
        sizes = (data.train_samples, data.test_samples, data.validation_share)
        dataset = load_named(str(name), data.revision, *sizes, seed=config.seed)
        if data.task not in (None, dataset.task):
            raise ConfigError(f"{name} is for {dataset.task}, not {data.task}; leave the task out")
        return dataset
    if name is not None and name not in EMBEDDED:
        find_named(name)
    dataset = load_dataset(
        name or data.path,
        text=data.text,
        label=data.label,
        task=data.task,
        multi_label=data.multi_label,
        limit=None if data.train_samples == -1 else data.train_samples,
        validation_share=data.validation_share,
        seed=config.seed,
    )
    return sample_test(dataset, data.test_samples, config.seed)


# --- one run -------------------------------------------------------------------------------------------


def _introduction(dataset: Dataset) -> str:
    sizes = ", ".join(f"{len(rows):,} {name}" for name, rows in dataset.splits().items())
    return f"{dataset.name}: {sizes} rows, {len(dataset.label_names)} labels"


def _checkpoints(config: ExperimentConfig, output: Path) -> Checkpoints | None:
    return Checkpoints.beside(output) if config.training.checkpoint_every else None


def _keep(model: Model, output: Path) -> None:
    """The model on disk; a dense one is for comparison only, and of it the figures are kept."""
    if isinstance(model, LexicalSAE):
        model.save_pretrained(output)


def _measured_split(dataset: Dataset) -> tuple[str, Texts | Sentences]:
    """The test rows, or else the validation rows, which chose the epoch and so flatter it."""
    if dataset.test is not None:
        return "test", dataset.test
    if dataset.validation is not None:
        return "validation", dataset.validation
    raise DataError(
        f"{dataset.name}: no test or validation rows to measure on; set data.validation_share above 0"
    )


def _frozen(model: Model) -> FrozenLM | None:
    return find_frozen(model) if isinstance(model, LexicalSAE) else None


def _evaluate(
    model: Model,
    rows: Texts | Sentences,
    frozen: FrozenLM | None,
    progress: Progress,
    results: Results,
    output: Path | None,
    training: Texts | Sentences | None = None,
    fitted: Sequence[str] = (),
) -> None:
    """Add what is measured to `results`, and write them to `output` whenever there is more."""
    start = time.perf_counter()

    def keep() -> None:
        if output is not None:
            write_json(output / "results.json", results)

    def note(name: str, value: Any) -> None:
        results.update(value if name == "quality" else {name: value})
        keep()
        progress.line(f"{time.perf_counter() - start:6.1f} s  {_said(name, value)}")

    keep()  # before what may fail
    found = evaluate(model, rows, frozen, watch=progress.task, on_step=note, training=training, fitted=fitted)
    results["timing"] |= {"evaluate_seconds": found.seconds, "step_seconds": found.step_seconds}
    results |= {"problems": found.problems, "complete": True}
    keep()


def _said(name: str, value: Any) -> str:
    """What a line of progress says of a step."""
    if name != "problems":
        return f"{name.replace('_', ' ')} measured"
    return "; ".join(f"{step} failed: {why}" for step, why in value.items())


def _about_model(model: Model) -> Results:
    return {
        "backbone": model.config.backbone.name,
        "honesty": model.config.honesty if isinstance(model, LexicalSAE) else None,
        "parameters": sum(p.numel() for p in model.parameters()),
    }


# --- several runs --------------------------------------------------------------------------------------


def _perform(experiment: Experiment, output: Path, progress: Progress, seeds: Sequence[int]) -> Results:
    return perform(
        experiment, output, seeds, lambda config, place: _run(config, place, progress), progress.line
    )


def _run(config: ExperimentConfig, place: Path, progress: Progress) -> Run:
    """Train, measure and count the rows; continues where the same run was interrupted."""
    begun, settings = place.with_name(f".{place.name}.begun.json"), config.model_dump(mode="json")
    resume = read_json(begun) == settings
    write_json(begun, settings)
    (place / "rows.json").unlink(missing_ok=True)
    trained = train(config, place, progress, resume)
    _, rows = _measured_split(trained.dataset)
    counts = row_counts(trained.model, rows)
    write_json(place / "rows.json", counts)
    begun.unlink()
    return Run(trained.results, counts)


def _dataset(name: str) -> dict[str, str | None]:
    """The settings that stand for a name or a path."""
    known = name in NAMED
    return {"data.dataset_name": name if known else None, **({} if known else {"data.path": name})}
