"""docs/results-schema.md names every key of results.json, and no other; what is measured is saved at once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from splade import pipelines
from splade.config.load import load_config
from splade.data.rows import Texts
from splade.errors import DataError
from splade.evaluation.experiment import Experiment, Run, perform
from splade.evaluation.suite import evaluate
from splade.mechanistic.layerwise import LayerwiseFitter
from splade.models.lexical_sae import LexicalSAE
from splade.pipelines import SCHEMA, evaluate_saved, train
from splade.training.progress import Progress
from tests.tiny import SENTENCES, tiny_model

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # the tiny masked LM is untrained

DOCUMENT = Path(__file__).parents[1] / "docs" / "results-schema.md"
WHOLE = {("settings",)}  # documented elsewhere: every key of the configuration
FITTED = {"mechanistic.sae_comparison": True, "mechanistic.probes": True}
ROWS = Texts([*SENTENCES, "clever"], [i % 3 for i in range(11)])

Path_ = tuple[str, ...]


def documented() -> list[Path_]:
    """The first column of every table, split at dots: `a[].b` is (a, [], b), `<label>` any one key."""
    keys = re.findall(r"^\| `([^`]+)` \|", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    return [tuple(key.replace("[]", ".[]").split(".")) for key in keys]


def written(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Every place that holds a value; an empty list or object is one."""
    if path in WHOLE:
        yield path
    elif isinstance(value, dict) and value:
        for key, child in value.items():
            yield from written(child, (*path, key))
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for item in value:
            yield from written(item, (*path, "[]"))
    else:
        yield path


def named(path: Path_, value: Any, patterns: list[Path_]) -> bool:
    """Whether a place is documented; of what is empty or null, it is enough that something inside is."""
    inside = value in ({}, [], None)
    return any(matches(p[: len(path)] if inside else p, path) for p in patterns)


def at(results: Any, path: Path_) -> Any:
    """The value of a place; of a list, that of its first item that has it."""
    for i, key in enumerate(path):
        if key == "[]":
            found = (at(item, path[i + 1 :]) for item in results)
            return next((value for value in found if value is not None), None)
        results = results.get(key) if isinstance(results, dict) else None
    return results


def matches(pattern: Path_, path: Path_) -> bool:
    pairs = zip(pattern, path, strict=False)
    return len(pattern) == len(path) and all(p.startswith("<") or p == key for p, key in pairs)


def rows_at(folder: Path) -> Path:
    for split, count in (("train", 6), ("test", 2)):
        lines = [f"{text} {i}\tclass {'ab'[i % 2]}" for i in range(count) for text in SENTENCES]
        (folder / f"{split}.tsv").write_text("\n".join(["text\tlabel", *lines]) + "\n", encoding="utf-8")
    return folder


def sentences_at(folder: Path) -> Path:
    sentences = [f"Paris B-LOC\nis O\nfar O\n\nno O\nrain O\n{i} O\n" for i in range(12)]
    for split in ("train", "test"):
        (folder / f"{split}.conll").write_text("\n".join(sentences), encoding="utf-8")
    return folder


def lone_model(folder: Path) -> LexicalSAE:
    """A model whose frozen LM cannot be found, without asking a network for it."""
    model = tiny_model(classes=2)
    model.config.backbone.name = str(folder / "gone")
    return model


def trained(masked_lm: str, data: Path, output: Path, **changes: Any) -> dict[str, Any]:
    settings = {
        "target_active": 8,
        "data.path": str(data),
        "data.validation_share": 0.2,
        "model.name": masked_lm,
        "model.width": 8,
        "training.epochs": 2,
        "training.batch_size": 8,
        **changes,
    }
    train(load_config(overrides=settings), output, Progress())
    found: dict[str, Any] = json.loads((output / "results.json").read_text())
    return found


