"""Every system that can be trained here, in one table."""

from __future__ import annotations

from collections.abc import Sequence

from splade.report.studies import study_page, study_tables
from splade.scripts import Shown, launch
from splade.studies.sota import run_sota_comparison

_SHOWN = Shown(study_tables, study_page)


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    return launch(run_sota_comparison, __doc__, argv, within="sota", shown=_SHOWN)


if __name__ == "__main__":
    raise SystemExit(main())
