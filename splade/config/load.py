"""YAML into settings, with errors that say which key and what to write instead."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

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
    """Settings from plain values."""
    try:
        return ExperimentConfig.model_validate(raw)
    except ValidationError as problem:
        raise ConfigError(_first_line(problem)) from None


def _read(path: Path) -> dict[str, Any]:
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"{path}: cannot be read ({problem}); give a YAML file") from None
    except yaml.YAMLError as problem:
        raise ConfigError(f"{path}: is not YAML ({' '.join(str(problem).split())[:160]})") from None
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise ConfigError(f"{path}: holds no settings; write lines such as `seed: 0`")
    return raw


def _set(raw: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    for key in keys[:-1]:
        raw = raw.setdefault(key, {})
    raw[keys[-1]] = value


def _first_line(problem: ValidationError) -> str:
    error = problem.errors(include_url=False)[0]
    place = ".".join(str(part) for part in error["loc"])
    if error["type"] != "extra_forbidden":
        given = "" if isinstance(error["input"], dict) else f" (it is {error['input']!r})"
        return f"setting {place}: {error['msg'][:1].lower()}{error['msg'][1:]}{given}"
    near = difflib.get_close_matches(place, _all_keys(ExperimentConfig), n=1, cutoff=0.5)
    last = str(error["loc"][-1])
    near = near or [key for key in _all_keys(ExperimentConfig) if key.rpartition(".")[2] == last]
    hint = f"did you mean {near[0]}?" if near else "`lexical-sae train --help` lists what there is"
    return f"unknown setting {place}: {hint}"


def _all_keys(model: type[BaseModel], prefix: str = "") -> list[str]:
    keys = []
    for name, field in model.model_fields.items():
        keys.append(prefix + name)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            keys += _all_keys(field.annotation, f"{prefix}{name}.")
    return keys
