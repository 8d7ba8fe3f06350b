"""Every setting of an experiment, its meaning and its default: the one place.

Unknown keys are refused (`load.py` names the nearest valid one). A model's own record is `config/model.py`.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Strict(BaseModel):
    """Settings that refuse keys they do not know."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)


class DataConfig(Strict):
    """Which rows to learn from."""

    path: str = Field("reviews", description="a file, a folder with train.*, or reviews, topics, tagging")
    text: str | None = Field(None, description="text column (guessed from common names)")
    label: str | None = Field(None, description="label column (guessed from common names)")
    task: Literal["classification", "tagging"] | None = Field(None, description="guessed from the columns")
    limit: int | None = Field(None, ge=1, description="use only this many training rows, sampled by class")
    validation_share: float = Field(0.1, ge=0, lt=1, description="held out of train where no file is given")


class ModelSettings(Strict):
    """What the model is made of."""

    name: str = Field("minilm-l6-mlm", description="masked LM: embedded name, folder or hub id")
    revision: str = "main"
    trust_remote_code: bool = False
    gate: Literal["jumprelu", "drelu", "gated_jumprelu"] = "jumprelu"
    head: Literal["relu_mlp", "bcos"] = "relu_mlp"
    width: int = Field(256, ge=1, description="head width D")
    max_length: int = Field(256, ge=8, description="tokens read of a text; longer sentences are windowed")


class TrainingConfig(Strict):
    """How it learns."""

    epochs: int = Field(8, ge=1)
    batch_size: int = Field(32, ge=1)
    learning_rate: float = Field(5e-5, gt=0, description="of the backbone")
    head_learning_rate: float = Field(1e-3, gt=0, description="the gate learns at 5 times this rate")
    weight_decay: float = Field(0.01, ge=0)
    warmup_fraction: float = Field(0.06, ge=0, lt=1, description="share of steps with a rising rate")
    sparsity_weight: float = Field(0.5, ge=0, description="of relu(L0 / target_active - 1)")
    pooling: Literal["max", "attention"] = "max"
    patience: int = Field(3, ge=1, description="epochs without a better validation score before stopping")
    precision: Literal["auto", "bf16", "fp32"] = Field("auto", description="auto: bf16 where it is fast")


class ExperimentConfig(Strict):
    """One experiment, whole."""

    experiment_name: str = "experiment"
    output_dir: str = "results"
    seed: int = Field(0, ge=0)
    honesty: Literal["grounded", "free", "licensed-static", "licensed-contextual"] = "grounded"
    target_active: int = Field(100, ge=1, description="active words per text (or per labelled position)")
    topk_per_position: int = Field(0, ge=0, description="prediction only: keep this many words; 0 is off")
    stop_df: float = Field(0.2, gt=0, le=1, description="words in a larger share of texts are no reasons")
    language: str = Field("en", description="decides the list of function words")
    data: DataConfig = DataConfig()
    model: ModelSettings = ModelSettings()
    training: TrainingConfig = TrainingConfig()
