"""The settings as a list: every key, its default and what it means, read off the schema."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from splade.config.schema import ExperimentConfig


class Setting(NamedTuple):
    """One key of a config file, dotted."""

    key: str
    default: object
    description: str


def describe_settings() -> list[Setting]:
    """Every setting, sections in the order of the schema; descriptions end with the choices there are."""
    return [
        Setting(key, field.get_default(call_default_factory=True), _meaning(field))
        for key, field in _fields(ExperimentConfig)
        if _section(field) is None
    ]


def all_keys() -> list[str]:
    """Every dotted key, sections too."""
    return [key for key, _ in _fields(ExperimentConfig)]


def sections() -> list[str]:
    """The keys that hold other keys."""
    return [key for key, field in _fields(ExperimentConfig) if _section(field) is not None]


def _fields(model: type[BaseModel], prefix: str = "") -> list[tuple[str, FieldInfo]]:
    found = []
    for name, field in model.model_fields.items():
        found.append((prefix + name, field))
        if section := _section(field):
            found += _fields(section, f"{prefix}{name}.")
    return found


def _section(field: FieldInfo) -> type[BaseModel] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _meaning(field: FieldInfo) -> str:
    kinds = [field.annotation, *get_args(field.annotation)]
    choices = [str(choice) for kind in kinds if get_origin(kind) is Literal for choice in get_args(kind)]
    meaning = field.description or ""
    return f"{meaning} ({' | '.join(choices)})" if choices else meaning
