"""What each further removed word does: accuracy, gap and leakage of one order of removal.

1. Test rows, and those that a gap is measured on, are read once; the head decides exactly over what each step
   leaves of them. They took no part in choosing the words.
2. Leakage is measured by a probe that is fitted anew at every point.

Legend: N rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from splade.data.hub import GroupedTexts
from splade.evaluation.bias import evaluate_bias
from splade.evaluation.intervals import Interval, intervals
from splade.intervene import word_ids
from splade.intervene.cached import Cached
from splade.intervene.harm import pair_gaps, sides
from splade.intervene.leakage import probe
from splade.models.lexical_sae import LexicalSAE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Point:
    """What is left after `removed` went too, `words` in all; `changed` predictions are not the first's."""

    removed: list[str]
    words: int
    accuracy: Interval
    changed: int
    gap: Interval | None
    leakage: Interval | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def curve(
    model: LexicalSAE,
    removals: Sequence[Sequence[str]],
    rows: Cached,
    labels: Sequence[int],
    pairs: Sequence[tuple[str, str]] = (),
    label: int = 1,
    about_N: NDArray[np.bool_] | None = None,
    groups: GroupedTexts | None = None,
) -> list[Point]:
    """A point for each removal after all those before it, accuracy of `rows`; the model is not changed.

    The gap is the mean of P(label | first) - P(label | second) over `pairs`, or of the false positive rates
    of `groups` less those of the rows outside them. `about_N` says which rows are about the concept.
    """
    compared = _compared(model, pairs, groups)
    labels_N, first_N = torch.tensor(labels), rows.logits().argmax(-1)
    gone: list[str] = []
    points = []
    for removed in removals:
        ids = word_ids(model, removed)
        gone += removed
        rows, compared = rows.without(ids), compared and compared.without(ids)
        found_N = rows.logits().argmax(-1)
        points.append(
            Point(
                removed=list(removed),
                words=len(gone),
                accuracy=_mean(found_N.cpu() == labels_N),
                changed=int((found_N != first_N).sum()),
                gap=None if compared is None else _gap(compared, label, model.config.temperature, groups),
                leakage=None if about_N is None else _leakage(rows, about_N),
            )
        )
    return points


def said(texts: Cached, label: int) -> NDArray[np.bool_]:
    """Which texts [N] are given the label."""
    found_N: NDArray[np.bool_] = (texts.logits().argmax(-1) == label).cpu().numpy()
    return found_N


def _compared(
    model: LexicalSAE, pairs: Sequence[tuple[str, str]], groups: GroupedTexts | None
) -> Cached | None:
    """The texts that a gap is measured on."""
    if groups is not None:
        return Cached.read(model, groups.texts)
    return Cached.read(model, sides(pairs)) if pairs else None


def _gap(texts: Cached, label: int, temperature: float, groups: GroupedTexts | None) -> Interval | None:
    if groups is None:
        return _mean(pair_gaps(texts.logits(), label, temperature))
    gold = [found == label for found in groups.labels]
    return evaluate_bias(said(texts, label), gold, groups.groups).mean_fpr_difference


def summary(points: Sequence[Point]) -> dict[str, Any]:
    """First and last figures, all points, and three steps: nothing, the concept, and what went with it."""
    first, last = points[0], points[-1]
    together = [word for point in points[2:] for word in point.removed]
    steps = [*points[:2], *([replace(last, removed=together)] if together else [])]
    return {
        "removed": [word for point in points for word in point.removed],
        "flipped": last.changed,
        "gap_before": first.gap and first.gap.mean,
        "gap_after": last.gap and last.gap.mean,
        "accuracy_before": first.accuracy.mean,
        "accuracy_after": last.accuracy.mean,
        "steps": [point.to_dict() for point in steps],
        "curve": [point.to_dict() for point in points],
    }


def _mean(values_N: Tensor) -> Interval:
    [found] = intervals(values_N.double().cpu().numpy()[:, None])
    return found


def _leakage(rows: Cached, about_N: NDArray[np.bool_]) -> Interval:
    found = probe(rows.matrix(), about_N)
    return Interval(found.auc, found.low, found.high)
