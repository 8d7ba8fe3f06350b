"""Every setting of an experiment, its meaning and its default: the one place.

Unknown keys are refused (`load.py` names the nearest valid one); `describe.py` lists all of this for help and
documentation. A model's own record is `config/model.py`.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from splade.config.strict import Strict
from splade.config.studies import FaithfulnessConfig, NeedleConfig, SurgeryConfig


def _count(value: int) -> int:
    if value < 1 and value != -1:
        raise ValueError("give a number of rows from 1, or -1 for all")
    return value


def _number(value: object) -> object:
    """YAML reads 3e-4 as text."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _rate(value: float | str | None) -> float | str | None:
    if value is None or value == "auto" or (isinstance(value, float) and value > 0):
        return value
    raise ValueError("give a number above 0 such as 2e-4, or auto")


def _bound(value: float | str | None) -> float | str | None:
    if isinstance(value, str) and not re.fullmatch(r"(?!0+(\.0+)? ?%)\d{1,2}(\.\d+)? ?%|100 ?%", value):
        raise ValueError("give a cross-entropy such as 0.25, or an accuracy such as 92%")
    if isinstance(value, float) and value <= 0:
        raise ValueError("give a cross-entropy above 0, or an accuracy such as 92%")
    return value


Count = Annotated[int, AfterValidator(_count)]
Rate = Annotated[float | str | None, BeforeValidator(_number), AfterValidator(_rate)]
Bound = Annotated[float | str | None, BeforeValidator(_number), AfterValidator(_bound)]


class DataConfig(Strict):
    """Which rows to learn from."""

    path: str = Field("reviews", description="a file, a folder with train.*, or reviews, topics, tagging")
    dataset_name: str | None = Field(
        None, description="instead of path: sst2, ag_news, imdb, conll2003 … from the hub"
    )
    revision: str = Field("main", description="branch, tag or commit of a hub dataset")
    text: str | None = Field(None, description="text column (guessed from common names)")
    label: str | None = Field(None, description="label column (guessed from common names)")
    task: Literal["classification", "tagging"] | None = Field(
        None, description="what to learn (guessed from the columns)"
    )
    multi_label: bool | None = Field(None, description="several labels a text (guessed from the column)")
    train_samples: Count = Field(-1, description="training rows used, sampled by class; -1 is all")
    test_samples: Count = Field(-1, description="test rows used, sampled by class; -1 is all")
    validation_share: float = Field(0.1, ge=0, lt=1, description="held out of train where no file is given")


class ModelSettings(Strict):
    """What the model is made of."""

    name: str = Field("minilm-l6-mlm", description="masked LM: embedded name, folder or hub id")
    revision: str = Field("main", description="branch, tag or commit of a hub id")
    trust_remote_code: bool = Field(False, description="run code that comes with a hub model")
    gate: Literal["jumprelu", "drelu", "gated_jumprelu"] | None = Field(
        None, description="which word logits count, and as how much (the recipe says)"
    )
    gate_saturate: bool = Field(False, description="log1p of what the gate drelu lets through")
    head: Literal["relu_mlp", "bcos"] = Field("relu_mlp", description="from active words to classes")
    width: int = Field(256, ge=1, description="head width D")
    max_length: int = Field(256, ge=8, description="tokens read of a text; longer sentences are windowed")


