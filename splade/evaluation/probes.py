"""How much single words know of a class: sparse probing, absorption, probe loss, as SAEs are measured.

Each class is a yes-or-no question about a text. Everything is chosen and fitted on training rows, and
measured on test rows.

1. Sparse probing (Gurnee et al. 2023, "Finding neurons in a haystack"; SAEBench). Words are ranked by the
   gap between their means inside the class and outside. A logistic regression reads the k best of them;
   beside it one reads all words, and one the mean of h, what the decoder sees. Both sides count alike in
   accuracy: 0.5 is guessing.
2. Probe loss (Gao et al. 2024, "Scaling and evaluating sparse autoencoders"). The best logistic regression
   on one word, by its loss in training: its cross-entropy, beside that of always saying how frequent the
   class is.
3. Absorption (after Chanin et al. 2024, "A is for absorption"). The class's own word is the one most
   raised in it. Of the class's texts that the probe of all words recognises, those where the own word is
   silent are `silent`. Absorbed are those of them in which one other word carries more than half of all
   that pushes the probe towards the class. (Published for first letters of words, against a direction in
   h; here the direction is the probe's, over words, whose names say what took over. Texts in which many
   words share the push are no absorption.)

Every word is divided by its largest training value. Classes without texts on both sides, in train or test,
are left out.

Legend: N rows, V dimensions, H hidden size, C classes, k words of a probe.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from splade.data.encoding import by_length
from splade.data.rows import Texts
from splade.errors import ConfigError, DataError
from splade.inference.rows import EncodedRows
from splade.intervene.leakage import features
from splade.models.lexical_sae import LexicalSAE

KS = (1, 2, 5, 20)
_CANDIDATES = 20  # words that may be the best single one
_NAMED = 5

Floats = NDArray[np.float64]


class Read(NamedTuple):
    """Rows as a probe reads them: sparse words (a SciPy matrix [N, V]), dense [N, H], and classes [N, C]."""

    s_NV: Any
    h_NH: Floats
    is_NC: NDArray[np.bool_]


@dataclass(frozen=True)
class Absorption:
    """Of `recognised` test texts of a class: shares where `word` is silent, and where another took over."""

    word: str
    recognised: int
    silent: float
    absorbed: float
    absorbers: dict[str, int]


@dataclass(frozen=True)
class ClassProbes:
    """The probes of one class; `accuracy` and `words` by number of words."""

    label: str
    accuracy: dict[int, float]
    words: dict[int, list[str]]
    accuracy_all: float
    accuracy_dense: float
    probe_loss: float
    guess_loss: float
    probe_word: str
    absorption: Absorption


@dataclass(frozen=True)
class Probes:
    """Means over classes, and each class."""

    train: int
    test: int
    accuracy: dict[int, float]
    accuracy_all: float
    accuracy_dense: float
    probe_loss: float
    guess_loss: float
    silent: float
    absorbed: float
    classes: list[ClassProbes]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def probes(
    model: LexicalSAE,
    train: Texts,
    test: Texts,
    ks: Sequence[int] = KS,
    advance: Callable[[str], None] = lambda _: None,
) -> Probes:
    """Probes of every class, fitted on `train` and measured on `test`; `advance` hears of each class."""
    if model.config.task != "classification":
        raise ConfigError("probes ask for the class of a text: give a classification model")
    names = model.config.label_names
    read = [_read(model, rows, len(names)) for rows in (train, test)]
    return probe_classes(read[0], read[1], names, model.lexicon.names, ks, advance)


def probe_classes(
    train: Read,
    test: Read,
    labels: Sequence[str],
    words: Sequence[str],
    ks: Sequence[int] = KS,
    advance: Callable[[str], None] = lambda _: None,
) -> Probes:
    """The same from features; `words` name the dimensions."""
    train, test = _scaled(train, test)
    found = []
    for c, label in enumerate(labels):
        if all(0 < is_N.sum() < len(is_N) for is_N in (train.is_NC[:, c], test.is_NC[:, c])):
            found.append(_probe(train, test, c, label, words, sorted(ks)))
        advance(label)
    if not found:
        raise DataError("no class has texts on both sides in train and test: give more rows")
    return Probes(
        train=len(train.is_NC),
        test=len(test.is_NC),
        accuracy={k: float(np.mean([p.accuracy[k] for p in found])) for k in sorted(ks)},
        classes=found,
        **{name: float(np.mean([getattr(p, name) for p in found])) for name in _MEANS},
        **{name: float(np.mean([getattr(p.absorption, name) for p in found])) for name in _SHARES},
    )


_MEANS = ("accuracy_all", "accuracy_dense", "probe_loss", "guess_loss")
_SHARES = ("silent", "absorbed")


# --- features --------------------------------------------------------------------------------------------


def _read(model: LexicalSAE, rows: Texts, classes: int) -> Read:
    is_NC = np.zeros((len(rows), classes), dtype=bool)
    for n, ids in enumerate(rows.label_ids()):
        is_NC[n, ids] = True
    return Read(features(model, rows.texts), dense_features(model, rows), is_NC)


@torch.no_grad()
def dense_features(model: LexicalSAE, rows: Texts, batch_size: int = 32) -> Floats:
    """The mean [N, H] over each text's tokens of what enters the decoder."""
    encoded = EncodedRows(rows, model)
    h_NH = np.zeros((len(rows), model.backbone.E_VH.shape[1]))
    model.eval()
    for indices in by_length(encoded.lengths, batch_size):
        batch = encoded.batch(indices)
        h_BLH = model.backbone(batch.input_ids, batch.attention_mask).float()
        seen_BL1 = batch.attention_mask[..., None].float()
        h_NH[indices] = ((h_BLH * seen_BL1).sum(1) / seen_BL1.sum(1)).cpu().numpy()
    return h_NH


