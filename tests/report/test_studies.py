"""Tables and pages of studies say what was measured, what was not, and what failed."""

from __future__ import annotations

from typing import Any

import pytest

from splade.report.studies import explainer_tables, study_page, study_tables
from tests.render.documents import self_contained

HOSTILE = "<script>alert(1)</script>"


def interval(mean: float) -> dict[str, float]:
    return {"mean": mean, "low": mean - 0.1, "high": mean + 0.1}


def explained(name: str, table: str, passes: float, milliseconds: float) -> dict[str, Any]:
    worth = {f"aopc_{key}": interval(0.5) for key in ("comprehensiveness", "sufficiency")}
    return {
        "explainer": name,
        "table": table,
        "removal": "zero" if table == "bottleneck" else "mask",
        "faithfulness": {**worth, "flip_rate": interval(0.25)},
        "cost": {"forward_passes": passes, "milliseconds": milliseconds, "batch_size": 8},
        "note": "",
    }


def lacking(name: str, table: str) -> dict[str, Any]:
    row = explained(name, table, 0, 0)
    return {**row, "faithfulness": None, "cost": None, "note": f"needs {HOSTILE}"}


def mean(value: float, sd: float | None = None) -> dict[str, Any]:
    return {"mean": value, "sd": sd}


def accuracy(value: float) -> dict[str, Any]:
    return {**mean(value, 0.004), "low": value - 0.02, "high": value + 0.02}


def study(kind: str, parts: dict[str, Any], failed: dict[str, str] | None = None) -> dict[str, Any]:
    return {
        "kind": kind,
        "name": HOSTILE,
        "data": {"dataset": HOSTILE, "labels": ["a", "b"], "rows": {"train": 5, "test": 4}},
        "parts": parts,
        "failed": failed or {},
        "environment": {"device": "CPU"},
    }


def sota() -> dict[str, Any]:
    words = {"words": mean(20.5), "grounding": mean(0.97), "residual": mean(2e-7)}
    cost = {"forward_passes": 1.0, "milliseconds": 0.54, "batch_size": 32}
    return study(
        "sota",
        {
            "dense": {"accuracy": accuracy(0.89), "seconds": mean(3), "note": "no words"},
            "default": {"accuracy": accuracy(0.88), **words, "cost": cost, "note": "grounded"},
            "autoencoders": [{"kind": "topk", "accuracy": accuracy(0.8), "words": mean(32), "note": HOSTILE}],
        },
        {"cis": f"crashed {HOSTILE}"},
    )


def honesty() -> dict[str, Any]:
    word = {"word": HOSTILE, "label": "pos", "share": 0.98, "active": 82, "occurs": 1}
    keys = ("grounding100", "grounding100_anywhere", "in_input")
    figures: dict[str, Any] = {
        "accuracy": accuracy(0.78),
        "words": mean(0.8),
        **{key: mean(0.7) for key in keys},
    }
    erased = {"comprehensiveness": interval(0.2), "sufficiency": interval(-0.1)}
    found = {**figures, **erased, "effective_vocabulary": mean(1.0)}
    return study(
        "honesty",
        {
            "grounded": {**found, "code_words": [], "people": None},
            "collapsed": {**found, "code_words": [word], "people": {"words": interval(0.61)}},
        },
    )


def test_costs_are_multiples_of_the_own_sum_in_each_table() -> None:
    rows = [
        explained("dla", "bottleneck", 1, 2.0),
        explained("path", "bottleneck", 1, 3.0),
        explained("ours", "inputs", 1, 4.0),
        explained("shap", "inputs", 500, 1000.0),
        explained("random", "inputs", 0, 0.02),
    ]
    bottleneck, inputs = explainer_tables(rows).values()
    assert [row[-2:] for row in bottleneck[1]] == [["1.0", "1.0"], ["1.0", "1.5"]]
    assert [row[-2:] for row in inputs[1]] == [["1.0", "1.0"], ["500.0", "250.0"], ["0.0", "0.0"]]
    assert inputs[1][1][:7] == [
        "shap",
        "mask",
        "0.50 (0.40 .. 0.60)",
        "0.50 (0.40 .. 0.60)",
        "25%",
        "500",
        "1,000.0",
    ]


def test_without_the_own_sum_there_is_nothing_to_compare_with() -> None:
    [(_, rows)] = explainer_tables([explained("lime", "inputs", 5000, 9.0)]).values()
    assert rows[0][-2:] == [None, None]


def test_what_could_not_run_says_why_in_its_row() -> None:
    [(columns, rows)] = explainer_tables([lacking("shap", "inputs")]).values()
    assert rows[0][:3] == ["shap", "mask", f"needs {HOSTILE}"]
    assert len(rows[0]) == len(columns)


def test_a_system_without_words_says_that_they_do_not_apply() -> None:
    tables = study_tables(sota())
    rows = {row[0]: row[1:] for row in tables["Systems"][1]}
    assert rows["dense"] == ["89.0% ± 0.4% (87.0 .. 91.0)", *["does not apply"] * 5, "no words"]
    assert rows["default"][1:6] == ["20", "97.0%", "2e-07", "1", "0.5"]
    assert rows["baseline with topk"][1:3] == ["32", "does not apply"]
    assert tables["Failed"][1] == [["cis", f"crashed {HOSTILE}"]]


