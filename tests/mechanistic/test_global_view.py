"""Streamed statistics are those of the dense weights and contributions, however the rows are divided."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from splade.mechanistic.global_view import GlobalView, GlobalViewFitter
from splade.models.heads import HEADS, Head
from splade.models.materialised import rows_of
from splade.models.state import CircuitState
from tests.mechanistic.draws import NAMES, SEEDS, C, V, decide, draw_head
from tests.tiny import Sizes, tiny_rows


def states_of(head: Head, sizes: list[int], seed: int) -> list[CircuitState]:
    """Batches of so many rows, and the same rows whatever the sizes are."""
    s_NV = tiny_rows(sum(sizes) + 1, V, seed=seed).dense()[:-1]
    return [decide(head, rows_of(part[None])) for part in s_NV.split(sizes)]


def view(head: Head, states: list[CircuitState]) -> GlobalView:
    fitter = GlobalViewFitter(head)
    for state in states:
        fitter.update(state)
    return fitter.result()


def figures(found: GlobalView) -> list[torch.Tensor]:
    return [
        found.contribution_mean_CV,
        found.contribution_std_CV,
        found.weight_mean_CV,
        found.weight_std_CV,
    ]


@given(NAMES, SEEDS)
def test_figures_are_those_of_the_dense_weights(name: str, seed: int) -> None:
    head = draw_head(name, seed).double()
    [whole] = states = states_of(head, [9], seed)
    W_NCV, s_NV = whole.W_eff.detach().numpy(), whole.sparse_vector.double().numpy()
    a_NCV = W_NCV * s_NV[:, None]
    found = view(head, states)
    assert found.rows == 9
    assert np.array_equal(found.active_V, (s_NV > 0).sum(0))
    np.testing.assert_allclose(found.contribution_mean_CV, a_NCV.mean(0), atol=1e-10)
    np.testing.assert_allclose(found.contribution_std_CV, a_NCV.std(0), atol=1e-6)
    np.testing.assert_allclose(found.weight_mean_CV, W_NCV.mean(0), atol=1e-10)
    np.testing.assert_allclose(found.weight_std_CV, W_NCV.std(0), atol=1e-6)


@given(NAMES, SEEDS, st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_any_division_into_batches_gives_the_same_figures(name: str, seed: int, sizes: list[int]) -> None:
    head = draw_head(name, seed).double()
    parts, whole = (view(head, states_of(head, split, seed)) for split in (sizes, [sum(sizes)]))
    assert parts.rows == whole.rows
    assert torch.equal(parts.active_V, whole.active_V)
    for part, one in zip(figures(parts), figures(whole), strict=True):
        torch.testing.assert_close(part, one, atol=1e-6, rtol=1e-9)


def test_figures_of_nothing_are_zero() -> None:
    found = GlobalViewFitter(draw_head("relu_mlp")).result()
    assert found.rows == 0
    assert not any(figure.any() for figure in figures(found))


def test_a_result_does_not_change_with_later_rows() -> None:
    head = draw_head("relu_mlp")
    fitter = GlobalViewFitter(head)
    first, second = states_of(head, [3, 3], 0)
    fitter.update(first)
    early = fitter.result()
    before = [figure.clone() for figure in (early.active_V, *figures(early))]
    fitter.update(second)
    assert all(torch.equal(a, b) for a, b in zip(before, (early.active_V, *figures(early)), strict=True))


@pytest.mark.parametrize("name", sorted(HEADS))
def test_nothing_as_large_as_rows_by_classes_by_vocabulary(name: str) -> None:
    vocab, n_rows = 4000, 40
    head = draw_head(name, vocab=vocab)
    state = decide(head, tiny_rows(n_rows, vocab, density=0.002))
    with Sizes() as sizes:
        view(head, [state])
    assert sizes.largest < n_rows * C * vocab
