"""What a step shows the constraints, which held-out rows are looked at, and when training may not end."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from splade.circuits.geco import smoothing_floor
from splade.circuits.objective import Dials, Objective, Scene
from splade.circuits.recipes import RECIPES
from splade.data.rows import Dataset, Texts
from splade.training.loop import Trainer
from splade.training.progress import Progress
from tests.tiny import tiny_batch, tiny_model
from tests.training.toys import settings, texts


def trainer_of(
    dataset: Dataset, recipe: str = "default", honesty: str = "free", **training: object
) -> Trainer:
    model = tiny_model(honesty=honesty, classes=2, opened=12)
    model.config.multi_label = dataset.multi_label
    own = {"batch_size": 8, "learning_rate": 1e-3, "precision": "fp32", **training}
    return Trainer(model, dataset, settings(6, recipe, training=own), Progress())


def with_sets() -> Dataset:
    one = texts().train
    assert isinstance(one, Texts)
    rows = Texts(one.texts, label_sets=[[label] if i % 3 else [] for i, label in enumerate(one.labels)])
    return Dataset("toy", "classification", ["class a", "class b"], rows, rows)


def test_grounding_is_observed_once_a_step_however_many_batches_it_has() -> None:
    """40 rows: 5 batches are 2 steps; the multiplier moves by the mean of what a step's batches showed."""
    trainer = trainer_of(texts(), honesty="grounded", epochs=1, gradient_accumulation_steps=3)
    seen: list[dict[str, torch.Tensor]] = []
    trainer.objective.observe = seen.append  # type: ignore[method-assign, assignment]
    trainer.run()
    assert len(seen) == trainer.steps_per_epoch == 2
    of_epoch = trainer.at.epochs[0].terms["outside"]
    assert float(3 * seen[0]["outside"] + 2 * seen[1]["outside"]) / 5 == pytest.approx(of_epoch, rel=1e-5)


def test_looks_at_held_out_rows_reach_all_of_them() -> None:
    """40 rows, 5 of them a look, a look every 8 steps: counted in steps it would always be the same five."""
    trainer = trainer_of(texts(), epochs=20, batch_size=5, warmup_fraction=0.1)
    assert trainer.validation is not None
    looked: list[int] = []
    whole = trainer.validation.batch

    def batch(indices: list[int]) -> object:
        looked.extend(indices if len(indices) == 5 else [])
        return whole(indices)

    trainer.validation.batch = batch  # type: ignore[method-assign, assignment]
    terms = {"ce": torch.zeros(()), "active": torch.ones(())}
    trainer.objective.constrain(1.0)
    for trainer.at.steps in range(1, 65):
        trainer._watch(terms)
    assert sorted(looked) == list(range(40))


def test_patience_does_not_end_training_before_the_second_phase() -> None:
    still: dict[str, Any] = {"learning_rate": 1e-9, "head_learning_rate": 1e-9}
    history = trainer_of(texts(), epochs=12, warmup_fraction=0.5, patience=2, **still).run()
    phases = [epoch.phase for epoch in history.epochs]
    assert phases.count("constrained") >= 1
    assert len(phases) < 12


def test_of_several_labels_each_is_a_choice_between_two() -> None:
    trainer = trainer_of(with_sets(), label_smoothing=0.2)
    trainer.model.config.label_names = [*"abcdefgh"]
    trainer.at.noted = [1e-6] * 8
    assert trainer._tau() == pytest.approx(smoothing_floor(0.2, 2))


@pytest.mark.parametrize("recipe", ["default", "cis", "lexical-sae", "cajt", "ltt"])
def test_several_labels_learn_in_both_phases(recipe: str) -> None:
    history = trainer_of(with_sets(), recipe, epochs=12).run()
    assert history.epochs[-1].phase == "constrained"
    assert history.epochs[-1].terms["ce"] < 0.9 * history.epochs[0].terms["ce"]


def test_a_row_without_any_label_is_explained_by_its_most_probable_class() -> None:
    model = tiny_model(classes=3, opened=12)
    objective = Objective(RECIPES["default"], Dials(12, 0.1), 3, model.lexicon.vocab_size, 1, 1, False)
    state = model.decide(model.encode(*tiny_batch(model)))
    N = state.rows.n_rows
    none = Scene(objective, state, torch.zeros(N, 3), model.gate)
    likely = Scene(objective, state, state.logits.argmax(-1), model.gate)
    torch.testing.assert_close(none.attribution_P, likely.attribution_P)
    assert torch.equal(none.labels_N, likely.labels_N)
