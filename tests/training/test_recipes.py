"""Every recipe learns both tasks under every honesty mode, in two phases, with the identity held."""

from __future__ import annotations

import pytest
import torch

from splade.circuits.losses import anchor
from splade.circuits.recipes import RECIPES
from splade.errors import TrainingError
from splade.mechanistic.attribution import compute_attribution_tensor, residual
from splade.models.dense import DenseModel
from splade.training.history import History
from splade.training.loop import Model, Trainer
from splade.training.progress import Progress
from tests.tiny import tiny_batch, tiny_model
from tests.training.toys import sentences, settings, texts

WORDY = [name for name in RECIPES if name != "dense"]
EPOCHS = 16


def trained(recipe: str, task: str, honesty: str, **changes: object) -> tuple[Model, History]:
    torch.manual_seed(0)
    dataset = texts() if task == "classification" else sentences()
    own = RECIPES[recipe]
    model: Model = tiny_model(
        honesty=honesty, task=task, gate=own.gate, classes=len(dataset.label_names), opened=12
    )
    if recipe == "dense":
        model = DenseModel(model.config, model.backbone, model.tokenizer)
    config = settings(EPOCHS, recipe, **changes)
    return model, Trainer(model, dataset, config, Progress()).run()


@pytest.mark.parametrize("honesty", ["free", "grounded", "licensed-static"])
@pytest.mark.parametrize("task", ["classification", "tagging"])
@pytest.mark.parametrize("recipe", WORDY)
def test_every_recipe_learns_and_every_logit_stays_a_sum(recipe: str, task: str, honesty: str) -> None:
    model, history = trained(recipe, task, honesty)
    assert history.epochs[-1].terms["ce"] < 0.9 * history.epochs[0].terms["ce"]
    with torch.no_grad():
        ids, mask = tiny_batch(model)
        state = model.decide(model.encode(ids, mask, mask.bool() if task == "tagging" else None))
        assert residual(compute_attribution_tensor(state, state.logits.argmax(-1))).max() <= 1e-6
    assert bool((model.gate.theta() >= 0).all())


@pytest.mark.parametrize("task", ["classification", "tagging"])
def test_the_dense_twin_learns_in_the_same_loop(task: str) -> None:
    _, history = trained("dense", task, "free")
    assert history.epochs[-1].terms["ce"] < 0.8 * history.epochs[0].terms["ce"]
    assert history.epochs[-1].validation is not None
    assert history.epochs[-1].validation.active is None


@pytest.mark.parametrize("recipe", [name for name in WORDY if RECIPES[name].constrained])
def test_the_second_phase_begins_after_the_warm_up_with_a_bound_from_it(recipe: str) -> None:
    _, history = trained(recipe, "classification", "free")
    phases = [epoch.phase for epoch in history.epochs]
    assert phases[0] == "warm-up"
    assert phases[-1] == "constrained"
    assert phases == sorted(phases, reverse=True)
    first, last = history.epochs[0], history.epochs[-1]
    assert first.tau is None
    assert last.tau is not None
    assert set(RECIPES[recipe].terms) <= set(last.terms)
    assert not set(RECIPES[recipe].terms) & set(first.terms)
    assert last.multipliers["ce"] > 0
    assert history.best >= phases.index("constrained")  # like is compared with like


def test_a_bound_that_is_given_is_used() -> None:
    training = {"epochs": 16, "batch_size": 8, "learning_rate": 1e-3, "target_accuracy": 0.321}
    _, history = trained("ltt", "classification", "free", training=training)
    assert history.epochs[-1].tau == 0.321


def test_too_short_a_warm_up_is_an_error_where_only_the_bound_trains_accuracy() -> None:
    training = {"epochs": 1, "batch_size": 8, "warmup_fraction": 0.2}
    with pytest.raises(TrainingError, match=r"warm-up of 1 steps.*warmup_fraction"):
        trained("cajt", "classification", "free", training=training)
    _, history = trained("default", "classification", "free", training=training)
    assert [epoch.phase for epoch in history.epochs] == ["warm-up"]


def test_the_gradients_of_accumulated_batches_are_those_of_the_whole() -> None:
    whole = {"epochs": 1, "batch_size": 40, "precision": "fp32"}
    halves = {**whole, "batch_size": 20, "gradient_accumulation_steps": 2}
    found = []
    for training in (whole, halves):
        model = tiny_model(honesty="free", classes=2, opened=12)
        trainer = Trainer(model, texts(), settings(1, "baseline", training=training), Progress())
        seen: list[torch.Tensor] = []
        trainer.optimiser.step = lambda model=model, seen=seen: seen.extend(  # type: ignore[method-assign]
            p.grad.clone() for p in model.parameters() if p.grad is not None
        )
        trainer.run()
        found.append(seen)
    assert len(found[0]) == len(found[1]) > 10
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one, other, atol=1e-6, rtol=1e-3)


def test_the_anchor_keeps_the_language_model_near_itself() -> None:
    first = tiny_model(honesty="free", classes=2, opened=12)
    ids, mask = tiny_batch(first)
    drifts = []
    for weight in (0.0, 30.0):
        training = {"epochs": 4, "batch_size": 8, "learning_rate": 1e-3, "anchor_weight": weight}
        model, _ = trained("baseline", "classification", "free", training=training)
        with torch.no_grad():
            before, after = (m.backbone.logits(ids, mask).flatten(0, 1) for m in (first, model))
        drifts.append(float(anchor(before, after)))
    assert drifts[1] < 0.5 * drifts[0]
