"""A shard of tokens cut into windows of mixed lengths, and the windows dealt out to steps of one length each.

1. Joined: blocks of about the longest window follow one another; each is cut into windows of one length,
   drawn by its share of the tokens. What is shorter than the shortest window is left for the next shard.
2. Apart: no window holds two documents; a document's length is drawn, its rest gets the shortest window
   that holds it, and the empty places are padding.
3. Windows of a length are shuffled into batches of one size, the last filled up with windows of the same
   shard; batches of all lengths are shuffled.

Lengths here are of text alone, without the special tokens around it; ascending.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Windows:
    """Windows of one length: where in the shard each starts, and how many tokens it holds."""

    starts: Array
    counts: Array


def pack(
    n_tokens: int, lengths: Sequence[int], shares: Sequence[float], rng: np.random.Generator
) -> tuple[list[Windows], int]:
    """Joined windows of each length, and how many tokens they take from the front of the shard."""
    per_block = np.array([max(1, max(lengths) // length) for length in lengths])
    sizes = per_block * np.array(lengths)
    drawn = rng.choice(len(lengths), size=n_tokens // int(sizes.min()), p=_normalised(shares))
    ends = np.cumsum(sizes[drawn])
    drawn = drawn[ends <= n_tokens]
    ends = ends[: len(drawn)]
    at = int(ends[-1]) if len(ends) else 0
    starts = []
    for k, length in enumerate(lengths):
        blocks = ends[drawn == k] - sizes[k]
        starts.append((blocks[:, None] + length * np.arange(per_block[k])).ravel())
    for k in reversed(range(len(lengths))):
        while n_tokens - at >= lengths[k]:
            starts[k] = np.append(starts[k], at)
            at += lengths[k]
    pairs = zip(starts, lengths, strict=True)
    return [Windows(found.astype(np.int64), np.full(len(found), length)) for found, length in pairs], at


def pack_apart(
    ids: npt.NDArray[Any],
    boundary: int,
    lengths: Sequence[int],
    shares: Sequence[float],
    rng: np.random.Generator,
) -> list[Windows]:
    """Windows of each length that hold one document or a part of it, boundaries left out."""
    ends = np.append(np.flatnonzero(ids == boundary), len(ids))
    begins = np.append(0, ends[:-1] + 1)
    drawn = rng.choice(len(lengths), size=len(ends), p=_normalised(shares))
    sizes = np.array(lengths)[drawn]
    whole, rest = np.divmod(ends - begins, sizes)
    holds = np.searchsorted(lengths, rest)
    found = []
    for k, length in enumerate(lengths):
        cut, tail = drawn == k, (holds == k) & (rest > 0)
        order = np.arange(whole[cut].sum()) - np.repeat(np.cumsum(whole[cut]) - whole[cut], whole[cut])
        full = np.repeat(begins[cut], whole[cut]) + length * order
        starts = np.append(full, (ends - rest)[tail])
        counts = np.append(np.full(len(full), length), rest[tail])
        found.append(Windows(starts.astype(np.int64), counts.astype(np.int64)))
    return found


def deal(
    packed: Sequence[Windows], batch_sizes: Sequence[int], rng: np.random.Generator
) -> list[tuple[int, Windows]]:
    """(which length, a batch of its windows) for each step."""
    steps = []
    for k, (windows, size) in enumerate(zip(packed, batch_sizes, strict=True)):
        number = -(-len(windows.starts) // size)
        order = np.resize(rng.permutation(len(windows.starts)), number * size)
        for batch in order.reshape(number, size):
            steps.append((k, Windows(windows.starts[batch], windows.counts[batch])))
    return [steps[i] for i in rng.permutation(len(steps))]


def _normalised(shares: Sequence[float]) -> npt.NDArray[np.float64]:
    wanted = np.array(shares, dtype=np.float64)
    found: npt.NDArray[np.float64] = wanted / wanted.sum()
    return found
