"""A circuit is the k largest of the active words; the soft mask of training tends to it, with gradient."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from splade.circuits.core import (
    CircuitState,
    SparseRows,
    TagCircuitState,
    circuit_logits,
    circuit_mask,
    hard_circuit_mask,
)
from splade.circuits.losses import completeness_kl
from splade.mechanistic.attribution import compute_attribution_tensor
from splade.models import state as states
from splade.models.heads import HEADS
from tests.mechanistic.draws import SEEDS, V, draw_head, draw_state, labels_of
from tests.tiny import Sizes, tiny_rows

HEAD_NAMES = sorted(HEADS)
FRACTIONS = st.sampled_from(["0.01", "0.05", "0.1", "0.2", "0.3", "0.5", "0.7", "1"])


def training_rows(seed: int, n_rows: int = 5, vocab: int = V) -> SparseRows:
    """Rows as training has them: some pairs have value 0, and the last row has nothing else."""
    rows = tiny_rows(n_rows, vocab, 0.6, seed)
    shut_P = torch.rand(len(rows.row_P), generator=torch.Generator().manual_seed(seed)) < 0.3
    return rows.with_values(torch.where(shut_P | (rows.row_P == n_rows - 2), 0.0, rows.value_P))


def shuffled(rows: SparseRows) -> SparseRows:
    """The same rows, the pairs of each in another order."""
    order = torch.randperm(len(rows.row_P))
    order = order[torch.argsort(rows.row_P[order], stable=True)]
    return SparseRows(
        *(column[order] for column in (rows.row_P, rows.word_P, rows.value_P, rows.logit_P)),
        *(torch.empty(0, dtype=torch.long),) * 3,
        n_rows=rows.n_rows,
        vocab_size=rows.vocab_size,
    )


def attributions(rows: SparseRows, seed: int = 0) -> Tensor:
    return torch.randn(len(rows.row_P), generator=torch.Generator().manual_seed(seed))


def by_hand(rows: SparseRows, attribution_P: Tensor, fraction: str, temperature: float | None) -> Tensor:
    """The definition, a row at a time; without a temperature the hard mask."""
    mask_P = torch.zeros_like(attribution_P)
    for row in range(rows.n_rows):
        pairs = ((rows.row_P == row) & (rows.value_P > 0)).nonzero()[:, 0].tolist()
        pairs.sort(key=lambda pair: (-abs(float(attribution_P[pair])), int(rows.word_P[pair])))
        k = max(1, math.ceil(Fraction(fraction) * len(pairs)))
        sizes = [abs(float(attribution_P[pair])) for pair in pairs] + [0.0]
        for place, pair in enumerate(pairs):
            if temperature is None:
                mask_P[pair] = place < k
            else:
                middle = (sizes[k - 1] + sizes[k]) / 2
                mask_P[pair] = 1 / (1 + math.exp(-(sizes[place] - middle) / (temperature * middle)))
    return mask_P


@given(SEEDS, FRACTIONS)
def test_masks_are_what_their_definition_gives_row_by_row(seed: int, fraction: str) -> None:
    torch.manual_seed(seed)
    rows = shuffled(training_rows(seed))
    a_P = attributions(rows, seed)
    soft_P = circuit_mask(rows, a_P, float(fraction), 0.3)
    torch.testing.assert_close(soft_P, by_hand(rows, a_P, fraction, 0.3), atol=1e-5, rtol=1e-4)
    hard_P = hard_circuit_mask(rows, a_P, float(fraction))
    assert torch.equal(hard_P, by_hand(rows, a_P, fraction, None).bool())


@pytest.mark.parametrize(("fraction", "words", "kept"), [(0.07, 100, 7), (0.55, 100, 55), (0.1, 11, 2)])
def test_a_share_is_rounded_up_as_written_in_decimals(fraction: float, words: int, kept: int) -> None:
    rows = tiny_rows(2, words, density=1.0)
    assert int(hard_circuit_mask(rows, attributions(rows), fraction).sum()) == kept


@given(SEEDS, FRACTIONS)
def test_the_soft_mask_tends_to_the_hard_one(seed: int, fraction: str) -> None:
    rows = training_rows(seed)
    a_P = attributions(rows, seed).double()
    hard_P = hard_circuit_mask(rows, a_P, float(fraction)).double()
    gaps = [float((circuit_mask(rows, a_P, float(fraction), t) - hard_P).abs().max()) for t in (1, 0.1, 1e-9)]
    assert gaps[0] >= gaps[1] >= gaps[2]
    assert gaps[2] < 1e-6


@given(SEEDS, st.floats(0.02, 1), st.floats(0.02, 1))
def test_a_larger_fraction_keeps_no_word_less(seed: int, one: float, other: float) -> None:
    rows = training_rows(seed)
    a_P = attributions(rows, seed)
    less, more = sorted((one, other))
    assert (circuit_mask(rows, a_P, less, 0.1) <= circuit_mask(rows, a_P, more, 0.1) + 1e-6).all()
    assert (hard_circuit_mask(rows, a_P, less) <= hard_circuit_mask(rows, a_P, more)).all()


@pytest.mark.parametrize("name", HEAD_NAMES)
def test_the_loss_of_the_circuit_depends_on_its_fraction(name: str) -> None:
    """Not so where k is counted over the vocabulary: every active word is then always in."""
    state = draw_state(name, 3, vocab=400)
    a_P = compute_attribution_tensor(state, labels_of(state)).amount
    masks = [circuit_mask(state.rows, a_P, fraction, 0.1) for fraction in (0.05, 0.2, 0.6)]
    found = [completeness_kl(state.logits, circuit_logits(state, mask_P)).detach() for mask_P in masks]
    assert len({round(float(value), 6) for value in found}) == 3
    whole = hard_circuit_mask(state.rows, a_P, 1.0)
    assert whole.all()
    torch.testing.assert_close(circuit_logits(state, whole), state.logits)


@given(SEEDS, st.floats(0.01, 1))
def test_words_that_are_not_active_are_exactly_out_and_do_not_count(seed: int, fraction: float) -> None:
    rows = training_rows(seed)
    a_P = attributions(rows, seed)
    soft_P, hard_P = circuit_mask(rows, a_P, fraction, 0.1), hard_circuit_mask(rows, a_P, fraction)
    assert not soft_P[~rows.open_P].any()
    assert not hard_P[~rows.open_P].any()
    active = rows.where(rows.open_P)
    torch.testing.assert_close(soft_P[rows.open_P], circuit_mask(active, a_P[rows.open_P], fraction, 0.1))
    assert torch.equal(hard_P[rows.open_P], hard_circuit_mask(active, a_P[rows.open_P], fraction))


@pytest.mark.parametrize("name", HEAD_NAMES)
def test_rows_without_active_words_have_the_empty_circuit(name: str) -> None:
    state = draw_state(name)
    shut = state.rows.with_values(torch.zeros_like(state.rows.value_P))
    bare = shut.where(shut.open_P)
    for rows in (shut, bare, replace(bare, n_rows=1), replace(bare, n_rows=0)):
        a_P = torch.ones(len(rows.row_P), requires_grad=True)
        soft_P = circuit_mask(rows, a_P, 0.1, 0.1)
        assert not soft_P.any()
        assert not hard_circuit_mask(rows, a_P, 0.1).any()
        logits = circuit_logits(CircuitState(rows, state.logits, state.head), soft_P)
        assert logits.shape == (rows.n_rows, state.head.classes)
        (slope_P,) = torch.autograd.grad(soft_P.sum() + logits.sum(), a_P)
        assert not slope_P.any()


def test_hard_ties_go_to_the_smaller_word_id() -> None:
    torch.manual_seed(1)
    rows = shuffled(tiny_rows(3, V, 0.9))
    ties_P = torch.full((len(rows.row_P),), -2.0)
    hard_P = hard_circuit_mask(rows, ties_P, 0.25)
    for row in range(2):
        words = rows.word_P[rows.row_P == row].sort().values
        kept = rows.word_P[hard_P & (rows.row_P == row)].sort().values
        assert kept.tolist() == words[: math.ceil(len(words) / 4)].tolist()
    assert torch.equal(circuit_mask(rows, ties_P, 0.25, 1e-3), torch.full_like(ties_P, 0.5))


@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e-8])
def test_attributions_of_zero_make_no_nan(scale: float) -> None:
    rows = training_rows(2)
    for zeros in (slice(None), slice(None, None, 2), slice(3, None)):
        a_P = attributions(rows)
        a_P[zeros] *= scale
        a_P.requires_grad_()
        for fraction in (0.01, 0.5, 1.0):
            soft_P = circuit_mask(rows, a_P, fraction, 0.1)
            (slope_P,) = torch.autograd.grad(soft_P.square().sum(), a_P)
            assert soft_P.isfinite().all()
            assert slope_P.isfinite().all()


def test_a_word_of_some_attribution_is_in_before_words_of_none() -> None:
    rows = tiny_rows(2, V, 0.9)
    a_P = torch.zeros(len(rows.row_P))
    a_P[3] = -0.2
    assert float(circuit_mask(rows, a_P, 0.5, 0.1)[3]) == 1
    assert hard_circuit_mask(rows, a_P, 0.01).nonzero().tolist() == [[3]]


@given(SEEDS, st.floats(0.02, 1), st.sampled_from([0.1, 30.0, -1.0]))
def test_only_the_proportions_of_a_row_decide(seed: int, fraction: float, scale: float) -> None:
    """So the mask's gradient cannot open words by growing all of a row."""
    rows = training_rows(seed)
    a_P = (attributions(rows, seed).double() + 0.1).requires_grad_()
    soft_P = circuit_mask(rows, a_P, fraction, 0.3)
    torch.testing.assert_close(circuit_mask(rows, a_P * scale, fraction, 0.3), soft_P)
    (slope_P,) = torch.autograd.grad((soft_P * attributions(rows, seed + 1)).sum(), a_P)
    along_N = rows.sum_by_row(slope_P * a_P.detach())
    torch.testing.assert_close(along_N, torch.zeros_like(along_N), atol=1e-9, rtol=0)


