"""The page of a training or evaluation run: how well, how it went, and what the words are worth."""

from __future__ import annotations

from splade.report.dictionary import honesty
from splade.report.evaluation import measures
from splade.report.history import history
from splade.report.sections import (
    Results,
    cost,
    document,
    entities,
    exactness,
    explanations,
    overview,
    section,
)
from splade.report.surgery import surgery

_OPENING = """Each prediction of this model is a sum of named words. Figures are of test rows, which
took no part in training or in any choice."""
_WHY = """## Some predictions, and why

The shade behind a word shows what was read there, for the class or against it. The words below, with
the bias, sum to the logit."""


def training_page(results: Results) -> str:
    """The run as one self-contained HTML document."""
    sections = [
        section(_OPENING, overview(results), entities(results)),
        history(results),
        exactness(results),
        honesty(results),
        *measures(results),
        explanations(results.get("explanations"), _WHY),
        surgery(results),
        cost(results),
    ]
    return document(f"Lexical-SAE on {results.get('dataset') or 'your data'}", results, sections)
