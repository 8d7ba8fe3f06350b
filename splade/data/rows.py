"""The two shapes of data: labelled texts, and sentences whose words carry tags."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Task = Literal["classification", "tagging"]


@dataclass(frozen=True)
class Texts:
    """Documents and their label ids (`labels` is empty when the texts are unlabelled)."""

    texts: list[str]
    labels: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        assert not self.labels or len(self.labels) == len(self.texts)

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class Sentences:
    """Sentences as words, with one BIO tag a word (`tags` is empty when unlabelled)."""

    words: list[list[str]]
    tags: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        assert not self.tags or [len(w) for w in self.words] == [len(t) for t in self.tags]

    def __len__(self) -> int:
        return len(self.words)


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
