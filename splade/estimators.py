"""scikit-learn faces of the model: `fit`, `predict`, `predict_proba`, `score`, and clones for pipelines.

classifier = LexicalClassifier(epochs=4).fit(texts, labels)
classifier.predict(["It's slow -- very, very slow."])
print(classifier.explain(["It's slow -- very, very slow."])[0])
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from splade.circuits.metrics import entity_scores
from splade.config.load import load_config
from splade.data.datasets import divide
from splade.data.rows import Dataset, Sentences, Texts
from splade.data.tagging import OUTSIDE, parse_tag, to_bio
from splade.errors import DataError
from splade.inference import Explanation, Flip, Predictor
from splade.inference.reading import Input
from splade.mechanistic.attribution import Method
from splade.models.lexical_sae import LexicalSAE
from splade.training.fit import fit
from splade.training.progress import Progress

Honesty = Literal["grounded", "free", "licensed-static", "licensed-contextual"]
Self = TypeVar("Self", bound="_Lexical")


class _Lexical(BaseEstimator):  # type: ignore[misc]
    """What classifier and tagger share; constructor arguments are settings, untouched until `fit`."""

    def __init__(
        self,
        model: str = "minilm-l6-mlm",
        honesty: Honesty = "grounded",
        target_active: int = 100,
        epochs: int = 8,
        batch_size: int = 32,
        validation_share: float = 0.1,
        seed: int = 0,
        verbose: bool = False,
        settings: dict[str, Any] | None = None,
    ) -> None:
        """`settings` holds any other setting by dotted key, such as {"training.learning_rate": 1e-4}."""
        self.model = model
        self.honesty = honesty
        self.target_active = target_active
        self.epochs = epochs
        self.batch_size = batch_size
        self.validation_share = validation_share
        self.seed = seed
        self.verbose = verbose
        self.settings = settings

    def explain(
        self, X: Sequence[Input], method: Method = "dla", target: str | None = None
    ) -> list[Explanation]:
        """Why each prediction was made (`Predictor.explain`)."""
        return self._predictor().explain(X, method, target)

    def save_pretrained(self, folder: str | Path) -> None:
        """Save the fitted model; `from_pretrained` and the command line read it."""
        self._predictor().model.save_pretrained(folder)

    @classmethod
    def from_pretrained(cls: type[Self], name: str | Path, revision: str = "main") -> Self:
        """A fitted estimator around a saved model."""
        estimator = cls()
        estimator._adopt(LexicalSAE.from_pretrained(name, revision))
        return estimator

    def _learn(self, dataset: Dataset) -> None:
        config = load_config(
            overrides={
                "seed": self.seed,
                "honesty": self.honesty,
                "target_active": self.target_active,
                "model.name": self.model,
                "training.epochs": self.epochs,
                "training.batch_size": self.batch_size,
                **(self.settings or {}),
            }
        )
        dataset = divide(dataset, None, self.validation_share, self.seed)
        model, history = fit(config, dataset, Progress(Console(stderr=True) if self.verbose else None))
        self.history_ = history
        self._adopt(model)

    def _adopt(self, model: LexicalSAE) -> None:
        self.model_ = model
        self.classes_ = np.array(model.config.label_names)

    def _predictor(self) -> Predictor:
        check_is_fitted(self, "model_")
        return Predictor(self.model_, self.batch_size)


class LexicalClassifier(ClassifierMixin, _Lexical):  # type: ignore[misc]
    """A text classifier whose every prediction is an exact sum of named words; X is a list of texts."""

    def fit(self, X: Sequence[str], y: Sequence[Any] | NDArray[Any]) -> LexicalClassifier:
        """Learn from texts and their labels, strings or numbers."""
        texts, labels = list(X), np.asarray(y)
        if len(texts) != len(labels):
            raise DataError(f"{len(texts)} texts but {len(labels)} labels: give one label a text")
        classes, ids = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise DataError("training needs two classes and has one: add texts of another")
        names = [str(name) for name in classes.tolist()]
        self._learn(Dataset("texts", "classification", names, Texts(texts, ids.tolist())))
        self.classes_ = classes
        return self

    def predict(self, X: Sequence[str]) -> NDArray[Any]:
        """The most probable class of each text."""
        probabilities = self.predict_proba(X)
        best: NDArray[Any] = self.classes_[probabilities.argmax(1)]
        return best

    def predict_proba(self, X: Sequence[str]) -> NDArray[np.float64]:
        """Probabilities [n, C], columns in the order of `classes_`."""
        found = self._predictor().predict(list(X))
        names = self.model_.config.label_names
        return np.array([[p.probabilities[name] for name in names] for p in found]).reshape(-1, len(names))

    def counterfactual(self, text: str) -> Flip:
        """The smallest set of words whose removal changes the prediction."""
        return self._predictor().counterfactual(text)


class LexicalTagger(_Lexical):
    """A sequence tagger; X is a list of sentences as words, y their tags in BIO, IOB1 or BIOES."""

    def fit(self, X: Sequence[Sequence[str]], y: Sequence[Sequence[str]]) -> LexicalTagger:
        """Learn from sentences whose every word has a tag."""
        words, tags = [list(sentence) for sentence in X], [to_bio(row) for row in y]
        if [len(sentence) for sentence in words] != [len(row) for row in tags]:
            raise DataError("every word needs one tag: the lengths of X and y differ")
        kinds = sorted({parse_tag(tag)[1] for row in tags for tag in row} - {""})
        if not kinds:
            raise DataError("no sentence has an entity: add tagged sentences")
        names = [OUTSIDE, *(f"{prefix}-{kind}" for kind in kinds for prefix in "BI")]
        self._learn(Dataset("sentences", "tagging", names, Sentences(words, tags)))
        return self

    def predict(self, X: Sequence[Input]) -> list[list[str]]:
        """One tag for every word of every sentence."""
        return [[p.label for p in row] for row in self._predictor().predict_tags(X)]

    def score(self, X: Sequence[Sequence[str]], y: Sequence[Sequence[str]]) -> float:
        """Micro F1 of entities."""
        return entity_scores(self.predict(X), [to_bio(row) for row in y])["micro"].f1
