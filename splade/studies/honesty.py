"""What keeps words honest, and what shows when they are not: one dataset under every honesty mode.

1. The four modes of the dictionary, all else as the config says.
2. A model made to collapse: a free dictionary, and a recipe that presses activations towards nothing (L1).
   Words then become signals for a class, whatever the text says.
3. Beside each other: what the dictionary's own figures say of each model, and what ERASER says, which asks
   only whether the words named carry the decision. Signals do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np

from splade.config.schema import ExperimentConfig
from splade.data.rows import Dataset, Texts
from splade.evaluation.agreement import agreement
from splade.evaluation.experiment import Results, changed
from splade.evaluation.seeds import spread
from splade.models.lexical_sae import LexicalSAE
from splade.models.lexicon import HONESTY_MODES
from splade.studies.common import Study, without_words
from splade.training.progress import Progress

COLLAPSED = {"recipe": "lexical-sae", "honesty": "free"}
_DICTIONARY = ("grounding100", "grounding100_anywhere", "in_input")


def run_honesty(
    config: ExperimentConfig, output: Path, progress: Progress, seeds: Sequence[int] = ()
) -> Results:
    """Every mode and the collapsed model, on the config's data."""
    study = Study("honesty", config, output, progress, seeds)
    dataset = study.texts()
    words, held_out = without_words(dataset, output / "data")
    variants: dict[str, dict[str, str]] = {mode: {"honesty": mode} for mode in HONESTY_MODES}
    for name, settings in {**variants, "collapsed": COLLAPSED}.items():
        config = changed(study.config, {**held_out, **settings})
        study.part(name, partial(_variant, study, name, config, dataset, words))
    return study.finish()


def _variant(
    study: Study, name: str, config: ExperimentConfig, dataset: Dataset, words: Mapping[str, str]
) -> Results:
    """One model's figures: of its dictionary, and of its words as ERASER sees them."""
    runs = study.train(name, config)
    return {
        "accuracy": runs.accuracy(),
        "words": runs.figure("active_words", "mean"),
        **{key: runs.figure("dictionary", key) for key in _DICTIONARY},
        "effective_vocabulary": asdict(spread([_vocabulary(found) for found in runs.results])),
        "code_words": [word for found in runs.results for word in found["dictionary"]["code_words"]],
        **_eraser(runs.results[0]),
        "people": _agreement(runs.model(), dataset, words) if words else None,
    }


def _agreement(model: LexicalSAE, dataset: Dataset, words: Mapping[str, str]) -> Results | None:
    """How often the words a decision was made from speak for the class that people gave them."""
    assert isinstance(dataset.test, Texts)
    human = {word: model.config.label_names.index(label) for word, label in words.items()}
    [own, *_] = agreement(model, dataset.test.texts, human, explainers=())
    return None if own.agreed is None else asdict(own.agreed)


def _vocabulary(results: Results) -> float:
    """Effective words of a class, on average over the classes that are predicted at all."""
    return float(np.mean(list(results["dictionary"]["effective_vocabulary"].values()) or [0.0]))


def _eraser(results: Results) -> Results:
    """What the words named first are worth, for the predicted class, with intervals over rows."""
    [found] = [found for found in results["eraser"] if found["target"] == "predicted"]
    return {
        "comprehensiveness": found["aopc_comprehensiveness"],
        "sufficiency": found["aopc_sufficiency"],
    }