class TrainingConfig(Strict):
    """How it learns."""

    epochs: int = Field(8, ge=1, description="passes over the training rows, at most")
    batch_size: int | None = Field(
        32, ge=1, description="texts, or windows of sentences, in a step; null: as many as fit in memory"
    )
    gradient_accumulation_steps: int = Field(1, ge=1, description="batches whose gradients make one step")
    learning_rate: Rate = Field(
        None, description="of the backbone (2e-4 at hidden size 384, falling with its square); auto: measured"
    )
    backbone_dropout: bool = Field(False, description="keep the checkpoint's dropout while training")
    head_learning_rate: float = Field(1e-3, gt=0, description="the gate learns at 5 times this rate")
    weight_decay: float | None = Field(
        None, ge=0, description="of matrices (the recipe says); thresholds and biases have none"
    )
    rate_warmup_fraction: float = Field(
        0.06, ge=0, lt=1, description="share of steps with a rising rate (20, or a third, at least; 0: none)"
    )
    warmup_fraction: float = Field(
        0.2, ge=0, lt=1, description="share of steps on cross-entropy alone, where the recipe has that phase"
    )
    target_accuracy: Bound = Field(
        None, description="bound τ: a number is a cross-entropy, a percentage an accuracy (the warm-up says)"
    )
    sparsity_target: float = Field(
        0.1, gt=0, le=1, description="share of a row's active words that is its circuit in training"
    )
    sparsity_weight: float = Field(1.0, ge=0, description="of relu(L0 / target_active - 1)")
    anchor_weight: float = Field(0.0, ge=0, description="of staying near the frozen LM on sampled positions")
    label_smoothing: float = Field(0.0, ge=0, lt=1, description="share of a label spread over all classes")
    class_weights: Literal["none", "balanced"] = Field(
        "none", description="balanced: classes count by the inverse of their frequency"
    )
    pooling: Literal["max", "attention"] = Field("max", description="from positions to one text")
    patience: int = Field(3, ge=1, description="epochs without a better validation score before stopping")
    precision: Literal["auto", "bf16", "fp16", "fp32"] = Field(
        "auto", description="auto: bf16 where it is fast"
    )
    compile: bool = Field(False, description="torch.compile the backbone")
    checkpoint_every: int = Field(500, ge=0, description="steps between checkpoints; 0 makes none")
    calibrate: bool = Field(True, description="fit the temperature of probabilities on validation rows")
    tracker: Literal["none", "tensorboard", "wandb"] = Field(
        "none", description="where accelerate sends the figures of each epoch"
    )


class MechanisticConfig(Strict):
    """What is measured of the circuits."""

    circuit_fraction: float = Field(0.1, gt=0, le=1, description="share of active words that is a circuit")
    sae_comparison: bool = Field(False, description="train sparse autoencoders post hoc, and compare")
    probes: bool = Field(False, description="fit probes on single words, on training rows")


class VpeConfig(Strict):
    """Senses of words with several meanings."""

    enabled: bool = Field(False, description="give chosen words a dimension for each sense")
    token_ids: list[int] = Field([], description="vocabulary ids of the words; empty: chosen from the data")
    num_senses: int = Field(2, ge=2, description="senses of each chosen word")


class EvaluationConfig(Strict):
    """How often an experiment is repeated."""

    seeds: list[int] = Field([], description="one run for each (empty: the one seed above)")


class ExperimentConfig(Strict):
    """One experiment, whole."""

    experiment_name: str = Field("experiment", description="names the folder of results")
    output_dir: str = Field("results", description="where that folder is made")
    seed: int = Field(0, ge=0, lt=2**32, description="of every random choice")
    recipe: Literal["default", "cis", "lexical-sae", "cajt", "ltt", "baseline", "dense"] = Field(
        "default", description="terms, weighing and optimiser; docs/recipes.md compares them"
    )
    honesty: Literal["grounded", "free", "licensed-static", "licensed-contextual"] = Field(
        "grounded", description="what keeps words to their meaning"
    )
    target_active: int = Field(100, ge=1, description="active words per text (or per labelled position)")
    topk_per_position: int = Field(0, ge=0, description="prediction only: keep this many words; 0 is off")
    stop_df: float = Field(0.4, gt=0, le=1, description="words in a larger share of texts are no reasons")
    without: list[str] = Field([], description="words that are no reasons from the start")
    language: str = Field("en", description="decides the list of function words")
    data: DataConfig = DataConfig()
    model: ModelSettings = ModelSettings()
    training: TrainingConfig = TrainingConfig()
    mechanistic: MechanisticConfig = MechanisticConfig()
    vpe: VpeConfig = VpeConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    datasets: list[str] = Field([], description="of run_multi_dataset: names or paths, one run for each")
    recipes: list[str] = Field([], description="of run_ablation: the recipes set side by side")
    faithfulness: FaithfulnessConfig = FaithfulnessConfig()
    needle: NeedleConfig = NeedleConfig()
    surgery: SurgeryConfig = SurgeryConfig()
