"""Every term of training means what it says, and its gradient moves what it should."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from splade.circuits.losses import (
    active_words,
    anchor,
    completeness_kl,
    cosine_to,
    df_flops,
    excess_words,
    frequency,
    gate_l0,
    l0_proxy,
    l1,
    outside_share,
    outside_top_words,
    separation_contrastive,
    sharpness,
)
from splade.circuits.objective import places
from splade.mechanistic.attribution import compute_attribution_tensor
from splade.models.frozen import FrozenLM
from splade.models.layers.activation import GATES, Gate
from splade.models.pooling import one_source
from splade.models.state import SparseRows
from tests.mechanistic.draws import SEEDS
from tests.tiny import SENTENCES, tiny_batch, tiny_model, tiny_rows

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


def training_rows(seed: int, n_rows: int = 5, vocab: int = V) -> SparseRows:
    """Rows as training has them: some pairs have value 0, and the last row is empty."""
    rows = tiny_rows(n_rows, vocab, 0.5, seed)
    shut_P = torch.rand(len(rows.row_P), generator=torch.Generator().manual_seed(seed)) < 0.3
    return rows.with_values(torch.where(shut_P, 0.0, rows.value_P))


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


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


def test_the_outside_share_has_a_small_gradient_where_every_word_of_a_row_is_shut() -> None:
    value_P = torch.tensor([3.0, 1.0, 0.0, 0.0], requires_grad=True)
    rows = rows_of([[3.0, 1.0], [0.0, 0.0]], value_P=value_P)
    share = outside_share(rows, marked(True, False, True, False))
    (slope_P,) = torch.autograd.grad(share, value_P)
    assert share.item() == pytest.approx(0.75 / 2)
    assert slope_P.abs().max() <= 1  # shut words learn their thresholds by it


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
    assert slope_P.abs().max() <= 1  # shut words learn their thresholds by it
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


# --- the gate's own count ---------------------------------------------------------------------------------


@given(SEEDS, st.sampled_from([0.05, 0.2, 1.0]), st.sampled_from([1.0, 4.0, math.inf]))
def test_gate_l0_is_the_dense_mean_of_the_cut_sigmoid(seed: int, epsilon: float, truncate: float) -> None:
    z_NV, theta_V = drawn(4, V, seed=seed) * 2, drawn(V, seed=seed + 1).abs() + 0.1
    margin_NV = z_NV - theta_V
    row_P, word_P = (margin_NV >= -truncate * epsilon).nonzero(as_tuple=True)  # what training keeps
    z_P = z_NV[row_P, word_P]
    rows = one_source(row_P, word_P, z_P, z_P, word_P, 4, V)
    dense_NV = torch.sigmoid(margin_NV / epsilon)
    dense_NV[margin_NV > truncate * epsilon] = 1
    dense_NV[margin_NV < -truncate * epsilon] = 0
    found = gate_l0(rows, theta_V[word_P], epsilon, truncate)
    torch.testing.assert_close(found, dense_NV.mean(), atol=1e-6, rtol=1e-5)


def test_gate_l0_moves_logits_and_thresholds_inside_the_window_and_nothing_outside() -> None:
    z_P = torch.tensor([1.0, 1.3, 0.8, 1.5, 0.5, 9.0], requires_grad=True)
    raw_V = torch.zeros(V, requires_grad=True)  # θ = exp(raw) = 1
    rows = rows_of([[0.0] * 6], logit_P=z_P)
    term = gate_l0(rows, raw_V.exp()[rows.word_P], epsilon=0.1, truncate=4.0)
    slope_P, slope_V = torch.autograd.grad(term, (z_P, raw_V))
    assert (slope_P[:3] > 0).all()
    assert (slope_V[:3] < 0).all(), "descent raises thresholds and lowers logits"
    assert not slope_P[3:].any()
    assert not slope_V[3:].any()


def test_far_from_the_threshold_gate_l0_counts_exactly() -> None:
    rows = rows_of([[5.0, -5.0, 6.0], []])
    assert float(gate_l0(rows, torch.ones(3), 0.01, 4.0)) == pytest.approx(2 / (2 * V))


# --- dead words -------------------------------------------------------------------------------------------


def test_dead_words_near_the_gate_are_helped_once_each_and_no_others() -> None:
    gate = GATES["jumprelu"](V)
    rows = rows_of([[1.0, 0.9, 0.8], [1.0, 0.9]])  # word 1 twice, word 2 once; words 3 and on are absent
    dead_V = torch.ones(V).bool()
    dead_V[0] = False
    term = frequency(gate.raw_V[rows.word_P], rows.word_P, dead_V)
    (slope_V,) = torch.autograd.grad(term, gate.raw_V)
    expected_V = torch.zeros(V)
    expected_V[1:3] = 0.5
    torch.testing.assert_close(slope_V, expected_V)
    assert float(term.detach()) == pytest.approx(float(gate.raw_V[1:3].detach().mean()))


def test_where_no_word_is_dead_nothing_is_helped() -> None:
    raw_V = torch.ones(V, requires_grad=True)
    rows = rows_of([[1.0, 2.0]])
    term = frequency(raw_V[rows.word_P], rows.word_P, torch.zeros(V).bool())
    (slope_V,) = torch.autograd.grad(term, raw_V)
    assert float(term.detach()) == 0
    assert not slope_V.any()


# --- sparsity of the values -------------------------------------------------------------------------------


@given(SEEDS)
def test_l1_is_the_mean_sum_and_its_slope_is_constant(seed: int) -> None:
    rows = training_rows(seed)
    s_P = rows.value_P.requires_grad_()
    term = l1(rows)
    torch.testing.assert_close(term, rows.dense().sum(-1).mean())
    (slope_P,) = torch.autograd.grad(term, s_P)
    assert torch.equal(slope_P, torch.full_like(s_P, 1 / rows.n_rows))


@given(SEEDS, st.sampled_from([0.05, 0.3, 2.0]))
def test_the_soft_count_of_values_is_its_sigmoid_form(seed: int, softness: float) -> None:
    rows = training_rows(seed)
    s_NV = rows.dense()
    expected = (2 * torch.sigmoid(s_NV / softness) - 1).sum(-1).mean()
    torch.testing.assert_close(l0_proxy(rows, softness), expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(l0_proxy(rows, 1e-4), rows.active_N.mean())


@given(SEEDS)
def test_df_flops_is_its_dense_definition(seed: int) -> None:
    rows = training_rows(seed)
    s_NV = rows.dense()
    w_V = (s_NV > 0).float().mean(0) * s_NV.mean(0)
    expected = w_V.sum() / (w_V.norm() * math.sqrt(V)) if w_V.any() else torch.tensor(0.0)
    torch.testing.assert_close(df_flops(rows), expected, atol=1e-6, rtol=1e-5)


def test_df_flops_lies_between_one_word_and_all_alike() -> None:
    assert float(df_flops(rows_of([[0.7], [0.2]]))) == pytest.approx(1 / math.sqrt(V))
    assert float(df_flops(rows_of([[0.3] * V] * 3))) == pytest.approx(1)


def test_df_flops_takes_document_frequency_as_a_constant() -> None:
    """Its slope is that of ‖w‖₁/‖w‖₂ with df held, and without words there is none."""
    rows = training_rows(1)
    s_NV = rows.dense().requires_grad_()
    df_V = (s_NV > 0).float().mean(0)
    w_V = df_V * s_NV.mean(0)
    (dense_NV,) = torch.autograd.grad(w_V.sum() / (w_V.norm() * math.sqrt(V)), s_NV)
    s_P = rows.value_P.clone().requires_grad_()
    (slope_P,) = torch.autograd.grad(df_flops(rows.with_values(s_P)), s_P)
    torch.testing.assert_close(slope_P, dense_NV[rows.row_P, rows.word_P], atol=1e-6, rtol=1e-4)
    zeros_P = torch.zeros_like(s_P, requires_grad=True)
    (slope_P,) = torch.autograd.grad(df_flops(rows.with_values(zeros_P)), zeros_P)
    assert not slope_P.any()


# --- completeness and the anchor --------------------------------------------------------------------------


def test_where_several_classes_may_hold_completeness_compares_each_by_itself() -> None:
    """A shift of all logits alike changes every decision, which one softmax would not notice."""
    full_NC, circuit_NC = drawn(6, 4), drawn(6, 4).flip(0)
    p_NC, q_NC = full_NC.sigmoid(), circuit_NC.sigmoid()
    expected = (p_NC * (p_NC / q_NC).log() + (1 - p_NC) * ((1 - p_NC) / (1 - q_NC)).log()).mean()
    torch.testing.assert_close(completeness_kl(full_NC, circuit_NC, several=True), expected)
    assert float(completeness_kl(full_NC, full_NC - 3)) == pytest.approx(0, abs=1e-6)
    assert float(completeness_kl(full_NC, full_NC - 3, several=True)) > 0.1


@pytest.mark.parametrize("term", [completeness_kl, anchor])
@given(seed=SEEDS)
def test_divergence_is_that_of_the_circuit_from_the_whole(term, seed: int) -> None:
    whole_NC, part_NC = drawn(5, 4, seed=seed) * 3, drawn(5, 4, seed=seed + 1) * 3
    p, q = torch.distributions.Categorical(logits=whole_NC), torch.distributions.Categorical(logits=part_NC)
    expected = torch.distributions.kl_divergence(p, q).mean()
    torch.testing.assert_close(term(whole_NC, part_NC), expected, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(term(whole_NC, whole_NC + 7), torch.tensor(0.0), atol=1e-6, rtol=0)
    assert not torch.isclose(term(whole_NC, part_NC), term(part_NC, whole_NC), rtol=1e-6, atol=0)


@pytest.mark.parametrize("term", [completeness_kl, anchor])
def test_only_the_circuit_learns_from_the_divergence(term) -> None:
    whole_NC, part_NC = drawn(3, 4).requires_grad_(), drawn(3, 4, seed=1).requires_grad_()
    slopes = torch.autograd.grad(term(whole_NC, part_NC), (whole_NC, part_NC), allow_unused=True)
    assert slopes[0] is None
    expected = (part_NC.softmax(-1) - whole_NC.softmax(-1)) / 3
    torch.testing.assert_close(slopes[1], expected.detach())


# --- sharpness --------------------------------------------------------------------------------------------


@given(SEEDS)
def test_sharpness_is_one_minus_hoyer_over_the_active_words(seed: int) -> None:
    rows = training_rows(seed)
    a_P, expected = drawn(len(rows.row_P), seed=seed), 0.0
    for row in range(rows.n_rows):
        of_row = a_P[(rows.row_P == row) & rows.open_P].abs()
        if (root := math.sqrt(len(of_row))) > 1:
            expected += 1 - (root - float(of_row.sum() / of_row.norm())) / (root - 1)
    assert float(sharpness(rows, a_P)) == pytest.approx(expected / rows.n_rows, abs=1e-4)


def test_sharpness_runs_from_one_word_alone_to_all_alike() -> None:
    rows = rows_of([[1.0] * 5])
    assert float(sharpness(rows, torch.tensor([0, 0, -3.0, 0, 0]))) == pytest.approx(0, abs=1e-6)
    assert float(sharpness(rows, torch.tensor([2.0, -2, 2, -2, 2]))) == pytest.approx(1, abs=1e-6)


def test_rows_of_one_word_or_of_no_attribution_are_sharp_and_rest() -> None:
    rows = rows_of([[1.0], [1.0, 0.0], [1.0, 1.0], []])
    a_P = torch.tensor([2.0, 3.0, 4.0, 0.0, 0.0], requires_grad=True)
    term = sharpness(rows, a_P)
    (slope_P,) = torch.autograd.grad(term, a_P)
    assert float(term.detach()) == 0
    assert not slope_P.any()


def test_words_that_are_not_active_do_not_blunt() -> None:
    a_P = torch.tensor([1.0, 2.0, 9.0])
    active = sharpness(rows_of([[1.0, 1.0]]), a_P[:2])
    assert float(sharpness(rows_of([[1.0, 1.0, 0.0]]), a_P)) == pytest.approx(float(active))


# --- all of them ------------------------------------------------------------------------------------------


def every_term(rows: SparseRows, a_P: Tensor, logits_NC: Tensor, labels_N: Tensor) -> dict[str, Tensor]:
    """Each term of `rows` and what follows from them."""
    C, size = logits_NC.shape[1], rows.vocab_size
    similarity_NC = cosine_to(rows, a_P, drawn(C, size))
    dead_V = torch.arange(size) % 2 == 0
    theta_P = 0.2 + 0.1 * (rows.word_P % 3)
    return {
        "completeness_kl": completeness_kl(logits_NC + 1, logits_NC * 2),
        "anchor": anchor(logits_NC + 1, logits_NC * 2),
        "separation_contrastive": separation_contrastive(similarity_NC, labels_N, torch.ones(C).bool(), 1.0),
        "sharpness": sharpness(rows, a_P),
        "df_flops": df_flops(rows),
        "l1": l1(rows),
        "l0_proxy": l0_proxy(rows, 0.3),
        "gate_l0": gate_l0(rows, theta_P, 0.5, 4.0),
        "frequency": frequency(theta_P.log(), rows.word_P, dead_V),
        "outside_share": outside_share(rows, (rows.word_P % 2 == 0)[rows.source_pair_Q]),
    }


def test_without_rows_every_term_is_zero_with_a_finite_gradient() -> None:
    value_P, logits_NC = torch.empty(0, requires_grad=True), torch.empty(0, 3, requires_grad=True)
    rows = rows_of([]).with_values(value_P)
    found = every_term(rows, value_P * 2, logits_NC, torch.empty(0, dtype=torch.long))
    for name, term in found.items():
        assert float(term.detach()) == 0, name
    torch.stack(list(found.values())).sum().backward()


@pytest.mark.parametrize("task", ["classification", "tagging"])
@torch.no_grad()
def test_padding_changes_no_term(task: str) -> None:
    model = tiny_model(task=task)
    model.gate.train()  # words just below their threshold are there, as in training
    ids, mask = tiny_batch(model, SENTENCES[:4])
    found = []
    for extra in (0, 6):
        input_ids, attention_mask = F.pad(ids, (0, extra)), F.pad(mask, (0, extra))
        row_mask = model.lexicon.valid(input_ids, attention_mask) if task == "tagging" else None
        rows = model.encode(input_ids, attention_mask, row_mask)
        state, labels_N = model.decide(rows), torch.arange(rows.n_rows) % 3
        a_P = compute_attribution_tensor(state, labels_N).amount
        found.append(every_term(rows, a_P, state.logits, labels_N))
    for name, alone in found[0].items():
        assert alone.abs() > 1e-6, name
        torch.testing.assert_close(found[1][name], alone, atol=1e-5, rtol=1e-4)
