"""Train a tagger and measure it, once for each seed."""

from __future__ import annotations

from collections.abc import Sequence

from splade.pipelines import run_ner
from splade.scripts import launch


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    return launch(run_ner, __doc__, argv)


if __name__ == "__main__":
    raise SystemExit(main())