def _scaled(train: Read, test: Read) -> tuple[Read, Read]:
    """Words by their largest training value (0 where there is none), h by its training mean and spread."""
    from scipy.sparse import diags

    largest_V = train.s_NV.max(axis=0).toarray()[0]
    by = diags(np.divide(1.0, largest_V, out=np.zeros(len(largest_V)), where=largest_V > 0))
    mean_H, spread_H = train.h_NH.mean(0), train.h_NH.std(0) + 1e-9
    scaled = [
        Read((read.s_NV @ by).tocsr(), (read.h_NH - mean_H) / spread_H, read.is_NC) for read in (train, test)
    ]
    return scaled[0], scaled[1]


# --- one class -------------------------------------------------------------------------------------------


def _probe(
    train: Read, test: Read, c: int, label: str, words: Sequence[str], ks: Sequence[int]
) -> ClassProbes:
    is_N, test_N = train.is_NC[:, c], test.is_NC[:, c]
    gap_V = mean_gap(train.s_NV, is_N)
    order_V = np.argsort(-np.abs(gap_V), kind="stable")
    best = {k: order_V[:k] for k in ks}
    whole = _fit(train.s_NV, is_N)
    loss, word = probe_loss(train.s_NV, is_N, test.s_NV, test_N, order_V[:_CANDIDATES])
    return ClassProbes(
        label=label,
        accuracy={
            k: _accuracy(_fit(train.s_NV[:, j], is_N), test.s_NV[:, j], test_N) for k, j in best.items()
        },
        words={k: [words[j] for j in chosen] for k, chosen in best.items()},
        accuracy_all=_accuracy(whole, test.s_NV, test_N),
        accuracy_dense=_accuracy(_fit(train.h_NH, is_N), test.h_NH, test_N),
        probe_loss=loss,
        guess_loss=_cross_entropy(np.full(len(test_N), is_N.mean()), test_N),
        probe_word=words[word],
        absorption=absorption(whole, test, c, int(gap_V.argmax()), words),
    )


def mean_gap(s_NV: Any, is_N: NDArray[np.bool_]) -> Floats:
    """How much larger the mean [V] of each word is inside the class than outside."""
    gap_V: Floats = np.ravel(s_NV[is_N].mean(axis=0)) - np.ravel(s_NV[~is_N].mean(axis=0))
    return gap_V


def probe_loss(
    train_NV: Any,
    is_N: NDArray[np.bool_],
    test_NV: Any,
    test_N: NDArray[np.bool_],
    candidates: NDArray[np.int64],
) -> tuple[float, int]:
    """The test loss of the candidate word whose own probe has the least loss in training, and the word."""
    fitted = {}
    for j in candidates.tolist():
        fit = _fit(train_NV[:, [j]], is_N, balanced=False)
        fitted[j] = _cross_entropy(fit.predict_proba(train_NV[:, [j]])[:, 1], is_N), fit
    word = min(fitted, key=lambda j: fitted[j][0])
    return _cross_entropy(fitted[word][1].predict_proba(test_NV[:, [word]])[:, 1], test_N), word


def absorption(probe: Any, test: Read, c: int, own: int, words: Sequence[str]) -> Absorption:
    """How often the class's own word is silent though the probe of all words knows it, and who took over."""
    mine_NV = test.s_NV[test.is_NC[:, c]]
    mine_NV = mine_NV[probe.decision_function(mine_NV) > 0]
    silent_NV = mine_NV[mine_NV[:, own].toarray()[:, 0] == 0]
    push_NV = silent_NV.multiply(np.clip(probe.coef_[0], 0, None)[None]).tocsr()
    took_over = [
        words[push_1V.indices[push_1V.data.argmax()]]
        for push_1V in push_NV
        if push_1V.nnz and push_1V.data.max() > push_1V.data.sum() / 2
    ]
    recognised = mine_NV.shape[0]
    return Absorption(
        word=words[own],
        recognised=recognised,
        silent=silent_NV.shape[0] / max(recognised, 1),
        absorbed=len(took_over) / max(recognised, 1),
        absorbers=dict(Counter(took_over).most_common(_NAMED)),
    )


def _fit(x_NF: Any, is_N: NDArray[np.bool_], balanced: bool = True) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(class_weight="balanced" if balanced else None, max_iter=1000).fit(x_NF, is_N)


def _accuracy(probe: Any, x_NF: Any, is_N: NDArray[np.bool_]) -> float:
    """Both sides count alike."""
    right_N = probe.predict(x_NF) == is_N
    return float((right_N[is_N].mean() + right_N[~is_N].mean()) / 2)


def _cross_entropy(p_N: Floats, is_N: NDArray[np.bool_]) -> float:
    return float(-np.log(np.clip(np.where(is_N, p_N, 1 - p_N), 1e-12, 1)).mean())
