"""A B-cos head beside the ReLU head, with paired tests."""

from __future__ import annotations

from collections.abc import Sequence

from splade.pipelines import run_bcos_ablation
from splade.scripts import launch


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    return launch(run_bcos_ablation, __doc__, argv, within="heads")


if __name__ == "__main__":
    raise SystemExit(main())
