"""The same experiment on several datasets; one that fails does not stop the others."""

from __future__ import annotations

from collections.abc import Sequence

from splade.pipelines import run_multi_dataset
from splade.scripts import launch


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    return launch(run_multi_dataset, __doc__, argv)


if __name__ == "__main__":
    raise SystemExit(main())