def test_code_words_are_named_beside_what_erasing_says() -> None:
    _, rows = study_tables(honesty())["What erasing says"]
    assert [row[:2] for row in rows] == [["grounded", 0], ["collapsed", 1]]
    assert rows[1][2:4] == ["0.20 (0.10 .. 0.30)", "-0.10 (-0.20 .. 0.00)"]
    assert [row[4] for row in rows] == ["does not apply", "61.0%"]
    assert rows[1][5] == f"{HOSTILE} for pos (98.0% of it, active in 82 texts, written in 1)"


def faithfulness() -> dict[str, Any]:
    agreed = {"words": interval(0.7), "mass": interval(0.8), "coverage": interval(0.1), "occurrences": 40}
    planted = {"texts": 9, "precision": interval(0.9), "auc": interval(0.95)}
    costs = {"forward_passes": 1.0, "milliseconds": 5.0}
    followed = {"accuracy": 1.0, "followed": 0.75, "alone": planted, "together": None}
    return study(
        "faithfulness",
        {
            "explainer dla": [explained("dla", "bottleneck", 1, 2.0)],
            "explainer ours": [explained("ours", "inputs", 1, 2.0)],
            "explainer shap": [lacking("shap", "inputs")],
            "sums of integrated gradients": {"steps": 50, "mean": 0.05, "max": 0.2},
            "people": [
                {"explainer": "ours", "view": "concepts", "agreed": agreed, "note": ""},
                {"explainer": "prediction", "view": "inputs", "agreed": None, "note": ""},
            ],
            "people ours": [{"explainer": "ours", "view": "inputs", "agreed": agreed, "note": ""}],
            "planted ours": [{"explainer": "ours", **followed, "found": planted, **costs, "note": ""}],
            "planted shap": [{"explainer": "shap", **followed, "note": f"needs {HOSTILE}"}],
        },
        {"explainer shap": f"needs {HOSTILE}"},
    )


def long_context() -> dict[str, Any]:
    def cell(length: int, depth: float, accuracy: float, read: bool = True) -> dict[str, Any]:
        shares = {"share": interval(0.6), "word_share": interval(0.2)} if read else {}
        return {
            "length": length,
            "depth": depth,
            "accuracy": interval(accuracy),
            "accuracy_without": interval(0.5),
            "accuracy_alone": interval(0.95),
            "share": None,
            "word_share": None,
            **shares,
            "cut": 0.0 if read else 1.0,
        }

    return study(
        "long_context",
        {  # a part that failed at first comes last
            "256 tokens": [cell(256, 0.0, 0.8), cell(256, 1.0, 0.5, read=False)],
            "128 tokens": [cell(128, 0.0, 0.9), cell(128, 1.0, 0.7)],
        },
    )


def test_every_kind_of_evidence_has_its_table() -> None:
    tables = study_tables(faithfulness())
    assert all(len(row) == len(columns) for columns, rows in tables.values() for row in rows)
    people = tables["Signs of words as people gave them"][1]
    assert [row[:3] for row in people] == [
        ["ours", "concepts", "0.70 (0.60 .. 0.80)"],
        ["prediction", "inputs", "no labelled word"],
        ["ours", "inputs", "0.70 (0.60 .. 0.80)"],
    ]
    planted = tables["Planted words found"][1]
    gap = "0.90 (0.80 .. 1.00)"
    assert planted[0][1:7] == [gap, gap, None, "0.95 (0.85 .. 1.05)", "75.0%", 9]
    assert planted[1][1] == f"needs {HOSTILE}"


def test_depths_are_rows_and_lengths_columns() -> None:
    (columns, rows), (_, shares), (_, cut), _ = study_tables(long_context()).values()
    assert columns == ["depth", "128 tokens", "256 tokens"]
    assert [[str(cell) for cell in row] for row in rows] == [
        ["0%", "90.0%", "80.0%"],
        ["100%", "70.0%", "50.0%"],
        ["no needle", "50.0%", "50.0%"],
        ["the needle alone", "95.0%", "95.0%"],
    ]
    assert shares == [["0%", *["60.0% of 20.0%"] * 2], ["100%", "60.0% of 20.0%", None]]
    assert cut[1] == ["100%", "0.0%", "100.0%"]


def test_a_page_shades_what_was_read_by_its_size() -> None:
    page = study_page(long_context())
    assert '<span class="w p9">90.0%</span>' in page
    assert '<span class="w p5">50.0%</span>' in page


@pytest.mark.parametrize(
    "found", [faithfulness(), long_context(), sota(), honesty()], ids=lambda found: found["kind"]
)
def test_pages_are_closed_and_inert(found: dict[str, Any]) -> None:
    page = study_page(found)
    assert "<script" not in page
    text = self_contained(page).text
    assert HOSTILE in text
    assert "4 test rows" in text


@pytest.mark.parametrize("kind", ["faithfulness", "long_context", "sota", "honesty"])
def test_a_study_that_failed_whole_still_has_a_page(kind: str) -> None:
    assert "no hub" in self_contained(study_page(study(kind, {}, {"dense": "no hub"}))).text
