"""What the other words still tell of a removed one: a linear probe on s, and the words nearest to it.

1. The concept is whether a text contains one of the words. A logistic regression on s, each word divided by
   its largest value, guesses it for texts it was not fitted on.
2. Its score is the area under the ROC curve: 0.5 is guessing, 1 knows. Resampled texts give the interval.
3. Named are the active words nearest in the pretrained decoder, and those that the probe leans on most.

Legend: N texts, V dimensions, A words active in some text, T resamplings, k target words, H hidden size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from splade.data.encoding import by_length, collate
from splade.errors import ConfigError
from splade.inference.reading import read_text
from splade.intervene.suppress import masked
from splade.models.lexical_sae import LexicalSAE
from splade.models.lexicon import normalise
from splade.models.state import SparseRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LEAST = 10  # texts on either side that a probe needs
_FOLDS, _RESAMPLES, _NAMED, _BATCH = 5, 1000, 8, 32


@dataclass(frozen=True)
class Probe:
    """Area under the ROC curve out of fold, its 95 % interval, and the weights of the words."""

    auc: float
    low: float
    high: float
    weights: dict[int, float]


@dataclass(frozen=True)
class Leakage:
    """The concept read from s with the words and without; `probe_words` and `nearest` are still active."""

    texts: int
    containing: int
    before: Probe
    after: Probe
    probe_words: list[tuple[str, float]]

    def to_dict(self) -> dict[str, Any]:
        """Plain values; probes without their weights."""
        probes = {
            name: {"auc": probe.auc, "interval": [probe.low, probe.high]}
            for name, probe in (("before", self.before), ("after", self.after))
        }
        return {
            "texts": self.texts,
            "containing": self.containing,
            **probes,
            "probe_words": [{"word": word, "weight": weight} for word, weight in self.probe_words],
        }


def leakage(model: LexicalSAE, ids: Sequence[int], texts: Sequence[str], seed: int = 0) -> Leakage | None:
    """How well s tells of the words `ids`, with and without them; None with too few texts on a side."""
    surfaces = sorted({normalise(model.lexicon.surfaces[j]) for j in ids})
    contains_N = contain(texts, surfaces)
    if min(contains_N.sum(), len(texts) - contains_N.sum()) < _LEAST:
        return None
    with masked(model, ids, keep=True):
        whole_NV = features(model, texts)
    if model.pooling.name == "max":  # no other word moves
        left_NV = _without(whole_NV, ids)
    else:
        with masked(model, ids, keep=False):
            left_NV = features(model, texts)
    before, after = (probe(s_NV, contains_N, seed) for s_NV in (whole_NV, left_NV))
    best = sorted(after.weights, key=lambda j: -after.weights[j])[:_NAMED]
    named = [(model.lexicon.names[j], after.weights[j]) for j in best if after.weights[j] > 0]
    return Leakage(len(texts), int(contains_N.sum()), before, after, named)


def contain(texts: Sequence[str], words: Sequence[str]) -> NDArray[np.bool_]:
    """Which texts [N] contain one of the words, whole and in any case."""
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, words))})(?!\w)")
    return np.array([bool(pattern.search(normalise(text))) for text in texts])


def probe(s_NV: Any, contains_N: NDArray[np.bool_], seed: int = 0) -> Probe:
    """A logistic regression of the concept on sparse activations (a SciPy matrix), cross-validated."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    active_A = np.flatnonzero(s_NV.getnnz(axis=0))
    if not len(active_A):
        return Probe(0.5, 0.5, 0.5, {})
    s_NA = s_NV[:, active_A].tocsc()
    s_NA = s_NA.multiply(1 / s_NA.max(axis=0).toarray()).tocsr()
    model = LogisticRegression(class_weight="balanced", max_iter=1000)
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    score_N = cross_val_predict(model, s_NA, contains_N, cv=folds, method="decision_function")
    low, high = _interval(score_N, contains_N, seed)
    weights = model.fit(s_NA, contains_N).coef_[0]
    by_word = dict(zip(active_A.tolist(), weights.tolist(), strict=True))
    return Probe(float(roc_auc_score(contains_N, score_N)), low, high, by_word)


