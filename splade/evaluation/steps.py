"""How an evaluation asks its questions: steps, any of which may fail without the others.

1. A step begins a fitter, shows it decided batches (`Look`), and takes its result.
2. Steps without a `sample` share one pass over all rows. Each of the others costs passes of its own, and
   makes them over that many examples, drawn with a fixed seed.
3. A step that raises is shown nothing more, and `Record.problems` says why. What a step found is handed on
   at once.

Legend: B documents, L positions, N rows, K the frozen LM's words.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, is_dataclass
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

from torch import Tensor

from splade.data.encoding import Batch
from splade.errors import LexicalError
from splade.evaluation.intervals import text_of_row
from splade.inference.rows import decide
from splade.mechanistic.attribution import Attribution, compute_attribution_tensor
from splade.models.lexical_sae import LexicalSAE
from splade.models.state import CircuitState

OnStep = Callable[[str, Any], None]

_SEED = 0  # of samples: the same rows whatever the run


class Fitter(Protocol):
    """What accumulates batches."""

    def result(self) -> Any: ...


F = TypeVar("F", bound=Fitter)


@dataclass(frozen=True)
class Look:
    """A batch as the steps see it; what several of them need is made once, when first read."""

    model: LexicalSAE
    batch: Batch
    top_BLK: Tensor | None = None

    @cached_property
    def state(self) -> CircuitState:
        """The decision."""
        return decide(self.model, self.batch, self.top_BLK)

    @cached_property
    def predicted_N(self) -> Tensor:
        """The most probable class of each row."""
        return self.state.logits.argmax(-1)

    @cached_property
    def attribution(self) -> Attribution:
        """Contributions to the predicted classes."""
        return compute_attribution_tensor(self.state, self.predicted_N)

    @cached_property
    def text_N(self) -> Tensor:
        """The text that each row belongs to."""
        return text_of_row(self.batch)


@dataclass(frozen=True)
class Step(Generic[F]):
    """One question: how it begins, how it counts a batch, and over how many examples (None: all)."""

    name: str
    begin: Callable[[], F]
    look: Callable[[F, Look], None]
    sample: int | None = None


class Record:
    """What steps found, why others did not, and the seconds each took."""

    def __init__(self, on_step: OnStep) -> None:
        self.found: dict[str, Any] = {}
        self.problems: dict[str, str] = {}
        self.seconds: dict[str, float] = {}
        self._on_step = on_step
        self._fitters: dict[str, Any] = {}

    def begin(self, steps: Sequence[Step[Any]]) -> None:
        """Make the fitters of some steps."""
        for step in steps:
            with self._watched(step.name):
                self._fitters[step.name] = step.begin()

    def look(self, steps: Sequence[Step[Any]], look: Look) -> None:
        """Show a batch to the steps that still stand."""
        for step in self._standing(steps):
            with self._watched(step.name):
                step.look(self._fitters[step.name], look)

    def finish(self, steps: Sequence[Step[Any]]) -> None:
        """Take the results, and hand each on before the next is taken."""
        for step in self._standing(steps):
            with self._watched(step.name):
                self.found[step.name] = self._fitters.pop(step.name).result()
            if step.name in self.found:
                self._on_step(step.name, plain(self.found[step.name]))
        if any(step.name in self.problems for step in steps):
            self._on_step("problems", dict(self.problems))

    def _standing(self, steps: Sequence[Step[Any]]) -> Iterator[Step[Any]]:
        return (step for step in steps if step.name not in self.problems)

    @contextmanager
    def _watched(self, name: str) -> Iterator[None]:
        """Count the time of the block; what it raises becomes a problem of the step."""
        start = time.perf_counter()
        try:
            yield
        except Exception as problem:
            self.problems[name] = told(problem)
            self._fitters.pop(name, None)
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


def sampled(count: int, size: int) -> list[int]:
    """Which of `count` examples are measured by a step that samples `size` of them, ascending."""
    return sorted(random.Random(_SEED).sample(range(count), min(size, count)))


def plain(value: Any) -> Any:
    """A typed result, or a list of them, as JSON knows it: keys are text."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def told(problem: Exception) -> str:
    """One line; what no user can mend says what kind it is."""
    line = " ".join(str(problem).split())
    return line if isinstance(problem, LexicalError) else f"{type(problem).__name__}: {line}"
