"""Scoring a split in padded batches gives what reading its texts one by one gives."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from splade.circuits.decoding import best_valid
from splade.circuits.metrics import effective_vocabulary, entity_scores
from splade.circuits.prediction import prediction_loss
from splade.data.encoding import Example
from splade.data.rows import Sentences, Texts
from splade.inference.rows import EncodedRows, decide, document_of_row
from splade.inference.scoring import all_logits
from splade.mechanistic.attribution import compute_attribution_tensor
from splade.models.dense import DenseModel
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
    states: list[Tensor] = []
    active: list[int] = []
    mass_CV = torch.zeros(len(model.config.label_names), model.lexicon.vocab_size)
    outside: list[float] = []
    for example in rows.examples:
        ids, mask = torch.tensor([example.input_ids]), torch.ones(1, len(example.input_ids), dtype=torch.long)
        s_LV = model(ids, mask)[0][0]
        top_LK = None if frozen is None else frozen.top_words(ids, mask)[0]
        at = reads(model, example)
        if example.positions is None:
            value_V, where_V = s_LV[at].max(0) if at else (torch.zeros(s_LV.shape[1]), torch.zeros(0))
            state = model.classify(s_LV[None], mask)
            decided = [(value_V, [at[int(k)] for k in where_V] if at else [])]
        else:
            state = model.tag_circuit(s_LV[None, at])
            decided = [(s_LV[position], [position] * s_LV.shape[1]) for position in at]
        states.append(state.logits)
        chosen = state.logits.argmax(-1)
        mass_CV.index_add_(
            0, chosen, state.rows.dense(compute_attribution_tensor(state, chosen).amount).relu()
        )
        for value_V, where in decided:
            words = value_V.nonzero()[:, 0].tolist()
            active.append(len(words))
            if top_LK is not None:
                strange = [w for w in words if w not in top_LK[where[w]].tolist()]
                mass = float(value_V.sum())
                outside.append(float(value_V[strange].sum()) / mass if mass else 0.0)
    labels = torch.tensor([label for example in rows.examples for label in example.labels])
    return Validation(
        score(model, rows, states),
        float(prediction_loss(torch.cat(states), labels)),
        sum(active) / len(active),
        sum(outside) / len(outside) if frozen is not None else None,
        float(effective_vocabulary(mass_CV[mass_CV.sum(1) > 0]).mean()),
    )


def score(model: LexicalSAE, rows: EncodedRows, states: list[Tensor]) -> float:
    if isinstance(rows.rows, Texts):
        right = [int(logits.argmax()) == gold for logits, gold in zip(states, rows.rows.labels, strict=True)]
        return sum(right) / len(right)
    names = model.config.label_names
    outside = torch.tensor([0.0 if name == "O" else -torch.inf for name in names])
    words = [[outside] * len(words) for words in rows.rows.words]
    for example, logits in zip(rows.examples, states, strict=True):
        for group, logits_C in zip(example.words or (), logits, strict=True):
            words[example.source][group[0]] = logits_C
    found = best_valid([torch.stack(row) if row else outside[None][:0] for row in words], names)
    tags = [[names[tag] for tag in row] for row in found]
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
        assert found.ce == pytest.approx(expected.ce, rel=1e-4)
        assert found.effective_vocabulary == pytest.approx(expected.effective_vocabulary, rel=1e-4)
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


def test_the_loss_is_that_of_the_predictions_and_follows_the_smoothing() -> None:
    model = tiny_model()
    rows = EncodedRows(rows_for(model), model)
    plain, smooth = validate(model, rows, 4), validate(model, rows, 4, 0.2)
    logits = all_logits(model, rows)
    assert plain.ce == pytest.approx(float(prediction_loss(logits, rows.labels_N)))
    assert smooth.ce == pytest.approx(float(prediction_loss(logits, rows.labels_N, 0.2)))
    assert (plain.score, plain.active) == (smooth.score, smooth.active)


def test_several_labels_are_scored_by_micro_f1() -> None:
    model = tiny_model()
    model.config.multi_label = True
    rows = EncodedRows(Texts(TEXTS, label_sets=[[0, 2], [], [1]] * (len(TEXTS) // 3) + [[0]] * 2), model)
    logits = all_logits(model, rows)
    predicted, gold = logits >= 0, rows.labels_N.bool()
    right = (predicted & gold).sum()
    found = validate(model, rows, 4)
    assert found.score == pytest.approx(float(2 * right / (predicted.sum() + gold.sum())))
    assert found.ce == pytest.approx(float(prediction_loss(logits, rows.labels_N)))


@pytest.mark.parametrize("task", ["classification", "tagging"])
def test_a_model_without_words_has_no_figures_of_words(task: str) -> None:
    twin = tiny_model(task=task)
    model = DenseModel(twin.config, twin.backbone, twin.tokenizer)
    found = validate(model, EncodedRows(rows_for(twin), model), 4)
    assert (found.active, found.outside, found.effective_vocabulary) == (None, None, None)
    assert 0 <= found.score <= 1 < 10 * found.ce


def test_logits_come_in_the_order_of_the_examples_whatever_the_batches() -> None:
    model = tiny_model(task="tagging")
    rows = EncodedRows(rows_for(model), model)
    one = all_logits(model, rows, 1)
    assert len(one) == len(rows.labels_N)
    assert torch.allclose(all_logits(model, rows, 64), one, atol=1e-4)
