"""Signs are counted where a word is active, and are those of the dense weights."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from splade.mechanistic.sign_flips import SignFlipFitter, SignFlips
from splade.models.heads import ReLUMLP
from splade.models.materialised import rows_of
from splade.models.state import CircuitState
from tests.evaluation.plain import linear_state
from tests.mechanistic.draws import NAMES, SEEDS, C, V, decide, draw_head
from tests.tiny import Sizes, tiny_rows

LABELS = ["a", "b", "c"]
WORDS = [f"w{j}" for j in range(V)]


def fitted(head: ReLUMLP, states: list[CircuitState]) -> SignFlipFitter:
    fitter = SignFlipFitter(head)
    for state in states:
        fitter.update(state)
    return fitter


def context_head() -> ReLUMLP:
    """logit_0 = relu(s_0 - 2 s_1) - relu(2 s_1 - s_0) / 2 - s_2, logit_1 = s_0: word 0 flips for nothing."""
    head = ReLUMLP(3, 2, 3)
    with torch.no_grad():
        head.W_in.copy_(torch.tensor([[1.0, 1.0, 0.0], [-2.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
        head.b1.zero_()
        head.out.weight.copy_(torch.tensor([[3.0, -1.0, -1.0], [0.0, 1.0, 0.0]]))
        head.out.bias.zero_()
    return head


def test_flips_counted_by_hand() -> None:
    """Word 0 weighs 3 - 1 = 2 for class a while unit 0 is on, and -1 once word 1 has switched it off."""
    s_NV = torch.tensor([[1.0, 0, 0], [1.0, 0, 1.0], [1.0, 1.0, 1.0], [0, 1.0, 0]])
    head = context_head()
    found = fitted(head, [decide(head, rows_of(s_NV[None]))]).result(["x", "y", "z"], ["a", "b"])
    assert (found.rows, found.words) == (4, 3)
    assert found.share == pytest.approx(1 / 3)
    assert found.by_class == {"a": pytest.approx(1 / 3), "b": 0.0}
    [flip] = found.most
    assert (flip.word, flip.label, flip.positive, flip.negative) == ("x", "a", 2, 1)
    assert flip.minority == pytest.approx(1 / 3)
    assert found.mean_minority == pytest.approx(1 / 8)  # signs: x 3 and 3, y 0 (off), z 2 and 0


def test_a_linear_head_never_flips() -> None:
    state = linear_state([[1.0, -2.0], [0.0, 3.0]], torch.rand(20, 2) + 0.1)
    found = fitted(state.head, [state]).result(["x", "y"], ["a", "b"])
    assert (found.share, found.mean_minority, found.most) == (0.0, 0.0, [])
    assert found.words == 2


@given(NAMES, SEEDS, st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_counts_are_those_of_the_dense_weights_in_any_batches(name: str, seed: int, sizes: list[int]) -> None:
    head = draw_head(name, seed).double()
    s_NV = tiny_rows(sum(sizes) + 1, V, seed=seed).dense()[:-1]
    whole = decide(head, rows_of(s_NV[None]))
    parts = [decide(head, rows_of(part[None])) for part in s_NV.split(sizes)]
    positive_CV, negative_CV = fitted(head, parts).counts()
    W_NCV, active_N1V = whole.W_eff, (s_NV > 0)[:, None]
    assert torch.equal(positive_CV, ((W_NCV > 0) & active_N1V).sum(0))
    assert torch.equal(negative_CV, ((W_NCV < 0) & active_N1V).sum(0))


@given(SEEDS)
def test_the_worst_are_named_first_and_never_exceed_a_half(seed: int) -> None:
    head = draw_head("relu_mlp", seed)
    found = fitted(head, [decide(head, tiny_rows(40, V, seed=seed))]).result(WORDS, LABELS, most=5)
    shares = [flip.minority for flip in found.most]
    assert shares == sorted(shares, reverse=True)
    assert all(0 < share <= 0.5 for share in shares)
    assert found.share >= max(found.by_class.values())
    assert len(found.most) <= 5


def test_a_word_seen_once_cannot_flip() -> None:
    head = draw_head("relu_mlp")
    once = fitted(head, [decide(head, rows_of(torch.ones(1, 1, V)))])
    assert once.result(WORDS, LABELS) == SignFlips(1, 0, 0.0, dict.fromkeys(LABELS, 0.0), 0.0, [])


def test_nothing_as_large_as_rows_by_classes_by_vocabulary() -> None:
    vocab, n_rows = 4000, 40
    head = draw_head("relu_mlp", vocab=vocab)
    state = decide(head, tiny_rows(n_rows, vocab, density=0.002))
    with Sizes() as sizes:
        fitted(head, [state])
    assert sizes.largest < n_rows * C * vocab
