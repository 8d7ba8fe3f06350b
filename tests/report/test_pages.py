"""Report pages are self-contained, whole, and silent about what was not measured."""

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest

from splade.report.demo import demo_page
from splade.report.training import training_page
from tests.render.documents import self_contained
from tests.report.samples import RUNS, SHORTCUT, classification

every_page = pytest.mark.parametrize("page", [demo_page, training_page])
Page = Callable[[dict[str, Any]], str]


def shown(results: dict[str, Any], page: Page = demo_page) -> str:
    return self_contained(page(results)).text


@every_page
@pytest.mark.parametrize("run", RUNS)
def test_every_run_is_a_closed_inert_page(page: Page, run: str) -> None:
    self_contained(page(RUNS[run]))


@every_page
def test_hostile_text_is_shown_not_run(page: Page) -> None:
    written = page(RUNS["hostile"])
    assert "<script" not in written
    assert written.count("</style>") == 1
    assert not any(char in written for char in "\x00\x1b\u202e")


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in the results but those inside an explanation or an example."""
    inside = list(value.items()) if isinstance(value, dict) else []
    closed = ("explanations", "explanations_after", "examples", "top_reasons", "code_words")
    return [path] * bool(path) + [
        found for key, child in inside if key not in closed for found in leaves(child, (*path, key))
    ]


@every_page
@pytest.mark.parametrize("without", [lambda at, key: at.pop(key), lambda at, key: at.update({key: None})])
def test_any_missing_figure_is_left_out(page: Page, without: Callable[[dict[str, Any], str], None]) -> None:
    for *path, last in leaves(classification()):
        results = copy.deepcopy(classification())
        at = results
        for key in path:
            at = at[key]
        without(at, last)
        assert "None" not in page(results), (path, last)


@pytest.mark.parametrize(
    ("key", "heading"),
    [
        ("dla", "The sum of the words"),
        ("dictionary", "Do the words mean what they say?"),
        ("surgery", "Removing “boston”"),
        ("explanations", "What was predicted, and why"),
        ("history", "How training went"),
    ],
)
def test_a_section_stands_only_where_it_has_something_to_say(key: str, heading: str) -> None:
    results = classification()
    assert heading in shown(results)
    del results[key]
    assert heading not in shown(results)


def test_the_demonstration_is_read_from_prediction_to_removal() -> None:
    text = shown(classification())
    order = [
        "What was predicted",
        "The sum of the words",
        "Do the words mean",
        "Removing",
        "How training went",
    ]
    places = [text.index(heading) for heading in order]
    assert places == sorted(places)


def test_the_removal_is_shown_before_and_after() -> None:
    text = shown(classification())
    before = text.index("Before", text.index("Removing"))
    assert text.count(SHORTCUT.replace("Boston", "Boston+1.90")) >= 1
    assert "7 of 600" in text
    assert "21.0%" in text
    assert text.index("After", before) > before


def test_a_text_that_the_removal_left_alone_is_not_compared() -> None:
    removal = shown(classification())
    removal = removal[removal.index("Removing") : removal.index("How training went")]
    assert "acting is superb" not in removal
    assert removal.count("Contributions to the logit") == 2


@pytest.mark.parametrize(
    ("residual", "verdict"), [(3e-8, "it is rounding"), (0.2, "more than"), (float("nan"), "more than")]
)
def test_only_rounding_is_called_exact(residual: float, verdict: str) -> None:
    results = classification()
    results["dla"]["max_relative_residual"] = residual
    assert verdict in shown(results)


def test_grounding_that_was_not_measured_is_said() -> None:
    results = classification()
    results["dictionary"]["grounding100"] = None
    assert "Grounded not measured" in re.sub(r"\s+", " ", shown(results).replace("Grounded", " Grounded "))


def test_function_words_and_code_words_are_not_passed_over() -> None:
    text = shown(classification())
    assert "also (function word)" in text
    assert "Code words" in text
    results = classification()
    results["dictionary"]["code_words"] = []
    assert "No code words were found" in shown(results)


def test_many_classes_are_a_table() -> None:
    assert "card, lost, intent_8" in shown(RUNS["many classes"])


def test_a_tagger_is_told_by_entity() -> None:
    text = shown(RUNS["tagging"], training_page)
    assert "seqeval" in text
    assert "PER" in text
    assert "84.2%" in text


def test_each_epoch_is_counted_from_one() -> None:
    written = training_page(classification())
    assert 'class="tick middle"' in written
    assert re.search(r'class="tick middle"[^>]*>0<', written) is None
