"""The cost of a splice is counted by hand, and a splice that changes nothing costs nothing."""

from __future__ import annotations

import json

import pytest
import torch
from torch import Tensor

from splade.data.encoding import Batch
from splade.data.rows import Sentences, Texts
from splade.evaluation.spliced import Spliced, SpliceFitter
from splade.inference.rows import EncodedRows, decide
from splade.mechanistic.sae import SparseAutoencoder, decoder_inputs, splice, train_sae
from splade.models.lexical_sae import LexicalSAE
from tests.tiny import SENTENCES, tiny_model

TEXTS = Texts(list(SENTENCES), [i % 3 for i in range(len(SENTENCES))])
SETS = Texts(list(SENTENCES), label_sets=[[0], [], [1, 2], [0, 1], [2], [], [0], [1], [0, 2], [1]])
WORDS = [sentence.split() for sentence in SENTENCES]
TAGGED = Sentences(WORDS, [["B-PER", *["O"] * (len(words) - 1)] for words in WORDS])


class Same(SparseAutoencoder):
    """ĥ = h, and the features are its positive and negative parts."""

    def __init__(self, width: int) -> None:
        super().__init__("topk", width, 2 * width, 1)

    def encode(self, h: Tensor) -> Tensor:
        return torch.relu(torch.cat([h, -h], -1))

    def decode(self, f: Tensor) -> Tensor:
        return f[..., : self.features // 2] - f[..., self.features // 2 :]


def batches_of(model: LexicalSAE, rows: Texts | Sentences, size: int = 4) -> list[Batch]:
    encoded = EncodedRows(rows, model)
    return [encoded.batch(range(len(encoded))[i : i + size]) for i in range(0, len(encoded), size)]


def measured(
    model: LexicalSAE, sae: SparseAutoencoder, rows: Texts | Sentences = TEXTS, size: int = 4
) -> Spliced:
    fitter = SpliceFitter(model, sae)
    for batch in batches_of(model, rows, size):
        fitter.update(batch)
    return fitter.result()


def small(model: LexicalSAE) -> SparseAutoencoder:
    batches = [(batch.input_ids, batch.attention_mask) for batch in batches_of(model, TEXTS)]
    return train_sae(decoder_inputs(model, batches), "topk", 12, 2, steps=30, batch_size=32)


@pytest.mark.parametrize("task", ["classification", "tagging"])
def test_a_perfect_reconstruction_costs_nothing(task: str) -> None:
    model = tiny_model(task=task)
    found = measured(model, Same(32), TAGGED if task == "tagging" else TEXTS)
    assert found.explained_variance == pytest.approx(1)
    assert (found.accuracy_change, found.cross_entropy_change, found.agreement) == (0, 0, 1)
    assert found.l0 == pytest.approx(32)
    assert found.rows == (sum(map(len, WORDS)) if task == "tagging" else len(SENTENCES))


def test_saying_the_mean_always_explains_nothing() -> None:
    model = tiny_model()
    sae = SparseAutoencoder("topk", 32, 8, 2)
    batches = [(batch.input_ids, batch.attention_mask) for batch in batches_of(model, TEXTS)]
    sae.mean_H.copy_(decoder_inputs(model, batches).mean(0))
    found = measured(model, sae)
    assert found.explained_variance == pytest.approx(0, abs=1e-5)
    assert (found.l0, found.dead) == (0, 1)


def test_figures_are_those_counted_by_hand() -> None:
    model = tiny_model(opened=20)
    sae = small(model)
    found = measured(model, sae)
    [batch] = batches_of(model, TEXTS, size=len(SENTENCES))
    with torch.no_grad():
        h_PH = model.backbone(batch.input_ids, batch.attention_mask)[
            model.lexicon.valid(batch.input_ids, batch.attention_mask)
        ]
        plain = decide(model, batch).logits
        with splice(model, sae):
            spliced = decide(model, batch).logits
        f_PF, left = sae.encode(h_PH), (h_PH - sae(h_PH)).square().sum()
    assert found.positions == len(h_PH)
    total = (h_PH - h_PH.mean(0)).square().sum()
    assert found.explained_variance == pytest.approx(float(1 - left / total), abs=1e-5)
    assert found.l0 == pytest.approx(float((f_PF > 0).float().sum(1).mean()))
    assert found.dead == pytest.approx(float((f_PF == 0).all(0).float().mean()))
    right = [(logits.argmax(-1) == batch.labels_N).float().mean() for logits in (plain, spliced)]
    losses = [torch.nn.functional.cross_entropy(logits, batch.labels_N) for logits in (plain, spliced)]
    assert found.accuracy == pytest.approx(float(right[0]))
    assert found.accuracy_change == pytest.approx(float(right[1] - right[0]))
    assert found.cross_entropy_change == pytest.approx(float(losses[1] - losses[0]), abs=1e-5)
    assert found.agreement == pytest.approx(float((plain.argmax(-1) == spliced.argmax(-1)).float().mean()))


def test_batches_do_not_change_the_figures() -> None:
    model = tiny_model()
    sae = small(model)
    one, other = (measured(model, sae, size=size).to_dict() for size in (1, 7))
    for key, value in one.items():
        assert value == (pytest.approx(other[key], abs=1e-5) if isinstance(value, float) else other[key]), key
    assert json.loads(json.dumps(one))["kind"] == "topk"


def test_whole_sets_of_labels_are_compared() -> None:
    model = tiny_model()
    model.config.multi_label = True
    found = measured(model, small(model), SETS)
    [batch] = batches_of(model, SETS, size=len(SENTENCES))
    with torch.no_grad():
        logits = decide(model, batch).logits
    sets = [{c for c in range(3) if row[c] > 0} for row in logits]
    right = [a == set(b) for a, b in zip(sets, SETS.label_sets, strict=True)]
    assert found.accuracy == pytest.approx(sum(right) / len(right))
    loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, batch.labels_N)
    assert found.cross_entropy == pytest.approx(float(loss), abs=1e-5)


def test_nothing_counted_is_nothing() -> None:
    found = SpliceFitter(tiny_model(), Same(32)).result()
    assert (found.rows, found.positions, found.accuracy, found.explained_variance) == (0, 0, 0, 0)
