"""The package's own training step on random texts: a trainer in its constrained phase, ready to step.

The texts are full, the labels random, the thresholds set so that about 100 words of a text are open, and the
frozen LM has been asked for every text already. Nothing of the step itself is written here: `Trainer._step`
runs as it does in training, with its optimiser, its averages, and looks at held-out rows as often as where an
epoch has a thousand steps or more.

Legend: B texts of a batch.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import torch
from measure import now
from models import LABELS, Numbers, config_of, full_batch, lexicon_of
from table import Shape

from splade.circuits.objective import Terms
from splade.circuits.recipes import find_recipe
from splade.config.schema import ExperimentConfig
from splade.data.encoding import Batch
from splade.data.rows import Dataset, Texts
from splade.models.backbone import Backbone
from splade.models.build import assemble
from splade.models.dense import DenseModel
from splade.models.frozen import FrozenLM
from splade.models.lexical_sae import LexicalSAE
from splade.training import optim
from splade.training.loop import SELDOM, Model, Trainer
from splade.training.progress import Progress

WORDS, QUICK_WORDS = 100, 10  # open in a text
BATCHES = 2  # of training texts; there is one of held-out texts
TAU = 1.0
WITHOUT_END = 10_000  # epochs: no schedule reaches its end
STILL = 1e-12  # learning rate: all the work of a step, and the words that are open stay so


@dataclass(frozen=True)
class Kind:
    """What is trained: a recipe, an honesty mode, and whether [B, L, V] is made."""

    name: str
    recipe: str = "default"
    honesty: str = "free"
    materialised: bool = False


KINDS = (
    Kind("dense", "dense"),
    Kind("default, grounded", honesty="grounded"),
    Kind("default, free"),
    Kind("default, licensed-static", honesty="licensed-static"),
    Kind("default, licensed-contextual", honesty="licensed-contextual"),
    *(Kind(f"{name}, free", name) for name in ("baseline", "cis", "lexical-sae", "cajt", "ltt")),
    Kind("default, grounded, [B, L, V]", honesty="grounded", materialised=True),
    Kind("dense, again", "dense"),
)


class Materialised(Trainer):
    """The same training through the tensor interface: [B, L, V] and plain autograd."""

    def _terms(self, batch: Batch) -> Terms:
        model, top_BLK = self.model, self.train.top_words(batch)
        assert isinstance(model, LexicalSAE)
        with optim.autocast(self.train.device, self.settings.precision):
            sparse_BLV, _ = model(batch.input_ids, batch.attention_mask)
            state = model.classify(sparse_BLV, batch.attention_mask)
        return self.objective.terms(state, batch.labels_N, model.gate, top_BLK)


def trainer_of(kind: Kind, backbone: Backbone, shape: Shape, device: torch.device, quick: bool) -> Trainer:
    """A trainer in its constrained phase; the frozen LM has still to be asked."""
    torch.manual_seed(0)
    rows = [_texts(backbone.vocab_size, shape, batches * shape.texts) for batches in (BATCHES, 1)]
    dataset = Dataset("random", "classification", LABELS["classification"], rows[0], validation=rows[1])
    model = _model(kind, copy.deepcopy(backbone), shape, device)
    settings: dict[str, Any] = {
        "batch_size": shape.texts,
        "epochs": WITHOUT_END,
        "target_accuracy": TAU,
        "learning_rate": STILL,
        "head_learning_rate": STILL,
        "precision": "bf16" if device.type == "cuda" else "fp32",
    }
    config = ExperimentConfig.model_validate(
        {
            "recipe": kind.recipe,
            "honesty": kind.honesty,
            "target_active": QUICK_WORDS if quick else WORDS,
            "training": settings,
        }
    )
    trainer = (Materialised if kind.materialised else Trainer)(model, dataset, config, Progress())
    trainer.watch_every = SELDOM
    if trainer.recipe.constrained:
        trainer.objective.constrain(TAU)
    return trainer


def ask_frozen(trainer: Trainer) -> float:
    """Seconds that the frozen LM takes to read a text and write its words down; 0 where there is none."""
    rows = trainer.train
    if rows.top is None:
        return 0.0
    trainer._ask_frozen()  # the first time pays for warming up
    start = now(rows.device)
    trainer._ask_frozen()
    assert trainer.validation is not None
    return (now(rows.device) - start) / (len(rows) + len(trainer.validation))


def steps_of(trainer: Trainer) -> Iterator[None]:
    """One optimiser step for every `next`."""
    size = trainer.batch_size
    trainer._start()
    trainer._learn()
    batches = [list(range(k * size, (k + 1) * size)) for k in range(BATCHES)]
    for indices in itertools.cycle(batches):
        trainer._step([indices])
        yield


def _texts(vocab_size: int, shape: Shape, count: int) -> Texts:
    ids_BL = full_batch(vocab_size, count, shape.length)[0]
    labels = torch.randint(len(LABELS["classification"]), (count,))
    return Texts([" ".join(map(str, ids)) for ids in ids_BL.tolist()], labels.tolist())


def _model(kind: Kind, backbone: Backbone, shape: Shape, device: torch.device) -> Model:
    recipe = find_recipe(kind.recipe)
    config = config_of(
        backbone,
        honesty=kind.honesty,
        gate=recipe.gate,
        gate_saturate=recipe.saturate,
        max_length=shape.length,
    )
    tokenizer = cast(Any, Numbers())
    if recipe.name == "dense":
        return DenseModel(config, backbone, tokenizer).to(device)
    lexicon = lexicon_of(config, backbone.vocab_size)
    model = assemble(config, backbone, lexicon, tokenizer).to(device)
    if kind.honesty == "licensed-static":
        lexicon.build_licences(model.backbone.E_VH.detach())
    if kind.honesty == "licensed-contextual":
        model.frozen = FrozenLM.copy_of(model.backbone, lexicon)
    return model
