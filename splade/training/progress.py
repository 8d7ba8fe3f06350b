"""What a person sees of a long run: a bar on a terminal, one line an epoch everywhere."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar


class Scores(Protocol):
    """What is printed of the validation rows."""

    @property
    def score(self) -> float: ...
    @property
    def active(self) -> float | None: ...
    @property
    def outside(self) -> float | None: ...


class Figures(Protocol):
    """What is printed of an epoch."""

    @property
    def epoch(self) -> int: ...
    @property
    def loss(self) -> float: ...
    @property
    def terms(self) -> dict[str, float]: ...
    @property
    def tau(self) -> float | None: ...
    @property
    def multipliers(self) -> dict[str, float]: ...
    @property
    def validation(self) -> Scores | None: ...


class Progress:
    """Writes to a console, or nowhere without one."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console

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

    def epoch(self, figures: Figures) -> None:
        """One line: training means, then the validation rows."""
        terms, multipliers = figures.terms, figures.multipliers
        parts = [f"epoch {figures.epoch + 1}", f"loss {figures.loss:.3f}", f"CE {terms['ce']:.3f}"]
        if figures.tau is not None:
            parts[-1] += f" (τ {figures.tau:.3f}, λ {multipliers['ce']:.2f})"
        if "active" in terms:
            parts.append(f"active words {terms['active']:.0f}")
        if "outside" in terms:
            parts.append(f"outside {terms['outside']:.1%} (λ {multipliers['outside']:.2f})")
        if figures.validation is not None:
            parts.append(_of_validation(figures.validation))
        self.line("   ".join(parts))


def _of_validation(found: Scores) -> str:
    said = f"validation {found.score:.1%}"
    said += "" if found.active is None else f", {found.active:.0f} words"
    return said if found.outside is None else f"{said}, outside {found.outside:.1%}"
