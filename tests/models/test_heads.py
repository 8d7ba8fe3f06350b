"""Heads are exact sums over words, and their path attributions are complete."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from splade.models.heads import HEADS, BCos, Head
from splade.models.state import CircuitState, Linearisation, SparseRows
from tests.tiny import tiny_rows

SEEDS = st.integers(0, 2**16)
NAMES = st.sampled_from(sorted(HEADS))
V, C, D = 30, 3, 8


def draw_head(name: str, seed: int) -> Head:
    torch.manual_seed(seed)
    head = HEADS[name](V, C, D)
    for parameter in head.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return head.double()


def contributions(rows: SparseRows, local: Linearisation) -> Tensor:
    """a [N, C, V] of a local form, densely and as its docstring writes it."""
    s_NV = rows.dense().to(local.W_in_VD.dtype)
    a_NCV = s_NV[:, None] * (local.mix_NCD @ local.W_in_VD.T)
    if local.square_NC is not None:
        a_NCV = a_NCV + local.square_NC[..., None] * s_NV[:, None] ** 2
    return a_NCV


def dense_relu(head: Head, s_NV: Tensor) -> Tensor:
    hidden = torch.relu(s_NV @ head.W_in + head.b1)
    return hidden @ head.out.weight.T + head.out.bias


def dense_bcos(head: Head, x: Tensor) -> Tensor:
    """Each layer |cos(x, w)| ŵᵀx, computed from the definition."""
    for weight in (head.W_in.T, *head.weights):
        cosine = torch.nn.functional.cosine_similarity(x[:, None], weight[None], dim=-1, eps=1e-30)
        x = cosine.abs() * (x @ (weight / weight.norm(dim=1, keepdim=True)).T)
    return x


DENSE = {"relu_mlp": dense_relu, "bcos": dense_bcos}


@given(NAMES, SEEDS)
def test_a_head_on_sparse_rows_is_its_equation_on_dense_ones(name: str, seed: int) -> None:
    head, rows = draw_head(name, seed), tiny_rows(vocab=V, seed=seed)
    torch.testing.assert_close(head(rows), DENSE[name](head, rows.dense().double()))


@given(NAMES, SEEDS)
def test_linearisation_sums_to_the_logits(name: str, seed: int) -> None:
    head, rows = draw_head(name, seed), tiny_rows(vocab=V, seed=seed)
    local = head.linearise(rows)
    assert local.square_NC is None
    torch.testing.assert_close(contributions(rows, local).sum(-1) + local.bias_NC, head(rows))


@given(NAMES, SEEDS)
def test_path_contributions_sum_to_the_change_from_the_empty_text(name: str, seed: int) -> None:
    head, rows = draw_head(name, seed), tiny_rows(vocab=V, seed=seed)
    empty = rows.where(torch.zeros_like(rows.open_P))
    local = head.path(rows)
    total_NC = contributions(rows, local).sum(-1)
    torch.testing.assert_close(total_NC, head(rows) - head(empty))
    torch.testing.assert_close(local.bias_NC, head(empty))
    assert not total_NC[-1].any()


@given(NAMES, SEEDS)
def test_rows_of_nothing_have_finite_logits_and_forms(name: str, seed: int) -> None:
    head = draw_head(name, seed)
    rows = tiny_rows(vocab=V, seed=seed)
    empty = rows.where(torch.zeros_like(rows.open_P))
    for local in (head.linearise(empty), head.path(empty)):
        assert not contributions(empty, local).any()
        torch.testing.assert_close(local.bias_NC, head(empty))
        assert local.mix_NCD.isfinite().all()


@pytest.mark.parametrize("name", sorted(HEADS))
def test_path_is_the_average_gradient_along_the_way(name: str) -> None:
    """Against the midpoint rule with 10,000 steps from the empty text to s."""
    head, rows = draw_head(name, 7), tiny_rows(n_rows=2, vocab=V)
    s_V = rows.dense().double()[0]
    steps = (torch.arange(10_000, dtype=torch.float64) + 0.5) / 10_000
    points = (steps[:, None] * s_V).requires_grad_()
    for c in range(C):
        slope_TV = torch.autograd.grad(DENSE[name](head, points)[:, c].sum(), points)[0]
        exact_V = contributions(rows, head.path(rows))[0, c]
        torch.testing.assert_close(exact_V, s_V * slope_TV.mean(0), atol=2e-3, rtol=2e-3)


@given(SEEDS, st.floats(0.01, 100), st.integers(2, 4))
def test_bcos_is_homogeneous_of_degree_one(seed: int, scale: float, depth: int) -> None:
    torch.manual_seed(seed)
    head, rows = BCos(V, C, D, depth).double(), tiny_rows(vocab=V, seed=seed)
    scaled = rows.with_values(rows.value_P.double() * scale)
    torch.testing.assert_close(head(scaled), scale * head(rows))


def test_path_and_linearisation_of_bcos_are_two_different_attributions() -> None:
    head, rows = draw_head("bcos", 1), tiny_rows(vocab=V)
    path, dla = (contributions(rows, local) for local in (head.path(rows), head.linearise(rows)))
    assert not torch.allclose(path, dla, atol=1e-2)


@given(NAMES, SEEDS)
def test_removing_a_word_is_a_shift_of_the_projection(name: str, seed: int) -> None:
    head, rows = draw_head(name, seed), tiny_rows(vocab=V, seed=seed)
    word = rows.word_P[0]
    s_N = rows.dense().double()[:, word]
    u_ND = head.project(rows) - s_N[:, None] * head.projection()[word]
    shifted_NC = head.rest(u_ND, head.square_norm(rows) - s_N**2)
    torch.testing.assert_close(shifted_NC, head(rows.without(word[None])), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("name", sorted(HEADS))
def test_heads_stay_in_float32_under_autocast(name: str) -> None:
    head, rows = draw_head(name, 0).float(), tiny_rows(vocab=V)
    plain = (head(rows), head.linearise(rows), head.path(rows))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = (head(rows), head.linearise(rows), head.path(rows))
        rest = head.rest(head.project(rows), head.square_norm(rows))
    assert rest.dtype == torch.float32
    assert torch.equal(plain[0], inside[0])
    for before, after in zip(plain[1:], inside[1:], strict=True):
        assert torch.equal(before.mix_NCD, after.mix_NCD)
        assert torch.equal(before.bias_NC, after.bias_NC)


@pytest.mark.parametrize("name", sorted(HEADS))
def test_heads_run_in_float64_on_request(name: str) -> None:
    head, rows = draw_head(name, 0), tiny_rows(vocab=V)
    assert head(rows).dtype == torch.float64
    torch.testing.assert_close(head.float()(rows).double(), draw_head(name, 0)(rows), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", sorted(HEADS))
def test_the_effective_weights_are_made_only_when_read(name: str) -> None:
    head, rows = draw_head(name, 0), tiny_rows(vocab=V)
    state = CircuitState(rows, head(rows), head)
    assert "linearisation" not in vars(state)
    s_NV = state.sparse_vector.double()
    torch.testing.assert_close(torch.einsum("nv,ncv->nc", s_NV, state.W_eff) + state.b_eff, state.logits)
    assert "linearisation" in vars(state)
