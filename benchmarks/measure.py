"""Time and memory of a callable, on a CPU.

Time: the callables run in turn, round after round in one process, so that a slow moment of the machine falls
on all of them. The first rounds warm up and are not counted.

Memory: the profiler reports every block that torch's CPU allocator hands out or takes back, temporaries
inside an operation included. The peak is the most bytes held at once beyond those held at the start, so
weights do not count, and gradients do. The resident size of a process is not used: it also holds what the C
library keeps after a free and what loading the model once needed, so it differs from run to run and hides
small peaks. Left out is the scratch space of the matrix library, which does not pass through the allocator.
"""

from __future__ import annotations

import itertools
import os
import statistics
import time
from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

from torch.profiler import ProfilerActivity, profile

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler writes to stderr otherwise

Key = TypeVar("Key", bound=Hashable)


def interleaved_seconds(
    runs: Mapping[Key, Callable[[], object]], rounds: int, warm_up: int = 2
) -> dict[Key, list[float]]:
    """Seconds of every callable in every counted round."""
    seconds: dict[Key, list[float]] = {key: [] for key in runs}
    for turn in range(warm_up + rounds):
        for key, run in runs.items():
            start = time.perf_counter()
            run()
            if turn >= warm_up:
                seconds[key].append(time.perf_counter() - start)
    return seconds


def ratio(seconds: list[float], beside: list[float]) -> float:
    """Median over rounds of the quotient within a round."""
    return statistics.median(a / b for a, b in zip(seconds, beside, strict=True))


def peak_bytes(run: Callable[[], object]) -> int:
    """Most bytes of tensors held at once during the call, beyond those held before it."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        run()
    assert recorded.profiler is not None
    assert recorded.profiler.kineto_results is not None
    events = [e for e in recorded.profiler.kineto_results.events() if e.name() == "[memory]"]
    events.sort(key=lambda event: event.start_ns())
    held = itertools.accumulate((int(event.nbytes()) for event in events), initial=0)
    return max(held)
