"""The frozen LM of a saved model, found again by what `config.json` says of it."""

from __future__ import annotations

import warnings

from splade.config.model import BackboneRecord
from splade.errors import LexicalError, ModelError
from splade.models.backbone import Backbone, load_backbone
from splade.models.frozen import FrozenLM
from splade.models.lexical_sae import LexicalSAE


def find_frozen(model: LexicalSAE) -> FrozenLM | None:
    """The backbone as it was before supervised training, or None (with a warning that says why)."""
    if model.frozen is not None:
        return model.frozen
    try:
        backbone = _original(model.config.backbone)
    except LexicalError as problem:
        warnings.warn(f"grounding is not measured: {problem}", stacklevel=2)
        return None
    return FrozenLM(backbone.to(model.backbone.E_VH.device), model.lexicon)


def _original(record: BackboneRecord) -> Backbone:
    """The checkpoint a model grew from, refused if it is another by now."""
    backbone, _ = load_backbone(record.name, record.revision, check=False)
    if record.fingerprint and backbone.fingerprint() != record.fingerprint:
        raise ModelError(f"'{record.name}' is not the checkpoint this model grew from")
    return backbone
