"""The journal of edits of a model, saved beside its weights as `edits.json`.

An entry holds what was done to which words, why, and between which two states of the model. The masks it led
to are weights; the journal says how they came about, and is what takes them back.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from splade.errors import ModelError

if TYPE_CHECKING:
    from splade.models.lexicon import Lexicon

EDITS_FILE = "edits.json"
Action = Literal["remove", "scale"]


class Edit(BaseModel):
    """One entry: the words as they were named, the ids that changed, and the model's hash on either side."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    action: Action
    words: list[str] = Field(min_length=1)
    ids: list[int] = Field(min_length=1)
    factor: float | None = Field(None, gt=0, allow_inf_nan=False)
    reason: str = ""
    time: str
    hash_before: str
    hash_after: str

    @model_validator(mode="after")
    def _factor_goes_with_scale(self) -> Edit:
        if (self.action == "scale") != (self.factor is not None):
            raise ValueError("a scale has a factor, a removal has none")
        return self


_JOURNAL = TypeAdapter(list[Edit])


def scales(edits: Sequence[Edit]) -> dict[int, float]:
    """The factor of every scaled id: that of the latest entry which names it."""
    return {j: edit.factor for edit in edits if edit.factor is not None for j in edit.ids}


def write_edits(edits: Sequence[Edit], folder: Path) -> None:
    """`edits.json`, with `[]` for a model that was never edited."""
    entries = json.dumps(_JOURNAL.dump_python(list(edits)), indent=2, ensure_ascii=False)
    (folder / EDITS_FILE).write_text(entries + "\n", encoding="utf-8")


def read_edits(folder: Path, lexicon: Lexicon) -> list[Edit]:
    """The journal of a folder (empty where it has none), refused unless it led to the masks of `lexicon`."""
    path = folder / EDITS_FILE
    try:
        edits = _JOURNAL.validate_json(path.read_bytes())
    except FileNotFoundError:
        return []
    except ValueError as problem:  # not JSON, not UTF-8, or not a journal
        reason = " ".join(str(problem).split())[:200]
        raise ModelError(f"{path} is damaged: {reason}; save the model again") from problem
    if not _agrees(edits, lexicon):
        raise ModelError(f"{path} does not fit the weights beside it: take both from the same model")
    return edits


def _agrees(edits: Sequence[Edit], lexicon: Lexicon) -> bool:
    """Whether every word that the journal removes is gone, and every factor is the journal's."""
    if any(not 0 <= j < lexicon.vocab_size for edit in edits for j in edit.ids):
        return False
    removed = [j for edit in edits if edit.action == "remove" for j in edit.ids]
    expected_V = torch.ones_like(lexicon.scale_V)
    for j, factor in scales(edits).items():
        expected_V[j] = factor
    return not lexicon.keep_V[removed].any() and torch.equal(lexicon.scale_V, expected_V)
