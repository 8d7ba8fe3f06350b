"""What the studies share: models trained as experiments train them, and parts that are kept as they end.

1. A study is a folder: study.json, and models/NAME/seed-N as `run_experiment` writes them. A run that is
   complete is not repeated.
2. A part is one question. What it found is written when it ends; one that fails says why, and the others go
   on.
3. A study that is started again does the parts that are missing or failed. With other settings or seeds, or
   on another machine, where times are not comparable, all of them are done anew.

A study with several seeds trains a model for each, and asks its questions of the first one's.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from splade.config.schema import ExperimentConfig
from splade.data.rows import Dataset, Texts
from splade.errors import DataError
from splade.evaluation.agreement import one_word_rows
from splade.evaluation.experiment import Results, changed
from splade.evaluation.intervals import intervals
from splade.evaluation.records import environment, read_json, write_json
from splade.evaluation.seeds import spread
from splade.evaluation.steps import told
from splade.models.lexical_sae import LexicalSAE
from splade.pipelines import load, run_experiment
from splade.training.fit import device
from splade.training.progress import Progress

_SAME = ("kind", "settings", "seeds", "environment")
_FEWEST_WORDS = 50  # that people labelled, for agreement with them to mean anything
_ASKED_LATER = ("faithfulness", "needle", "surgery")  # sections that training does not read


@dataclass(frozen=True)
class Runs:
    """The runs of one config, one for each seed: what each measured, and how each of its rows came out."""

    folder: Path
    seeds: Sequence[int]
    results: Sequence[Results]
    right_SN: Sequence[Sequence[bool]]

    def model(self) -> LexicalSAE:
        """The first seed's, where models run."""
        return LexicalSAE.from_pretrained(self.folder / f"seed-{self.seeds[0]}").to(device())

    def accuracy(self) -> Results:
        """Mean and standard deviation over seeds, with a 95 % interval over rows."""
        text_N = [i for right_N in self.right_SN for i in range(len(right_N))]
        [found] = intervals(np.concatenate(self.right_SN)[:, None], text_N)
        over_seeds = spread([float(np.mean(right_N)) for right_N in self.right_SN])
        return {**asdict(over_seeds), "low": found.low, "high": found.high}

    def figure(self, *keys: str) -> Results | None:
        """Mean and standard deviation over seeds of one figure of the results; None where it is missing."""
        values = [_nested(results, keys) for results in self.results]
        return None if None in values else asdict(spread([float(value) for value in values]))


class Study:
    """One study in one folder, with what it has found so far."""

    def __init__(
        self,
        kind: str,
        config: ExperimentConfig,
        output: Path,
        progress: Progress,
        seeds: Sequence[int] = (),
    ) -> None:
        self.output, self.progress = output, progress
        self.seeds = list(dict.fromkeys(seeds or config.evaluation.seeds or [config.seed]))
        self.config = changed(config, {"seed": self.seeds[0]})
        self.results: Results = {
            "kind": kind,
            "name": config.experiment_name,
            "complete": False,
            "settings": config.model_dump(mode="json"),
            "seeds": self.seeds,
            "environment": environment(),
        }
        before = read_json(output / "study.json")
        same = isinstance(before, dict) and all(before.get(key) == self.results[key] for key in _SAME)
        kept = before if same and isinstance(before, dict) else {}
        self.results |= {key: kept.get(key, {}) for key in ("data", "parts", "failed")}

    def texts(self) -> Dataset:
        """The config's data, which a study asks labelled test texts of."""
        dataset = load(self.config)
        if dataset.task != "classification" or dataset.test is None or not dataset.test.marks():
            raise DataError(
                f"{dataset.name}: a study asks about labelled test texts; give data that has some"
            )
        rows = {name: len(part) for name, part in dataset.splits().items()}
        self.results["data"] = {"dataset": dataset.name, "labels": dataset.label_names, "rows": rows}
        return dataset

    def train(self, name: str, config: ExperimentConfig) -> Runs:
        """A model for each seed, called `name` in the folder of the study."""
        folder = self.output / "models" / name
        run_experiment(changed(config, {key: {} for key in _ASKED_LATER}), folder, self.progress, self.seeds)
        places = [folder / f"seed-{seed}" for seed in self.seeds]
        results = [_read(place / "results.json") for place in places]
        counts = [_read(place / "rows.json") for place in places]
        right_SN = [[right == found == there for right, found, there in rows] for rows in counts]
        return Runs(folder, self.seeds, results, right_SN)

    def part(self, name: str, work: Callable[[], Any], lacks: Callable[[Any], str] = lambda _: "") -> Any:
        """What a part found, now or before; None if it failed. `lacks` says what is missing of a half one."""
        parts, failed = self.results["parts"], self.results["failed"]
        if name in parts and name not in failed:
            self.progress.line(f"{name}: complete already")
            return parts[name]
        failed.pop(name, None)
        self.progress.line(f"{name}: begins")
        try:
            parts[name] = json.loads(json.dumps(work()))  # as it will be read again
            reason = lacks(parts[name])
        except Exception as problem:
            parts.pop(name, None)
            reason = told(problem)
        if reason:
            failed[name] = reason
            self.progress.line(f"{name}: {reason}")
        self._write()
        return parts.get(name)

    def finish(self) -> Results:
        """Everything found; `complete` if nothing failed."""
        self.results["complete"] = not self.results["failed"]
        self._write()
        return self.results

    def _write(self) -> None:
        write_json(self.output / "study.json", self.results)


def drawn(rows: Texts, count: int, seed: int) -> Texts:
    """`count` of the rows, or all if there are no more, in their own order."""
    chosen = random.Random(seed).sample(range(len(rows)), min(count, len(rows)))
    return rows.take(sorted(chosen))


def on_disk(dataset: Dataset, folder: Path) -> dict[str, object]:
    """Write texts as a folder of rows, and return the settings by which a config names it."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, rows in dataset.splits().items():
        assert isinstance(rows, Texts)
        names = [[dataset.label_names[i] for i in ids] for ids in rows.label_ids()]
        labels = names if dataset.multi_label else [name for [name] in names]
        lines = [
            json.dumps({"text": text, "label": label}) for text, label in zip(rows.texts, labels, strict=True)
        ]
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    columns = {"data.text": "text", "data.label": "label", "data.task": "classification"}
    return {"data.path": str(folder), "data.dataset_name": None, **columns}


def without_words(dataset: Dataset, folder: Path) -> tuple[dict[str, str], dict[str, object]]:
    """The label that people gave to single words, and the settings of the rows without these.

    Nothing of either where single words have no label, or too few of them have.
    """
    train, validation = dataset.train, dataset.validation
    if not isinstance(train, Texts) or len(dataset.label_names) != 2 or dataset.multi_label:
        return {}, {}
    words, train = one_word_rows(train)
    if len(words) < _FEWEST_WORDS:
        return {}, {}
    if isinstance(validation, Texts):
        _, validation = one_word_rows(validation)
    settings = on_disk(replace(dataset, train=train, validation=validation), folder)
    return {word: dataset.label_names[label] for word, label in words.items()}, settings


def _nested(results: Mapping[str, Any], keys: Sequence[str]) -> Any:
    found: Any = results
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def _read(path: Path) -> Any:
    """A file that the run has just written."""
    found = read_json(path)
    assert found is not None, path
    return found
