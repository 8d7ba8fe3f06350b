"""Training is drawn from what was written down: lines measured, bounds held, nothing made up."""

import copy
import json
from typing import Any

import pytest
from markupsafe import Markup

from splade.circuits.objective import OUTSIDE_BOUND as TRAINED_BOUND
from splade.report.history import OUTSIDE_BOUND, history
from splade.report.training import training_page
from tests.render.documents import Document, self_contained
from tests.report.samples import classification


def figures(results: dict[str, Any]) -> dict[str, Document]:
    """The charts of a page, by caption; an empty series of a legend would stand in its text."""
    charts = history(results).split('<figure class="chart">')[1:]
    found = [chart.split("</figure>")[0] for chart in charts]
    return {chart.split("figcaption>")[1].removesuffix("</"): Document(chart) for chart in found}


def lines(figure: Document, hue: int) -> list[list[str]]:
    """Points of the lines in one colour; 0 is training, 1 validation, 5 a bound."""
    found = [a for tag, a in figure.tags if tag == "polyline" and a.get("class") == f"line s{hue}"]
    return [str(a["points"]).split() for a in found]


def test_each_question_about_training_has_its_chart() -> None:
    found = figures(classification())
    assert list(found) == [
        "Loss",
        "Score",
        "Cross-entropy",
        "Factor λ of each bound",
        "Active words",
        "Ungrounded",
        "Effective vocabulary",
        "Learning rate",
    ]
    assert all("epoch" in figure.text for figure in found.values())


@pytest.mark.parametrize(
    ("caption", "unit", "training", "validation", "bound"),
    [
        ("Cross-entropy", "nats per row", 4, 4, 6),  # τ is known in three of four epochs
        ("Active words", "per row, log scale", 4, 4, 8),
        ("Ungrounded", "% of activation", 4, 4, 8),
        ("Effective vocabulary", "words, validation rows", 0, 4, 0),
        ("Score", "% on validation rows", 0, 4, 0),
        ("Loss", "mean over the steps", 4, 0, 0),
        ("Factor λ of each bound", "log scale", 3, 4, 0),
    ],
)
def test_measured_lines_and_bounds_stand_in_one_chart(
    caption: str, unit: str, training: int, validation: int, bound: int
) -> None:
    figure = figures(classification())[caption]
    assert unit in figure.text
    assert [sum(map(len, lines(figure, hue))) for hue in (0, 1, 5)] == [training, validation, bound]


def test_each_line_is_named() -> None:
    found = figures(classification())
    assert found["Cross-entropy"].text.endswith("training validation bound τ")
    assert found["Factor λ of each bound"].text.endswith("cross-entropy ungrounded")
    assert found["Active words"].text.endswith("training validation target")
    assert found["Ungrounded"].text.endswith("training validation bound 5 %")


def test_the_bound_drawn_is_the_bound_trained_with() -> None:
    assert pytest.approx(100 * TRAINED_BOUND) == OUTSIDE_BOUND


def test_a_bound_that_was_not_in_force_is_not_drawn() -> None:
    results = classification()
    for epoch in results["history"]:
        epoch["multipliers"], epoch["tau"] = {}, None
    del results["settings"]
    found = figures(results)
    assert "Factor λ of each bound" not in found
    assert all(lines(figure, 5) == [] for figure in found.values())
    assert all("bound" not in figure.text and "target" not in figure.text for figure in found.values())


def test_a_constraint_without_a_name_here_keeps_its_own() -> None:
    results = classification()
    for epoch in results["history"]:
        epoch["multipliers"]["<b>width</b>"] = 2.0
    assert "<b>width</b>" in figures(results)["Factor λ of each bound"].text


def test_the_end_of_the_warm_up_is_marked_and_explained() -> None:
    assert "upright line" in history(classification())
    for phase in ("warm-up", "constrained", None):
        results = classification()
        for epoch in results["history"]:
            epoch["phase"] = phase
        assert "upright line" not in history(results)


def test_one_epoch_is_enough() -> None:
    results = classification()
    results["history"] = results["history"][-1:]
    self_contained(training_page(results))
    found = figures(results)
    assert len(found) == 8
    dots = [a for tag, a in found["Cross-entropy"].tags if tag == "circle"]
    assert [a["class"] for a in dots] == ["dot s0", "dot s1"]
    assert len(lines(found["Cross-entropy"], 5)) == 1


def test_active_words_that_fell_to_zero_are_seen() -> None:
    results = classification()
    results["history"][2]["terms"]["active"] = 0.0
    figure = figures(results)["Active words"]
    assert "log scale" not in figure.text
    assert len(lines(figure, 0)[0]) == 4


def places(epoch: dict[str, Any]) -> list[tuple[str, ...]]:
    inner = [(key, name) for key, value in epoch.items() if isinstance(value, dict) for name in value]
    return [(key,) for key in epoch] + inner


@pytest.mark.parametrize("place", places(classification()["history"][1]), ids=".".join)
@pytest.mark.parametrize("everywhere", [True, False])
@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), "absent"])
def test_any_value_may_be_missing(place: tuple[str, ...], everywhere: bool, value: object) -> None:
    results = copy.deepcopy(classification())
    for epoch in results["history"] if everywhere else results["history"][1:2]:
        at = epoch
        for key in place[:-1]:
            at = at[key]
        if value == "absent" or isinstance(at.get(place[-1]), dict):
            at.pop(place[-1], None)
        else:
            at[place[-1]] = value
    page = training_page(results)
    assert "None" not in self_contained(page).text
    assert "nan" not in page.split("How training went")[1].split("The sum of the words")[0]


@pytest.mark.parametrize("epochs", [[], [{}], [{}, {}], None, [{"terms": None, "validation": None}]])
def test_a_history_that_says_nothing_draws_nothing(epochs: list[dict[str, Any]] | None) -> None:
    assert history({"history": epochs}) == Markup()


def test_a_history_read_back_from_json_draws_the_same() -> None:
    results = classification()
    assert history(json.loads(json.dumps(results))) == history(results)
