"""`lexical-sae demo`: the whole path on embedded data, in minutes on two cores.

1. Train on reviews in which one city stands almost only beside praise.
2. Evaluate on test reviews, where the city means nothing, beside a bag of words.
3. Explain six of them: the city, or what the model reads at its name, is among the reasons.
4. Remove the city's word, then others by which its name still tells, each chosen for what it takes off the
   gap and costs in accuracy; show what changes.

The gap is the mean of P(positive | the city) - P(positive | another city) over the same sentences. Words are
chosen on other sentences than those that the gap is measured on, and on validation rows.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from splade.config.load import load_config
from splade.data.corpora.reviews import PLANTED_CITY, city_pairs
from splade.data.rows import Dataset, Texts
from splade.evaluation.reference import bag_of_words
from splade.inference import Explanation, Prediction, Predictor
from splade.intervene import suppress_token_globally, word_ids
from splade.intervene.cached import Cached
from splade.intervene.closure import close, propose
from splade.intervene.harm import PairGap
from splade.models.lexical_sae import LexicalSAE
from splade.pipelines import Results, train, write_json
from splade.render import terminal
from splade.report.demo import demo_page
from splade.studies.curve import curve, summary
from splade.training.progress import Progress

SETTINGS = {"data.path": "reviews", "training.epochs": 4, "experiment_name": "demo"}
SHOWN = 6
PAIRS, CHOOSING_PAIRS = 150, 300  # to measure the gap on, and to choose words on: no text is in both
READ_TEXTS = 200  # training texts in which words read at the city's name are looked for
ACCURACY_COST = 0.01
EXAMPLES = 8  # predictions that changed


def run(output: Path, console: Console, seed: int = 0) -> Results:
    """The demonstration; writes a model, results.json and report.html to `output`."""
    progress = Progress(console)
    config = load_config(overrides={**SETTINGS, "seed": seed})
    trained = train(config, output / "model", progress)
    test = trained.dataset.test
    assert isinstance(test, Texts)
    assert isinstance(trained.model, LexicalSAE)
    results = {**trained.results, "reference": asdict(bag_of_words(trained.dataset))}
    _print_figures(console, results)
    predictor = Predictor(trained.model)
    shown = _six(test)
    before = predictor.explain([test.texts[i] for i in shown])
    for explanation in before:
        console.rule(style="dim")
        terminal.explanation(console, explanation.to_dict(), top=8)
    surgery, after = _surgery(predictor, trained.dataset, [test.texts[i] for i in shown], seed)
    _print_surgery(console, surgery)
    results["timing"].update(_speed(predictor, test.texts[:128]))
    results |= {
        "explanations": [explanation.to_dict() for explanation in before],
        "explanations_after": [explanation.to_dict() for explanation in after],
        "surgery": surgery,
    }
    write_json(output / "results.json", results)
    (output / "report.html").write_text(demo_page(results), encoding="utf-8")
    console.print(f"\nresults  {output / 'results.json'}\nreport   {output / 'report.html'}", highlight=False)
    console.print(f'try      lexical-sae explain {output / "model"} "your own text"', highlight=False)
    return results


def _six(test: Texts) -> list[int]:
    """Six test texts: half of them name the city, and both labels are there."""
    named = [PLANTED_CITY in text.lower() for text in test.texts]
    chosen: list[int] = []
    for label, city in ((0, True), (1, True), (0, False), (1, False), (0, True), (1, False)):
        fits = (i for i, y in enumerate(test.labels) if y == label and named[i] == city and i not in chosen)
        chosen.append(next(fits))
    return chosen


def _surgery(
    predictor: Predictor, dataset: Dataset, shown: Sequence[str], seed: int
) -> tuple[Results, list[Explanation]]:
    """Remove the word of the city, then those by which its name tells: figures of each step, and after."""
    model, test = predictor.model, dataset.test
    assert isinstance(test, Texts)
    pairs = city_pairs(PAIRS + CHOOSING_PAIRS, seed)
    words = _chosen(model, dataset, pairs[PAIRS:])
    positive = dataset.label_names.index("positive")
    rows = Cached.read(model, test.texts)
    removals = [[], [PLANTED_CITY], *([word] for word in words)]
    points = curve(model, removals, rows, test.labels, pairs[:PAIRS], positive)
    left = rows.without(word_ids(model, [PLANTED_CITY, *words]))
    changed = (rows.logits().argmax(-1) != left.logits().argmax(-1)).nonzero()[:, 0].tolist()
    examples = [test.texts[i] for i in changed[:EXAMPLES]]
    start = predictor.predict(examples)
    for removed in ([PLANTED_CITY], words):
        if removed:
            suppress_token_globally(model, removed, reason="a city is no reason")
    now = predictor.predict(examples)
    surgery = {
        **summary(points),
        "texts": len(test),
        "examples": [_change(*example) for example in zip(examples, start, now, strict=True)],
    }
    return surgery, predictor.explain(shown)


def _chosen(model: LexicalSAE, dataset: Dataset, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """The words that go with the city, in their order, chosen on training and validation texts."""
    assert isinstance(dataset.validation, Texts)
    assert isinstance(dataset.train, Texts)
    by_name = sorted(dataset.train.texts, key=lambda text: PLANTED_CITY not in text.lower())
    texts = by_name[: READ_TEXTS // 2] + by_name[-READ_TEXTS // 2 :]
    related = [proposal.word for proposal in propose(model, [PLANTED_CITY], texts)]
    harm = PairGap(model, pairs, dataset.label_names.index("positive"))
    steps = close(model, [PLANTED_CITY], related, harm, dataset.validation, ACCURACY_COST)
    return [step.word for step in steps]


def _change(text: str, old: Prediction, new: Prediction) -> dict[str, Any]:
    return {
        "text": text,
        "before": old.label,
        "probability_before": old.probability,
        "after": new.label,
        "probability_after": new.probability,
    }


def _speed(predictor: Predictor, texts: Sequence[str]) -> dict[str, float]:
    """Milliseconds a text, predicting and explaining the same texts by turns; the faster of two runs."""
    times: dict[str, list[float]] = {"predict_ms_per_text": [], "explain_ms_per_text": []}
    for _ in range(2):
        for name, call in (
            ("predict_ms_per_text", predictor.predict),
            ("explain_ms_per_text", predictor.explain),
        ):
            start = time.perf_counter()
            call(texts)
            times[name].append(1000 * (time.perf_counter() - start) / len(texts))
    return {name: min(found) for name, found in times.items()}


def _print_figures(console: Console, results: Results) -> None:
    dictionary = results["dictionary"]
    figures = {
        "accuracy": results["accuracy"],
        results["reference"]["model"]: results["reference"]["score"],
        "largest relative residual": results["dla"]["max_relative_residual"],
        "active words a text": results["active_words"]["mean"],
        "grounding@100 where read": dictionary["grounding100"],
        "grounding@100 anywhere": dictionary["grounding100_anywhere"],
        "effective vocabulary": dictionary["effective_vocabulary"],
    }
    console.print()
    terminal.metrics(console, figures)
    reasons = {label: [r["word"] for r in found] for label, found in dictionary["top_reasons"].items()}
    terminal.table(
        console, "Largest reasons", ["class", "words"], [[c, ", ".join(w)] for c, w in reasons.items()]
    )


def _print_surgery(console: Console, surgery: Results) -> None:
    console.rule(style="dim")
    rows = []
    for number, step in enumerate(surgery["steps"]):
        words = step["removed"]
        more = f" and {len(words) - 6} more" if len(words) > 6 else ""
        name = ("+ " if number > 1 else "") + (", ".join(words[:6]) or "nothing") + more
        rows.append([name, _told(step["gap"]), _told(step["accuracy"]), step["changed"]])
    title = f"Removing what the model reads at “{PLANTED_CITY}”"
    terminal.table(console, title, ["removed", "gap", "accuracy", "changed"], rows)


def _told(interval: dict[str, float]) -> str:
    """A figure with its 95 % interval."""
    return "{mean:.3f} ({low:.3f} to {high:.3f})".format(**interval)
