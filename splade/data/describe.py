"""A dataset in figures, as plain values fit for JSON.

1. Every split: rows, rows of each class (entities of each type for tagging), words a row, empty rows.
2. Between splits: the rows to evaluate on whose text stands in the training rows too.
3. Three training rows spread over the split, and what reading the files noted (`about`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from splade.data.rows import Dataset, Sentences, Texts
from splade.data.tagging import OUTSIDE, spans

_QUANTILES = {"min": 0.0, "p25": 0.25, "median": 0.5, "p75": 0.75, "p95": 0.95, "max": 1.0}
_SHOWN = 200  # characters of a sample row


def describe(dataset: Dataset) -> dict[str, object]:
    """Name, task, splits with their classes and lengths, shared rows, warnings and three samples."""
    splits = dataset.splits()
    shared = {name: _shared(dataset.train, rows) for name, rows in splits.items() if name != "train"}
    return {
        "name": dataset.name,
        "task": dataset.task,
        "labels": list(dataset.label_names),
        **({"multi_label": True} if dataset.multi_label else {}),
        "splits": {name: _split(rows, dataset.label_names) for name, rows in splits.items()},
        "shared_with_train": shared,
        "warnings": [_leak(name, count, len(splits[name])) for name, count in shared.items() if count],
        "samples": _samples(dataset.train, dataset.label_names),
        "about": dict(dataset.about),
    }


def _split(rows: Texts | Sentences, names: list[str]) -> dict[str, object]:
    lengths = _lengths(rows)
    return {
        "rows": len(rows),
        "classes": _classes(rows, names),
        "words": _quantiles(lengths),
        "empty": lengths.count(0),
    }


def _classes(rows: Texts | Sentences, names: list[str]) -> dict[str, int]:
    """Rows with each class, or entities of each type; a class without any counts 0."""
    if isinstance(rows, Texts):
        labels = Counter(i for ids in rows.label_ids() for i in ids)
        return {name: labels[i] for i, name in enumerate(names)}
    entities = Counter(kind for tags in rows.tags for _, _, kind in spans(tags))
    kinds = dict.fromkeys(name.partition("-")[2] for name in names if name != OUTSIDE)
    return {kind: entities[kind] for kind in kinds}


def _lengths(rows: Texts | Sentences) -> list[int]:
    """Words of each row; those of a text are what stands between spaces."""
    if isinstance(rows, Texts):
        return [len(text.split()) for text in rows.texts]
    return [len(words) for words in rows.words]


def _quantiles(values: Iterable[int]) -> dict[str, int]:
    """The values at fixed shares of their sorted order; nothing where there are none."""
    ordered = sorted(values)
    last = len(ordered) - 1
    return {name: ordered[round(share * last)] for name, share in _QUANTILES.items()} if ordered else {}


def _shared(train: Texts | Sentences, rows: Texts | Sentences) -> int:
    """How many rows have a text that a training row has; empty ones do not count."""
    seen = set(train.keys()) - {""}
    return sum(map(seen.__contains__, rows.keys()))


def _leak(split: str, count: int, rows: int) -> str:
    share = 100 * count / rows
    return (
        f"{count} of {rows} {split} rows ({share:.1f} %) have a text that train has too, and scores on "
        f"them flatter the model; remove them from train"
    )


def _samples(rows: Texts | Sentences, names: list[str]) -> list[dict[str, object]]:
    """The first, the middle and the last row."""
    positions = sorted({0, len(rows) // 2, len(rows) - 1}) if len(rows) else []
    if isinstance(rows, Texts):
        return [{"text": _cut(rows.texts[i]), **_labelled(rows, i, names)} for i in positions]
    return [_tagged(rows.words[i], rows.tags[i]) for i in positions]


def _labelled(rows: Texts, row: int, names: list[str]) -> dict[str, object]:
    found = [names[i] for i in rows.label_ids()[row]]
    return {"labels": found} if rows.label_sets else {"label": found[0]}


def _tagged(words: list[str], tags: list[str]) -> dict[str, object]:
    entities = [[" ".join(words[start:end]), kind] for start, end, kind in spans(tags)]
    return {"text": _cut(" ".join(words)), "entities": entities}


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
