"""The page of `lexical-sae demo`: what was predicted and why, and what becomes of it when a word goes."""

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

_OPENING = """A small model has just been trained on texts that were written for this purpose. It does
not go from the text to a label in one step. It names words, most of which may not stand in the text,
gives each an activation, and adds up what they contribute. So every prediction below comes with its
reasons, and the reasons add up to it. Figures are of test texts, which took no part in training or in
any choice."""
_WHY = """## What was predicted, and why

The shade behind a word of the text shows what was read there: green speaks for the class, red against
it. Below are the words that the model named, where it read each, and what each adds to the logit. With
the bias they sum to it."""
_PLANTED = """In the training texts of this demonstration one city stands almost only beside praise.
That is planted on purpose: a shortcut that no reader would accept as a reason."""


def demo_page(results: Results) -> str:
    """The demonstration as one self-contained HTML document."""
    sections = [
        section(_OPENING, overview(results), entities(results)),
        explanations(results.get("explanations"), _WHY),
        exactness(results),
        honesty(results),
        surgery(results, cause=_PLANTED if results.get("dataset") == "reviews" else ""),
        *measures(results),
        history(results),
        cost(results),
    ]
    return document("Predictions that are sums of words", results, sections)
