"""Every experiment that ships can be started: its settings are valid, its data and its command exist."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from splade.config.load import load_config
from splade.data.datasets import EMBEDDED
from splade.data.hub import NAMED

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "experiments").rglob("*.yaml"))
PROMISED = {
    "paper": "sst2 ag_news imdb yelp banking77 beavertails sst2_ablation multi_dataset",
    "ner": "conll2003 conll2003_verify",
    "ablation": "ablation",
    "backbones": "bert distilbert modernbert roberta deberta",
    "faithfulness": "faithfulness_sst2 faithfulness_imdb faithfulness_banking77",
    "surgery": "planted_city davidson_madlibs civilcomments",
    ".": "civilcomments surgery long_context verify verify_full sst2_roberta sst2_deberta conll_roberta "
    "sota honesty verify_faithfulness verify_long_context verify_sota_comparison verify_honesty",
}

every_file = pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))


def test_the_promised_files_are_there() -> None:
    promised = {
        ROOT / "experiments" / at / f"{name}.yaml" for at, names in PROMISED.items() for name in names.split()
    }
    assert promised <= set(FILES)


@every_file
def test_settings_are_valid_and_data_is_known(path: Path) -> None:
    config = load_config(path)
    names = config.datasets or [config.data.dataset_name or config.data.path]
    assert {name for name in names if not name.startswith("data/")} <= {*NAMED, *EMBEDDED}  # a user's own
    assert config.experiment_name != "experiment"


@every_file
def test_the_command_of_the_heading_runs_this_file(path: Path) -> None:
    found = re.findall(r"python -m (splade\.scripts\.\w+) --config (\S+)", path.read_text())
    assert found
    for module, config in found:
        assert ROOT / config == path
        assert importlib.import_module(module).main
    is_tagging = load_config(path).data.dataset_name in ("conll2003", "wnut17") or "ner" in path.parts
    assert all(module.endswith("run_ner") == is_tagging for module, _ in found)


def test_no_two_experiments_write_to_one_place() -> None:
    places = [(config.output_dir, config.experiment_name) for config in map(load_config, FILES)]
    assert len(set(places)) == len(places)


def test_the_quick_checks_need_no_network() -> None:
    for path in FILES:
        if "verify" in path.name:
            config = load_config(path)
            assert config.model.name == "minilm-l6-mlm"
            assert set(config.datasets or [config.data.dataset_name or config.data.path]) <= set(EMBEDDED)
