"""Tiny saved models and labelled rows."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from splade.cli import main
from tests.tiny import SENTENCES, tiny_model


def saved(model, folder: Path) -> str:
    """A model folder whose frozen LM cannot be found, without asking a network for it."""
    model.config.backbone.name = str(folder / "gone")
    model.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def model(tmp_path_factory) -> str:
    return saved(tiny_model(), tmp_path_factory.mktemp("models") / "classifier")


@pytest.fixture(scope="session")
def tagger(tmp_path_factory) -> str:
    return saved(tiny_model(task="tagging", classes=5), tmp_path_factory.mktemp("models") / "tagger")


@pytest.fixture
def rows(tmp_path) -> str:
    """A labelled CSV file with the columns body and team."""
    path = tmp_path / "rows.csv"
    lines = [f'"{text} {i}",class {"ab"[i % 2]}' for i in range(4) for text in SENTENCES]
    path.write_text("\n".join(["body,team", *lines]) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def run(capsys):
    """Runs a command line in this process; `code`, `out`, `err` and JSON `lines` of what it wrote."""

    def call(*argv: object) -> SimpleNamespace:
        code = main([str(a) for a in argv])
        out, err = capsys.readouterr()
        lines = [json.loads(line) for line in out.splitlines()] if out.startswith('{"') else []
        return SimpleNamespace(code=code, out=out, err=err, lines=lines)

    return call


@pytest.fixture
def refused(run):
    """Runs a command line that must end with one clear line and exit code 2; returns that line."""

    def call(*argv: object) -> str:
        found = run(*argv)
        assert found.code == 2
        assert found.out == ""
        line = found.err.strip()
        assert "\n" not in line
        assert line.startswith("lexical-sae: error: ")
        return line

    return call
