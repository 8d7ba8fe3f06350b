"""The frozen LM of a saved model, found again by what `config.json` says of it."""

from __future__ import annotations

import warnings

from splade.errors import LexicalError
from splade.models.backbone import load_backbone
from splade.models.frozen import FrozenLM
from splade.models.lexical_sae import LexicalSAE


def find_frozen(model: LexicalSAE) -> FrozenLM | None:
    """The backbone as it was before supervised training, or None (with a warning that says why)."""
    record = model.config.backbone
    if model.frozen is not None:
        return model.frozen
    try:
        backbone, _ = load_backbone(record.name, record.revision, check=False)
    except LexicalError as problem:
        return _unmeasured(str(problem))
    if record.fingerprint and backbone.fingerprint() != record.fingerprint:
        return _unmeasured(f"'{record.name}' is not the checkpoint this model grew from")
    return FrozenLM(backbone.to(model.backbone.E_VH.device), model.lexicon)


def _unmeasured(reason: str) -> None:
    warnings.warn(f"grounding is not measured: {reason}", stacklevel=3)
