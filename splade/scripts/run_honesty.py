"""Every honesty mode, and a model whose words are code, beside what erasing words says of them."""

from __future__ import annotations

from collections.abc import Sequence

from splade.report.studies import study_page, study_tables
from splade.scripts import Shown, launch
from splade.studies.honesty import run_honesty

_SHOWN = Shown(study_tables, study_page)


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    return launch(run_honesty, __doc__, argv, within="honesty", shown=_SHOWN)


if __name__ == "__main__":
    raise SystemExit(main())
