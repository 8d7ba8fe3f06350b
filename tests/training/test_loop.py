"""Training learns, repeats exactly, keeps its promises on the way, and ends at the best epoch."""

from __future__ import annotations

import copy

import pytest
import torch

from splade.config.schema import ExperimentConfig
from splade.data.rows import Dataset
from splade.errors import TrainingError
from splade.intervene import suppress_token_globally
from splade.mechanistic.attribution import compute_attribution_tensor, residual
from splade.models.lexical_sae import LexicalSAE
from splade.training.loop import History, Trainer
from splade.training.progress import Progress
from tests.tiny import tiny_batch, tiny_model
from tests.training.toys import sentences, settings, texts


def run(model: LexicalSAE, dataset: Dataset, config: ExperimentConfig) -> History:
    return Trainer(model, dataset, config, Progress()).run()


@pytest.mark.parametrize("honesty", ["grounded", "free", "licensed-static", "licensed-contextual"])
@pytest.mark.parametrize("task", ["classification", "tagging"])
def test_the_loss_falls_and_every_logit_stays_a_sum(task: str, honesty: str) -> None:
    dataset = texts() if task == "classification" else sentences()
    model = tiny_model(honesty=honesty, task=task, classes=len(dataset.label_names))
    history = run(model, dataset, settings())
    first, last = history.epochs[0].terms["ce"], history.epochs[-1].terms["ce"]
    assert last < 0.8 * first
    assert not model.training
    with torch.no_grad():
        ids, mask = tiny_batch(model)
        state = model.decide(model.encode(ids, mask, mask.bool() if task == "tagging" else None))
        assert residual(compute_attribution_tensor(state, state.logits.argmax(-1))).max() <= 1e-6
    assert bool((model.gate.theta() >= 0).all())


def test_the_same_seed_gives_the_same_weights() -> None:
    states = []
    for _ in range(2):
        torch.manual_seed(3)
        model = tiny_model(classes=2)
        run(model, texts(), settings(epochs=2))
        states.append(model.state_dict())
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_the_best_epoch_is_the_one_that_stays() -> None:
    model = tiny_model(classes=2)
    kept: list[dict[str, torch.Tensor]] = []
    trainer = Trainer(
        model, texts(), settings(), Progress(), on_best=lambda m: kept.append(copy.deepcopy(m.state_dict()))
    )
    history = trainer.run()
    scores = [epoch.validation.score for epoch in history.epochs if epoch.validation]
    assert scores[history.best] >= max(scores) - 0.1  # up to what an epoch overspends
    assert all(torch.equal(value, kept[-1][name]) for name, value in model.state_dict().items())


def test_patience_ends_training() -> None:
    config = settings(epochs=30)
    config.training.patience = 2
    config.training.learning_rate = 1e-9
    config.training.head_learning_rate = 1e-9
    history = run(tiny_model(classes=2), texts(), config)
    assert len(history.epochs) - 1 - history.best <= 2
    assert len(history.epochs) < 30


def test_a_smaller_budget_gives_fewer_words() -> None:
    counts = []
    for target in (3, 30):
        model = tiny_model(classes=2)
        history = run(model, texts(), settings(target_active=target))
        counts.append(history.epochs[-1].terms["active"])
    assert counts[0] < counts[1]


def test_the_constraint_is_measured_only_where_there_is_one() -> None:
    grounded = run(tiny_model(classes=2), texts(), settings(epochs=1))
    free = run(tiny_model(classes=2, honesty="free"), texts(), settings(epochs=1))
    assert "outside" in grounded.epochs[0].multipliers
    assert "outside" in grounded.epochs[0].terms
    assert "outside" not in free.epochs[0].multipliers
    assert "outside" not in free.epochs[0].terms


def test_a_removed_word_stays_removed_under_training() -> None:
    model = tiny_model(classes=2)
    ids = suppress_token_globally(model, ["slow"])
    run(model, texts(), settings(epochs=3))
    with torch.no_grad():
        rows = model.encode(*tiny_batch(model))
    assert not torch.isin(rows.word_P, torch.tensor(ids)).any()


def test_a_broken_loss_stops_training_and_names_the_term() -> None:
    model = tiny_model(classes=2)
    trainer = Trainer(model, texts(), settings(epochs=2), Progress())
    with torch.no_grad():
        model.head.b1.fill_(float("nan"))
    with pytest.raises(TrainingError, match=r"ce term is nan.*learning_rate"):
        trainer.run()


def test_weights_that_broke_without_breaking_the_loss_stop_training() -> None:
    """A NaN in the encoder opens no word, so every loss stays finite."""
    model = tiny_model(classes=2)
    trainer = Trainer(model, texts(), settings(epochs=2), Progress())
    trainer._start = lambda: None  # type: ignore[method-assign]
    with torch.no_grad():
        next(model.backbone.parameters()).fill_(float("nan"))
    with pytest.raises(TrainingError, match=r"not a number.*learning_rate"):
        trainer.run()
