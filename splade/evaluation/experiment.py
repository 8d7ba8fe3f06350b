"""Runs of runs: variants of a config, each with every seed, and what they say together.

1. A run is VARIANT/seed-N. One that is complete and was made with the same settings is not repeated.
2. The results of all are written anew after each run, so that a crash loses at most one.
3. Where one variant is the reference, the others are tested against it over seeds and over rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from splade.config.load import parse_config
from splade.config.schema import ExperimentConfig
from splade.errors import ConfigError
from splade.evaluation.records import environment, read_json, write_json
from splade.evaluation.seeds import Count, headline, paired_bootstrap, paired_t, summarise
from splade.evaluation.steps import told

Results = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """What one run measured, over all its rows and row by row."""

    results: Results
    rows: list[Count]


@dataclass(frozen=True)
class Experiment:
    """Which configs are compared; `reference` is the one that the others are tested against.

    With `keep_going` a variant that fails is noted, and the others run.
    """

    kind: str
    variants: Mapping[str, ExperimentConfig]
    reference: str | None = None
    keep_going: bool = False


def perform(
    experiment: Experiment,
    output: Path,
    seeds: Sequence[int],
    run: Callable[[ExperimentConfig, Path], Run],
    note: Callable[[str], None],
) -> Results:
    """Run every variant with every seed: those given, else those of the config."""
    if (output / "config.json").exists():
        raise ConfigError(f"{output} holds a model; choose another --output for the experiment")
    first = next(iter(experiment.variants.values()))
    seeds = list(dict.fromkeys(seeds or first.evaluation.seeds or [first.seed]))
    results: Results = {
        "kind": experiment.kind,
        "name": first.experiment_name,
        "complete": False,
        "seeds": seeds,
        "reference": experiment.reference,
        "variants": {},
        "comparisons": [],
        "environment": environment(),
    }
    runs: dict[str, list[Run]] = {name: [] for name in experiment.variants}
    for name, config in experiment.variants.items():
        try:
            for done in _runs(config, _folder(experiment, name, output), seeds, run, note):
                runs[name].append(done)
                results["variants"][name] = _variant(runs[name])
                write_json(output / "results.json", results)
        except Exception as problem:
            if not experiment.keep_going:
                raise
            results["variants"].setdefault(name, {})["error"] = told(problem)
            note(f"{name}: {told(problem)}")
    results["comparisons"] = _comparisons(runs, experiment.reference)
    results["complete"] = not any("error" in variant for variant in results["variants"].values())
    write_json(output / "results.json", results)
    return results


def changed(config: ExperimentConfig, settings: Mapping[str, Any]) -> ExperimentConfig:
    """A config with other values under dotted keys."""
    raw = config.model_dump(mode="json")
    for key, value in settings.items():
        section, _, last = key.rpartition(".")
        (raw[section] if section else raw)[last] = value
    return parse_config(raw)


def _folder(experiment: Experiment, name: str, output: Path) -> Path:
    """A lone variant needs no folder of its own."""
    alone = len(experiment.variants) == 1 and not experiment.keep_going
    return output if alone else output / (re.sub(r"[^\w.-]+", "_", name).strip("._") or "data")


def _runs(
    config: ExperimentConfig,
    folder: Path,
    seeds: Sequence[int],
    run: Callable[[ExperimentConfig, Path], Run],
    note: Callable[[str], None],
) -> Iterator[Run]:
    for seed in seeds:
        place = folder / f"seed-{seed}"
        settings = {"seed": seed, "evaluation.seeds": [], "datasets": [], "recipes": []}
        seeded = changed(config, {**settings, "experiment_name": place.name, "output_dir": str(folder)})
        found = _finished(seeded, place)
        note(f"{place}: {'complete already' if found else 'begins'}")
        yield found or run(seeded, place)


def _finished(config: ExperimentConfig, place: Path) -> Run | None:
    """The run that is there, if it is complete and its settings are these."""
    results, rows = read_json(place / "results.json"), read_json(place / "rows.json")
    if not isinstance(results, dict) or not isinstance(rows, list) or not results.get("complete"):
        return None
    if results.get("settings") != config.model_dump(mode="json"):
        return None
    return Run(results, [(right, found, there) for right, found, there in rows])


def _variant(runs: Sequence[Run]) -> Results:
    """What the runs of a variant say together, and the score they are compared by."""
    last = runs[-1].results
    return {
        "task": last["task"],
        "dataset": last["dataset"],
        "labels": len(last["labels"]),
        "rows": last["rows"],
        "measured_on": last["measured_on"],
        "metric": headline(last)[0],
        "runs": len(runs),
        "summary": {key: asdict(found) for key, found in summarise([run.results for run in runs]).items()},
    }


def _comparisons(runs: Mapping[str, Sequence[Run]], reference: str | None) -> list[Results]:
    return [
        _comparison(name, found, reference, runs[reference])
        for name, found in runs.items()
        if reference is not None and name != reference
    ]


def _comparison(name: str, runs: Sequence[Run], reference: str, against: Sequence[Run]) -> Results:
    """How much better a variant scores than the reference, over the same seeds and on the same rows."""
    scores, others = ([headline(run.results)[1] for run in side] for side in (runs, against))
    by_seed = paired_t(scores, others)
    by_row = paired_bootstrap([run.rows for run in runs], [run.rows for run in against])
    return {
        "variant": name,
        "against": reference,
        "metric": headline(runs[0].results)[0],
        "over_seeds": None if by_seed is None else asdict(by_seed),
        "over_rows": None if by_row is None else asdict(by_row),
    }
