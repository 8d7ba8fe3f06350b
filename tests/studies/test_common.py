"""Parts of a study are kept as they end, and a study that is started again does what is missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from splade import pipelines
from splade.config.schema import ExperimentConfig
from splade.data.rows import Dataset, Texts
from splade.errors import DataError
from splade.evaluation.experiment import changed
from splade.evaluation.records import read_json
from splade.studies.common import Runs, Study, drawn, on_disk, without_words
from splade.training.progress import Progress
from tests.studies.small import small_config

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # the tiny masked LM is untrained


def counted(found: Any, calls: list[Any]) -> Callable[[], Any]:
    def work() -> Any:
        calls.append(found)
        return found

    return work


def broken() -> None:
    raise DataError("no rows")


def begun(output: Path, **changes: Any) -> Study:
    config = changed(ExperimentConfig(), {"evaluation.seeds": [3], **changes})
    return Study("sota", config, output, Progress())


def test_a_part_that_is_done_is_not_done_again(tmp_path: Path) -> None:
    calls: list[Any] = []
    begun(tmp_path).part("one", counted({"x": (1, 2)}, calls))
    again = begun(tmp_path)
    assert again.part("one", counted({"x": (1, 2)}, calls)) == {"x": [1, 2]}
    assert len(calls) == 1
    assert again.finish()["complete"]


def test_a_part_that_fails_says_why_and_the_others_go_on(tmp_path: Path) -> None:
    study = begun(tmp_path)
    assert study.part("bad", broken) is None
    assert study.part("good", lambda: 1) == 1
    results = study.finish()
    assert (results["complete"], results["failed"], results["parts"]) == (
        False,
        {"bad": "no rows"},
        {"good": 1},
    )
    mended = begun(tmp_path)
    mended.part("bad", lambda: 2)
    assert mended.finish()["complete"]


def test_a_part_is_on_disk_before_the_next_begins(tmp_path: Path) -> None:
    study = begun(tmp_path)
    study.part("one", lambda: 1)

    def look() -> Any:
        return read_json(tmp_path / "study.json")

    assert study.part("two", look)["parts"] == {"one": 1}


def test_a_half_part_is_kept_and_tried_again(tmp_path: Path) -> None:
    calls: list[Any] = []
    for _ in range(2):
        study = begun(tmp_path)
        assert study.part("half", counted([1], calls), lambda found: "lacks a package") == [1]
        assert study.finish()["failed"] == {"half": "lacks a package"}
    assert len(calls) == 2


@pytest.mark.parametrize("change", [{"target_active": 9}, {"evaluation.seeds": [4]}])
def test_another_study_keeps_nothing(tmp_path: Path, change: dict[str, Any]) -> None:
    begun(tmp_path).part("one", lambda: 1)
    assert begun(tmp_path, **change).results["parts"] == {}


def test_times_of_another_machine_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(tmp_path).part("one", lambda: 1)
    monkeypatch.setattr("splade.studies.common.environment", lambda: {"device": "another"})
    assert begun(tmp_path).results["parts"] == {}


def test_what_is_asked_later_does_not_train_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = small_config(tmp_path)
    Study("faithfulness", config, tmp_path / "out", Progress()).train("trained", config)
    monkeypatch.setattr(pipelines, "fit", None)
    other = changed(config, {"faithfulness.texts": 3})
    runs = Study("faithfulness", other, tmp_path / "out", Progress()).train("trained", other)
    assert runs.accuracy()["mean"] == pytest.approx(runs.results[0]["accuracy"])
    assert runs.figure("active_words", "mean")["values"] == [runs.results[0]["active_words"]["mean"]]
    assert runs.figure("active_words", "no such figure") is None


def test_accuracy_is_over_seeds_and_its_interval_over_rows() -> None:
    alike = Runs(Path(), [0, 1], [], [[True] * 30 + [False] * 10] * 2)
    one = Runs(Path(), [0], [], [[True] * 30 + [False] * 10])
    assert alike.accuracy()["values"] == [0.75, 0.75]
    assert alike.accuracy()["sd"] == 0
    assert one.accuracy()["sd"] is None
    assert {alike.accuracy()[key] for key in ("low", "high")} == {
        one.accuracy()[key] for key in ("low", "high")
    }
    assert one.accuracy()["low"] < 0.75 < one.accuracy()["high"]


def test_rows_on_disk_are_the_rows(tmp_path: Path) -> None:
    train = Texts(["a good one", "a bad\none", "“so so”", "good"], [1, 0, 0, 1])
    dataset = Dataset("d", "classification", ["no", "yes"], train, train.take([0]), train.take([2, 1]))
    config = changed(ExperimentConfig(), on_disk(dataset, tmp_path / "rows"))
    found = pipelines.load(config)
    assert found.label_names == dataset.label_names
    assert found.splits() == dataset.splits()


def test_texts_are_drawn_in_their_order() -> None:
    rows = Texts([str(i) for i in range(50)], list(range(50)))
    some = drawn(rows, 20, seed=1)
    assert some.labels == sorted(some.labels)
    assert (len(some), some.texts) == (20, [str(i) for i in some.labels])
    assert some == drawn(rows, 20, seed=1) != drawn(rows, 20, seed=2)
    assert drawn(rows, 99, seed=1) == rows


def test_studies_are_about_texts(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="labelled test texts"):
        begun(tmp_path, **{"data.path": "tagging"}).texts()


def test_single_words_are_held_out_of_what_is_learned(tmp_path: Path) -> None:
    words = [f"word{i}" for i in range(60)]
    labels = [i % 2 for i in range(60)]
    train = Texts([*words, "Word0.", "word1", "a good one", "a bad one"], [*labels, 0, 0, 1, 0])
    validation = Texts(["word3", "a fine one"], [1, 1])
    dataset = Dataset("d", "classification", ["no", "yes"], train, train.take([62]), validation)
    human, settings = without_words(dataset, tmp_path / "rows")
    assert human == {
        word: ("no", "yes")[label] for word, label in zip(words, labels, strict=True) if word != "word1"
    }
    found = pipelines.load(changed(ExperimentConfig(), settings))
    assert found.train == train.take([62, 63])
    assert found.validation == validation.take([1])
    assert found.test == dataset.test


def test_a_few_single_words_stay_where_they_are(tmp_path: Path) -> None:
    train = Texts(["good", "bad", "a good one"], [1, 0, 1])
    dataset = Dataset("d", "classification", ["no", "yes"], train, train)
    assert without_words(dataset, tmp_path / "rows") == ({}, {})
    assert not (tmp_path / "rows").exists()
