"""`compare` sets explainers side by side, and says in one line what it cannot do."""

from __future__ import annotations

import json


def test_both_tables_are_shown_and_written(run, model, rows, tmp_path) -> None:
    output = tmp_path / "compared.json"
    chosen = ("--explainers", "dla,random,ours", "--texts", 3, "--output", output)
    found = run("compare", model, "--data", rows, "--text", "body", *chosen)
    assert found.code == 0
    assert "removed exactly" in found.out
    assert "masked or deleted" in found.out
    written = json.loads(output.read_text(encoding="utf-8"))
    assert written["texts"] == 3
    named = {(row["explainer"], row["table"], row["removal"]) for row in written["rows"]}
    assert {
        ("dla", "bottleneck", "zero"),
        ("ours", "inputs", "mask"),
        ("ours", "inputs", "deletion"),
    } <= named
    passes = {row["explainer"]: row["cost"]["forward_passes"] for row in written["rows"]}
    assert passes["ours"] == 1
    assert ("random", "bottleneck", "zero") in named


def test_json_holds_every_row(run, model, rows) -> None:
    chosen = ("--text", "body", "--explainers", "dla", "--texts", 2)
    found = json.loads(run("compare", model, "--data", rows, *chosen, "--json").out)
    assert [row["explainer"] for row in found["rows"]] == ["dla"]


def test_what_cannot_be_compared_is_named(refused, model, tagger, rows) -> None:
    assert "--texts is 0" in refused("compare", model, "--data", rows, "--text", "body", "--texts", "0")
    assert "choose among dla" in refused(
        "compare", model, "--data", rows, "--text", "body", "--explainers", "x"
    )
    assert "tags words" in refused("compare", tagger, "--data", rows)
