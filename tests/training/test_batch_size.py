"""More memory is never a smaller batch, more words never a larger one, and there is always one text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from splade.training import batch_size
from splade.training.batch_size import automatic_batch_size, free_memory

MODERNBERT: dict[str, Any] = {
    "vocab_size": 50_368,
    "words_per_position": None,
    "hidden_size": 768,
    "layers": 22,
    "length": 512,
    "parameters": 150_000_000,
}
SHAPES = st.fixed_dictionaries(
    {
        "free_bytes": st.integers(0, 1 << 40),
        "vocab_size": st.integers(1, 300_000),
        "words_per_position": st.none() | st.integers(1, 200),
        "hidden_size": st.integers(1, 4096),
        "layers": st.integers(1, 48),
        "length": st.integers(1, 8192),
        "parameters": st.integers(1, 10**9),
    }
)


@given(SHAPES, st.integers(1, 256))
def test_a_batch_is_a_power_of_two_from_one_to_the_largest(shape: dict[str, Any], largest: int) -> None:
    texts = automatic_batch_size(**shape, largest=largest)
    assert 1 <= texts <= largest
    assert texts.bit_count() == 1


@given(SHAPES, st.sampled_from(["vocab_size", "hidden_size", "layers", "length", "parameters"]))
def test_more_of_anything_is_not_a_larger_batch(shape: dict[str, Any], dial: str) -> None:
    assert automatic_batch_size(**{**shape, dial: 4 * shape[dial]}) <= automatic_batch_size(**shape)


@given(SHAPES, st.integers(0, 1 << 40))
def test_more_memory_is_not_a_smaller_batch(shape: dict[str, Any], more: int) -> None:
    richer = {**shape, "free_bytes": shape["free_bytes"] + more}
    assert automatic_batch_size(**richer) >= automatic_batch_size(**shape)


@given(SHAPES)
def test_licences_are_not_a_smaller_batch_nor_is_half_precision(shape: dict[str, Any]) -> None:
    free = {**shape, "words_per_position": None}
    assert automatic_batch_size(**shape) >= automatic_batch_size(**free)
    assert automatic_batch_size(**shape) >= automatic_batch_size(**shape, half_precision=False)


def test_licences_make_room_where_the_vocabulary_is_what_fills_memory() -> None:
    narrow = {**MODERNBERT, "hidden_size": 64, "layers": 2, "vocab_size": 250_000, "parameters": 10**7}
    free = automatic_batch_size(3 << 30, **narrow)
    assert automatic_batch_size(3 << 30, **{**narrow, "words_per_position": 50}) > 2 * free


def test_memory_grows_the_batch_in_steps() -> None:
    sizes = [automatic_batch_size(gib << 30, **MODERNBERT) for gib in (2, 8, 16, 24, 40, 80, 160, 10_000)]
    assert sizes == sorted(sizes)
    assert sizes[0] == 1
    assert len(set(sizes)) >= 5
    assert sizes[-1] == batch_size.LARGEST


def test_the_measured_step_is_predicted() -> None:
    """Dense training of this shape took 11.6 GiB at 32 texts: 20 GiB take them, 12 GiB do not."""
    assert automatic_batch_size(20 << 30, **MODERNBERT) == 32
    assert automatic_batch_size(12 << 30, **MODERNBERT) < 32


def test_this_machine_has_memory() -> None:
    assert 0 < free_memory(torch.device("cpu")) < 1 << 50


def test_available_memory_is_read_as_the_system_writes_it(tmp_path: Path) -> None:
    told = tmp_path / "meminfo"
    told.write_text("MemTotal:       100 kB\nMemAvailable:    40 kB\nHugePages_Total:   0\n")
    assert batch_size._machine_memory(told) == 40 * 1024
    assert batch_size._machine_memory(tmp_path / "absent") > 1 << 20


@pytest.mark.parametrize(("limit", "left"), [("1000", 700), ("200", 0), ("max", 1 << 62)])
def test_a_container_limits_memory(tmp_path: Path, limit: str, left: int) -> None:
    (tmp_path / "memory.max").write_text(f"{limit}\n")
    (tmp_path / "memory.current").write_text("300\n")
    assert batch_size._container_memory(tmp_path) == left


def test_without_a_container_there_is_no_limit(tmp_path: Path) -> None:
    assert batch_size._container_memory(tmp_path) == 1 << 62
