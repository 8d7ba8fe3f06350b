"""Every term of training means what it says, and its gradient moves what it should."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from splade.circuits.losses import active_words, excess_words, outside_share, outside_top_words
from splade.circuits.objective import places
from splade.models.frozen import FrozenLM
from splade.models.layers.activation import GATES, Gate
from splade.models.pooling import one_source
from splade.models.state import SparseRows
from tests.tiny import SENTENCES, tiny_batch, tiny_model

V = 50


def rows_of(values: list[list[float]], **changes: Tensor) -> SparseRows:
    """One row a list, word k at position k; `changes` replace fields."""
    row_P = torch.tensor([n for n, row in enumerate(values) for _ in row])
    word_P = torch.tensor([k for row in values for k in range(len(row))])
    value_P = torch.tensor([value for row in values for value in row]).float()
    fields = {
        "row_P": row_P.long(),
        "word_P": word_P.long(),
        "value_P": value_P,
        "logit_P": value_P,
        **changes,
    }
    return one_source(**fields, position_P=word_P.long(), n_rows=len(values), vocab_size=V)


def marked(*flags: bool) -> Tensor:
    return torch.tensor(flags)


# --- the word budget --------------------------------------------------------------------------------------


@pytest.mark.parametrize("gate", [kind(V) for kind in GATES.values()], ids=list(GATES))
@given(values=st.lists(st.floats(-3, 5), min_size=1, max_size=12), target=st.floats(0.5, 10))
def test_the_budget_counts_exactly_forward(gate: Gate, values: list[float], target: float) -> None:
    rows = rows_of([values, []])
    opened_P = gate.opened(rows.logit_P, gate.theta()[rows.word_P])
    count = int((rows.logit_P > gate.theta()[rows.word_P]).sum())
    assert float(active_words(rows, opened_P).detach()) == count / 2
    expected = max(0.0, count / 2 / target - 1)
    assert float(excess_words(rows, opened_P, target).detach()) == pytest.approx(expected, abs=1e-5)


def test_the_budget_pushes_thresholds_up_near_the_gate_only() -> None:
    gate = GATES["jumprelu"](V)
    gate.epsilon = 0.1
    rows = rows_of([[1.05, 0.95, 3.0, -2.0]])
    opened_P = gate.opened(rows.logit_P, gate.theta()[rows.word_P])
    (slope_V,) = torch.autograd.grad(excess_words(rows, opened_P, target=0.5), gate.raw_V)
    assert (slope_V[:2] < 0).all(), "descent raises the thresholds of words near them"
    assert (slope_V[2:] == 0).all(), "words far from their threshold, and absent ones, are left alone"
    sigmoid = 1 / (1 + math.exp(-0.05 / gate.epsilon))
    expected = -sigmoid * (1 - sigmoid) / gate.epsilon / 0.5  # θ = 1, one row, a target of half a word
    assert slope_V[:2].tolist() == pytest.approx([expected] * 2, rel=1e-4)


def test_at_or_below_the_budget_nothing_is_pushed() -> None:
    gate = GATES["jumprelu"](V)
    rows = rows_of([[1.05, 0.95]])
    for target in (1.0, 2.0):
        opened_P = gate.opened(rows.logit_P, gate.theta()[rows.word_P])
        excess = excess_words(rows, opened_P, target)
        assert float(excess.detach()) == 0
        (slope_V,) = torch.autograd.grad(excess, gate.raw_V)
        assert not slope_V.any()


def test_without_rows_the_budget_is_kept() -> None:
    rows = rows_of([])
    assert float(excess_words(rows, rows.value_P, 1.0)) == 0


# --- the outside share ------------------------------------------------------------------------------------


def test_the_outside_share_is_a_mean_over_rows_of_shares_of_mass() -> None:
    rows = rows_of([[1.0, 3.0], [2.0], []])
    share = outside_share(rows, marked(False, True, False))
    assert float(share) == pytest.approx((3 / 4 + 0 + 0) / 3)


@given(st.lists(st.lists(st.floats(0.01, 9), max_size=5), min_size=1, max_size=4), st.integers(0, 99))
def test_the_outside_share_lies_between_none_and_all(values: list[list[float]], seed: int) -> None:
    rows = rows_of(values)
    outside_P = torch.rand(len(rows.value_P), generator=torch.Generator().manual_seed(seed)) < 0.5
    share, rest = float(outside_share(rows, outside_P)), float(outside_share(rows, ~outside_P))
    filled = sum(bool(row) for row in values) / len(values)
    assert 0 <= share <= 1
    assert share + rest == pytest.approx(filled, abs=1e-5), "rows without a word have 0"


def test_empty_rows_have_no_share_and_no_gradient() -> None:
    value_P = torch.zeros(2, requires_grad=True)
    rows = rows_of([[0.0, 0.0], []]).with_values(value_P)
    share = outside_share(rows, marked(True, False))
    (slope_P,) = torch.autograd.grad(share, value_P)
    assert float(share.detach()) == 0
    assert slope_P.isfinite().all()
    assert float(outside_share(rows_of([[], []]), marked())) == 0


def test_descent_moves_mass_towards_grounded_words() -> None:
    value_P = torch.tensor([1.0, 3.0, 2.0, 1.0, 1.0], requires_grad=True)
    rows = rows_of([[1.0, 3.0, 2.0], [1.0, 1.0]]).with_values(value_P)
    outside_P = marked(True, False, True, False, False)
    (slope_P,) = torch.autograd.grad(outside_share(rows, outside_P), value_P)
    assert (slope_P[[0, 2]] > 0).all(), "ungrounded words shrink"
    assert slope_P[1] < 0, "grounded words beside them grow"
    assert not slope_P[3:].any(), "a row that is all grounded rests"
    assert float((slope_P * value_P.detach()).sum()) == pytest.approx(0, abs=1e-6), "scale does not matter"


def test_a_word_read_at_several_positions_counts_each_by_its_share() -> None:
    rows = SparseRows(
        row_P=torch.tensor([0, 0]),
        word_P=torch.tensor([4, 7]),
        value_P=torch.tensor([2.0, 2.0]),
        logit_P=torch.tensor([2.0, 2.0]),
        source_pair_Q=torch.tensor([0, 0, 1]),
        source_position_Q=torch.tensor([1, 2, 2]),
        source_share_Q=torch.tensor([0.25, 0.75, 1.0]),
        n_rows=1,
        vocab_size=V,
    )
    assert float(outside_share(rows, marked(False, True, False))) == pytest.approx(0.75 * 2 / 4)


def test_a_read_is_outside_if_its_word_is_not_among_the_top_words_of_its_place() -> None:
    rows = rows_of([[1.0, 1.0, 1.0]])
    top_RK = torch.tensor([[0, 9], [9, 8], [-1, -1], [2, 1]])
    assert outside_top_words(rows, top_RK, torch.tensor([0, 1, 3])).tolist() == [False, True, False]
    assert outside_top_words(rows, top_RK, torch.tensor([2, 2, 2])).all()
    assert outside_top_words(rows_of([[]]), top_RK, torch.tensor([], dtype=torch.long)).tolist() == []


def test_many_reads_are_compared_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of([[1.0] * V] * 3)
    top_RK = torch.randint(0, V, (20, 7))
    place_Q = torch.randint(0, 20, (3 * V,))
    whole = outside_top_words(rows, top_RK, place_Q)
    monkeypatch.setattr("splade.circuits.losses._READS_AT_ONCE", 7)
    assert torch.equal(outside_top_words(rows, top_RK, place_Q), whole)


@pytest.mark.parametrize("pooling", ["max", "attention"])
@pytest.mark.parametrize("task", ["classification", "tagging"])
@torch.no_grad()
def test_padding_never_counts(task: str, pooling: str) -> None:
    model = tiny_model(pooling=pooling, task=task)
    frozen = FrozenLM.copy_of(model.backbone, model.lexicon)
    texts = [SENTENCES[0], "slow", SENTENCES[3]]

    def share(input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, int]:
        row_mask = model.lexicon.valid(input_ids, attention_mask) if task == "tagging" else None
        rows = model.encode(input_ids, attention_mask, row_mask)
        document_N = None if row_mask is None else row_mask.nonzero()[:, 0]
        top_BLK = frozen.top_words(input_ids, attention_mask)[..., :3]  # a small vocabulary: few words
        return outside_share(rows, outside_top_words(rows, *places(rows, top_BLK, document_N))), rows.n_rows

    alone = [share(*tiny_batch(model, [text])) for text in texts]
    ids, mask = tiny_batch(model, texts)
    together, n_rows = share(torch.nn.functional.pad(ids, (0, 5)), torch.nn.functional.pad(mask, (0, 5)))
    expected = sum(value * rows for value, rows in alone) / n_rows
    assert 0 < float(together) < 1
    assert float(together) == pytest.approx(float(expected), abs=1e-5)
