"""Permanent edits of a model, one entry each in its journal `model.lexicon.edits`.

    remove   s_j = 0 for every input
    scale    s_j becomes factor · s_j; the latest factor of a word holds, they do not multiply

Edits act for all classes, hold under further training and are saved with the model. An entry holds only the
ids that it changed, so that taking back every entry gives back every bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timezone

import torch

from splade.errors import ConfigError
from splade.intervene.suppress import word_ids
from splade.models.edits import Action, Edit, scales
from splade.models.lexical_sae import LexicalSAE

_MOST = 1000.0  # the largest factor; its inverse is the smallest
_STATE = ("lexicon.keep_V", "lexicon.scale_V")


def model_hash(model: LexicalSAE) -> str:
    """sha256 over all weights and the state of the edits."""
    return _hash(model, _weights(model))


def apply(
    model: LexicalSAE, action: Action, words: Sequence[str], factor: float | None = None, reason: str = ""
) -> Edit | None:
    """Edit a model in place; the new entry of its journal, or None when nothing was left to change."""
    ids = _changed(model, action, word_ids(model, words), factor)
    if not ids:
        return None
    weights = _weights(model)
    before = _hash(model, weights)
    _write(model, action, ids, factor)
    edit = Edit(
        action=action,
        words=list(words),
        ids=ids,
        factor=factor,
        reason=reason,
        time=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        hash_before=before,
        hash_after=_hash(model, weights),
    )
    model.lexicon.edits.append(edit)
    return edit


def suppress_token_globally(model: LexicalSAE, words: Sequence[str], reason: str = "") -> list[int]:
    """Remove words for good; returns all their ids, those which were gone before included."""
    apply(model, "remove", words, reason=reason)
    return word_ids(model, words)


def undo(model: LexicalSAE, number: int = 0) -> Edit:
    """Take back entry `number` of the journal, from 1 (0: the last one); later entries are made anew."""
    edits = model.lexicon.edits
    if not edits:
        raise ConfigError("this model has no edits: there is nothing to undo")
    place = number - 1 if number else len(edits) - 1
    if not 0 <= place < len(edits):
        raise ConfigError(f"there is no edit {number}: choose from 1 to {len(edits)}")
    undone, *later = edits[place:]
    while len(edits) > place:
        _take_back(model)
    replay(model, later)
    return undone


def replay(model: LexicalSAE, edits: Sequence[Edit]) -> list[Edit]:
    """Make edits again, on this model or another; those that change nothing leave no entry."""
    made = (apply(model, edit.action, edit.words, edit.factor, edit.reason) for edit in list(edits))
    return [edit for edit in made if edit is not None]


def _changed(model: LexicalSAE, action: Action, ids: list[int], factor: float | None) -> list[int]:
    """Those of the ids whose state the edit changes."""
    lexicon = model.lexicon
    if action == "remove":
        if factor is not None:
            raise ConfigError("a removal takes no factor: use scale to give one")
        return [j for j in ids if lexicon.keep_V[j]]
    if action != "scale":
        raise ConfigError(f"no edit '{action}': choose remove or scale")
    if factor is None or not 1 / _MOST <= factor <= _MOST:
        raise ConfigError(f"factor {factor}: give one from {1 / _MOST} to {_MOST:g}, or remove the word")
    held = torch.tensor(factor, dtype=lexicon.scale_V.dtype)
    return [j for j in ids if lexicon.scale_V[j] != held]


@torch.no_grad()
def _write(model: LexicalSAE, action: Action, ids: list[int], factor: float | None) -> None:
    if action == "remove":
        model.lexicon.keep_V[ids] = False
    else:
        assert factor is not None
        model.lexicon.scale_V[ids] = factor


@torch.no_grad()
def _take_back(model: LexicalSAE) -> None:
    """Undo the last entry."""
    lexicon = model.lexicon
    edit = lexicon.edits.pop()
    if edit.action == "remove":
        lexicon.keep_V[edit.ids] = True
        return
    earlier = scales(lexicon.edits)
    for j in edit.ids:
        lexicon.scale_V[j] = earlier.get(j, 1.0)


def _weights(model: LexicalSAE) -> bytes:
    """Digest of everything that edits leave alone."""
    digest = hashlib.sha256()
    for key, tensor in sorted(model.state_dict().items()):
        if key not in _STATE:
            _add(digest, key, tensor)
    return digest.digest()


def _hash(model: LexicalSAE, weights: bytes) -> str:
    digest = hashlib.sha256(weights)
    for key in _STATE:
        _add(digest, key, model.get_buffer(key))
    return digest.hexdigest()


def _add(digest: hashlib._Hash, key: str, tensor: torch.Tensor) -> None:
    """Name, type, shape and bytes of a tensor."""
    digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
    digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