def _interval(score_N: NDArray[np.float64], contains_N: NDArray[np.bool_], seed: int) -> tuple[float, float]:
    """95 % bootstrap interval of the area, texts resampled within each side."""
    from scipy.stats import rankdata

    rng = np.random.default_rng(seed)
    inside, outside = score_N[contains_N], score_N[~contains_N]
    n, m, areas = len(inside), len(outside), []
    for _ in range(_RESAMPLES):
        drawn = np.concatenate([rng.choice(inside, n), rng.choice(outside, m)])
        areas.append((rankdata(drawn)[:n].sum() - n * (n + 1) / 2) / (n * m))
    low, high = np.quantile(areas, [0.025, 0.975])
    return float(low), float(high)


def features(model: LexicalSAE, texts: Sequence[str]) -> Any:
    """s of every text as a SciPy matrix [N, V]."""
    from scipy.sparse import csr_matrix

    values, rows, words = [], [], []
    for indices, found in encoded(model, texts):
        rows += [indices[n] for n in found.row_P.tolist()]
        words += found.word_P.tolist()
        values += found.value_P.tolist()
    return csr_matrix((values, (rows, words)), shape=(len(texts), model.lexicon.vocab_size))


def _without(s_NV: Any, ids: Sequence[int]) -> Any:
    """A SciPy matrix whose columns `ids` are empty."""
    from scipy.sparse import diags

    kept_V = np.ones(s_NV.shape[1])
    kept_V[list(ids)] = 0
    left_NV = (s_NV @ diags(kept_V)).tocsr()
    left_NV.eliminate_zeros()
    return left_NV


@torch.no_grad()
def encoded(model: LexicalSAE, texts: Sequence[str]) -> Iterator[tuple[list[int], SparseRows]]:
    """Indices of some texts and their sparse rows, until all were read."""
    tokenizer = model.tokenizer
    if tokenizer is None:
        raise ConfigError("this model has no tokenizer: set model.tokenizer first")
    examples = [
        read_text(i, text, tokenizer, model.config.max_length).example for i, text in enumerate(texts)
    ]
    model.eval()
    for indices in by_length([len(example.input_ids) for example in examples], _BATCH):
        batch = collate(examples, indices, int(tokenizer.pad_token_id or 0)).to(model.backbone.E_VH.device)
        yield indices, model.encode(batch.input_ids, batch.attention_mask)


@torch.no_grad()
def nearness(model: LexicalSAE, ids: Sequence[int], E_WH: Tensor | None = None) -> Tensor:
    """Largest cosine [V] of each word's decoder row with those of `ids`; `E_WH` is the model's by default."""
    rows_WH = F.normalize((model.backbone.E_VH if E_WH is None else E_WH).detach().float(), dim=-1)
    word_V = model.lexicon.word_V.to(rows_WH.device)
    cosine_W = (rows_WH @ rows_WH[word_V[list(ids)]].T).amax(-1)
    return cosine_W[word_V]


def nearest(
    model: LexicalSAE, ids: Sequence[int], E_WH: Tensor | None = None, most: int = _NAMED
) -> list[tuple[str, float]]:
    """The words nearest to `ids` that can still be active, and the cosine of each."""
    lexicon = model.lexicon
    cosine_V = nearness(model, ids, E_WH).cpu()
    open_V = (lexicon.dictionary_V & lexicon.keep_V).cpu()
    open_V[list(ids)] = False
    best = cosine_V.masked_fill(~open_V, -2.0).topk(min(most, int(open_V.sum())))
    return [(lexicon.names[j], float(c)) for j, c in zip(best.indices, best.values, strict=True)]
