"""Scoring a split in padded batches gives what reading its texts one by one gives."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from splade.circuits.metrics import entity_scores
from splade.data.encoding import Example
from splade.data.rows import Sentences, Texts
from splade.inference.rows import EncodedRows, decide, document_of_row
from splade.models.frozen import FrozenLM
from splade.models.lexical_sae import LexicalSAE
from splade.training.validation import Validation, validate
from tests.tiny import SENTENCES, tiny_model

TEXTS = [*SENTENCES, "slow", "", "😀", "the film was slow and the hotel was lovely " * 20]


def rows_for(model: LexicalSAE) -> Texts | Sentences:
    names = model.config.label_names
    if model.config.task == "classification":
        return Texts(TEXTS, [i % len(names) for i in range(len(TEXTS))])
    words = [text.split() for text in TEXTS]
    return Sentences(
        words, [[names[(i + k) % len(names)] for k in range(len(w))] for i, w in enumerate(words)]
    )


def reads(model: LexicalSAE, example: Example) -> list[int]:
    """The positions that count: those labelled, or all that are no special token."""
    special = set(model.tokenizer.all_special_ids)
    everywhere = [at for at, piece in enumerate(example.input_ids) if piece not in special]
    return everywhere if example.positions is None else example.positions


def one_by_one(model: LexicalSAE, frozen: FrozenLM | None, rows: EncodedRows) -> Validation:
    """The definition, on dense tensors, an example at a time and a word at a time."""
    found: list[list[int]] = []
    active: list[int] = []
    outside: list[float] = []
    for example in rows.examples:
        ids, mask = torch.tensor([example.input_ids]), torch.ones(1, len(example.input_ids), dtype=torch.long)
        s_LV = model(ids, mask)[0][0]
        top_LK = None if frozen is None else frozen.top_words(ids, mask)[0]
        at = reads(model, example)
        if example.positions is None:
            value_V, where_V = s_LV[at].max(0) if at else (torch.zeros(s_LV.shape[1]), torch.zeros(0))
            found.append([int(model.classify(s_LV[None], mask).logits.argmax())])
            decided = [(value_V, [at[int(k)] for k in where_V] if at else [])]
        else:
            found.append([int(model.tag(s_LV[None])[0, position].argmax()) for position in at])
            decided = [(s_LV[position], [position] * s_LV.shape[1]) for position in at]
        for value_V, where in decided:
            words = value_V.nonzero()[:, 0].tolist()
            active.append(len(words))
            if top_LK is not None:
                strange = [w for w in words if w not in top_LK[where[w]].tolist()]
                mass = float(value_V.sum())
                outside.append(float(value_V[strange].sum()) / mass if mass else 0.0)
    return Validation(
        score(model, rows, found),
        sum(active) / len(active),
        sum(outside) / len(outside) if frozen is not None else None,
    )


def score(model: LexicalSAE, rows: EncodedRows, found: list[list[int]]) -> float:
    if isinstance(rows.rows, Texts):
        right = [labels == [gold] for labels, gold in zip(found, rows.rows.labels, strict=True)]
        return sum(right) / len(right)
    tags = [["O"] * len(words) for words in rows.rows.words]
    for example, labels in zip(rows.examples, found, strict=True):
        for group, label in zip(example.words or (), labels, strict=True):
            tags[example.source][group[0]] = model.config.label_names[label]
    return entity_scores(tags, rows.rows.tags)["micro"].f1


@pytest.fixture
def few_top_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tiny vocabulary has hardly more than 100 words, so the frozen LM is asked for two."""
    monkeypatch.setattr("splade.models.frozen.GROUNDING_RANK", 2)


@pytest.mark.usefixtures("few_top_words")
@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("task", ["classification", "tagging"])
@torch.no_grad()
def test_validation_equals_reading_one_by_one(task: str, cached: bool) -> None:
    model = tiny_model(task=task, classes=3)
    frozen = FrozenLM.copy_of(model.backbone, model.lexicon)
    rows = EncodedRows(rows_for(model), model, frozen)
    if cached:
        rows.fill(3, lambda _: None)
    else:
        assert rows.top is not None
        rows.top._table = None
    expected = one_by_one(model, frozen, rows)
    for batch_size in (1, 5, 64):
        found = validate(model, rows, batch_size)
        assert found.score == pytest.approx(expected.score)
        assert found.active == pytest.approx(expected.active)
        assert found.outside == pytest.approx(expected.outside, abs=1e-5)
    assert expected.outside is not None
    assert 0 < expected.outside < 1
    assert expected.active > 1


@pytest.mark.parametrize("task", ["classification", "tagging"])
@pytest.mark.parametrize("honesty", ["free", "licensed-static"])
@torch.no_grad()
def test_without_a_frozen_model_nothing_is_said_of_grounding(task: str, honesty: str) -> None:
    model = tiny_model(task=task, honesty=honesty)
    rows = EncodedRows(rows_for(model), model, None)
    found, expected = validate(model, rows, 4), one_by_one(model, None, rows)
    assert found.outside is None
    assert (found.score, found.active) == pytest.approx((expected.score, expected.active))


def test_scoring_leaves_the_model_ready_to_predict_and_unchanged() -> None:
    model = tiny_model()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    model.train()
    first = validate(model, EncodedRows(rows_for(model), model, None), 4)
    assert not model.training
    assert validate(model, EncodedRows(rows_for(model), model, None), 4) == first
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.usefixtures("few_top_words")
def test_top_words_of_a_batch_are_those_of_its_texts_alone() -> None:
    model = tiny_model()
    frozen = FrozenLM.copy_of(model.backbone, model.lexicon)
    rows = EncodedRows(rows_for(model), model, frozen)
    seen: list[int] = []
    rows.fill(4, seen.append)
    assert sum(seen) == len(rows)
    batch = rows.batch([0, 10, 3])
    top_BLK = rows.top_words(batch)
    assert top_BLK is not None
    for row, i in enumerate(batch.indices):
        ids = torch.tensor([rows.examples[i].input_ids])
        alone = frozen.top_words(ids, torch.ones_like(ids))[0]
        assert torch.equal(top_BLK[row, : len(alone)].long(), alone)
        assert (top_BLK[row, len(alone) :] == -1).all()


def test_rows_know_their_documents_when_tagging() -> None:
    model = tiny_model(task="tagging")
    rows = EncodedRows(rows_for(model), model, None)
    batch = rows.batch([0, 3])
    document_N = document_of_row(batch)
    assert isinstance(document_N, Tensor)
    counts = [len(rows.examples[i].labels) for i in (0, 3)]
    assert document_N.tolist() == [0] * counts[0] + [1] * counts[1]
    assert decide(model, batch, None).rows.n_rows == sum(counts)
    texts = tiny_model()
    assert document_of_row(EncodedRows(rows_for(texts), texts, None).batch([0])) is None
