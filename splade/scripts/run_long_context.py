"""A deciding sentence hidden in long texts, at several depths and lengths."""

from __future__ import annotations

from collections.abc import Sequence

from splade.report.studies import study_page, study_tables
from splade.scripts import Shown, launch
from splade.studies.long_context import run_long_context

_SHOWN = Shown(study_tables, study_page)


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    return launch(
        run_long_context, __doc__, argv, within="long_context", shown=Shown(study_tables, study_page)
    )


if __name__ == "__main__":
    raise SystemExit(main())
