"""Named public datasets through the package `datasets`, as the same values that local files give.

1. A name stands for a repository without a loading script, its splits and its columns (`NAMED`).
2. Each split becomes a table of two columns, its labels by name, and is read as a table of a file is.
3. Where people are mentioned (`civilcomments`), every row keeps the names of the groups (`GroupedTexts`).
4. Sampling and validation rows are those of local files too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from splade.data import sampling
from splade.data.datasets import EMBEDDED, divide
from splade.data.files import Table, short
from splade.data.labelled import Counts, classification, tagging, text_value
from splade.data.rows import Dataset, Task, Texts
from splade.errors import ConfigError, DataError

PARQUET = "refs/convert/parquet"  # the branch where the hub keeps a script's rows as Parquet files
_HALF = 0.5  # of the annotators
_IDENTITIES = (
    *("male", "female", "transgender", "other_gender"),
    *("heterosexual", "homosexual_gay_or_lesbian", "bisexual", "other_sexual_orientation"),
    *("christian", "jewish", "muslim", "hindu", "buddhist", "atheist", "other_religion"),
    *("black", "white", "asian", "latino", "other_race_or_ethnicity"),
    *("physical_disability", "intellectual_or_learning_disability"),
    *("psychiatric_or_mental_illness", "other_disability"),
)
Row = Mapping[str, Any]
Splits = Mapping[str, Iterable[Row]]


@dataclass(frozen=True)
class NamedSet:
    """Where a dataset is and what its columns mean.

    `names[i]` is the name of label i, and of a score or a truth value: below one half, and from there on;
    without names the column holds them. `part` names a column that tells the split of rows kept together.
    """

    repository: str
    text: tuple[str, ...]
    label: str
    names: tuple[str, ...] = ()
    splits: Mapping[str, str] = field(default_factory=lambda: {"train": "train", "test": "test"})
    subset: str | None = None
    branch: str = "main"
    part: str = ""
    task: Task = "classification"
    identities: tuple[str, ...] = ()
    scores: bool = False


_THREE = {"train": "train", "validation": "validation", "test": "test"}
_SENTIMENT = ("negative", "positive")


def _bio(*kinds: str) -> tuple[str, ...]:
    return ("O", *(f"{prefix}-{kind}" for kind in kinds for prefix in "BI"))


NAMED: dict[str, NamedSet] = {
    "sst2": NamedSet(  # the labels of its split `test` are not public
        "stanfordnlp/sst2", ("sentence",), "label", _SENTIMENT, {"train": "train", "test": "validation"}
    ),
    "ag_news": NamedSet("fancyzhx/ag_news", ("text",), "label", ("World", "Sports", "Business", "Sci/Tech")),
    "imdb": NamedSet("stanfordnlp/imdb", ("text",), "label", _SENTIMENT, subset="plain_text"),
    "yelp": NamedSet("fancyzhx/yelp_polarity", ("text",), "label", _SENTIMENT, subset="plain_text"),
    "civilcomments": NamedSet(  # google/civil_comments has no identity columns
        "pietrolesci/civilcomments-wilds",
        ("comment_text",),
        "toxicity",
        ("civil", "toxic"),
        {"train": "train", "validation": "val", "test": "test"},
        subset="raw",
        part="split",
        identities=_IDENTITIES,
        scores=True,
    ),
    "banking77": NamedSet("mteb/banking77", ("text",), "label_text"),
    "beavertails": NamedSet(
        "PKU-Alignment/BeaverTails",
        ("prompt", "response"),
        "is_safe",
        ("unsafe", "safe"),
        {"train": "330k_train", "test": "330k_test"},
    ),
    "conll2003": NamedSet(
        "eriktks/conll2003",
        ("tokens",),
        "ner_tags",
        _bio("PER", "ORG", "LOC", "MISC"),
        _THREE,
        branch=PARQUET,
        task="tagging",
    ),
    "wnut17": NamedSet(
        "leondz/wnut_17",
        ("tokens",),
        "ner_tags",
        _bio("corporation", "creative-work", "group", "location", "person", "product"),
        _THREE,
        branch=PARQUET,
        task="tagging",
    ),
}


@dataclass(frozen=True)
class GroupedTexts(Texts):
    """Texts that know which groups of people each of them mentions."""

    groups: list[frozenset[str]] = field(default_factory=list)

    def take(self, positions: Sequence[int]) -> GroupedTexts:
        """The rows at these positions, in this order, groups too."""
        return grouped(super().take(positions), [self.groups[i] for i in positions])


def grouped(texts: Texts, groups: list[frozenset[str]]) -> GroupedTexts:
    """Texts with the groups of each."""
    return GroupedTexts(texts.texts, texts.labels, texts.label_sets, groups)


def load_named(
    name: str,
    revision: str = "main",
    train_samples: int = -1,
    test_samples: int = -1,
    validation_share: float = 0.1,
    seed: int = 0,
    cache: str | Path | None = None,
) -> Dataset:
    """The rows of a named dataset; -1 samples are all of a split; `revision` is a branch, tag or commit."""
    named = find_named(name)
    revision = named.branch if revision == "main" else revision
    sources = _fetch(name, named, revision, cache)
    rows = {split: _rows_of(sources, named, there) for split, there in named.splits.items()}
    tables = {split: _table(named, split, found) for split, found in rows.items()}
    build = classification if named.task == "classification" else tagging
    dataset = build(name, tables, "text", "label")
    if named.identities:
        dataset = _with_groups(dataset, named, rows, tables)
    about = {"hub": {"repository": named.repository, "revision": revision}, **dataset.about}
    limit = None if train_samples == -1 else train_samples
    dataset = divide(dataclasses.replace(dataset, about=about), limit, validation_share, seed)
    return sample_test(dataset, test_samples, seed)


def find_named(name: str) -> NamedSet:
    """What a name stands for."""
    if name not in NAMED:
        raise ConfigError(
            f"no dataset is called {short(name)}; give one of {', '.join([*NAMED, *EMBEDDED])}, "
            "or set data.path to a file or folder of your own"
        )
    return NAMED[name]


def sample_test(dataset: Dataset, count: int, seed: int) -> Dataset:
    """The test rows sampled down to `count` in the proportions of their classes; -1 keeps all."""
    test = dataset.test
    if count == -1 or test is None or count >= len(test):
        return dataset
    test = test.take(sampling.sample(test.marks(), count, seed))
    return dataclasses.replace(dataset, test=test, about={**dataset.about, "test_limit": count})


def _fetch(name: str, named: NamedSet, revision: str, cache: str | Path | None) -> Splits:
    """All splits of the repository; where it has a loading script after all, its Parquet branch."""
    load = _loader(name)
    cache_dir = None if cache is None else str(cache)

    def fetch(subset: str | None, branch: str) -> Splits:
        found: Splits = load(named.repository, subset, revision=branch, cache_dir=cache_dir)
        return found

    try:
        try:
            return fetch(named.subset if revision != PARQUET else None, revision)
        except RuntimeError as problem:
            if "script" not in str(problem):
                raise
            return fetch(None, PARQUET)
    except Exception as problem:  # the hub's client raises what its transport raises
        reason = " ".join(str(problem).split())[:160] or type(problem).__name__
        raise DataError(
            f"{name}: the hub did not give {named.repository} at {revision} ({reason}); {_local_form(named)}"
        ) from problem


def _loader(name: str) -> Callable[..., Any]:
    try:
        from datasets import load_dataset
    except ImportError:
        raise DataError(
            f"{name}: named datasets need the package datasets; install lexical-sae[data], "
            f"or {_local_form(NAMED[name])}"
        ) from None
    loader: Callable[..., Any] = load_dataset
    return loader


def _local_form(named: NamedSet) -> str:
    """How the same rows are given without the hub."""
    if named.task == "tagging":
        return "set data.path to a folder with train.conll and test.conll instead"
    return "set data.path to a folder with train.tsv and test.tsv (columns text and label) instead"


def _rows_of(sources: Splits, named: NamedSet, split: str) -> list[Row]:
    """The rows of one split, which stand apart, or together with a column that names it."""
    try:
        if named.part:
            return [row for rows in sources.values() for row in rows if row[named.part] == split]
        return list(sources[split])
    except KeyError:
        found = ", ".join(map(str, sources))
        raise DataError(
            f"{named.repository}: has no split {split!r} (found {found}); name another data.revision"
        ) from None


def _table(named: NamedSet, split: str, rows: Sequence[Row]) -> Table:
    """The rows under the columns text and label."""
    place = Path(named.repository) / split
    label = _tags if named.task == "tagging" else _label
    cells: list[dict[str, object]] = []
    for number, row in enumerate(rows, 1):
        try:
            cells.append({"text": _text(named, row), "label": label(named, row[named.label])})
        except (KeyError, IndexError, TypeError, ValueError) as problem:
            columns = ", ".join(map(str, row))
            raise DataError(
                f"{place}, row {number}: is not of the expected form ({type(problem).__name__} {problem}; "
                f"columns {columns}); name another data.revision"
            ) from None
    return Table(place, "row", ["text", "label"], cells, list(range(1, len(cells) + 1)))


def _text(named: NamedSet, row: Row) -> object:
    cells = [row[column] for column in named.text]
    return cells[0] if len(cells) == 1 else "\n".join(str(cell) for cell in cells if cell is not None)


def _label(named: NamedSet, value: Any) -> str:
    if not named.names:
        return str(value)
    position = int(value >= _HALF) if named.scores else int(value)
    return _name(named, position)


def _tags(named: NamedSet, values: Iterable[Any]) -> list[str]:
    return [value if isinstance(value, str) else _name(named, int(value)) for value in values]


def _name(named: NamedSet, position: int) -> str:
    """The label at a position; a negative one, which marks hidden labels, is no position."""
    if position < 0:
        raise IndexError(position)
    return named.names[position]


def _with_groups(
    dataset: Dataset, named: NamedSet, rows: Mapping[str, Sequence[Row]], tables: Mapping[str, Table]
) -> Dataset:
    """The dataset with the groups of each row."""
    parts: dict[str, Texts] = {}
    for split, texts in dataset.splits().items():
        assert isinstance(texts, Texts)
        groups = [_groups(named, rows[split][i]) for i in _kept(tables[split], split)]
        assert len(groups) == len(texts)
        parts[split] = grouped(texts, groups)
    return dataclasses.replace(
        dataset,
        train=parts["train"],
        test=parts.get("test"),
        validation=parts.get("validation"),
        about={**dataset.about, "groups": list(named.identities)},
    )


def _kept(table: Table, split: str) -> Sequence[int]:
    """The rows of a table that a dataset has: training rows without text are left out."""
    rows = range(len(table.rows))
    if split != "train":
        return rows
    return [i for i in rows if text_value(table, i, "text", Counts()).strip()]


def _groups(named: NamedSet, row: Row) -> frozenset[str]:
    """The groups that half of the annotators or more saw mentioned; a score may be missing."""
    return frozenset(name for name in named.identities if (row.get(name) or 0.0) >= _HALF)
