"""A removal that does not hold ends with exit code 1, and its certificate is written."""

import dataclasses
import json
import shutil

import splade.intervene.certificate as certificate


def test_a_failed_attack_is_a_failed_check_with_its_certificate(run, model, tmp_path, monkeypatch) -> None:
    folder, page = tmp_path / "mine", tmp_path / "page.html"
    shutil.copytree(model, folder)
    hostile = certificate.hostile
    monkeypatch.setattr(
        certificate,
        "hostile",
        lambda *given: [dataclasses.replace(attempt, not_zero=1) for attempt in hostile(*given)],
    )
    assert run("edit", folder, "--remove", "film").code == 0
    found = run("edit", folder, "--certificate", page)
    assert found.code == 1
    assert found.out == ""
    assert "an attack moved a removed word" in found.err
    assert not json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))["holds"]
    assert "Not removed" in page.read_text(encoding="utf-8")
