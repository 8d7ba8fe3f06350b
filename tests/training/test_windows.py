"""Windows partition the text, and steps deal out all of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from splade.data.tokens import Frame, encoded
from splade.training.masking import gather
from splade.training.windows import Windows, deal, pack, pack_apart
from tests.tiny import SENTENCES, tiny_tokenizer

FRAME = Frame.of(tiny_tokenizer())
LENGTHS, SHARES = (14, 30), (1.0, 3.0)


@pytest.mark.parametrize("n_tokens", [0, 13, 14, 29, 30, 31, 1000, 1013])
def test_joined_windows_partition_the_text_but_for_a_tail_shorter_than_any(n_tokens) -> None:
    packed, used = pack(n_tokens, LENGTHS, SHARES, np.random.default_rng(0))
    covered = np.concatenate(
        [
            (found.starts[:, None] + np.arange(length)).ravel()
            for found, length in zip(packed, LENGTHS, strict=True)
        ]
    )
    assert sorted(covered) == list(range(used))
    assert n_tokens - used < min(LENGTHS)


def test_lengths_get_their_shares_of_the_tokens() -> None:
    packed, used = pack(100_000, LENGTHS, SHARES, np.random.default_rng(0))
    shares = [found.counts.sum() / used for found in packed]
    assert shares == pytest.approx([0.25, 0.75], abs=0.03)


def test_windows_apart_hold_every_token_of_every_document_once_and_no_boundary() -> None:
    ids = np.concatenate(
        [*encoded(SENTENCES, tiny_tokenizer()), [9, 9, 9]]
    )  # the last document has no boundary
    packed = pack_apart(ids, FRAME.boundary, LENGTHS, SHARES, np.random.default_rng(0))
    covered = [
        start + np.arange(count)
        for found in packed
        for start, count in zip(found.starts, found.counts, strict=True)
    ]
    assert sorted(np.concatenate(covered)) == np.flatnonzero(ids != FRAME.boundary).tolist()
    assert all((np.diff(places) == 1).all() for places in covered)
    assert all((found.counts <= length).all() for found, length in zip(packed, LENGTHS, strict=True))


def test_steps_have_one_length_a_fixed_size_and_all_windows() -> None:
    packed, _ = pack(1000, LENGTHS, SHARES, np.random.default_rng(0))
    steps = deal(packed, (8, 4), np.random.default_rng(1))
    assert {(k, len(windows.starts)) for k, windows in steps} == {(0, 8), (1, 4)}
    for k, found in enumerate(packed):
        dealt = np.concatenate([windows.starts for j, windows in steps if j == k])
        assert set(dealt) == set(found.starts)
        assert len(dealt) - len(found.starts) < (8, 4)[k]
    assert [k for k, _ in steps] != sorted(k for k, _ in steps)


@pytest.mark.parametrize("high", [50, 60_000])
def test_gathered_windows_are_the_text_between_special_tokens(high) -> None:
    ids = np.random.default_rng(0).integers(high, size=100).astype(np.uint16)
    windows = Windows(np.array([3, 86]), np.array([14, 14]))
    found, mask = gather(torch.from_numpy(ids.view(np.int16)), windows, 16, FRAME)
    assert mask is None
    for row, start in zip(found.tolist(), (3, 86), strict=True):
        assert row == [*FRAME.prefix, *ids[start : start + 14].tolist(), *FRAME.suffix]


def test_a_window_that_is_not_full_is_padded_after_its_special_token() -> None:
    ids = torch.arange(20, 60, dtype=torch.int32)
    found, mask = gather(ids, Windows(np.array([0, 37]), np.array([14, 3])), 16, FRAME)
    assert found[1].tolist() == [*FRAME.prefix, 57, 58, 59, *FRAME.suffix, *[FRAME.pad] * 11]
    assert mask.tolist() == [[1] * 16, [1] * 5 + [0] * 11]
