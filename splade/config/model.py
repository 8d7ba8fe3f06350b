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


class LexicalConfig(BaseModel):
    """Everything but weights that is needed to rebuild a model."""

    model_config = ConfigDict(extra="forbid")

    format_version: int = FORMAT_VERSION
    task: Literal["classification", "tagging"] = "classification"
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
    max_length: int = Field(256, ge=8)
    temperature: float = Field(1.0, gt=0)
    training: dict[str, object] = Field(default_factory=dict)
