"""What a bag of words reaches on a dataset: the score below which a model has learnt no context.

1. Texts: tf-idf of single words, then logistic regression.
2. Sentences: each word, two before, two after, and their shapes, then logistic regression word by word.
3. The penalty is chosen on the validation rows; the test rows are read once, for the score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from splade.circuits.metrics import accuracy, entity_scores
from splade.data.rows import Dataset, Sentences, Texts
from splade.errors import DataError

TEXT_PENALTIES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)  # scikit-learn's C: larger is freer
TAG_PENALTIES = (1.0, 3.0, 10.0)
_HELD_OUT = 5  # without validation rows, every fifth training row is held out
_EDGE = "<edge>"
_Score = Callable[[Texts | Sentences], float]


@dataclass(frozen=True)
class Reference:
    """A reference model's score on the test rows, between 0 and 1."""

    score: float
    metric: str
    model: str


def bag_of_words(dataset: Dataset) -> Reference:
    """Fitted on train, its penalty chosen on validation, scored on test."""
    if dataset.multi_label:
        raise DataError("the bag-of-words reference is for one label a text; leave out --reference")
    train, validation, test = _three(dataset)
    if isinstance(train, Sentences):
        metric, model, fits = "entity F1", "each word, its neighbours and its shape", _taggers(train)
    else:
        metric, model, fits = "accuracy", "tf-idf of single words", _classifiers(train)
    _, best = max(((fit(validation), fit) for fit in fits), key=lambda scored: scored[0])
    return Reference(float(best(test)), metric, f"logistic regression over {model}")


def _three(dataset: Dataset) -> tuple[Texts | Sentences, Texts | Sentences, Texts | Sentences]:
    """Train, validation (held out of train where there is none) and test."""
    train, validation, test = dataset.train, dataset.validation, dataset.test
    if test is None or not test.marks() or not train.marks():
        raise DataError("a reference needs labelled training and test rows; this dataset lacks one of them")
    if validation is None or not validation.marks():
        rows = range(len(train))
        validation = train.take(rows[::_HELD_OUT])
        train = train.take([i for i in rows if i % _HELD_OUT])
    return train, validation, test


def _classifiers(train: Texts) -> Iterable[_Score]:
    """How each fitted classifier scores rows, one for each penalty."""
    words = TfidfVectorizer(token_pattern=r"(?u)\b\w+\b", sublinear_tf=True)
    features = words.fit_transform(train.texts)
    for penalty in TEXT_PENALTIES:
        model = LogisticRegression(C=penalty, max_iter=1000).fit(features, train.labels)

        def score(rows: Texts | Sentences, model: Any = model) -> float:
            assert isinstance(rows, Texts)
            return accuracy(list(model.predict(words.transform(rows.texts))), rows.labels)

        yield score


def _taggers(train: Sentences) -> Iterable[_Score]:
    """How each fitted tagger scores rows, one for each penalty."""
    words = DictVectorizer()
    features = words.fit_transform(_all_traits(train))
    tags = [tag for sentence in train.tags for tag in sentence]
    for penalty in TAG_PENALTIES:
        model = LogisticRegression(C=penalty, max_iter=500).fit(features, tags)

        def score(rows: Texts | Sentences, model: Any = model) -> float:
            assert isinstance(rows, Sentences)
            predicted = iter(model.predict(words.transform(_all_traits(rows))))
            found = [[str(next(predicted)) for _ in sentence] for sentence in rows.words]
            return entity_scores(found, rows.tags)["micro"].f1

        yield score


def _all_traits(rows: Sentences) -> list[dict[str, str]]:
    return [_traits(sentence, i) for sentence in rows.words for i in range(len(sentence))]


def _traits(words: Sequence[str], position: int) -> dict[str, str]:
    """What the tagger is told of one word."""
    padded = [_EDGE, _EDGE, *words, _EDGE, _EDGE]
    window = padded[position : position + 5]
    traits = {f"word {i - 2:+d}": word.lower() for i, word in enumerate(window)}
    shapes = {f"shape {i - 2:+d}": _shape(word) for i, word in enumerate(window)}
    return {**traits, **shapes, "end": words[position][-3:].lower()}


def _shape(word: str) -> str:
    """Capital, lower case, number, edge or mark."""
    if word == _EDGE:
        return "edge"
    first = word[:1]
    return (
        "digit" if first.isdigit() else "upper" if first.isupper() else "lower" if first.isalpha() else "mark"
    )
