"""The frozen LM is the checkpoint a model grew from, or grounding is not measured and a warning says why."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch

from splade.evaluation.frozen import find_frozen
from splade.models.frozen import FrozenLM
from splade.models.lexical_sae import LexicalSAE
from tests.tiny import tiny_batch, tiny_model


@pytest.fixture
def grown(tmp_path: Path) -> LexicalSAE:
    """A model that remembers the folder of its backbone, and has changed since."""
    model = tiny_model()
    folder = tmp_path / "checkpoint"
    model.backbone.mlm.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    record = model.config.backbone
    record.name, record.fingerprint = str(folder), model.backbone.fingerprint()
    model.before = FrozenLM.copy_of(model.backbone, model.lexicon).top_words(*tiny_batch(model))
    with torch.no_grad():
        for parameter in model.backbone.parameters():
            parameter.add_(torch.randn_like(parameter))
    return model


def test_the_frozen_lm_says_what_the_backbone_said_before_training(grown: LexicalSAE) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frozen = find_frozen(grown)
    assert torch.equal(frozen.top_words(*tiny_batch(grown)), grown.before)
    assert not any(parameter.requires_grad for parameter in frozen.parameters())


def test_a_changed_checkpoint_is_not_measured_against(grown: LexicalSAE) -> None:
    grown.config.backbone.fingerprint = "another"
    with pytest.warns(UserWarning, match="grounding is not measured: .* is not the checkpoint"):
        assert find_frozen(grown) is None


def test_a_missing_checkpoint_is_not_measured_against(grown: LexicalSAE, tmp_path: Path) -> None:
    grown.config.backbone.name = str(tmp_path / "gone")
    with pytest.warns(UserWarning, match="grounding is not measured: cannot load") as warned:
        assert find_frozen(grown) is None
    assert "\n" not in str(warned[0].message)


def test_a_model_that_carries_its_frozen_lm_needs_no_checkpoint() -> None:
    model = tiny_model(honesty="licensed-contextual")
    assert model.frozen is not None
    assert find_frozen(model) is model.frozen
