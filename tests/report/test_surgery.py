"""The page of a removal shows what was measured, and nothing that was not."""

from __future__ import annotations

from typing import Any

import pytest

from splade.report.surgery import surgery_page, surgery_tables
from tests.render.documents import self_contained
from tests.render.samples import HOSTILE


def interval(mean: float) -> dict[str, float]:
    return {"mean": mean, "low": mean - 0.02, "high": mean + 0.02}


def point(words: int, removed: list[str], gap: float) -> dict[str, Any]:
    return {
        "removed": removed,
        "words": words,
        "changed": 3 * words,
        "accuracy": interval(0.9),
        "gap": interval(gap),
        "leakage": None,
    }


def bias(fpr: float) -> dict[str, Any]:
    rates = {"rows": 40, "fpr": interval(fpr), "fnr": None}
    background = {"rows": 60, "fpr": interval(0.1), "fnr": interval(0.2)}
    return {"groups": [{"group": "muslim", "inside": rates, "background": background}]}


def removed(word: str = "boston") -> dict[str, Any]:
    points = [point(0, [], 0.14), point(1, [word], 0.08), point(2, ["harvard"], 0.01)]
    course = {"paired": True, "removed": [word, "harvard"], "steps": points, "curve": points}
    ways = [
        {
            "removal": "LEACE",
            "accuracy": interval(0.89),
            "leakage": interval(0.5),
            "gap": None,
            "collateral": {"changed": interval(0.05)},
            "present": 1890.0,
        }
    ]
    parts = {
        "curve": course,
        "bias": {"before": bias(0.4), "after": bias(0.15)},
        "removals": ways,
        "certificate": {"holds": True, "hash": "a" * 64, "words": [word]},
    }
    return {"kind": "surgery", "parts": parts, "failed": {}, "data": {"dataset": "reviews"}}


def proposed(word: str = "boston") -> dict[str, Any]:
    found = {
        "word": word,
        "group": word,
        "difference": 1.7,
        "active_inside": 0.9,
        "active_outside": 0.01,
    }
    return {"kind": "surgery", "parts": {"proposals": [found]}, "failed": {"closure": "why"}, "data": {}}


@pytest.mark.parametrize(
    "results", [removed(), proposed(), removed(HOSTILE["text"]), proposed(HOSTILE["text"])]
)
def test_every_page_is_closed_and_inert(results: dict[str, Any]) -> None:
    page = surgery_page(results)
    self_contained(page)
    assert "None" not in page
    assert "<script" not in page


def test_the_course_the_groups_and_the_other_ways_are_told() -> None:
    text = self_contained(surgery_page(removed())).text
    for told in (
        "then “harvard”",
        "14.0% (12.0% to 16.0%)",
        "Gap as words go",
        "muslim",
        "LEACE",
        "It holds",
    ):
        assert told in text
    assert "Leakage as words go" not in text
    assert [row[1] for row in surgery_tables(removed())["By group"][1]] == ["before", "after"]


def test_proposals_are_no_removal() -> None:
    text = self_contained(surgery_page(proposed())).text
    assert "Nothing was removed" in text
    assert "Step by step" not in text
    assert "why" in text
