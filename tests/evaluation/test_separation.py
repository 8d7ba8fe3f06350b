"""Classes with words of their own are apart, and classes that share them are not."""

from __future__ import annotations

import pytest
import torch

from splade.evaluation.separation import SHOWN, CircuitWord, Separation, SeparationFitter
from splade.mechanistic.attribution import compute_attribution_tensor
from splade.models.state import CircuitState
from tests.evaluation.plain import linear_state

LABELS = ("a", "b", "c")


def measured(*states: CircuitState, fractions: tuple[float, ...] = (0.5, 1.0)) -> Separation:
    vocab = states[0].rows.vocab_size
    fitter = SeparationFitter([f"w{j}" for j in range(vocab)], LABELS, fractions)
    for state in states:
        fitter.update(compute_attribution_tensor(state, state.logits.argmax(-1)))
    return fitter.result()


def test_centroids_circuits_and_overlaps_by_hand() -> None:
    """Class a: means (3, 1, -2, 0) over two rows; class b: (0, 1, 4, 2) over one."""
    weight = [[2.0, 2.0, -4.0, 0.0], [0.0, 1.0, 4.0, 2.0]]
    state = linear_state(weight, [[2.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0]])
    assert state.logits.argmax(-1).tolist() == [0, 0, 1]
    found = measured(state)
    a, b = found.circuits
    assert (a.label, a.rows, a.active, b.label, b.rows, b.active) == ("a", 2, 2, "b", 1, 3)
    assert a.words == [CircuitWord("w0", 3.0), CircuitWord("w1", 1.0)]
    assert b.words == [CircuitWord("w2", 4.0), CircuitWord("w3", 2.0), CircuitWord("w1", 1.0)]
    assert found.mean_cosine == found.max_cosine == pytest.approx(1 / (10**0.5 * 21**0.5))
    assert found.closest == ["a", "b"]
    half, whole = found.jaccard
    assert (half.fraction, half.mean_jaccard) == (0.5, 0.0)  # {w0} and {w2, w3}
    assert whole.mean_jaccard == pytest.approx(1 / 4)  # {w0, w1} and {w1, w2, w3}


def test_words_against_a_class_belong_to_its_circuit() -> None:
    state = linear_state([[2.0, -3.0], [0.0, 0.0]], [[1.0, 1.0]], [9.0, 0.0])
    [a] = measured(state).circuits
    assert a.words == [CircuitWord("w1", -3.0), CircuitWord("w0", 2.0)]


def test_classes_with_words_of_their_own_are_orthogonal() -> None:
    found = measured(linear_state(torch.eye(3).tolist(), torch.eye(3)))
    assert (found.mean_cosine, found.max_cosine) == (0.0, 0.0)
    assert [overlap.max_jaccard for overlap in found.jaccard] == [0.0, 0.0]


def test_classes_with_the_same_reasons_are_not_apart() -> None:
    """What tells them apart is a bias; the words say the same of both."""
    state = linear_state([[1.0, 2.0], [1.0, 2.0]], torch.ones(1, 2), [1.0, 0.0])
    other = linear_state([[1.0, 2.0], [1.0, 2.0]], torch.ones(1, 2), [0.0, 1.0])
    found = measured(state, other)
    assert found.max_cosine == pytest.approx(1.0)
    assert [overlap.mean_jaccard for overlap in found.jaccard] == [1.0, 1.0]


def test_the_closest_two_of_three_classes_are_named() -> None:
    weight = [[4.0, 0.0, 0.0], [0.0, 4.0, 3.0], [0.0, 3.0, 4.0]]
    found = measured(linear_state(weight, [[1.0, 0.0, 0.0], [0.0, 2.0, 1.0], [0.0, 1.0, 2.0]]))
    assert found.closest == ["b", "c"]
    cosine = (8 * 3 + 3 * 8) / (8**2 + 3**2)
    assert found.max_cosine == pytest.approx(cosine)
    assert found.mean_cosine == pytest.approx(cosine / 3)
    assert found.jaccard[1].mean_jaccard == pytest.approx(1 / 3)
    assert found.jaccard[1].max_jaccard == 1.0


def test_contributions_of_zero_are_like_nothing() -> None:
    """The second class is decided by its bias, from a row without words; 0/0 is 0."""
    state = linear_state([[2.0, 1.0], [0.0, 0.0]], [[1.0, 1.0], [0.0, 0.0]], [0.0, 1.0])
    found = measured(state)
    assert (found.mean_cosine, found.jaccard[0].mean_jaccard) == (0.0, 0.0)
    assert (found.circuits[1].rows, found.circuits[1].active, found.circuits[1].words) == (1, 0, [])


def test_nobody_and_a_single_class_have_no_pairs() -> None:
    nothing = SeparationFitter(["w0"], LABELS).result()
    assert nothing == Separation(None, None, [], [], [])
    single = measured(linear_state([[1.0, 2.0]], torch.ones(4, 2)))
    assert (single.mean_cosine, single.max_cosine, single.closest, single.jaccard) == (None, None, [], [])
    assert [(c.label, c.rows) for c in single.circuits] == [("a", 4)]


def test_closed_pairs_are_not_active_words() -> None:
    state = linear_state([[1.0, 2.0], [0.0, 0.0]], [[1.0, 1.0]])
    closed = CircuitState(state.rows.with_values(torch.tensor([1.0, 0.0])), state.logits, state.head)
    assert measured(closed).circuits[0].words == [CircuitWord("w0", 1.0)]


def test_batches_add_up() -> None:
    weight = torch.randn(3, 6).tolist()
    s_NV = torch.rand(20, 6)
    whole, parts = (
        measured(linear_state(weight, s_NV)),
        measured(*(linear_state(weight, s) for s in s_NV.split(7))),
    )
    assert whole.mean_cosine == pytest.approx(parts.mean_cosine)
    assert whole.jaccard == parts.jaccard
    assert [(c.label, c.rows, c.active) for c in whole.circuits] == [
        (c.label, c.rows, c.active) for c in parts.circuits
    ]


def test_long_circuits_are_shown_by_their_first_words() -> None:
    [circuit] = measured(linear_state([list(range(1, 41))], torch.ones(1, 40))).circuits
    assert circuit.active == 40
    assert [word.word for word in circuit.words] == [f"w{j}" for j in range(39, 39 - SHOWN, -1)]
