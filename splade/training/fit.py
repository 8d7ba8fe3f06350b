"""From a dataset to a trained model: backbone, lexicon and fresh head, then the loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from splade.config.model import BackboneRecord, LexicalConfig
from splade.config.schema import ExperimentConfig
from splade.data.rows import Dataset, Sentences, Texts
from splade.models.backbone import Backbone, load_backbone
from splade.models.build import build
from splade.models.lexical_sae import LexicalSAE
from splade.models.lexicon import document_frequency
from splade.training.loop import History, Trainer
from splade.training.progress import Progress

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def fit(
    config: ExperimentConfig,
    dataset: Dataset,
    progress: Progress,
    on_best: Callable[[LexicalSAE], None] = lambda _: None,
) -> tuple[LexicalSAE, History]:
    """A model trained on a dataset; `on_best` is called after every epoch that is the best so far."""
    torch.manual_seed(config.seed)
    backbone, tokenizer = load_backbone(
        config.model.name, config.model.revision, config.model.trust_remote_code
    )
    model = new_model(config, dataset, backbone, tokenizer).to(device())
    model.config.training = config.model_dump(mode="json")
    return model, Trainer(model, dataset, config, progress, on_best).run()


def new_model(
    config: ExperimentConfig, dataset: Dataset, backbone: Backbone, tokenizer: PreTrainedTokenizerBase
) -> LexicalSAE:
    """An untrained model for a dataset; its dictionary knows which words stand in many training texts."""
    texts = dataset.train.texts if isinstance(dataset.train, Texts) else _joined(dataset.train)
    limit = min(config.model.max_length, backbone.max_length)
    ids = tokenizer(texts, truncation=True, max_length=limit)["input_ids"]
    record = BackboneRecord(
        name=backbone.name, revision=backbone.revision, fingerprint=backbone.fingerprint()
    )
    model_config = LexicalConfig(
        task=dataset.task,
        label_names=dataset.label_names,
        backbone=record,
        honesty=config.honesty,
        language=config.language,
        stop_df=config.stop_df,
        gate=config.model.gate,
        gate_saturate=config.model.gate_saturate,
        head=config.model.head,
        width=config.model.width,
        pooling=config.training.pooling,
        topk_per_position=config.topk_per_position,
        max_length=limit,
    )
    return build(model_config, backbone, tokenizer, document_frequency(ids, backbone.vocab_size))


def device() -> torch.device:
    """The GPU where there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def _joined(sentences: Sentences) -> list[str]:
    return [" ".join(words) for words in sentences.words]
