"""From texts to predictions and explanations, batch by batch; both come from one forward pass.

1. Inputs are read (`reading.py`); those of similar length run together, results keep the input's order.
2. The model decides every row: a text, or a word of a sentence. Tags are decoded sentence by sentence.
3. A row's contributions are grouped by concept word and by input word (`account.py`).

Legend: N rows, C classes, R rows of some whole sentences.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import torch

from splade.attribution.span_aggregation import Method as Merge
from splade.attribution.span_aggregation import aggregate_subword_attributions
from splade.circuits.decoding import decode
from splade.circuits.prediction import decided, probabilities
from splade.data.encoding import by_length, collate
from splade.data.tagging import OUTSIDE
from splade.errors import ConfigError, DataError
from splade.inference.account import Account
from splade.inference.explanation import Explanation, Place
from splade.inference.reading import Input, Reading, read_sentence, read_text, split_words
from splade.mechanistic.attribution import METHODS, Method, compute_attribution_tensor
from splade.mechanistic.removal import counterfactual
from splade.models.lexical_sae import LexicalSAE
from splade.models.state import CircuitState

_TOGETHER = 16  # batches of sentences decided before their tags are decoded


@dataclass(frozen=True)
class Prediction:
    """The most probable class of a text, or the tag of one word of a sentence."""

    label: str
    probability: float
    probabilities: dict[str, float]
    truncated: bool = False


@dataclass(frozen=True)
class MultiLabelPrediction(Prediction):
    """Every label of a text that is at least as probable as not, perhaps none; `label` is the most probable.

    Each probability is that of one label by itself.
    """

    labels: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Flip:
    """The smallest set of words found whose removal changes a prediction; no words if nothing does.

    `minimal` if every smaller set was tried; sets of up to `searched` words were.
    """

    words: list[str]
    before: str
    after: str
    minimal: bool
    searched: int


class Verdict(NamedTuple):
    """The prediction that an explanation stands under."""

    prediction: str
    probability: float
    probabilities: dict[str, float]
    explained: str


class Predictor:
    """Runs a model over any number of texts."""

    def __init__(self, model: LexicalSAE, batch_size: int = 32) -> None:
        if model.tokenizer is None:
            raise ConfigError("this model has no tokenizer: set model.tokenizer first")
        self.model, self.tokenizer, self.batch_size = model.eval(), model.tokenizer, batch_size
        self.names = model.config.label_names

    @classmethod
    def from_pretrained(cls, name: str | Path, revision: str = "main", batch_size: int = 32) -> Predictor:
        """A predictor over a saved model."""
        return cls(LexicalSAE.from_pretrained(name, revision), batch_size)

    def predict(self, texts: Sequence[Input]) -> list[Prediction]:
        """One prediction a text: `MultiLabelPrediction` where a text may have several labels."""
        self._require("classification", "predict_tags")
        readings = self._read(texts)
        found: dict[int, Prediction] = {}
        for chosen, state in self._decide(readings):
            for reading, probability_C in zip(chosen, self._probabilities(state), strict=True):
                found[reading.source] = self._prediction(probability_C, reading.truncated)
        return [found[i] for i in range(len(texts))]

    def predict_tags(self, sentences: Sequence[Input]) -> list[list[Prediction]]:
        """One prediction for every word of every sentence; a plain text is split into words first.

        The tags of a sentence are valid together; a word's may then not be its most probable one.
        """
        self._require("tagging", "predict")
        outside = self._prediction([float(name == OUTSIDE) for name in self.names])
        found = [[outside] * len(split_words(s, i)) for i, s in enumerate(sentences)]
        for parts, tags in self._tag(self._read(sentences)):
            for chosen, state in parts:
                rows = [(r.source, words) for r in chosen for words in r.rows or ()]
                for (source, words), probability_C in zip(rows, self._probabilities(state), strict=True):
                    for word in words:
                        found[source][word] = self._prediction(probability_C, label=tags[source][word])
        return found

    def explain(
        self, texts: Sequence[Input], method: Method = "dla", target: str | None = None
    ) -> list[Explanation]:
        """One explanation a text, of the predicted class or of `target`.

        A tagging model gives one for each word that it finds in an entity, or for every word with a `target`.
        Where a text may have several labels there is one for each that it has, perhaps none.
        """
        if method not in METHODS:
            raise ConfigError(f"no method '{method}': choose one of {', '.join(METHODS)}")
        label = None if target is None else self._label(target)
        found: list[list[Explanation]] = [[] for _ in texts]
        for chosen, state, decided_N in self._decisions(self._read(texts)):
            for source, explanation in self._explanations(chosen, state, decided_N, method, label):
                found[source].append(explanation)
        for explanations in found:
            explanations.sort(key=lambda e: e.row.start if e.row else 0)
        return [explanation for explanations in found for explanation in explanations]

    def counterfactual(self, text: Input, budget: int = 100_000) -> Flip:
        """The smallest set of concept words whose removal changes the prediction of a text."""
        self._require("classification", "explain")
        if self.model.config.multi_label:
            raise ConfigError("with several labels a text there is no one prediction to change: use explain")
        [(_, state)] = self._decide(self._read([text]))
        found = counterfactual(state, 0, budget)
        words = [self.model.lexicon.names[j] for j in found.words]
        return Flip(words, self.names[found.before], self.names[found.after], found.minimal, found.searched)

    def _read(self, texts: Sequence[Input]) -> list[Reading]:
        if isinstance(texts, str):
            raise DataError("give a list of texts, not one text: predict([text])")
        limit = self.model.config.max_length
        if self.model.config.task == "classification":
            return [read_text(i, text, self.tokenizer, limit) for i, text in enumerate(texts)]
        sentences = enumerate(split_words(text, i) for i, text in enumerate(texts))
        return [r for i, words in sentences for r in read_sentence(i, words, self.tokenizer, limit)]

    def _decide(self, readings: list[Reading]) -> Iterator[tuple[list[Reading], CircuitState]]:
        examples = [reading.example for reading in readings]
        pad_id, device = int(self.tokenizer.pad_token_id or 0), self.model.backbone.E_VH.device
        for indices in by_length([len(example.input_ids) for example in examples], self.batch_size):
            batch = collate(examples, indices, pad_id).to(device)
            with torch.no_grad():
                rows = self.model.encode(batch.input_ids, batch.attention_mask, batch.row_mask)
                state = self.model.decide(rows)
            yield [readings[i] for i in indices], state

    def _tag(
        self, readings: list[Reading]
    ) -> Iterator[tuple[list[tuple[list[Reading], CircuitState]], dict[int, list[int]]]]:
        """Decided batches of some whole sentences, and a tag for each word of these sentences."""
        for _, some in groupby(readings, lambda r: r.source // (self.batch_size * _TOGETHER)):
            parts = list(self._decide(list(some)))
            chosen = [reading for batch, _ in parts for reading in batch]
            logits_RC = torch.cat([state.logits for _, state in parts])
            lengths = {reading.source: len(reading.places) for reading in chosen}
            examples = [reading.example for reading in chosen]
            yield parts, decode(examples, logits_RC, lengths, self.names, self.model.config.decode)

    def _decisions(
        self, readings: list[Reading]
    ) -> Iterator[tuple[list[Reading], CircuitState, list[list[int]]]]:
        """Decided batches with the classes of every row; one that labels several words has the first's."""
        if self.model.config.task == "classification":
            for chosen, state in self._decide(readings):
                yield chosen, state, decided(state.logits, self.model.config.multi_label)
            return
        for parts, tags in self._tag(readings):
            for chosen, state in parts:
                yield chosen, state, [[tags[r.source][words[0]]] for r in chosen for words in r.rows or ()]

    @torch.no_grad()
    def _explanations(
        self,
        readings: list[Reading],
        state: CircuitState,
        decided_N: list[list[int]],
        method: Method,
        label: int | None,
    ) -> Iterator[tuple[int, Explanation]]:
        """Explanations of the k-th class of every row that has so many, for k = 0, 1, …"""
        rows = [(reading, place) for reading in readings for place in reading.row_places]
        wanted_N = decided_N if label is None else [[label]] * len(rows)
        probability_NC = self._probabilities(state)
        for k in range(max(map(len, wanted_N), default=0)):
            explained_N = [wanted[k] if k < len(wanted) else 0 for wanted in wanted_N]
            classes_N = torch.tensor(explained_N, device=state.logits.device)
            account = Account(compute_attribution_tensor(state, classes_N, method), self.model.lexicon.names)
            for n, (reading, place) in enumerate(rows):
                outside = place is not None and self.names[decided_N[n][0]] == OUTSIDE
                if k < len(wanted_N[n]) and not (outside and label is None):
                    prediction = self._verdict(probability_NC[n], decided_N[n], explained_N[n])
                    yield reading.source, _explanation(account, n, reading, place, prediction, method)

    def _verdict(self, probability_C: list[float], predicted: list[int], explained: int) -> Verdict:
        """What was predicted of the explained class: of several that may hold, that it does or does not."""
        by_name = dict(zip(self.names, probability_C, strict=True))
        name = self.names[explained]
        if not self.model.config.multi_label:
            best = self.names[predicted[0]]
            return Verdict(best, by_name[best], by_name, name)
        if explained in predicted:
            return Verdict(name, by_name[name], by_name, name)
        return Verdict(f"not {name}", 1 - by_name[name], by_name, name)

    def _probabilities(self, state: CircuitState) -> list[list[float]]:
        config = self.model.config
        values: list[list[float]] = probabilities(
            state.logits, config.multi_label, config.temperature
        ).tolist()
        return values

    def _prediction(
        self, probability_C: list[float], truncated: bool = False, label: int | None = None
    ) -> Prediction:
        best = max(range(len(self.names)), key=probability_C.__getitem__) if label is None else label
        by_name = dict(zip(self.names, probability_C, strict=True))
        values = self.names[best], probability_C[best], by_name, truncated
        if not self.model.config.multi_label:
            return Prediction(*values)
        return MultiLabelPrediction(*values, [name for name, p in by_name.items() if p >= 0.5])

    def _label(self, name: str) -> int:
        if name not in self.names:
            raise ConfigError(f"no class '{name}': choose one of {', '.join(self.names)}")
        return self.names.index(name)

    def _require(self, task: str, other: str) -> None:
        if self.model.config.task != task:
            raise ConfigError(f"this is a {self.model.config.task} model: use {other}")


