"""The embedded corpora by name; a corpus is imported, and generated, when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from splade.data.rows import Dataset
from splade.errors import ConfigError


def _reviews(seed: int = 0) -> Dataset:
    dataset: Dataset = import_module("splade.data.corpora.reviews").reviews(seed)
    return dataset


def _topics(seed: int = 0) -> Dataset:
    dataset: Dataset = import_module("splade.data.corpora.topics").topics(seed)
    return dataset


def _tagging(seed: int = 0) -> Dataset:
    dataset: Dataset = import_module("splade.data.corpora.entities").tagging(seed)
    return dataset


CORPORA: dict[str, Callable[[int], Dataset]] = {"reviews": _reviews, "topics": _topics, "tagging": _tagging}


def load_corpus(name: str, seed: int = 0) -> Dataset:
    """The corpus of that name; the same seed gives the same rows."""
    if name not in CORPORA:
        raise ConfigError(f"no embedded corpus is called {name!r}; give one of {', '.join(CORPORA)}")
    return CORPORA[name](seed)
