"""What a person sees of a long run: a bar on a terminal, one line an epoch everywhere."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar


class Scores(Protocol):
    """What `epoch` prints of the validation rows."""

    @property
    def score(self) -> float: ...
    @property
    def active(self) -> float: ...
    @property
    def outside(self) -> float | None: ...


class Progress:
    """Writes to a console, or nowhere without one."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console
        self._epochs = 0

    @contextlib.contextmanager
    def task(self, name: str, total: int) -> Iterator[Callable[[int], None]]:
        """A bar for `total` items while the block runs; yields the function that advances it."""
        if self.console is None or not self.console.is_terminal or total == 0:
            yield lambda _: None
            return
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Bar(*columns, console=self.console, transient=True) as bar:
            task = bar.add_task(name, total=total)
            yield lambda n: bar.advance(task, n)

    def line(self, text: str) -> None:
        """One line of plain text."""
        if self.console is not None:
            self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def epoch(
        self, loss: float, terms: dict[str, float], multiplier: float | None, found: Scores | None
    ) -> None:
        """One line: training means, then the validation rows."""
        self._epochs += 1
        parts = [f"epoch {self._epochs}", f"loss {loss:.3f}", f"CE {terms['ce']:.3f}"]
        parts.append(f"active words {terms['active']:.0f}")
        if multiplier is not None:
            parts.append(f"outside {terms['outside']:.1%} (λ {multiplier:.2f})")
        if found is not None:
            seen = f"validation {found.score:.1%}, {found.active:.0f} words"
            parts.append(seen if found.outside is None else f"{seen}, outside {found.outside:.1%}")
        self.line("   ".join(parts))
