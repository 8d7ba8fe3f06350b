"""Settings come from YAML and overrides, and a mistake in them is told in one line that names the key."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from splade.config.describe import all_keys, describe_settings, sections
from splade.config.load import load_config, parse_config
from splade.config.schema import ExperimentConfig
from splade.errors import ConfigError


def put(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "settings.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refused(raw: dict[Any, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_config(raw)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_without_a_file_all_settings_have_defaults() -> None:
    assert load_config() == ExperimentConfig()


@pytest.mark.parametrize("content", ["", "# nothing yet\n", "---\n", "data:\ntraining: # later\n", "\ufeff"])
def test_an_empty_file_or_section_gives_defaults(content: str, tmp_path: Path) -> None:
    assert load_config(put(tmp_path, content)) == ExperimentConfig()


def test_values_come_from_the_file_and_the_rest_stays_default(tmp_path: Path) -> None:
    config = load_config(put(tmp_path, "seed: 3\ntraining:\n  epochs: 2\n"))
    assert (config.seed, config.training.epochs) == (3, 2)
    assert config.training.batch_size == ExperimentConfig().training.batch_size


@pytest.mark.parametrize("written", ["3e-4", "0.0003", "3.0E-4", "'3e-4'"])
def test_a_number_in_scientific_notation_is_a_number(written: str, tmp_path: Path) -> None:
    config = load_config(put(tmp_path, f"training:\n  learning_rate: {written}\n"))
    assert config.training.learning_rate == 3e-4


def test_a_column_may_be_given_as_a_bare_number(tmp_path: Path) -> None:
    config = load_config(put(tmp_path, "data:\n  text: 1\n  label: 2\n"))
    assert (config.data.text, config.data.label) == ("1", "2")


def test_overrides_by_dotted_key_win_over_the_file(tmp_path: Path) -> None:
    path = put(tmp_path, "seed: 3\ntraining:\n  epochs: 2\n  patience: 2\n")
    config = load_config(path, {"training.epochs": "5", "data.path": "x.csv", "seed": 4})
    assert (config.training.epochs, config.training.patience) == (5, 2)
    assert (config.data.path, config.seed) == ("x.csv", 4)


def test_overrides_reach_into_an_empty_section(tmp_path: Path) -> None:
    assert load_config(put(tmp_path, "training:\n"), {"training.epochs": 5}).training.epochs == 5


def test_an_override_below_a_plain_setting_is_refused() -> None:
    with pytest.raises(ConfigError, match="setting seed: "):
        load_config(None, {"seed": 3, "seed.x": 1})


def test_configs_do_not_share_their_sections() -> None:
    changed = parse_config({})
    changed.training.epochs = 99
    assert parse_config({}).training.epochs == ExperimentConfig().training.epochs != 99


@pytest.mark.parametrize(
    ("raw", "place", "meant"),
    [
        ({"sed": 1}, "sed", "seed"),
        ({"training": {"learning_rat": 1}}, "training.learning_rat", "training.learning_rate"),
        ({"training": {"epoch": 1}}, "training.epoch", "training.epochs"),
        ({"epochs": 1}, "epochs", "training.epochs"),
        ({"model": {"learning_rate": 1}}, "model.learning_rate", "training.learning_rate"),
        ({"trainng": {"epochs": 1}}, "trainng", "training"),
        ({"data": {"seed": 1}}, "data.seed", "seed"),
    ],
)
def test_an_unknown_key_names_the_nearest_valid_one(raw: dict[str, Any], place: str, meant: str) -> None:
    assert refused(raw) == f"unknown setting {place}: did you mean {meant}?"


@pytest.mark.parametrize(
    "raw", [{"quux": 1}, {"training": {"xyzzy": 1}}, {1: 2}, {"data": {"": 1}}, {"a\nb": 1}]
)
def test_an_unknown_key_like_no_other_points_to_the_list(raw: dict[Any, Any]) -> None:
    assert "`lexical-sae train --settings` lists" in refused(raw)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"seed": "many"}, r"setting seed: .*integer.*'many'"),
        ({"seed": -1}, r"setting seed: .*greater than or equal to 0 \(it is -1\)"),
        ({"seed": 2**32}, r"setting seed: .*less than 4294967296"),
        ({"seed": "a\nb"}, r"setting seed: .*\(it is 'a\\nb'\)"),
        ({"seed": list(range(10_000))}, r"setting seed: .{,80}$"),
        ({"training": {"learning_rate": "fast"}}, r"setting training.learning_rate: .*number.*'fast'"),
        ({"training": {"learning_rate": float("nan")}}, r"give a number above 0.*nan"),
        ({"training": {"learning_rate": float("inf")}}, r"give a number above 0.*inf"),
        ({"training": {"learning_rate": True}}, r"setting training.learning_rate: .*true or false"),
        ({"training": {"epochs": True}}, r"setting training.epochs: .*true or false \(it is True\)"),
        ({"training": {"target_accuracy": "0%"}}, r"an accuracy such as 92% \(it is '0%'\)"),
        ({"training": {"target_accuracy": "0.0 %"}}, r"an accuracy such as 92%"),
        ({"training": {"epochs": 1.5}}, r"setting training.epochs: .*\(it is 1.5\)"),
        ({"training": {"epochs": None}}, r"setting training.epochs: .*\(it is None\)"),
        ({"training": [1]}, r"setting training: is a section: write settings such as training.epochs"),
        ({"data": "x.csv"}, r"setting data: is a section: write settings such as data.path below it"),
        ({"model": {"gate": "relu"}}, r"setting model.gate: .*'jumprelu', 'drelu' or .*\(it is 'relu'\)"),
        ({"data": {"train_samples": 0}}, r"setting data.train_samples: give a number of rows from 1"),
    ],
)
def test_a_wrong_value_is_told_in_one_line(raw: dict[str, Any], message: str) -> None:
    assert re.search(message, refused(raw))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("- 1\n- 2\n", "holds no settings; write lines such as"),
        ("just words", "holds no settings"),
        ("a: b: c\n", "is not YAML .*line 1"),
        ("a: [1,\n", "is not YAML"),
        ("seed: \0\n", "is not YAML"),
        ("seed: 2024-13-45\n", "is not YAML .*month"),
        ("a: !!python/object:os.system x\n", "is not YAML"),
        ("a: " + "[" * 5000, "is not YAML"),
        (b"name: caf\xe9\n", "cannot be read"),
    ],
)
def test_a_file_without_settings_is_told_in_one_line(
    content: str | bytes, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        load_config(put(tmp_path, content))
    assert "\n" not in str(caught.value)
    assert "settings.yaml" in str(caught.value)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing.yaml", tmp_path):
        with pytest.raises(ConfigError, match="give a YAML file"):
            load_config(path)


def leaves(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested dump as dotted keys."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= leaves(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return found


def test_described_settings_are_all_keys_with_their_defaults() -> None:
    described = {key: default for key, default, _ in describe_settings()}
    assert described == leaves(ExperimentConfig().model_dump())
    assert set(all_keys()) == {*described, *sections()}


def test_every_setting_has_a_description_and_names_its_choices() -> None:
    for key, default, description in describe_settings():
        assert description, key
        assert "\n" not in description
        if isinstance(default, str) and "(" in description and " | " in description:
            assert default in description.rpartition("(")[2]
    by_key = {setting.key: setting.description for setting in describe_settings()}
    assert by_key["model.gate"].endswith("(jumprelu | drelu | gated_jumprelu)")
    assert by_key["data.task"].endswith("(classification | tagging)")


@pytest.mark.parametrize("written", ["0.5%", "7%", "92.5 %", "100%"])
def test_an_accuracy_above_zero_is_a_bound(written: str) -> None:
    assert parse_config({"training": {"target_accuracy": written}}).training.target_accuracy == written


def test_a_described_default_is_accepted_as_a_setting() -> None:
    defaults = {key: default for key, default, _ in describe_settings()}
    assert load_config(None, defaults) == ExperimentConfig()


def test_sections_are_documented() -> None:
    for name in sections():
        section = ExperimentConfig.model_fields[name].annotation
        assert isinstance(section, type)
        assert issubclass(section, BaseModel)
        assert section.__doc__
