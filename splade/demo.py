"""`lexical-sae demo`: the whole path on embedded data, in minutes on two cores.

1. Train on reviews in which one city stands almost only beside praise.
2. Evaluate on test reviews, where the city means nothing, beside a bag of words.
3. Explain six of them: the city, or what the model reads at its name, is among the reasons.
4. Remove the city's word, then every word that is read mostly at its name; show what changes.

The gap is the mean of P(positive | the city) - P(positive | another city) over the same sentences.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from splade.config.load import load_config
from splade.data.corpora.reviews import PLANTED_CITY, city_pairs
from splade.data.rows import Texts
from splade.evaluation.reference import bag_of_words
from splade.inference import Explanation, Prediction, Predictor
from splade.intervene import suppress_token_globally
from splade.models.lexical_sae import LexicalSAE
from splade.pipelines import Results, train, write_json
from splade.render import terminal
from splade.report.demo import demo_page
from splade.training.progress import Progress

SETTINGS = {"data.path": "reviews", "training.epochs": 4, "experiment_name": "demo"}
SHOWN = 6
PAIRS = 150
NEIGHBOUR_TEXTS = 400  # training texts in which words read at the city's name are looked for


def run(output: Path, console: Console, seed: int = 0) -> Results:
    """The demonstration; writes a model, results.json and report.html to `output`."""
    progress = Progress(console)
    config = load_config(overrides={**SETTINGS, "seed": seed})
    trained = train(config, output / "model", progress)
    test, learned = trained.dataset.test, trained.dataset.train
    assert isinstance(test, Texts)
    assert isinstance(learned, Texts)
    assert isinstance(trained.model, LexicalSAE)
    results = {**trained.results, "reference": asdict(bag_of_words(trained.dataset))}
    _print_figures(console, results)
    predictor = Predictor(trained.model)
    shown = _six(test)
    before = predictor.explain([test.texts[i] for i in shown])
    for explanation in before:
        console.rule(style="dim")
        terminal.explanation(console, explanation.to_dict(), top=8)
    surgery, after = _surgery(predictor, test, learned, [test.texts[i] for i in shown], seed)
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
    predictor: Predictor, test: Texts, learned: Texts, shown: Sequence[str], seed: int
) -> tuple[Results, list[Explanation]]:
    """Remove the word of the city, then those read at its name: figures of each step, explanations after."""
    model, pairs = predictor.model, city_pairs(PAIRS, seed)
    neighbours = _read_at(predictor, PLANTED_CITY, learned.texts)
    start = predictor.predict(test.texts)
    steps = [{"removed": [], **_measure(predictor, test, pairs, start, start)}]
    for words in ([PLANTED_CITY], [word for word in neighbours if word != PLANTED_CITY]):
        if words:
            suppress_token_globally(model, words)
            now = predictor.predict(test.texts)
            steps.append({"removed": words, **_measure(predictor, test, pairs, start, now)})
    changed = [i for i, (old, new) in enumerate(zip(start, now, strict=True)) if old.label != new.label]
    surgery = {
        "removed": [word for step in steps for word in step["removed"]],
        "texts": len(test),
        "flipped": steps[-1]["flipped"],
        "gap_before": steps[0]["gap"],
        "gap_after": steps[-1]["gap"],
        "accuracy_before": steps[0]["accuracy"],
        "accuracy_after": steps[-1]["accuracy"],
        "steps": steps,
        "examples": [_change(test.texts[i], start[i], now[i]) for i in changed[:8]],
    }
    return surgery, predictor.explain(shown)


def _measure(
    predictor: Predictor,
    test: Texts,
    pairs: Sequence[tuple[str, str]],
    start: Sequence[Prediction],
    now: Sequence[Prediction],
) -> dict[str, Any]:
    names = predictor.names
    with_city, with_other = (predictor.predict([pair[side] for pair in pairs]) for side in (0, 1))
    gaps = [
        a.probabilities["positive"] - b.probabilities["positive"]
        for a, b in zip(with_city, with_other, strict=True)
    ]
    right = sum(p.label == names[y] for p, y in zip(now, test.labels, strict=True))
    return {
        "gap": sum(gaps) / len(gaps),
        "accuracy": right / len(test),
        "flipped": sum(p.label != q.label for p, q in zip(start, now, strict=True)),
    }


def _read_at(predictor: Predictor, name: str, texts: Sequence[str]) -> list[str]:
    """Concept words that are read mostly at one input word, those of most activation there first."""
    some = [text for text in texts if name in text.lower()][: NEIGHBOUR_TEXTS // 2]
    some += [text for text in texts if name not in text.lower()][: NEIGHBOUR_TEXTS // 2]
    here, everywhere = Counter[str](), Counter[str]()
    for explanation in predictor.explain(some):
        for word in explanation.words:
            everywhere[word.word] += word.activation  # type: ignore[assignment]
            at = sum(read.share for read in word.read_at if read.text.lower() == name)
            here[word.word] += at * word.activation  # type: ignore[assignment]
    return [word for word, amount in here.most_common() if amount > everywhere[word] / 2]


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
        name = (
            "nothing"
            if not number
            else ", ".join(words[:6]) + (f" and {len(words) - 6} more" if len(words) > 6 else "")
        )
        rows.append([("+ " if number > 1 else "") + name, step["gap"], step["accuracy"], step["flipped"]])
    title = f"Removing what the model reads at “{PLANTED_CITY}”"
    terminal.table(console, title, ["removed", "gap", "accuracy", "changed"], rows)