def _explanation(
    account: Account, n: int, reading: Reading, place: Place | None, verdict: Verdict, method: Method
) -> Explanation:
    words, spans = account.row(n, reading)
    return Explanation(
        text=reading.text,
        truncated=reading.truncated,
        row=place,
        prediction=verdict.prediction,
        probability=verdict.probability,
        probabilities=verdict.probabilities,
        explained=verdict.explained,
        method=method,
        logit=account.logits[n],
        bias=account.biases[n],
        residual=account.residuals[n],
        active_words=len(words),
        words=words,
        spans=spans,
    )


def explain_model_spans(
    model: LexicalSAE, text: str, method: Merge = "sum", target: str | None = None
) -> list[tuple[str, float]]:
    """(input word, score) in reading order; with `sum` and the bias they add up to the explained logit."""
    predictor = Predictor(model)
    predictor._require("classification", "Predictor.explain")
    [([reading], state)] = predictor._decide(predictor._read([text]))
    with torch.no_grad():
        classes_N = state.logits.argmax(-1)
        if target is not None:
            classes_N = torch.full_like(classes_N, predictor._label(target))
        attribution = compute_attribution_tensor(state, classes_N)
    ids = reading.example.input_ids
    scores_L = attribution.amount.new_zeros(len(ids))
    scores_L.index_add_(0, state.rows.source_position_Q, attribution.by_read)
    return aggregate_subword_attributions(ids, scores_L, predictor.tokenizer, reading.text, method)
