"""The two shapes of data: labelled texts, and sentences whose words carry tags.

Both answer the same three questions: which rows (`take`), which classes a row carries (`marks`), and
what two rows share if they are one text (`keys`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from splade.data.tagging import OUTSIDE, parse_tag

Task = Literal["classification", "tagging"]


@dataclass(frozen=True)
class Texts:
    """Documents and their label ids: one each in `labels`, any number of them in `label_sets`.

    One of the two is filled, neither when the texts are unlabelled.
    """

    texts: list[str]
    labels: list[int] = field(default_factory=list)
    label_sets: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        assert not (self.labels and self.label_sets)
        assert len(self.labels or self.label_sets or self.texts) == len(self.texts)

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, positions: Sequence[int]) -> Texts:
        """The rows at these positions, in this order."""
        return Texts(
            [self.texts[i] for i in positions],
            [self.labels[i] for i in positions if self.labels],
            [self.label_sets[i] for i in positions if self.label_sets],
        )

    def label_ids(self) -> list[list[int]]:
        """The labels of each text, whether one or several."""
        return self.label_sets or [[label] for label in self.labels]

    def marks(self) -> list[frozenset[str]]:
        """The classes of each text."""
        return [frozenset(map(str, ids)) for ids in self.label_ids()]

    def keys(self) -> list[str]:
        """Each text whatever its spacing and case."""
        return [" ".join(text.split()).casefold() for text in self.texts]


@dataclass(frozen=True)
class Sentences:
    """Sentences as words, with one BIO tag a word (`tags` is empty when unlabelled)."""

    words: list[list[str]]
    tags: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        assert not self.tags or [len(w) for w in self.words] == [len(t) for t in self.tags]

    def __len__(self) -> int:
        return len(self.words)

    def take(self, positions: Sequence[int]) -> Sentences:
        """The rows at these positions, in this order."""
        return Sentences([self.words[i] for i in positions], [self.tags[i] for i in positions if self.tags])

    def marks(self) -> list[frozenset[str]]:
        """The entity types of each sentence; O where there are none."""
        kinds = (frozenset(parse_tag(tag)[1] for tag in tags) - {""} for tags in self.tags)
        return [found or frozenset([OUTSIDE]) for found in kinds]

    def keys(self) -> list[str]:
        """Each sentence whatever the case of its words."""
        return [" ".join(words).casefold() for words in self.words]


@dataclass(frozen=True)
class Dataset:
    """Train, validation and test rows of one task; `label_names[i]` is the name of label i."""

    name: str
    task: Task
    label_names: list[str]
    train: Texts | Sentences
    test: Texts | Sentences | None = None
    validation: Texts | Sentences | None = None
    about: dict[str, object] = field(default_factory=dict)

    @property
    def multi_label(self) -> bool:
        """Whether a text has any number of labels rather than one."""
        return isinstance(self.train, Texts) and bool(self.train.label_sets)

    def splits(self) -> dict[str, Texts | Sentences]:
        """The splits that are there, by name."""
        named = {"train": self.train, "validation": self.validation, "test": self.test}
        return {name: rows for name, rows in named.items() if rows is not None}
