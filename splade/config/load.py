"""YAML into settings, with errors that say which key and what to write instead."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from splade.config.describe import all_keys, sections
from splade.config.schema import ExperimentConfig
from splade.errors import ConfigError


def load_config(
    path: str | Path | None = None, overrides: Mapping[str, Any] | None = None
) -> ExperimentConfig:
    """Settings from a YAML file (defaults without one), then overrides by dotted key."""
    raw: dict[str, Any] = {} if path is None else _read(Path(path))
    for key, value in (overrides or {}).items():
        _set(raw, key.split("."), value)
    return parse_config(raw)


def parse_config(raw: Mapping[str, Any]) -> ExperimentConfig:
    """Settings from plain values; a section without any content has its defaults."""
    empty = [key for key in sections() if raw.get(key, "") is None]
    try:
        return ExperimentConfig.model_validate({**raw, **{key: {} for key in empty}})
    except ValidationError as problem:
        raise ConfigError(_first_line(problem)) from None


def _read(path: Path) -> dict[str, Any]:
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"{path}: cannot be read ({problem}); give a YAML file") from None
    except (yaml.YAMLError, ValueError, RecursionError) as problem:  # ValueError: a date such as 2024-13-45
        raise ConfigError(
            f"{path}: is not YAML ({' '.join(str(problem).split())[:160]}); mend it there"
        ) from None
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise ConfigError(f"{path}: holds no settings; write lines such as `seed: 0`")
    return raw


def _set(raw: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    for key in keys[:-1]:
        if not isinstance(raw.get(key), dict):
            raw[key] = {}
        raw = raw[key]
    raw[keys[-1]] = value


def _first_line(problem: ValidationError) -> str:
    error = problem.errors(include_url=False)[0]
    place = ".".join(str(part) for part in error["loc"])
    if error["type"] not in ("extra_forbidden", "invalid_key"):
        if error["type"] == "model_type":
            error["msg"] = f"Is a section: write settings such as {_first_key(place)} below it"
        error["msg"] = error["msg"].removeprefix("Value error, ")
        given = "" if isinstance(error["input"], dict) else f" (it is {reprlib.repr(error['input'])})"
        return f"setting {place}: {error['msg'][:1].lower()}{error['msg'][1:]}{given}"
    return f"unknown setting {_shown(place)}: {_hint(place)}"


def _first_key(section: str) -> str:
    return next(key for key in all_keys() if key.startswith(f"{section}."))


def _hint(place: str) -> str:
    """The most similar name of this section, else of any."""
    section, _, last = place.rpartition(".")
    anywhere = {key.rpartition(".")[2]: key for key in reversed(all_keys())}
    here = {key.rpartition(".")[2]: key for key in all_keys() if key.rpartition(".")[0] == section}
    for names in (here, anywhere):
        if near := difflib.get_close_matches(last, names, n=1):
            return f"did you mean {names[near[0]]}?"
    return "`lexical-sae train --settings` lists what there is"


def _shown(place: str) -> str:
    """A key that is not ours, on one short line."""
    return place if place.isprintable() and 0 < len(place) <= 60 else reprlib.repr(place)
