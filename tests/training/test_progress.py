"""Long runs say one line an epoch everywhere, and draw bars on terminals only."""

from __future__ import annotations

import io
from dataclasses import dataclass

from rich.console import Console

from splade.training.progress import Progress


@dataclass
class Found:
    score: float = 0.914
    active: float = 87.4
    outside: float | None = 0.03


TERMS = {"ce": 0.25, "active": 93.6, "outside": 0.041}


def written(found: Found | None = None, multiplier: float | None = 1.5, terminal: bool = False) -> str:
    out = io.StringIO()
    progress = Progress(Console(file=out, force_terminal=terminal, no_color=True))
    with progress.task("epoch 1/2", 3) as advance:
        advance(3)
    for _ in range(2):
        progress.epoch(0.5, TERMS, multiplier, found)
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
    assert written(None, None).splitlines()[0].endswith("active words 94")
    assert "outside" not in written(Found(outside=None), None)


def test_names_with_brackets_are_printed_as_they_are() -> None:
    out = io.StringIO()
    Progress(Console(file=out)).line("saved to [bold]x[/bold] and [/]")
    assert out.getvalue() == "saved to [bold]x[/bold] and [/]\n"


def test_without_a_console_nothing_is_written() -> None:
    progress = Progress()
    with progress.task("epoch", 3) as advance:
        advance(3)
    progress.epoch(0.5, TERMS, 1.0, Found())
