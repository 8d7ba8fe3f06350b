"""Words that go with a group are proposed; those a person confirms are removed, and what that does measured.

Without --confirm the words are proposed; --confirm all removes them, --confirm WORD ... those that are named.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from splade.cli.files import write_text
from splade.cli.streams import say
from splade.report.certificate import certificate_page
from splade.report.surgery import surgery_page, surgery_tables
from splade.scripts import Shown, launch
from splade.studies.surgery import run_surgery

if TYPE_CHECKING:
    from splade.config.schema import ExperimentConfig
    from splade.pipelines import Results
    from splade.training.progress import Progress


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--confirm", nargs="+", default=[], metavar="WORD")
    own, others = parser.parse_known_args(argv)

    def run(config: ExperimentConfig, output: Path, progress: Progress, seeds: Sequence[int]) -> Results:
        results = run_surgery(config, output, progress, seeds, own.confirm)
        if "certificate" in results["parts"]:
            certificate = json.loads((output / "certificate.json").read_text(encoding="utf-8"))
            write_text(output / "certificate.html", certificate_page(certificate))
        if "proposals" in results["parts"]:
            say("nothing was removed; the same command with --confirm all, or --confirm WORD ..., goes on")
        return results

    return launch(run, __doc__, others, within="surgery", shown=Shown(surgery_tables, surgery_page))


if __name__ == "__main__":
    raise SystemExit(main())
