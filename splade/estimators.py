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
from sklearn.preprocessing import MultiLabelBinarizer
from sklearn.utils.validation import check_is_fitted

from splade.circuits.metrics import entity_scores
from splade.config.load import load_config
from splade.data.datasets import divide
from splade.data.rows import Dataset, Sentences, Texts
from splade.data.tagging import OUTSIDE, parse_tag, to_bio
from splade.errors import ConfigError, DataError
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
        if config.recipe == "dense":
            raise ConfigError("a dense model has no words to explain a prediction by: choose another recipe")
        dataset = divide(dataset, None, self.validation_share, self.seed)
        model, history = fit(config, dataset, Progress(Console(stderr=True) if self.verbose else None))
        assert isinstance(model, LexicalSAE)
        self.history_ = history
        self._adopt(model)

    def _adopt(self, model: LexicalSAE) -> None:
        self.model_ = model
        self.classes_ = np.array(model.config.label_names)

    def _predictor(self) -> Predictor:
        check_is_fitted(self, "model_")
        return Predictor(self.model_, self.batch_size)


class LexicalClassifier(ClassifierMixin, _Lexical):  # type: ignore[misc]
    """A text classifier whose every prediction is an exact sum of named words; X is a list of texts.

    Texts may have several labels: y is then a matrix of zeros and ones, or a list of labels for each text.
    """

    def fit(self, X: Sequence[str], y: Sequence[Any] | NDArray[Any]) -> LexicalClassifier:
        """Learn from texts and their labels, strings or numbers."""
        texts, (classes, ids) = list(X), _classes(y)
        if len(texts) != len(ids):
            raise DataError(f"{len(texts)} texts but {len(ids)} labels: give one label a text")
        if len(classes) < 2:
            raise DataError("training needs two classes and has one: add texts of another")
        names = [str(name) for name in classes.tolist()]
        several = ids.ndim == 2
        sets = [np.flatnonzero(row).tolist() for row in ids] if several else []
        rows = Texts(texts, [] if several else ids.tolist(), sets)
        self._learn(Dataset("texts", "classification", names, rows))
        self.classes_ = classes
        return self

    def predict(self, X: Sequence[str]) -> NDArray[Any]:
        """The most probable class of each text, or zeros and ones [n, C] where texts have several labels."""
        probabilities = self.predict_proba(X)
        if self.model_.config.multi_label:
            return (probabilities >= 0.5).astype(int)
        best: NDArray[Any] = self.classes_[probabilities.argmax(1)]
        return best

    def predict_proba(self, X: Sequence[str]) -> NDArray[np.float64]:
        """Probabilities [n, C], columns in the order of `classes_`."""
        found = self._predictor().predict(list(X))
        names = self.model_.config.label_names
        return np.array([[p.probabilities[name] for name in names] for p in found]).reshape(-1, len(names))

    def score(
        self, X: Sequence[str], y: Sequence[Any] | NDArray[Any], sample_weight: Sequence[float] | None = None
    ) -> float:
        """Accuracy; of whole sets of labels where texts have several."""
        if self._predictor().model.config.multi_label:
            y = _classes(y, self.classes_)[1]
        return float(super().score(X, y, sample_weight))

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


def _classes(
    y: Sequence[Any] | NDArray[Any], known: NDArray[Any] | None = None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The classes, and the id of each text's label or zeros and ones [n, C] for its several labels."""
    if len(y) and all(isinstance(labels, list | tuple | set | frozenset) for labels in y):
        lengths = {len(labels) for labels in y}
        if len(lengths) > 1 or not {*(label for labels in y for label in labels)} <= {0, 1}:
            binarizer = MultiLabelBinarizer(classes=known).fit(y)
            return binarizer.classes_, binarizer.transform(y)
    matrix = np.asarray(y)
    if matrix.ndim == 2:
        return np.arange(matrix.shape[1]), matrix.astype(int)
    classes, ids = np.unique(matrix, return_inverse=True)
    return classes, ids
