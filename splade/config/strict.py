"""Settings that refuse what they do not know."""

from __future__ import annotations

from typing import get_args

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator


class Strict(BaseModel):
    """Settings that refuse keys they do not know, and numbers that are none.

    A number may stand where text is asked for: `label: 2` is the second column, `experiment_name: 7` a name.
    """

    model_config = ConfigDict(
        extra="forbid", validate_assignment=True, allow_inf_nan=False, coerce_numbers_to_str=True
    )

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, value: object, info: ValidationInfo) -> object:
        kind = cls.model_fields[str(info.field_name)].annotation
        if isinstance(value, bool) and bool not in (kind, *get_args(kind)):
            raise ValueError("give a value other than true or false")
        return value
