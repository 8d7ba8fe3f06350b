"""The command line `lexical-sae`: verbs that read options, call the package and show what it answers.

1. Results go to stdout; progress, notes, warnings and errors to stderr, one line each.
2. Exit codes: 0 well, 1 a failed check or a bug, 2 a mistake the user can mend, 130 interrupted.
3. Imports are made inside the verbs, so that help is quick.
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence

from splade.cli.parser import parse
from splade.cli.streams import say
from splade.errors import LexicalError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    try:
        with _short_warnings():
            options = parse(argv)
            code: int = options.run(options)
            sys.stdout.flush()
    except SystemExit as stop:  # the parser has said all
        return int(stop.code or 0)
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    except BrokenPipeError:  # the reader has seen enough, and what is still buffered must not raise at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except LexicalError as problem:
        say(f"error: {problem}")
        return 2
    except OSError as problem:
        place = problem.filename or "input or output"
        return _failed(
            problem, 2, f"{place}: {problem.strerror or problem}; check path, permissions and space"
        )
    except Exception as problem:
        return _failed(problem, 1, f"{type(problem).__name__}: {problem}")
    return code


def _failed(problem: Exception, code: int, line: str) -> int:
    """The line alone, or with LEXICAL_SAE_DEBUG=1 the traceback before it."""
    if os.environ.get("LEXICAL_SAE_DEBUG") == "1":
        traceback.print_exception(problem)
    elif code == 1:
        line += " (this is a bug; LEXICAL_SAE_DEBUG=1 shows the traceback)"
    say(f"error: {line}")
    return code


@contextlib.contextmanager
def _short_warnings() -> Iterator[None]:
    """The package's own warnings as one line each, no others."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        say(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("default", category=UserWarning, module=r"splade(\.|$)")
        warnings.showwarning = show
        yield
