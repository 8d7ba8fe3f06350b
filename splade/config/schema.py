"""Every setting of an experiment, its meaning and its default: the one place.

Unknown keys are refused (`load.py` names the nearest valid one); `describe.py` lists all of this for help and
documentation. A model's own record is `config/model.py`.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Strict(BaseModel):
    """Settings that refuse keys they do not know, and numbers that are none.

    A number may stand where text is asked for: `label: 2` is the second column, `experiment_name: 7` a name.
    """

    model_config = ConfigDict(
        extra="forbid", validate_assignment=True, allow_inf_nan=False, coerce_numbers_to_str=True
    )


class DataConfig(Strict):
    """Which rows to learn from."""

    path: str = Field("reviews", description="a file, a folder with train.*, or reviews, topics, tagging")
    text: str | None = Field(None, description="text column (guessed from common names)")
    label: str | None = Field(None, description="label column (guessed from common names)")
    task: Literal["classification", "tagging"] | None = Field(
        None, description="what to learn (guessed from the columns)"
    )
    limit: int | None = Field(None, ge=1, description="use only this many training rows, sampled by class")
    validation_share: float = Field(0.1, ge=0, lt=1, description="held out of train where no file is given")


class ModelSettings(Strict):
    """What the model is made of."""

    name: str = Field("minilm-l6-mlm", description="masked LM: embedded name, folder or hub id")
    revision: str = Field("main", description="branch, tag or commit of a hub id")
    trust_remote_code: bool = Field(False, description="run code that comes with a hub model")
    gate: Literal["jumprelu", "drelu", "gated_jumprelu"] = Field(
        "jumprelu", description="which word logits count, and as how much"
    )
    gate_saturate: bool = Field(False, description="log1p of what the gate drelu lets through")
    head: Literal["relu_mlp", "bcos"] = Field("relu_mlp", description="from active words to classes")
    width: int = Field(256, ge=1, description="head width D")
    max_length: int = Field(256, ge=8, description="tokens read of a text; longer sentences are windowed")


class TrainingConfig(Strict):
    """How it learns."""

    epochs: int = Field(8, ge=1, description="passes over the training rows, at most")
    batch_size: int = Field(32, ge=1, description="texts, or windows of sentences, in a step")
    learning_rate: float | None = Field(
        None, gt=0, description="of the backbone (2e-4 at hidden size 384, falling with its square)"
    )
    backbone_dropout: bool = Field(False, description="keep the checkpoint's dropout while training")
    head_learning_rate: float = Field(1e-3, gt=0, description="the gate learns at 5 times this rate")
    weight_decay: float = Field(0.01, ge=0, description="of matrices; thresholds and biases have none")
    warmup_fraction: float = Field(0.06, ge=0, lt=1, description="share of steps with a rising rate")
    sparsity_weight: float = Field(1.0, ge=0, description="of relu(L0 / target_active - 1)")
    pooling: Literal["max", "attention"] = Field("max", description="from positions to one text")
    patience: int = Field(3, ge=1, description="epochs without a better validation score before stopping")
    precision: Literal["auto", "bf16", "fp32"] = Field("auto", description="auto: bf16 where it is fast")


class ExperimentConfig(Strict):
    """One experiment, whole."""

    experiment_name: str = Field("experiment", description="names the folder of results")
    output_dir: str = Field("results", description="where that folder is made")
    seed: int = Field(0, ge=0, description="of every random choice")
    honesty: Literal["grounded", "free", "licensed-static", "licensed-contextual"] = Field(
        "grounded", description="what keeps words to their meaning"
    )
    target_active: int = Field(100, ge=1, description="active words per text (or per labelled position)")
    topk_per_position: int = Field(0, ge=0, description="prediction only: keep this many words; 0 is off")
    stop_df: float = Field(0.4, gt=0, le=1, description="words in a larger share of texts are no reasons")
    language: str = Field("en", description="decides the list of function words")
    data: DataConfig = DataConfig()
    model: ModelSettings = ModelSettings()
    training: TrainingConfig = TrainingConfig()
