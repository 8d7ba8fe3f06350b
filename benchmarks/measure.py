"""Time and memory of a callable.

Time: wall clock, a GPU having finished what it was given before and after, so that waiting for it counts. The
callables run in turn, round after round in one process, so that a slow moment of the machine falls on all of
them. The first rounds warm up and are not counted.

Memory: the most bytes of tensors held at once beyond those held at the start, so weights do not count, and
gradients do. On a GPU its allocator knows. On a CPU the profiler reports every block that torch's allocator
hands out or takes back, temporaries inside an operation included. The resident size of a process is not used:
it also holds what the C library keeps after a free and what loading the model once needed, so it differs from
run to run and hides small peaks. Left out is the scratch space of the matrix library, which does not pass
through the allocator.
"""

from __future__ import annotations

import itertools
import os
import statistics
import time
from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler writes to stderr otherwise

CPU = torch.device("cpu")
_PRODUCT = {"cpu": 1 << 22, "cuda": 1 << 28}  # elements of a matrix product held at once

Key = TypeVar("Key", bound=Hashable)


def now(device: torch.device) -> float:
    """Seconds by the wall clock, once the device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def seconds_of(run: Callable[[], object], device: torch.device = CPU) -> float:
    """Seconds of one call."""
    start = now(device)
    run()
    return now(device) - start


def interleaved_seconds(
    runs: Mapping[Key, Callable[[], object]], rounds: int, warm_up: int = 2, device: torch.device = CPU
) -> dict[Key, list[float]]:
    """Seconds of every callable in every counted round."""
    seconds: dict[Key, list[float]] = {key: [] for key in runs}
    for turn in range(warm_up + rounds):
        for key, run in runs.items():
            taken = seconds_of(run, device)
            if turn >= warm_up:
                seconds[key].append(taken)
    return seconds


def product(h_NH: Tensor, E_VH: Tensor) -> None:
    """The matrix product of a vocabulary head and nothing else: its floor. Its result is thrown away."""
    width = min(len(E_VH), max(1, _PRODUCT[h_NH.device.type] // max(1, len(h_NH))))
    out_Nw = h_NH.new_empty(len(h_NH), width)
    for start in range(0, len(E_VH), width):
        E_wH = E_VH[start : start + width]
        torch.mm(h_NH, E_wH.T, out=out_Nw if len(E_wH) == width else out_Nw.new_empty(len(h_NH), len(E_wH)))


def ratio(seconds: list[float], beside: list[float]) -> float:
    """Median over rounds of the quotient within a round."""
    return statistics.median(a / b for a, b in zip(seconds, beside, strict=True))


def peak_bytes(run: Callable[[], object], device: torch.device = CPU) -> int:
    """Most bytes of tensors held at once during the call, beyond those held before it."""
    if device.type == "cuda":
        now(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        run()
        now(device)
        return int(torch.cuda.max_memory_allocated(device)) - before
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        run()
    assert recorded.profiler is not None
    assert recorded.profiler.kineto_results is not None
    events = [e for e in recorded.profiler.kineto_results.events() if e.name() == "[memory]"]
    events.sort(key=lambda event: event.start_ns())
    held = itertools.accumulate((int(event.nbytes()) for event in events), initial=0)
    return max(held)
