"""Where a verb writes: results to stdout, the rest to stderr."""

from __future__ import annotations

import io
import sys
from typing import IO, TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rich.console import Console

    from splade.training.progress import Progress


def say(text: str) -> None:
    """One line on stderr, whatever the text holds."""
    from splade.render.text import visible

    line = visible(" ".join(text.split()))
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    print("lexical-sae:", line.encode(encoding, "backslashreplace").decode(encoding), file=sys.stderr)


def screen(color: Literal["auto", "always", "never"] = "auto") -> Console:
    """Stdout for a person."""
    from splade.render.terminal import make_console

    return make_console(color)


def progress() -> Progress:
    """Bars and lines on stderr."""
    from splade.render.terminal import make_console
    from splade.training.progress import Progress

    return Progress(make_console(stderr=True))


def plain_stdout() -> IO[str]:
    """Stdout for data, which is UTF-8 wherever it goes."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    return sys.stdout
