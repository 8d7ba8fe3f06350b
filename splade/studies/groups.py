"""Which groups of people, or of anything else that should not matter, each text belongs to; and their words.

Groups come, in this order, from

1. the data (`civilcomments` knows them),
2. a column of the rows to measure on, or a column of scores for each group, as Civil Comments has them,
3. the names of the groups, or of the confirmed words, where a text mentions them.

Words are proposed by class centroids (`centroid_words`): the mean contribution to the class at stake, of
rows of a group and of the rows outside it, class by class, so that a group with more rows of a class does not
lend it its words.

Legend: N texts, P active (text, word) pairs, V dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from splade.data.datasets import load_dataset
from splade.data.hub import NAMED, GroupedTexts, grouped
from splade.data.readers import read_table
from splade.data.rows import Texts
from splade.errors import DataError
from splade.intervene.cached import Cached
from splade.intervene.leakage import contain
from splade.mechanistic.attribution import compute_attribution_tensor
from splade.models.lexical_sae import LexicalSAE
from splade.models.lexicon import normalise
from splade.models.state import CircuitState

_COLUMNS = ("group", "groups", "identity", "identities", "subgroup")
_SCORED, _HALF = NAMED["civilcomments"].identities, 0.5
_LEAST, _OFTENER = 5, 2.0  # rows of a group that make a word its own, and how much oftener than elsewhere


def grouped_file(path: str, column: str | None, labels: list[str]) -> GroupedTexts:
    """All rows of a file with their labels and groups; `labels` are those of the model."""
    rows = load_dataset(path, labels=labels, task="classification", validation_share=0).train
    assert isinstance(rows, Texts)
    table = read_table(Path(path))
    known = {name.lower(): name for name in reversed(table.columns)}
    column = column or next((known[name] for name in _COLUMNS if name in known), None)
    scored = [name for name in _SCORED if name in table.columns]
    if column is not None and column not in table.columns:
        raise DataError(f"{path}: has no column {column!r}; name one that tells groups as surgery.group")
    if column is None and not scored:
        raise DataError(f"{path}: no column tells the groups of a row; name one as surgery.group")
    if column is not None:
        return grouped(rows, [_named(row.get(column)) for row in table.rows])
    scores = ({name: float(str(row.get(name) or 0)) for name in scored} for row in table.rows)
    return grouped(rows, [frozenset(n for n, score in row.items() if score >= _HALF) for row in scores])


def by_mention(rows: Texts, names: Sequence[str]) -> GroupedTexts:
    """Texts grouped by which of the names stand in them."""
    inside = {name: contain(rows.texts, [normalise(name)]) for name in names}
    return grouped(rows, [frozenset(n for n in names if inside[n][i]) for i in range(len(rows))])


def _named(cell: object) -> frozenset[str]:
    """The groups in a cell: a list, or names between | or ;."""
    names = cell if isinstance(cell, list) else str(cell or "").replace(";", "|").split("|")
    return frozenset(str(name).strip() for name in names if str(name).strip())


@dataclass(frozen=True)
class Correlated:
    """A word and the group it goes with: its mean contribution more than outside, and where it is active."""

    word: str
    group: str
    difference: float
    active_inside: float
    active_outside: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def centroid_words(model: LexicalSAE, rows: GroupedTexts, label: int, most: int = 20) -> list[Correlated]:
    """Words whose contribution to a class sets a group apart, the largest difference first, each once."""
    words = Cached.read(model, rows.texts)
    amount_NV, active_NV = _contributions(words, label), words.matrix().astype(bool).astype(float)
    labels_N = np.array(rows.labels)
    found: dict[str, Correlated] = {}
    for group in sorted(set().union(*rows.groups)):
        inside_N = np.array([group in names for names in rows.groups])
        for candidate in _apart(model, group, amount_NV, active_NV, inside_N, labels_N):
            kept = found.setdefault(candidate.word, candidate)
            found[candidate.word] = max(kept, candidate, key=lambda c: abs(c.difference))
    return sorted(found.values(), key=lambda c: (-abs(c.difference), c.word))[:most]


def _contributions(words: Cached, label: int) -> Any:
    """What each word adds to the class more than to the others on average, a SciPy matrix [N, V]."""
    from scipy.sparse import csr_matrix

    rows = words.rows
    with torch.no_grad():
        amount_PC = compute_attribution_tensor(CircuitState(rows, words.logits(), words.head)).amount
    others_P = (amount_PC.sum(-1) - amount_PC[:, label]) / max(1, amount_PC.shape[-1] - 1)
    amount_P = (amount_PC[:, label] - others_P).double().cpu().numpy()
    places = rows.row_P.cpu().numpy(), rows.word_P.cpu().numpy()
    return csr_matrix((amount_P, places), shape=(rows.n_rows, rows.vocab_size))


def _apart(
    model: LexicalSAE,
    group: str,
    amount_NV: Any,
    active_NV: Any,
    inside_N: NDArray[np.bool_],
    labels_N: NDArray[np.int64],
) -> list[Correlated]:
    """Words that one group has oftener than the rows outside it, with the difference of their centroids."""
    classes = [labels_N == y for y in np.unique(labels_N)]
    both = [(of_y & inside_N, of_y & ~inside_N) for of_y in classes]
    both = [(inside, outside) for inside, outside in both if inside.any() and outside.any()]
    if not both:
        return []
    difference_V = np.mean([_means(amount_NV, a) - _means(amount_NV, b) for a, b in both], axis=0)
    often_V = np.mean([_means(active_NV, inside) for inside, _ in both], axis=0)
    seldom_V = np.mean([_means(active_NV, outside) for _, outside in both], axis=0)
    rows_V = np.asarray(active_NV[inside_N].sum(axis=0))[0]
    own = np.flatnonzero((rows_V >= _LEAST) & (often_V >= _OFTENER * seldom_V))
    surfaces = model.lexicon.surfaces
    return [
        Correlated(
            normalise(surfaces[j]), group, float(difference_V[j]), float(often_V[j]), float(seldom_V[j])
        )
        for j in own
    ]


def _means(matrix_NV: Any, chosen_N: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Mean [V] of the chosen rows."""
    means_V: NDArray[np.float64] = np.asarray(matrix_NV[chosen_N].mean(axis=0))[0]
    return means_V
