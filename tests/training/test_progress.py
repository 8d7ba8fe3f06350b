"""Long runs say one line an epoch everywhere, and draw bars on terminals only."""

from __future__ import annotations

import io
from dataclasses import dataclass, field

from rich.console import Console

from splade.training.progress import Progress


@dataclass
class Found:
    score: float = 0.914
    active: float | None = 87.4
    outside: float | None = 0.03


@dataclass
class Figures:
    epoch: int = 0
    loss: float = 0.5
    terms: dict[str, float] = field(default_factory=lambda: {"ce": 0.25, "active": 93.6, "outside": 0.041})
    tau: float | None = None
    multipliers: dict[str, float] = field(default_factory=lambda: {"outside": 1.5})
    validation: Found | None = None


def written(found: Found | None = None, terminal: bool = False, **changes: object) -> str:
    out = io.StringIO()
    progress = Progress(Console(file=out, force_terminal=terminal, no_color=True))
    with progress.task("epoch 1/2", 3) as advance:
        advance(3)
    for number in range(2):
        progress.epoch(Figures(epoch=number, validation=found, **changes))
    return out.getvalue()


def test_without_a_terminal_there_is_one_line_an_epoch() -> None:
    lines = written(Found()).splitlines()
    assert [line.split("   ")[0] for line in lines] == ["epoch 1", "epoch 2"]
    assert lines[0].split("   ")[1:] == [
        "loss 0.500",
        "CE 0.250",
        "active words 94",
        "outside 4.1% (λ 1.50)",
        "validation 91.4%, 87 words, outside 3.0%",
    ]


def test_a_terminal_has_a_bar_too() -> None:
    assert "epoch 1/2" in written(Found(), terminal=True)
    assert "\x1b" not in written(Found())


def test_what_is_not_there_is_not_shown() -> None:
    bare = {"ce": 0.25, "active": 93.6}
    assert written(None, terms=bare).splitlines()[0].endswith("active words 94")
    assert "outside" not in written(Found(outside=None), terms=bare)
    assert "words" not in written(Found(active=None, outside=None), terms={"ce": 0.25})


def test_the_bound_is_shown_once_there_is_one() -> None:
    line = written(tau=0.3, multipliers={"ce": 2.0, "outside": 1.0}).splitlines()[0]
    assert "CE 0.250 (τ 0.300, λ 2.00)" in line


def test_names_with_brackets_are_printed_as_they_are() -> None:
    out = io.StringIO()
    Progress(Console(file=out)).line("saved to [bold]x[/bold] and [/]")
    assert out.getvalue() == "saved to [bold]x[/bold] and [/]\n"


def test_without_a_console_nothing_is_written() -> None:
    progress = Progress()
    with progress.task("epoch", 3) as advance:
        advance(3)
    progress.epoch(Figures(validation=Found()))
