"""A step that fails says why and takes no other with it; what was found is out before the next step runs."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from splade.data.rows import Sentences, Texts
from splade.errors import DataError
from splade.evaluation import suite
from splade.evaluation.steps import Record, Step, plain, sampled, told
from splade.evaluation.steps_words import AutoencodersFitter
from splade.evaluation.suite import evaluate
from splade.mechanistic.layerwise import LayerwiseFitter
from tests.tiny import SENTENCES, tiny_model

TEXTS = Texts([*SENTENCES, "", "clever"], [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2])
WORDS = [sentence.split() for sentence in SENTENCES]
TAGGED = Sentences(WORDS, [["B-PER", *["O"] * (len(words) - 1)] for words in WORDS])
SHARED = [
    "dla",
    "active_words",
    "dictionary",
    "completeness",
    "separation",
    "eraser",
    "removability",
    "sign_flips",
]
EVERY = [*SHARED, "layerwise", "scaling", "sae"]


class Counting:
    """Counts looks, and fails where it is told to."""

    def __init__(self, fails: str = "", after: int = 0) -> None:
        self.fails, self.after, self.seen = fails, after, 0
        if fails == "begin":
            raise MemoryError("no\nroom")

    def update(self, _: object) -> None:
        self.seen += 1
        if self.fails == "update" and self.seen > self.after:
            raise ValueError("of no use")

    def result(self) -> int:
        if self.fails == "result":
            raise DataError("no text; give some")
        return self.seen


def step(name: str, fails: str = "", after: int = 0) -> Step[Counting]:
    return Step(name, lambda: Counting(fails, after), Counting.update)


@pytest.fixture(autouse=True)
def _quick_autoencoders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("splade.evaluation.steps_words.SAE_FEWEST_STEPS", 3)


@pytest.mark.parametrize(
    ("fails", "why"),
    [
        ("begin", "MemoryError: no room"),
        ("update", "ValueError: of no use"),
        ("result", "no text; give some"),
    ],
)
def test_a_step_that_fails_says_why_and_the_others_see_everything(fails: str, why: str) -> None:
    told_of: list[tuple[str, Any]] = []
    record = Record(lambda *found: told_of.append(found))
    steps = [step("first"), step("bad", fails, after=1), step("last")]
    record.begin(steps)
    for _ in range(3):
        record.look(steps, None)  # type: ignore[arg-type]
    record.finish(steps)
    assert record.found == {"first": 3, "last": 3}
    assert record.problems == {"bad": why}
    assert told_of == [("first", 3), ("last", 3), ("problems", {"bad": why})]
    assert list(record.seconds) == ["first", "bad", "last"]


def test_a_step_that_failed_is_shown_nothing_more() -> None:
    seen: list[int] = []

    def look(fitter: Counting, _: object) -> None:
        seen.append(1)
        raise ValueError

    record, steps = Record(lambda *_: None), [Step("bad", Counting, look)]
    record.begin(steps)
    for _ in range(3):
        record.look(steps, None)  # type: ignore[arg-type]
    assert seen == [1]


def test_what_cannot_be_handed_on_is_no_problem_of_a_step() -> None:
    """A full disk ends the evaluation; it is not noted as if the measure had failed."""

    def full(*_: object) -> None:
        raise OSError("disk full")

    record, steps = Record(full), [step("first")]
    record.begin(steps)
    with pytest.raises(OSError, match="disk full"):
        record.finish(steps)
    assert record.problems == {}


def test_a_sample_is_the_same_every_time_and_no_larger_than_there_are_rows() -> None:
    assert sampled(1000, 64) == sampled(1000, 64) == sorted(set(sampled(1000, 64)))
    assert sampled(5, 64) == [0, 1, 2, 3, 4]
    assert sampled(1000, 64) != list(range(64))
    assert sampled(0, 64) == []


def test_a_mistake_of_the_user_is_told_without_its_kind() -> None:
    assert told(DataError("no text;\ngive some")) == "no text; give some"
    assert told(KeyError("x")) == "KeyError: 'x'"


@pytest.mark.parametrize("task", ["classification", "tagging"])
@pytest.mark.parametrize(
    "kinds", [{}, {"pooling": "attention", "head": "bcos"}, {"gate": "drelu", "topk": 2}]
)
def test_every_step_has_a_result_in_the_order_it_was_handed_on(task: str, kinds: dict[str, Any]) -> None:
    if task == "tagging":
        kinds = {**kinds, "pooling": "max"}
    rows = TEXTS if task == "classification" else TAGGED
    handed: dict[str, Any] = {}
    found = evaluate(
        tiny_model(task=task, opened=20, **kinds), rows, on_step=handed.__setitem__, training=rows
    )
    assert found.problems == {}
    every = [*EVERY, "probes"] if task == "classification" else EVERY
    assert list(handed) == ["quality", *every]
    whole = found.to_dict()
    assert {key: whole[key] for key in every} == {key: handed[key] for key in every}
    assert handed["quality"].items() <= whole.items()
    assert json.loads(json.dumps(handed)) == handed
    assert set(found.step_seconds) == set(every)
    assert sum(found.step_seconds.values()) < found.seconds


def test_a_late_crash_loses_nothing_that_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object) -> None:
        raise ValueError("singular")

    monkeypatch.setattr(LayerwiseFitter, "update", crash)
    monkeypatch.setattr(suite.SeparationFitter, "result", crash)
    partial = evaluate(tiny_model(opened=20), TEXTS).to_dict()
    monkeypatch.undo()
    whole = evaluate(tiny_model(opened=20), TEXTS).to_dict()
    failed = {"separation", "layerwise"}
    assert partial["problems"] == dict.fromkeys(failed, "ValueError: singular")
    changing = {"problems", "seconds", "step_seconds"}
    assert {k: v for k, v in partial.items() if k not in changing} == {
        k: v for k, v in whole.items() if k not in changing | failed
    }


def test_an_interruption_is_not_a_problem_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    handed: dict[str, Any] = {}

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(LayerwiseFitter, "update", stop)
    with pytest.raises(KeyboardInterrupt):
        evaluate(tiny_model(), TEXTS, on_step=handed.__setitem__)
    assert list(handed) == ["quality", *SHARED]


def test_a_dense_model_and_autoencoders_without_training_rows_are_not_asked() -> None:
    assert evaluate(tiny_model(), TEXTS).sae is None
    found = evaluate(tiny_model(), TEXTS, training=TEXTS).to_dict()["sae"]
    assert [one["kind"] for one in found] == ["topk", "jumprelu"]


def test_autoencoders_learn_from_training_text_only(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    model = tiny_model()
    train = Texts(["clever film", "slow"], [0, 1])

    def note(h_NH: torch.Tensor, *_: object, **__: object) -> Any:
        seen.append(len(h_NH))
        raise DataError("stop here")

    monkeypatch.setattr("splade.evaluation.steps_words.train_sae", note)
    with pytest.raises(DataError):
        AutoencodersFitter(model, train)
    assert seen == [3]  # clever, film, slow


def test_plain_values_stay_as_they_are() -> None:
    assert plain([1, {"a": 2}]) == [1, {"a": 2}]
