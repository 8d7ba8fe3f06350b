"""One table for every system that can be trained here on the same rows: what each scores, says and costs.

1. A bag of words: the score below which a model has learnt no context.
2. Every recipe: the config's own under the honesty the config says, the others with a free dictionary.
3. Sparse autoencoders trained after the fact on the plain bottleneck (`baseline`) and spliced into it.

A figure that a system cannot have is missing from what was found of it, and the table says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np

from splade.circuits.recipes import RECIPES
from splade.config.schema import ExperimentConfig
from splade.data.encoding import by_length
from splade.data.rows import Dataset, Texts
from splade.evaluation.experiment import Results, changed
from splade.evaluation.explainers.compare import compare
from splade.evaluation.intervals import intervals
from splade.evaluation.reference import bag_of_words
from splade.evaluation.spliced import Spliced
from splade.evaluation.steps_words import AutoencodersFitter
from splade.inference.rows import EncodedRows
from splade.studies.common import Runs, Study, drawn
from splade.training.progress import Progress


def run_sota_comparison(
    config: ExperimentConfig, output: Path, progress: Progress, seeds: Sequence[int] = ()
) -> Results:
    """Every recipe (those of the key `recipes`, if given), a bag of words, and autoencoders post hoc."""
    study = Study("sota", config, output, progress, seeds)
    dataset = study.texts()
    study.part("bag of words", partial(_bag_of_words, dataset))
    for name in dict.fromkeys([*(config.recipes or RECIPES), config.recipe]):
        study.part(name, partial(_system, study, name, dataset))
    if "baseline" in study.results["parts"]:
        study.part("autoencoders", partial(_autoencoders, study, dataset))
    return study.finish()


def _settings(config: ExperimentConfig, name: str) -> ExperimentConfig:
    honesty = config.honesty if name == config.recipe else "free"
    return changed(config, {"recipe": name, "honesty": honesty, "recipes": []})


def _bag_of_words(dataset: Dataset) -> Results:
    """Its words are those of the text, and its sums are exact because it is linear."""
    assert isinstance(dataset.test, Texts)
    found = bag_of_words(dataset)
    words = [len(set(re.findall(r"\b\w+\b", text.lower()))) for text in dataset.test.texts]
    return {
        "accuracy": _accuracy(found.score, len(dataset.test)),
        "words": {"mean": float(np.mean(words)), "sd": None},
        "note": f"{found.model}; its words are those of the text",
    }


def _system(study: Study, name: str, dataset: Dataset) -> Results:
    """A recipe's figures, and the time that explaining takes where there are words."""
    settings = _settings(study.config, name)
    runs = study.train(name, settings)
    found: Results = {"accuracy": runs.accuracy(), "seconds": runs.figure("timing", "train_seconds")}
    if name == "dense":
        return found | {"note": "an ordinary linear head: no words"}
    return found | {
        "words": runs.figure("active_words", "mean"),
        "grounding": runs.figure("dictionary", "grounding100"),
        "residual": runs.figure("dla", "max_relative_residual"),
        "cost": _cost(study, runs, dataset),
        "note": f"{settings.honesty} dictionary",
    }


def _cost(study: Study, runs: Runs, dataset: Dataset) -> Results:
    """Forward passes and milliseconds a text of the exact sum of words."""
    assert isinstance(dataset.test, Texts)
    texts = drawn(dataset.test, study.config.faithfulness.texts, study.config.seed).texts
    [row] = compare(runs.model(), texts, explainers=["dla"])
    assert row.cost is not None
    return asdict(row.cost)


def _autoencoders(study: Study, dataset: Dataset) -> list[Results]:
    """The plain bottleneck that reads what an autoencoder rebuilds, on rows that none was trained on."""
    model = study.train("baseline", _settings(study.config, "baseline")).model()
    assert dataset.test is not None
    rows, fitter = EncodedRows(dataset.test, model), AutoencodersFitter(model, dataset.train)
    for indices in by_length(rows.lengths, 32):
        fitter.update(rows.batch(indices))
    return [_spliced(found) for found in fitter.result()]


def _spliced(found: Spliced) -> Results:
    """Its features have no names to be grounded, and what it leaves out no sum holds."""
    return {
        "kind": found.kind,
        "accuracy": _accuracy(found.accuracy + found.accuracy_change, found.rows),
        "words": {"mean": found.l0, "sd": None},
        "note": f"{found.features:,} features without names, so many active at each position; they explain "
        f"{found.explained_variance:.0%} of what the head reads; accuracy moves by "
        f"{100 * found.accuracy_change:+.1f} points",
        "autoencoder": found.to_dict(),
    }


def _accuracy(score: float, rows: int) -> Results:
    """A share of rows with its interval: of rows that count alike, only how many are right matters."""
    [found] = intervals(np.arange(rows)[:, None] < round(score * rows))
    return {"mean": score, "sd": None, "low": found.low, "high": found.high}
