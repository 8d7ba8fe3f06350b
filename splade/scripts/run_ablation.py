"""Recipes side by side with equal data and budget, with paired tests."""

from __future__ import annotations

from collections.abc import Sequence

from splade.pipelines import run_ablation
from splade.scripts import launch


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    return launch(run_ablation, __doc__, argv)


if __name__ == "__main__":
    raise SystemExit(main())
