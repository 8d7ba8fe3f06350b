"""Ways to take a concept out of a model, on one table: what each leaves of it, and what each costs.

    none                nothing is done
    surgery             some words are 0 for every input
    LEACE               s is projected so that no linear probe reads the concept (`leace.py`)
    surgery and LEACE   LEACE fitted on what the words leave
    retrained           a second model, trained without the words by the caller

1. LEACE is fitted on training rows and the words of its subspace are chosen there; all else is measured on
   test rows: accuracy, and a cross-validated linear probe of the concept on what the head reads.
2. Collateral is what changes on rows without the concept, which a removal should leave alone.

Fitted and measured on the same rows, LEACE would look better than it is: a probe's area then falls below 0.5.

Legend: N rows, C classes, V dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from splade.circuits.prediction import probabilities
from splade.data.rows import Texts
from splade.errors import ConfigError, DataError
from splade.evaluation.bias import Collateral, collateral
from splade.evaluation.intervals import Interval, intervals
from splade.intervene.leace import MOST_WORDS, erased, fit_leace_eraser, most_active
from splade.intervene.leakage import encoded, probe
from splade.intervene.suppress import masked, word_ids
from splade.models.lexical_sae import LexicalSAE

Gap = Callable[[NDArray[np.float64]], "Interval | None"]

_LEAST = 10  # rows with the concept, and without it, that a probe needs


@dataclass(frozen=True)
class Marked:
    """Labelled texts, and whether each has the concept."""

    rows: Texts
    concept: list[bool]

    def __post_init__(self) -> None:
        if len(self.rows.texts) != len(self.concept):
            sizes = f"{len(self.rows.texts)} texts and {len(self.concept)} concept labels"
            raise DataError(f"{sizes}: give one label a text")


@dataclass(frozen=True)
class RemovalRow:
    """One way: its accuracy, the area under a probe's ROC curve, a gap of the caller's, collateral.

    `present` is how many values the head reads in a row. None where it was not or cannot be measured.
    """

    removal: str
    accuracy: Interval
    leakage: Interval | None
    gap: Interval | None
    collateral: Collateral | None
    present: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class _Read:
    """Probabilities of the test rows, and what the head read (a SciPy matrix [N, V])."""

    probability_NC: NDArray[np.float64]
    s_NV: Any


def compare_removals(
    model: LexicalSAE,
    words: Sequence[str],
    train: Marked,
    test: Marked,
    retrained: LexicalSAE | None = None,
    gap: Gap | None = None,
    seed: int = 0,
) -> list[RemovalRow]:
    """One row a way; `gap` is measured from the probabilities [N, C] of the test rows."""
    names = _required(model, retrained, test)
    ids = word_ids(model, words)
    whole = _read(model, test.rows.texts, names)
    found = [_row("none", whole, None, test, gap, seed)]
    ways: dict[str, AbstractContextManager[LexicalSAE]] = {
        "surgery": masked(model, ids, keep=False),
        "LEACE": _leace(model, ids, train),
        "surgery and LEACE": _both(model, ids, train),
    }
    if retrained is not None:
        ways["retrained"] = nullcontext(retrained)
    for name, way in ways.items():
        with way as changed:
            read = _read(changed, test.rows.texts, names)
        found.append(_row(name, read, whole, test, gap, seed))
    return found


@contextmanager
def _leace(model: LexicalSAE, ids: Sequence[int], train: Marked) -> Iterator[LexicalSAE]:
    """The model under LEACE, whose subspace holds `ids` and the most active words."""
    texts = train.rows.texts
    subspace = {*ids, *most_active(model, texts, MOST_WORDS - len(ids))}
    with erased(model, fit_leace_eraser(model, texts, train.concept, sorted(subspace))) as changed:
        yield changed


@contextmanager
def _both(model: LexicalSAE, ids: Sequence[int], train: Marked) -> Iterator[LexicalSAE]:
    with masked(model, ids, keep=False), _leace(model, (), train) as changed:
        yield changed


def _required(model: LexicalSAE, retrained: LexicalSAE | None, test: Marked) -> list[str]:
    """The class names, once it is clear that all can be compared."""
    for one in (model, retrained):
        if one is not None and (one.config.task != "classification" or one.config.multi_label):
            raise ConfigError("removals are compared on one label a text: give classification models")
    names = list(model.config.label_names)
    if retrained is not None and sorted(retrained.config.label_names) != sorted(names):
        raise ConfigError("the retrained model has other classes: train it on the same labels")
    if len(test.rows.labels) != len(test.rows.texts) or not test.rows.labels:
        raise DataError("accuracy needs labels: give labelled test rows")
    return names


@torch.no_grad()
def _read(model: LexicalSAE, texts: Sequence[str], names: Sequence[str]) -> _Read:
    """Probabilities in the order of `names`, and what was read."""
    from scipy.sparse import csr_matrix

    order = [model.config.label_names.index(name) for name in names]
    probability_NC = np.zeros((len(texts), len(names)))
    values, rows, words = [], [], []
    for indices, found in encoded(model, texts):
        state = model.decide(found)
        probability = probabilities(state.logits, multi_label=False, temperature=model.config.temperature)
        probability_NC[indices] = probability[:, order].cpu().numpy()
        values.append(state.rows.value_P.cpu().numpy())
        rows.append(np.array(indices)[state.rows.row_P.cpu().numpy()])
        words.append(state.rows.word_P.cpu().numpy())
    pairs = np.concatenate(values), (np.concatenate(rows), np.concatenate(words))
    return _Read(probability_NC, csr_matrix(pairs, shape=(len(texts), model.lexicon.vocab_size)))


def _row(
    removal: str, read: _Read, whole: _Read | None, test: Marked, gap: Gap | None, seed: int
) -> RemovalRow:
    right_N = read.probability_NC.argmax(1) == np.array(test.rows.labels)
    [accuracy] = intervals(right_N[:, None], seed=seed)
    concept_N = np.array(test.concept, dtype=bool)
    outside_N = ~concept_N
    beside = None
    if whole is not None and outside_N.any():
        beside = collateral(whole.probability_NC[outside_N], read.probability_NC[outside_N], seed=seed)
    return RemovalRow(
        removal=removal,
        accuracy=accuracy,
        leakage=_leakage(read.s_NV, concept_N, seed),
        gap=None if gap is None else gap(read.probability_NC),
        collateral=beside,
        present=read.s_NV.nnz / max(len(concept_N), 1),
    )


def _leakage(s_NV: Any, concept_N: NDArray[np.bool_], seed: int) -> Interval | None:
    """A probe's area; columns are turned so that the largest magnitude, which it divides by, is positive."""
    from scipy.sparse import diags

    if min(concept_N.sum(), (~concept_N).sum()) < _LEAST:
        return None
    largest_V, smallest_V = (s_NV.max(axis=0).toarray()[0], s_NV.min(axis=0).toarray()[0])
    turned_NV = (s_NV @ diags(np.where(-smallest_V > largest_V, -1.0, 1.0))).tocsr()
    found = probe(turned_NV, concept_N, seed)
    return Interval(found.auc, found.low, found.high)