@pytest.fixture(scope="module")
def runs(masked_lm: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Results of every kind of run."""
    place = tmp_path_factory.mktemp("runs")
    texts, tagged = rows_at(tmp_path_factory.mktemp("texts")), sentences_at(tmp_path_factory.mktemp("tags"))
    steps = pytest.MonkeyPatch()
    steps.setattr("splade.evaluation.steps_words.SAE_FEWEST_STEPS", 2)
    steps.setattr("splade.mechanistic.layerwise.LayerwiseFitter.result", _fail)
    with steps.context():
        found = {
            "texts": trained(masked_lm, texts, place / "texts", **FITTED),
            "tags": trained(masked_lm, tagged, place / "tags"),
            "dense": trained(masked_lm, texts, place / "dense", recipe="dense"),
        }
    steps.undo()
    model = LexicalSAE.from_pretrained(place / "texts")
    found["saved"] = evaluate_saved(model, str(texts), None, None, Progress(), place / "measured")
    assert found["saved"] == json.loads((place / "measured" / "results.json").read_text())
    several = tiny_model(opened=20)
    several.config.multi_label = True
    found["several labels"] = evaluate(several, ROWS).to_dict()
    found["ablation"] = experiment("ablation", found["texts"], place / "ablation", "a")
    found["datasets"] = experiment("datasets", found["texts"], place / "datasets", None)
    return found


def experiment(kind: str, results: dict[str, Any], place: Path, reference: str | None) -> dict[str, Any]:
    """What several runs say together, each of which measures the same; without a reference, one fails."""
    configs = {name: load_config(overrides={"experiment_name": name}) for name in ("a", "b")}

    def run(_: Any, folder: Path) -> Run:
        if folder.parent.name == "b" and reference is None:
            raise DataError("no rows")
        return Run(results, [(1, 1, 1), (0, 1, 1)])

    keep_going = reference is None
    return perform(Experiment(kind, configs, reference, keep_going), place, [0, 1], run, lambda _: None)


def _fail(*_: object) -> None:
    raise ValueError("no layers")


def test_every_key_that_is_written_is_documented(runs: dict[str, dict[str, Any]]) -> None:
    patterns = documented()
    for name, results in runs.items():
        for path in written(results):
            if name == "several labels" and path[0] in ("rows", "seconds", "step_seconds"):
                continue  # of the evaluation itself: a run has them under other keys
            assert named(path, at(results, path), patterns), (name, ".".join(path))


def test_every_documented_key_is_written(runs: dict[str, dict[str, Any]]) -> None:
    paths = {path for results in runs.values() for path in written(results)}
    missing = [".".join(pattern) for pattern in documented() if not any(matches(pattern, p) for p in paths)]
    assert missing == []


def test_results_say_which_schema_they_follow_and_that_they_are_complete(
    runs: dict[str, dict[str, Any]],
) -> None:
    assert f"Version {SCHEMA}" in DOCUMENT.read_text(encoding="utf-8")
    for name in ("texts", "tags", "dense", "saved"):
        assert (runs[name]["schema"], runs[name]["complete"]) == (SCHEMA, True)
    assert runs["texts"]["problems"] == {"layerwise": "ValueError: no layers"}
    assert runs["saved"]["problems"] == {}


@pytest.mark.parametrize("during", ["training", "evaluation"])
def test_a_run_that_is_killed_late_keeps_what_was_measured(
    during: str, masked_lm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rows").mkdir()
    output, data = tmp_path / "run", rows_at(tmp_path / "rows")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(LayerwiseFitter, "update", killed)
    runs = {
        "training": lambda: trained(masked_lm, data, output),
        "evaluation": lambda: evaluate_saved(lone_model(tmp_path), str(data), None, None, Progress(), output),
    }
    with pytest.raises(KeyboardInterrupt):
        runs[during]()
    left = json.loads((output / "results.json").read_text())
    assert left["complete"] is False
    assert {"accuracy", "dla", "dictionary", "completeness", "eraser", "removability"} <= left.keys()
    assert not {"layerwise", "scaling"} & left.keys()
    assert ("settings" in left) == (during == "training")


def test_a_saved_model_without_an_output_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipelines, "write_json", _fail)
    results = evaluate_saved(lone_model(tmp_path), str(rows_at(tmp_path)), None, None, Progress())
    assert results["complete"]