def test_the_gradient_is_the_slope_of_the_mask() -> None:
    rows = training_rows(4)
    a_P = attributions(rows, 4).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda a: circuit_mask(rows, a, 0.3, 0.5), (a_P,))


@pytest.mark.parametrize("name", HEAD_NAMES)
def test_the_circuit_teaches_its_attribution_and_so_the_head_and_the_values(name: str) -> None:
    """Through the mask alone: the masked values and the head that reads them are held still."""
    head, still = draw_head(name, 1), draw_head(name, 1)
    rows = tiny_rows(4, V, 0.6)
    s_P = rows.value_P.clone().requires_grad_()
    live = rows.with_values(s_P)
    state = CircuitState(live, head(live), head)
    a_P = compute_attribution_tensor(state, labels_of(state)).amount
    mask_P = circuit_mask(live, a_P, 0.3, 0.5)
    held = CircuitState(rows, state.logits.detach(), still)
    loss = completeness_kl(held.logits, circuit_logits(held, mask_P))
    learned = {key: p for key, p in head.named_parameters() if key not in ("b1", "out.bias")}
    slopes = torch.autograd.grad(loss, [a_P, s_P, *learned.values()])
    for key, slope in zip(["attribution", "values", *learned], slopes, strict=True):
        assert slope.isfinite().all(), key
        assert slope.abs().max() > 1e-6, key


@pytest.mark.parametrize("name", HEAD_NAMES)
def test_a_hard_circuit_decides_as_if_the_other_words_were_gone(name: str) -> None:
    state = draw_state(name, 2)
    hard_P = hard_circuit_mask(state.rows, compute_attribution_tensor(state, labels_of(state)).amount, 0.3)
    torch.testing.assert_close(circuit_logits(state, hard_P), state.head(state.rows.where(hard_P)))


def test_nothing_as_large_as_rows_by_vocabulary_is_made() -> None:
    rows = tiny_rows(40, 4000, 0.002)
    a_P = attributions(rows).requires_grad_()
    with Sizes() as sizes:
        circuit_mask(rows, a_P, 0.1, 0.1).sum().backward()
        hard_circuit_mask(rows, a_P, 0.1)
    assert 0 < sizes.largest <= len(rows.row_P)


def test_the_states_can_be_had_from_here() -> None:
    assert (CircuitState, TagCircuitState) == (states.CircuitState, states.TagCircuitState)
