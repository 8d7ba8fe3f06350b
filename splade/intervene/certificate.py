"""A certificate of removal: why removed words are 0 for every input, attempts to raise them, and figures.

1. The argument: where the mask is applied, in plain words, and the caveats of this model's pooling.
2. Attacks, each with a control (`attack.py`).
3. Quality with the words and without, on labelled rows, where some are given.
4. Leakage: how well s still tells of the concept (`leakage.py`), and what might go too (`closure.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor

from splade.data.rows import Sentences, Texts
from splade.errors import ConfigError
from splade.inference import Predictor
from splade.inference.predictor import MultiLabelPrediction
from splade.intervene.attack import Attempt, Search, hostile, search
from splade.intervene.closure import Proposal, propose
from splade.intervene.edits import model_hash
from splade.intervene.leakage import Leakage, leakage, nearest
from splade.intervene.suppress import masked
from splade.models.edits import Edit
from splade.models.lexical_sae import LexicalSAE
from splade.models.lexicon import normalise

_ARGUMENT = """Activations are made in one place, on each of the two ways that lead to them. There, a mask of
one bit a word decides which of them exist. It is a selection, not a product: a removed word is left out
whatever its logit is, NaN and infinity included, and no gradient passes through it. The classifier reads
nothing but these activations, so no prediction can use the word, for any input and any class. The mask is
saved with the weights, and training does not change it."""
_MAX = """Under max pooling every other word keeps its value to the bit: words are pooled one by one, and the
backbone and its embeddings are not touched."""
_ATTENTION = """Under attention pooling the removed words no longer take part in weighing the positions, so
other words can change their values."""
_TOPK = """A position keeps its {k} largest words, chosen before the mask is applied, so no other word takes
the place of a removed one."""
_CONCEPT = """The words are gone, which is not the same as the concept: other words may tell of it, and the
section on leakage says how well they do."""
_READ = """The model still reads the words in its input. What is removed is their use as a reason, not their
effect on the logits of other words."""


@dataclass(frozen=True)
class Measured:
    """Quality on labelled rows with the words and without; `changed` of `rows` predictions differ."""

    rows: int
    accuracy_before: float | None
    accuracy_after: float | None
    changed: int


@dataclass(frozen=True)
class Certificate:
    """Everything on the page; `holds` if no attack moved any value from 0."""

    model_hash: str
    backbone: str
    words: list[str]
    ids: list[int]
    names: list[str]
    edits: list[Edit]
    argument: str
    caveats: list[str]
    search: Search
    hostile: list[Attempt]
    measured: Measured | None
    leakage: Leakage | None
    nearest: list[tuple[str, float]]
    pretrained: bool
    proposals: list[Proposal]

    @property
    def holds(self) -> bool:
        """Whether every value that was looked at is exactly 0."""
        return not any(attempt.not_zero for attempt in (self.search.attempt, *self.hostile))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            **asdict(self),
            "holds": self.holds,
            "edits": [edit.model_dump() for edit in self.edits],
            "leakage": self.leakage.to_dict() if self.leakage else None,
            "nearest": [{"word": word, "cosine": cosine} for word, cosine in self.nearest],
        }


def certify(
    model: LexicalSAE,
    rows: Texts | Sentences | None = None,
    E_WH: Tensor | None = None,
    steps: int = 60,
    seed: int = 0,
) -> Certificate:
    """A certificate for every removed word of a model; `E_WH` are the rows of its pretrained decoder."""
    removed = [edit for edit in model.lexicon.edits if edit.action == "remove"]
    if not removed:
        raise ConfigError("no word of this model was removed: remove one first, then ask for a certificate")
    ids = sorted({j for edit in removed for j in edit.ids})
    names = [model.lexicon.names[j] for j in ids]
    texts = _texts(rows)
    return Certificate(
        model_hash=model_hash(model),
        backbone=model.config.backbone.name,
        words=list(dict.fromkeys(normalise(word) for edit in removed for word in edit.words)),
        ids=ids,
        names=names,
        edits=list(model.lexicon.edits),
        argument=_joined(_ARGUMENT),
        caveats=_caveats(model),
        search=search(model, ids, steps, seed),
        hostile=hostile(model, ids, seed),
        measured=measure(model, ids, rows) if rows is not None else None,
        leakage=leakage(model, ids, texts, seed) if texts else None,
        nearest=nearest(model, ids, E_WH),
        pretrained=E_WH is not None,
        proposals=propose(model, names, texts, E_WH, most=12),
    )


def measure(model: LexicalSAE, ids: Sequence[int], rows: Texts | Sentences) -> Measured:
    """Predictions of some rows with the words and without; of tagged sentences, those of their words."""
    found = []
    for keep in (True, False):
        with masked(model, ids, keep):
            found.append(_decided(model, rows))
    before, after = found
    truth = _truth(model, rows)
    changed = sum(old != new for old, new in zip(before, after, strict=True))
    return Measured(len(before), _share(before, truth), _share(after, truth), changed)


def _decided(model: LexicalSAE, rows: Texts | Sentences) -> list[Hashable]:
    predictor = Predictor(model)
    if isinstance(rows, Sentences):
        return [tag.label for tags in predictor.predict_tags(rows.words) for tag in tags]
    return [
        frozenset(p.labels) if isinstance(p, MultiLabelPrediction) else p.label
        for p in predictor.predict(rows.texts)
    ]


def _truth(model: LexicalSAE, rows: Texts | Sentences) -> list[Hashable]:
    """What the rows say, in the form of what is decided; empty when they are unlabelled."""
    if isinstance(rows, Sentences):
        return [tag for tags in rows.tags for tag in tags]
    names = model.config.label_names
    if rows.label_sets:
        return [frozenset(names[i] for i in ids) for ids in rows.label_sets]
    return [names[i] for i in rows.labels]


def _share(decided: list[Hashable], truth: list[Hashable]) -> float | None:
    if not truth:
        return None
    return sum(a == b for a, b in zip(decided, truth, strict=True)) / len(truth)


def _texts(rows: Texts | Sentences | None) -> list[str]:
    if rows is None:
        return []
    return rows.texts if isinstance(rows, Texts) else [" ".join(words) for words in rows.words]


def _caveats(model: LexicalSAE) -> list[str]:
    pooling = _MAX if model.pooling.name == "max" else _ATTENTION
    k = model.config.topk_per_position
    return [_joined(text) for text in (_CONCEPT, _READ, pooling, *([_TOPK.format(k=k)] if k else []))]


def _joined(text: str) -> str:
    return " ".join(text.split())
