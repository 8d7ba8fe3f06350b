"""The verb `compare`: explainers side by side on the same texts."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from splade.cli.files import emit_one
from splade.cli.streams import progress, screen
from splade.cli.verbs import loaded
from splade.errors import ConfigError

DESCRIPTION = "Compare explainers: faithfulness, forward passes and time on the same texts."
EXAMPLES = """
  lexical-sae compare model --data reviews --texts 20
  lexical-sae compare model --data test.csv --explainers ours,integrated_gradients,random
  lexical-sae compare model --data reviews --output compared.json"""


def options(add: Callable[..., object]) -> None:
    """Declare the options of `compare`."""
    add("model", metavar="MODEL", help="a model folder or hub id")
    add("--data", required=True, metavar="PATH", help="texts: a file, a folder, or an embedded corpus")
    add("--text", metavar="COLUMN", help="text column (guessed from common names)")
    add("--texts", type=int, default=20, metavar="N", help="how many of them, the first ones (default: 20)")
    add("--explainers", metavar="A,B", help="only these (default: all that are installed)")
    add("--lime-samples", type=int, default=5000, metavar="N", help="default: 5000")
    add("--shap-evaluations", type=int, default=500, metavar="N", help="default: 500")
    add("--seed", type=int, default=0, metavar="N", help="of explainers that draw (default: 0)")
    add("--json", action="store_true", help="all figures as JSON")
    add("--output", type=Path, metavar="FILE", help="write all figures there as JSON")


def compare(options: argparse.Namespace) -> int:
    """Measure, show, and write if asked to."""
    from splade.data.datasets import EMBEDDED, load_dataset, read_texts
    from splade.evaluation.explainers.bottleneck import BOTTLENECK
    from splade.evaluation.explainers.compare import compare as measure
    from splade.evaluation.explainers.inputs import EXPLAINERS
    from splade.evaluation.explainers.questions import Settings
    from splade.evaluation.records import environment, write_json

    if options.texts < 1:
        raise ConfigError(f"--texts is {options.texts}; give a number from 1")
    model = loaded(options.model)
    if model.config.task != "classification":
        raise ConfigError("compare is for classification and this model tags words")
    if options.data in EMBEDDED:
        test = load_dataset(options.data).test
        texts = list(getattr(test, "texts", ()))[: options.texts]
    else:
        texts = read_texts(options.data, options.text)[: options.texts]
    settings = Settings(
        lime_samples=options.lime_samples, shap_evaluations=options.shap_evaluations, seed=options.seed
    )
    names = options.explainers.split(",") if options.explainers else [*BOTTLENECK, *EXPLAINERS]
    with progress().task("explainers", len(names)) as advance:
        rows = measure(model, texts, settings, names, advance=lambda _: advance(1))
    found: dict[str, Any] = {"texts": len(texts), "rows": [asdict(row) for row in rows]}
    found |= {"settings": asdict(settings), "environment": environment()}
    if options.output:
        write_json(options.output, found)
    if options.json:
        emit_one(found)
    else:
        _show(found["rows"])
    return 0


def _show(rows: list[dict[str, Any]]) -> None:
    from splade.render.terminal import table
    from splade.report.studies import explainer_tables

    for title, (columns, cells) in explainer_tables(rows).items():
        table(screen(), title, columns, cells)
