"""Studies as sections of a Markdown file: their tables, and where and with what they were made.

A study writes study.json to its folder. Folders of one study, whose parts were done apart (other explainers
on the same models, say), make one section; every table of it is as the command printed it.

    python benchmarks/studies.py results/faithfulness_sst2/faithfulness --output docs/results/faithfulness.md
"""

from __future__ import annotations

import argparse
import datetime
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from table import aligned, put

import splade
from splade.report.comparison import Table
from splade.report.studies import study_tables
from splade.report.surgery import surgery_tables

Study = dict[str, Any]


def main() -> None:
    """Write a section for each study."""
    asked = argparse.ArgumentParser(description="Tables of finished studies, as sections of a Markdown file.")
    asked.add_argument("folders", type=Path, nargs="+", metavar="FOLDER", help="holds study.json")
    asked.add_argument("--output", type=Path, required=True, metavar="FILE", help="write the sections here")
    options = asked.parse_args()
    for study in merged([json.loads((folder / "study.json").read_text()) for folder in options.folders]):
        put(f"{study['kind']}-{study['name']}", markdown(study), options.output)


def merged(studies: Sequence[Study]) -> list[Study]:
    """One study of each kind and name, with the parts of all that are called so."""
    found: dict[tuple[str, str], Study] = {}
    for study in studies:
        first = found.setdefault((study["kind"], study["name"]), study)
        for key in ("parts", "failed"):
            first[key] = {**first[key], **study[key]}
    return list(found.values())


def markdown(study: Study) -> str:
    """Heading, data, machine, then every table that has rows."""
    tables = surgery_tables(study) if study["kind"] == "surgery" else study_tables(study)
    lines = [f"## {study['name'].replace('_', ' ')}", "", *(f"- {fact}" for fact in _facts(study))]
    for title, found in tables.items():
        if found[1]:
            lines += ["", f"### {title}" if title else "", "", *_lines(found)]
    return "\n".join(lines) + "\n"


def _facts(study: Mapping[str, Any]) -> list[str]:
    data, where = study["data"], study["environment"]
    rows = ", ".join(f"{count:,} {split}" for split, count in data["rows"].items())
    versions = f"torch {where['torch']}, transformers {where['transformers']}, Python {where['python']}"
    return [
        f"Data: {data['dataset']}, {rows} rows, {len(data['labels'])} labels; seeds {study['seeds']}",
        f"Date: {datetime.date.today().isoformat()}, {where['device']}, {where['threads']} threads",
        f"Versions: lexical-sae {splade.__version__}, {versions}",
    ]


def _lines(found: Table) -> list[str]:
    columns, rows = found
    return aligned(columns, [["" if cell is None else cell for cell in row] for row in rows])


if __name__ == "__main__":
    main()
