"""Train a classifier or tagger and measure it, once for each seed."""

from __future__ import annotations

from collections.abc import Sequence

from splade.pipelines import run_experiment
from splade.scripts import launch


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    return launch(run_experiment, __doc__, argv)


if __name__ == "__main__":
    raise SystemExit(main())
