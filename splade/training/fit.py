"""From a dataset to a trained model: backbone, lexicon and fresh head, then the loop."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from splade.circuits.calibration import fit_temperature
from splade.circuits.recipes import find_recipe
from splade.config.model import BackboneRecord, LexicalConfig
from splade.config.schema import ExperimentConfig
from splade.data.encoding import buckets
from splade.data.rows import Dataset, Sentences, Texts
from splade.inference.rows import EncodedRows
from splade.inference.scoring import all_logits
from splade.intervene import suppress_token_globally
from splade.models.backbone import Backbone, load_backbone
from splade.models.build import build
from splade.models.dense import DenseModel
from splade.models.lexical_sae import LexicalSAE
from splade.models.lexicon import STATIC_LICENCES, document_frequency
from splade.models.senses import describe_senses, expand
from splade.training.batch_size import automatic_batch_size, free_memory
from splade.training.checkpoint import Checkpoints, unflatten
from splade.training.history import History
from splade.training.loop import Model, Trainer
from splade.training.optim import in_half
from splade.training.progress import Progress
from splade.training.range_test import learning_rate_range

SENSE_BATCHES = 200
SMALLEST = 32
FEWEST_STEPS = 50  # of an epoch, whatever memory would allow

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def fit(
    config: ExperimentConfig,
    dataset: Dataset,
    progress: Progress,
    on_best: Callable[[Model], None] = lambda _: None,
    checkpoints: Checkpoints | None = None,
) -> tuple[Model, History]:
    """A model trained on a dataset; `on_best` is called after each best epoch so far, and at the end."""
    torch.manual_seed(config.seed)
    backbone, tokenizer = load_backbone(
        config.model.name, config.model.revision, config.model.trust_remote_code
    )
    model = new_model(config, dataset, backbone, tokenizer).to(device())
    if config.vpe.enabled and isinstance(model, LexicalSAE):
        expand(model, config.vpe.token_ids or "auto", config.vpe.num_senses, _sample(model, dataset, config))
    if config.without and isinstance(model, LexicalSAE):
        suppress_token_globally(model, config.without, "left out of training")
    config = _settled(config, model, dataset, progress, checkpoints)
    model.config.training = config.model_dump(mode="json")
    if config.training.compile:
        model.backbone.mlm.base_model.compile()
    trainer = Trainer(model, dataset, config, progress, on_best, checkpoints)
    history = trainer.run()
    if isinstance(model, LexicalSAE) and model.config.senses is not None:
        model.config.senses.contexts = describe_senses(model, _sample(model, dataset, config))
    if config.training.calibrate and trainer.validation is not None:
        held_out = trainer.validation
        model.config.temperature = fit_temperature(all_logits(model, held_out), held_out.labels_N)
    on_best(model)  # once more, now that it knows its temperature and can describe its senses
    return model, history


def new_model(
    config: ExperimentConfig, dataset: Dataset, backbone: Backbone, tokenizer: PreTrainedTokenizerBase
) -> Model:
    """An untrained model for a dataset; its dictionary knows which words stand in many training texts."""
    texts = dataset.train.texts if isinstance(dataset.train, Texts) else _joined(dataset.train)
    limit = min(config.model.max_length, backbone.max_length)
    record = BackboneRecord(
        name=backbone.name, revision=backbone.revision, fingerprint=backbone.fingerprint()
    )
    recipe = find_recipe(config.recipe)
    model_config = LexicalConfig(
        task=dataset.task,
        multi_label=dataset.multi_label,
        label_names=dataset.label_names,
        backbone=record,
        honesty=config.honesty,
        language=config.language,
        stop_df=config.stop_df,
        gate=config.model.gate or recipe.gate,
        gate_saturate=config.model.gate_saturate or (config.model.gate is None and recipe.saturate),
        head=config.model.head,
        width=config.model.width,
        pooling=config.training.pooling,
        topk_per_position=config.topk_per_position,
        max_length=limit,
    )
    if recipe.name == "dense":
        return DenseModel(model_config, backbone, tokenizer)
    ids = tokenizer(texts, truncation=True, max_length=limit)["input_ids"]
    return build(model_config, backbone, tokenizer, document_frequency(ids, backbone.vocab_size))


def device() -> torch.device:
    """The GPU where there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def _sample(model: LexicalSAE, dataset: Dataset, config: ExperimentConfig) -> list[tuple[Tensor, Tensor]]:
    """Training texts in which senses are looked for and described."""
    rows = EncodedRows(dataset.train, model)
    first = itertools.islice(buckets(rows.lengths, 64, config.seed), SENSE_BATCHES)
    return [(batch.input_ids, batch.attention_mask) for batch in map(rows.batch, first)]


def _settled(
    config: ExperimentConfig,
    model: Model,
    dataset: Dataset,
    progress: Progress,
    checkpoints: Checkpoints | None,
) -> ExperimentConfig:
    """The config with what is to be found out: batch size from memory, learning rate from a range test.

    A run that continues keeps what was found when it began.
    """
    training = config.training
    if training.batch_size is not None and training.learning_rate != "auto":
        return config
    if saved := checkpoints and checkpoints.latest():
        then = unflatten(saved.tensors, saved.values)["config"]["training"]
        training = training.model_copy(update={key: then[key] for key in ("batch_size", "learning_rate")})
    if training.batch_size is None:
        training = training.model_copy(update={"batch_size": _batch_size(model, config, dataset)})
        progress.line(f"batch size {training.batch_size}, by memory and rows")
    config = config.model_copy(update={"training": training})
    if training.learning_rate == "auto":
        rate = _learning_rate(config, model, dataset)
        config = config.model_copy(update={"training": training.model_copy(update={"learning_rate": rate})})
        progress.line(f"learning rate {rate:.1e}, by a range test")
    return config


def _batch_size(model: Model, config: ExperimentConfig, dataset: Dataset) -> int:
    lm, where = model.backbone.mlm.config, next(model.parameters()).device
    licensed = isinstance(model, LexicalSAE) and model.lexicon.honesty == "licensed-static"
    return automatic_batch_size(
        free_memory(where),
        vocab_size=model.backbone.vocab_size,
        words_per_position=STATIC_LICENCES if licensed else None,
        hidden_size=int(lm.hidden_size),
        layers=int(lm.num_hidden_layers),
        length=model.config.max_length,
        parameters=sum(p.numel() for p in model.parameters()),
        half_precision=in_half(where, config.training.precision),
        largest=max(SMALLEST, len(dataset.train) // FEWEST_STEPS),
    )


def _learning_rate(config: ExperimentConfig, model: Model, dataset: Dataset) -> float:
    """A range test on a copy of the model, which is then thrown away."""
    settings = config.training.model_copy(update={"learning_rate": None})
    trial = Trainer(
        copy.deepcopy(model), dataset, config.model_copy(update={"training": settings}), Progress()
    )
    return learning_rate_range(trial.trial_step())


def _joined(sentences: Sentences) -> list[str]:
    return [" ".join(words) for words in sentences.words]
