"""What a saved model says of itself: the contents of its `config.json`."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

FORMAT_VERSION = 1


class BackboneRecord(BaseModel):
    """Which masked LM a model grew from, and the fingerprint it had when supervised training began."""

    model_config = ConfigDict(extra="forbid")

    name: str
    revision: str = "main"
    fingerprint: str = ""


class SensesRecord(BaseModel):
    """Which words (ids) were expanded, into how many senses each, and texts that show each sense."""

    model_config = ConfigDict(extra="forbid")

    token_ids: list[int] = Field(min_length=1)
    num_senses: int = Field(2, ge=2)
    contexts: dict[str, list[str]] = Field(default_factory=dict)


class LexicalConfig(BaseModel):
    """Everything but weights that is needed to rebuild a model."""

    model_config = ConfigDict(extra="forbid")

    format_version: int = FORMAT_VERSION
    task: Literal["classification", "tagging"] = "classification"
    multi_label: bool = False
    decode: Literal["independent", "valid"] = "valid"
    label_names: list[str]
    backbone: BackboneRecord
    honesty: Literal["grounded", "free", "licensed-static", "licensed-contextual"] = "grounded"
    language: str = "en"
    stop_df: float = Field(0.4, gt=0, le=1)
    gate: Literal["jumprelu", "drelu", "gated_jumprelu"] = "jumprelu"
    gate_epsilon: float = 0.2
    gate_saturate: bool = False
    head: Literal["relu_mlp", "bcos"] = "relu_mlp"
    width: int = Field(256, ge=1)
    pooling: Literal["max", "attention"] = "max"
    topk_per_position: int = Field(0, ge=0)
    senses: SensesRecord | None = None
    max_length: int = Field(256, ge=8)
    temperature: float = Field(1.0, gt=0)
    training: dict[str, object] = Field(default_factory=dict)
