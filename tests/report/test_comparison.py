"""The page of several runs shows what was measured, what failed, and runs nothing."""

from __future__ import annotations

import copy
from typing import Any

from splade.report.comparison import comparison_page, failures, paired_table, summary_table
from tests.render.documents import self_contained

HOSTILE = "<script>alert(1)</script>"


def spread(*values: float) -> dict[str, Any]:
    return {"mean": sum(values) / len(values), "sd": 0.011 if len(values) > 1 else None, "values": [*values]}


def variant(name: str, *scores: float, **figures: dict[str, Any]) -> dict[str, Any]:
    summary = {"accuracy": spread(*scores), **figures}
    return {
        "dataset": name,
        "runs": len(scores),
        "metric": "accuracy",
        "measured_on": "test",
        "summary": summary,
    }


def experiment() -> dict[str, Any]:
    tested = {"difference": -0.021, "low": -0.04, "high": -0.002, "p": 0.03, "n": 872}
    own = {"dictionary.grounding100": spread(0.97, 0.98), "dla.max_relative_residual": spread(2e-7, 3e-7)}
    return {
        "kind": "ablation",
        "name": HOSTILE,
        "seeds": [0, 1],
        "reference": "default",
        "variants": {"default": variant("sst2", 0.88, 0.9, **own), "dense": variant("sst2", 0.9)},
        "comparisons": [
            {
                "variant": "dense",
                "against": "default",
                "metric": "accuracy",
                "over_seeds": None,
                "over_rows": tested,
            }
        ],
        "environment": {"device": "CPU"},
    }


def test_scores_stand_with_their_spread_and_gaps_as_dashes() -> None:
    columns, rows = summary_table(experiment())
    assert columns == ["", "Data", "Runs", "Metric", "Score", "Grounded", "Residual"]
    assert rows[0][:6] == ["default", "sst2", 2, "accuracy", "89.0% ± 1.1", "97.5% ± 1.1"]
    assert rows[0][6] == "2e-07"
    assert rows[1] == ["dense", "sst2", 1, "accuracy", "90.0%", None, None]


def test_each_test_says_over_what() -> None:
    _, rows = paired_table(experiment())
    assert rows == [["dense", "default", "accuracy", "rows", 872, "-2.1", "-4.0 to -0.2", 0.03]]


def test_the_page_is_closed_and_inert() -> None:
    page = comparison_page(experiment())
    text = self_contained(page).text
    assert "<script" not in page
    assert HOSTILE in text
    assert "Recipes side by side" in text
    assert "What did not run" not in text


def test_what_failed_is_told() -> None:
    results = copy.deepcopy(experiment())
    results["variants"]["imdb"] = {"error": f"no hub {HOSTILE}"}
    assert failures(results)[1] == [["imdb", f"no hub {HOSTILE}"]]
    assert "no hub" in self_contained(comparison_page(results)).text


def test_an_experiment_that_failed_whole_still_has_a_page() -> None:
    results = {"kind": "datasets", "variants": {"imdb": {"error": "no hub"}}, "seeds": [0], "comparisons": []}
    assert "no hub" in self_contained(comparison_page(results)).text
