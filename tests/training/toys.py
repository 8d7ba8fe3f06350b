"""Small learnable datasets, and settings under which a tiny model learns them in a second."""

from __future__ import annotations

from splade.config.schema import ExperimentConfig
from splade.data.rows import Dataset, Sentences, Texts

GOOD = ("charming", "clever", "lovely", "helpful", "quick")
BAD = ("slow", "tedious", "broken", "late", "wet")
FRAMES = ("the film was {}", "a {} hotel in Paris", "{} readers liked the story", "the {} screen")


def texts() -> Dataset:
    """Five good and five bad words in four frames."""
    sides = [(word, label) for label, side in enumerate((BAD, GOOD)) for word in side]
    rows = [(frame.format(word), label) for frame in FRAMES for word, label in sides]
    train = Texts([text for text, _ in rows], [label for _, label in rows])
    return Dataset("toy", "classification", ["class a", "class b"], train, validation=train)


def sentences() -> Dataset:
    """One city in every sentence."""
    words = [["readers", "visited", city, "in", "March"] for city in ("Paris", "Berlin", "London")] * 8
    rows = Sentences(words, [["O", "O", "B-PER", "O", "O"]] * len(words))
    return Dataset("toy", "tagging", ["O", "B-PER", "I-PER"], rows, validation=rows)


def settings(epochs: int = 6, recipe: str = "default", **changes: object) -> ExperimentConfig:
    """Settings for these; `changes` are keys of the config."""
    training = {"epochs": epochs, "batch_size": 8, "learning_rate": 1e-3, "patience": epochs}
    return ExperimentConfig.model_validate(
        {"recipe": recipe, "target_active": 12, "training": training, **changes}
    )
