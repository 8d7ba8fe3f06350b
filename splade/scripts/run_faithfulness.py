"""Explainers side by side on a trained model: by erasing, by planted truth, by what people say of words."""

from __future__ import annotations

from collections.abc import Sequence

from splade.report.studies import study_page, study_tables
from splade.scripts import Shown, launch
from splade.studies.faithfulness import run_faithfulness

_SHOWN = Shown(study_tables, study_page)


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    return launch(
        run_faithfulness, __doc__, argv, within="faithfulness", shown=Shown(study_tables, study_page)
    )


if __name__ == "__main__":
    raise SystemExit(main())
