"""Running averages are right from the first batch on, and centroids let the batch's gradient through."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from splade.circuits.losses import cosine_to, separation_contrastive, separation_cosine
from splade.circuits.trackers import Centroids, Frequencies
from splade.mechanistic.attribution import compute_attribution_tensor
from splade.models.heads import HEADS
from splade.models.state import CircuitState, SparseRows
from tests.mechanistic.draws import SEEDS, C, V, draw_head
from tests.tiny import SENTENCES, Sizes, tiny_batch, tiny_model, tiny_rows


def batch(seed: int, labels: list[int]) -> tuple[SparseRows, Tensor, Tensor]:
    """Rows, an attribution of each pair, and labels."""
    rows = tiny_rows(len(labels), V, seed=seed)
    a_P = torch.randn(len(rows.row_P), generator=torch.Generator().manual_seed(seed))
    return rows, a_P, torch.tensor(labels)


def batch_means(rows: SparseRows, a_P: Tensor, labels_N: Tensor) -> dict[int, Tensor]:
    dense_NV = rows.dense(a_P)
    return {label: dense_NV[labels_N == label].mean(0) for label in set(labels_N.tolist())}


# --- centroids --------------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.integers(0, C - 1), min_size=1, max_size=5), min_size=1, max_size=6), SEEDS)
def test_a_centroid_weighs_the_batches_of_its_class_by_their_age(runs: list[list[int]], seed: int) -> None:
    centroids, history = Centroids(C, V, decay=0.7), [[] for _ in range(C)]
    for n, labels in enumerate(runs):
        taken = batch(seed + n, labels)
        centroids.update(*taken)
        for label, mean_V in batch_means(*taken).items():
            history[label].append(mean_V)
    for label, means in enumerate(history):
        assert bool(centroids.present_C[label]) == bool(means)
        weights = torch.tensor([0.7 ** (len(means) - 1 - age) for age in range(len(means))])
        expected = sum((w * m for w, m in zip(weights / weights.sum(), means, strict=True)), torch.zeros(V))
        torch.testing.assert_close(centroids.value()[label], expected, atol=1e-5, rtol=1e-4)


def test_classes_that_never_came_are_absent_and_zero() -> None:
    centroids = Centroids(C, V)
    assert not centroids.present_C.any()
    assert not centroids.value().any()
    centroids.update(*batch(0, [2, 2, 2]))
    assert centroids.present_C.tolist() == [False, False, True]
    assert not centroids.value()[:2].any()
    assert not separation_cosine(centroids.value()), "one class has no pair"


def test_a_constant_attribution_is_its_own_centroid_from_the_first_batch_on() -> None:
    centroids, taken = Centroids(C, V), batch(3, [0, 1, 1, 2])
    for _ in range(4):
        centroids.update(*taken)
        for label, mean_V in batch_means(*taken).items():
            torch.testing.assert_close(centroids.value()[label], mean_V, atol=1e-5, rtol=1e-5)


def test_mixing_a_batch_is_what_updating_by_it_gives_and_changes_nothing() -> None:
    centroids = Centroids(C, V)
    for seed, labels in enumerate(([0, 1, 0], [2, 2], [1, 1, 1])):
        taken = batch(seed, labels)
        before = centroids.state_dict()
        mixed_CV = centroids.mixed(*taken)
        assert all(torch.equal(before[key], value) for key, value in centroids.state_dict().items())
        centroids.update(*taken)
        torch.testing.assert_close(mixed_CV, centroids.value())


@pytest.mark.parametrize("earlier", [0, 3])
@pytest.mark.parametrize("name", sorted(HEADS))
def test_separation_teaches_the_head_and_the_values_through_mixed_centroids(name: str, earlier: int) -> None:
    """A centroid without gradient makes the term a constant."""
    head, rows, labels_N = draw_head(name, 1), tiny_rows(5, V, 0.6), torch.tensor([0, 1, 2, 0, 1])
    centroids = Centroids(C, V)
    for seed in range(earlier):
        centroids.update(*batch(seed, [0, 1, 2]))
    s_P = rows.value_P.clone().requires_grad_()
    live = rows.with_values(s_P)
    state = CircuitState(live, head(live), head)
    a_P = compute_attribution_tensor(state, labels_N).amount
    mixed_CV = centroids.mixed(live, a_P, labels_N)
    similarity_NC = cosine_to(live, a_P.detach(), mixed_CV)
    learned = {key: p for key, p in head.named_parameters() if key not in ("b1", "out.bias")}
    for term in (
        separation_cosine(mixed_CV),
        separation_contrastive(similarity_NC, labels_N, torch.ones(C).bool(), 1.0),
    ):
        slopes = torch.autograd.grad(term, [s_P, *learned.values()], retain_graph=True)
        for key, slope in zip(["values", *learned], slopes, strict=True):
            assert slope.isfinite().all(), key
            assert slope.abs().max() > 1e-6, key
    centroids.update(live, a_P, labels_N)
    assert not centroids.value().requires_grad, "what is remembered holds no graph"


def test_descent_on_mixed_centroids_separates_the_classes() -> None:
    torch.manual_seed(0)
    head, rows, labels_N = draw_head("relu_mlp", 2), tiny_rows(9, V, 0.6), torch.arange(9) % C
    optimiser, centroids, found = torch.optim.Adam(head.parameters(), 0.02), Centroids(C, V), []
    for _ in range(40):
        a_P = compute_attribution_tensor(CircuitState(rows, head(rows), head), labels_N).amount
        loss = separation_cosine(centroids.mixed(rows, a_P, labels_N))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        centroids.update(rows, a_P, labels_N)
        found.append(float(separation_cosine(centroids.value())))
    assert found[-1] < found[0] - 0.2


def test_classes_out_of_the_batch_keep_their_centroid_without_gradient() -> None:
    centroids = Centroids(C, V)
    centroids.update(*batch(0, [0, 1, 2]))
    before_CV = centroids.value()
    rows, a_P, labels_N = batch(1, [1, 1])
    a_P.requires_grad_()
    mixed_CV = centroids.mixed(rows, a_P, labels_N)
    torch.testing.assert_close(mixed_CV[[0, 2]], before_CV[[0, 2]])
    (slope_P,) = torch.autograd.grad(mixed_CV[[0, 2]].sum(), a_P, retain_graph=True)
    assert not slope_P.any()
    (slope_P,) = torch.autograd.grad(mixed_CV[1].sum(), a_P)
    weight = 0.1 / (0.9 * 0.1 + 0.1)  # of a second batch
    torch.testing.assert_close(slope_P, torch.full_like(slope_P, weight / 2))  # a mean of two rows


def test_a_batch_without_rows_moves_no_centroid() -> None:
    centroids = Centroids(C, V)
    centroids.update(*batch(0, [0, 1]))
    before_CV = centroids.value()
    rows, a_P, labels_N = batch(1, [0])
    centroids.update(replace(rows, n_rows=0), a_P, labels_N[:0])
    assert torch.equal(centroids.value(), before_CV)


def test_centroids_hold_one_vector_a_class_and_make_none_a_row() -> None:
    rows = tiny_rows(40, 4000, 0.002)
    centroids, labels_N = Centroids(2, 4000), torch.arange(40) % 2
    a_P = torch.randn(len(rows.row_P), requires_grad=True)
    with Sizes() as sizes:
        centroids.mixed(rows, a_P, labels_N).square().sum().backward()
        centroids.update(rows, a_P, labels_N)
    assert 0 < sizes.largest <= 2 * 4000


# --- frequencies ------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), SEEDS)
def test_frequencies_weigh_batches_by_their_age(sizes: list[int], seed: int) -> None:
    tracker, shares = Frequencies(V, decay=0.8), []
    for n, size in enumerate(sizes):
        rows = tiny_rows(size, V, seed=seed + n)
        tracker.update(rows)
        shares.append((rows.dense() > 0).float().mean(0))
    weights = torch.tensor([0.8 ** (len(sizes) - 1 - age) for age in range(len(sizes))])
    expected = (torch.stack(shares) * (weights / weights.sum())[:, None]).sum(0)
    torch.testing.assert_close(tracker.value(), expected, atol=1e-5, rtol=1e-4)


def test_words_just_below_their_threshold_are_not_active() -> None:
    rows, tracker = tiny_rows(3, V), Frequencies(V, 0.9)
    tracker.update(rows.with_values(torch.zeros_like(rows.value_P)))
    assert not tracker.value().any()


def test_a_batch_without_rows_changes_no_frequency() -> None:
    rows, tracker = tiny_rows(3, V), Frequencies(V, 0.9)
    empty = replace(rows.where(torch.zeros_like(rows.open_P)), n_rows=0)
    tracker.update(empty)
    assert not tracker.value().any()
    tracker.update(rows)
    before_V = tracker.value()
    tracker.update(empty)
    assert torch.equal(tracker.value(), before_V)


# --- both -------------------------------------------------------------------------------------------------


def test_state_survives_a_round_trip_and_continues_alike() -> None:
    kept, back = Centroids(C, V), Centroids(C, V)
    seen, again = Frequencies(V, 0.9), Frequencies(V, 0.9)
    kept.update(*batch(0, [0, 1, 1]))
    seen.update(tiny_rows(3, V))
    back.load_state_dict(kept.state_dict())
    again.load_state_dict(seen.state_dict())
    assert all(isinstance(value, Tensor) for value in {**kept.state_dict(), **seen.state_dict()}.values())
    for centroids, frequencies in ((kept, seen), (back, again)):
        centroids.update(*batch(1, [1, 2]))
        frequencies.update(tiny_rows(2, V, seed=1))
    assert torch.equal(kept.value(), back.value())
    assert torch.equal(kept.present_C, back.present_C)
    assert torch.equal(seen.value(), again.value())


def test_a_saved_state_is_a_copy() -> None:
    centroids = Centroids(C, V)
    centroids.update(*batch(0, [0, 1]))
    saved = centroids.state_dict()
    before = {key: value.clone() for key, value in saved.items()}
    centroids.load_state_dict(saved)
    centroids.update(*batch(1, [0, 1]))
    assert all(torch.equal(saved[key], before[key]) for key in saved)


def test_the_state_of_another_model_is_refused() -> None:
    with pytest.raises(AssertionError, match="another model"):
        Centroids(C, V).load_state_dict(Centroids(C + 1, V).state_dict())


@pytest.mark.parametrize("tracker", [Centroids(C, V), Frequencies(V, 0.9)], ids=["centroids", "frequencies"])
def test_trackers_move_between_devices(tracker: Centroids | Frequencies) -> None:
    moved = tracker.to("meta")
    assert {value.device.type for value in moved.state_dict().values()} == {"meta"}
    assert moved.value().device.type == "meta"


@torch.no_grad()
def test_padding_enters_no_average() -> None:
    model = tiny_model()
    ids, mask = tiny_batch(model, SENTENCES[:4])
    padded = torch.nn.functional.pad(ids, (0, 6)), torch.nn.functional.pad(mask, (0, 6))
    found = []
    for input_ids, attention_mask in ((ids, mask), padded):
        rows, labels_N = model.encode(input_ids, attention_mask), torch.tensor([0, 1, 2, 0])
        a_P = compute_attribution_tensor(model.decide(rows), labels_N).amount
        centroids, frequencies = Centroids(3, rows.vocab_size), Frequencies(rows.vocab_size, 0.9)
        centroids.update(rows, a_P, labels_N)
        frequencies.update(rows)
        found.append((centroids.value(), frequencies.value()))
    assert found[0][1].any()
    for alone, together in zip(*found, strict=True):
        torch.testing.assert_close(alone, together, atol=1e-5, rtol=1e-4)
