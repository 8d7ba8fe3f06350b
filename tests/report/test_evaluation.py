"""What the steps of an evaluation found is told with its intervals, or not at all."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from splade.report import evaluation as report
from splade.report.demo import demo_page
from splade.report.training import training_page
from tests.render.documents import self_contained
from tests.report.samples import RUNS, classification, measured

HEADINGS = {
    "completeness": "Do a few words decide as all of them do?",
    "eraser": "Were the named words needed, and are they enough?",
    "removability": "Can a decision be taken away with its words?",
    "separation": "Do classes have reasons of their own?",
    "layerwise": "What does each layer add?",
    "scaling": "What does the gate cost?",
    "sae": "Beside sparse autoencoders",
    "problems": "What could not be measured",
}
every_page = pytest.mark.parametrize("page", [demo_page, training_page])


def text(results: dict[str, Any]) -> str:
    return self_contained(training_page(results)).text


@every_page
@pytest.mark.parametrize("key", HEADINGS)
def test_each_step_has_a_section_which_is_gone_without_it(page: Any, key: str) -> None:
    results = classification()
    assert HEADINGS[key] in self_contained(page(results)).text
    del results[key]
    assert HEADINGS[key] not in self_contained(page(results)).text


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every key, in lists too."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in inside:
        if isinstance(key, str):
            yield (*path, key)
        yield from places(child, (*path, key))


@pytest.mark.parametrize("gone", [True, False])
def test_any_figure_may_be_missing_inside_lists_too(gone: bool) -> None:
    required = {"word", "mean"}  # of a circuit's words, which a fitter always gives together
    for *path, last in places(measured()):
        if "words" in path and last in required:
            continue
        results: Any = copy.deepcopy(measured())
        at = results
        for key in path:
            at = at[key]
        if gone:
            del at[last]
        else:
            at[last] = None
        assert not any("None" in str(part) for part in report.measures(results)), (path, last)


def test_a_step_without_rows_is_silent_and_never_an_error() -> None:
    empty = {
        "completeness": [],
        "eraser": [],
        "removability": {"explainer": "dla", "rows": 0, "at": []},
        "separation": {
            "mean_cosine": None,
            "max_cosine": None,
            "closest": [],
            "jaccard": [],
            "circuits": [],
        },
        "layerwise": {"rows": 0, "max_relative_residual": 0.0, "classes": []},
        "scaling": {},
        "sae": [],
        "problems": {},
    }
    assert report.measures(empty) == report.measures({}) == [""] * len(HEADINGS)


def test_figures_stand_with_their_intervals() -> None:
    written = text(classification())
    assert "0.213 (0.187 to 0.241)" in written
    assert "40.0% (31.0% to 48.0%)" in written
    assert "The predicted class" in written
    assert "The gold class" in written


def test_layers_are_bars_that_sum_to_the_logit_they_name() -> None:
    layer = classification()["layerwise"]["classes"][0]
    assert layer["logit"] == layer["embeddings"] + sum(layer["layers"]) + layer["bias"]
    written = text(classification())
    assert "Mean logit of positive: 1.50" in written
    assert "layer 3" in written
    assert "Fall of positive without a layer" in written


def test_many_classes_are_tables() -> None:
    written = text(RUNS["many classes"])
    assert "What each layer adds, on average" in written
    assert "Circuits of classes" in written
    assert "Mean logit of" not in written


def test_a_failed_step_is_told_with_its_reason() -> None:
    assert "ValueError: one class only" in text(classification())


def test_changes_have_a_sign_and_scores_of_a_tagger_are_f1() -> None:
    assert "-2.0 points" in text(classification()).replace("−", "-")
    assert "F1" in str(report.circuits(RUNS["tagging"]))
    assert "accuracy" in str(report.circuits(RUNS["classification"]))
