"""What `lexical-sae doctor` finds on a sound installation, and on one that is not."""

import json
import re
from pathlib import Path

import pytest

from splade import doctor
from splade.cli import main
from splade.errors import ModelError
from splade.models import backbone

ROOT = Path(__file__).parents[1]


def test_a_sound_installation_is_healthy(capsys) -> None:
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["healthy"] is True
    assert set(found["versions"]) >= {"lexical-sae", "python", "torch", "transformers", "device", "threads"}
    assert all(outcome.startswith("ok") for outcome in found["checks"].values())


def test_a_failed_check_is_named_and_hides_no_other(capsys, monkeypatch) -> None:
    def broken() -> str:
        raise ModelError("the weights are gone")

    monkeypatch.setattr(doctor, "_backbone", broken)
    monkeypatch.setattr(doctor, "_exact_sums", lambda: 1 / 0)
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "failed: the weights are gone" in out
    assert "failed: ZeroDivisionError" in out
    assert "ok: sha256" in out


def test_other_weights_than_the_notice_names_are_found(tmp_path, monkeypatch) -> None:
    folder = tmp_path / "minilm"
    folder.mkdir()
    monkeypatch.setattr(backbone, "EMBEDDED_PATH", folder)
    with pytest.raises(ModelError, match="not in the package"):
        doctor._backbone_file()
    (tmp_path / "NOTICE").write_text("sha256 0")
    (folder / "model.safetensors").write_bytes(b"other")
    with pytest.raises(ModelError, match="not the one in NOTICE"):
        doctor._backbone_file()


def test_a_missing_extra_comes_with_its_command() -> None:
    assert doctor._extra("ray", ("json",)) == "installed"
    assert 'pip install "lexical-sae[ray]"' in doctor._extra("ray", ("no_such_module",))


def test_extras_are_those_of_the_distribution() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for name, modules in doctor.EXTRAS.items():
        [line] = re.findall(rf"^{name} = \[(.*)\]$", text, re.M)
        assert tuple(re.findall(r'"(\w+)', line)) == modules
