"""Are the reasons that explainers give the reasons there are? One model, four kinds of evidence.

1. Erasing: every explainer on the same test texts, with what it costs, one part for each.
2. Sums: how far the sums of integrated gradients are from the logit they are to explain.
3. People: whether words speak for the class that people gave them alone, where a dataset labels single words.
4. Planted truth: a second model, trained on texts whose deciding words are known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np

from splade.config.schema import ExperimentConfig
from splade.data.corpora.planted import SIZES, Planted, planted_dataset
from splade.data.rows import Texts
from splade.errors import ConfigError
from splade.evaluation.agreement import agreement
from splade.evaluation.experiment import Results, changed
from splade.evaluation.explainers.bottleneck import BOTTLENECK
from splade.evaluation.explainers.compare import compare
from splade.evaluation.explainers.inputs import EXPLAINERS, integrated_gradients_gap
from splade.evaluation.explainers.questions import Settings, ask
from splade.evaluation.planted import planted_rows
from splade.models.lexical_sae import LexicalSAE
from splade.studies.common import Study, drawn, on_disk, without_words
from splade.training.progress import Progress

PEOPLE_TEXTS = 200  # in which explainers are compared with people's words, at most
_SIGNED = [name for name in EXPLAINERS if name not in ("attention_rollout", "random")]  # these know no class


def run_faithfulness(
    config: ExperimentConfig, output: Path, progress: Progress, seeds: Sequence[int] = ()
) -> Results:
    """Train the config's model, and ask every explainer about it."""
    names = _explainers(config)
    study = Study("faithfulness", config, output, progress, seeds)
    dataset, settings = study.texts(), _settings(study.config)
    assert isinstance(dataset.test, Texts)
    words, held_out = without_words(dataset, output / "data")
    model = study.train("trained", changed(study.config, held_out)).model()
    texts = drawn(dataset.test, config.faithfulness.texts, study.config.seed).texts
    for name in names:
        study.part(f"explainer {name}", partial(_explainer, model, texts, settings, name), _missing)
    if "integrated_gradients" in names:
        study.part("sums of integrated gradients", partial(_sums, model, texts, settings))
    if words:
        _ask_people(study, model, texts, words, [name for name in names if name in _SIGNED], settings)
    if config.faithfulness.planted_texts:
        _ask_of_planted(study, [name for name in names if name in EXPLAINERS], settings)
    return study.finish()


def _explainers(config: ExperimentConfig) -> list[str]:
    """Those that the config names, or all."""
    known = [*(name for name in BOTTLENECK if name not in EXPLAINERS), *EXPLAINERS]
    if unknown := [name for name in config.faithfulness.explainers if name not in known]:
        raise ConfigError(f"no explainer '{unknown[0]}': choose among {', '.join(known)}")
    return config.faithfulness.explainers or known


def _settings(config: ExperimentConfig) -> Settings:
    asked = config.faithfulness
    return Settings(
        ig_steps=asked.ig_steps,
        lime_samples=asked.lime_samples,
        shap_evaluations=asked.shap_evaluations,
        seed=config.seed,
    )


def _explainer(model: LexicalSAE, texts: list[str], settings: Settings, name: str) -> list[Results]:
    """Its rows of both tables."""
    return [asdict(row) for row in compare(model, texts, settings, [name])]


def _missing(rows: list[Results]) -> str:
    return next((row["note"] for row in rows if row["note"]), "")


def _ask_people(
    study: Study,
    model: LexicalSAE,
    texts: list[str],
    words: Mapping[str, str],
    names: list[str],
    settings: Settings,
) -> None:
    """Whether words speak for the class people gave them: the model's own, then those of each explainer."""
    human = {word: model.config.label_names.index(label) for word, label in words.items()}

    def rows(*explainers: str) -> list[Results]:
        found = agreement(model, texts[:PEOPLE_TEXTS], human, settings, explainers)
        # the model's concept words come first, the prediction alone last
        return [row.to_dict() for row in (found[1:-1] if explainers else found)]

    study.part("people", rows)
    for name in names:
        study.part(f"people {name}", partial(rows, name), _missing)


def _ask_of_planted(study: Study, names: list[str], settings: Settings) -> None:
    """A second model, of the same settings, and what each explainer names of the words that decide."""
    sizes = {**SIZES, "test": study.config.faithfulness.planted_texts}
    dataset, planted = planted_dataset(study.config.seed, sizes)
    config = changed(study.config, on_disk(dataset, study.output / "planted"))
    model = study.train("planted", config).model()
    for name in names:
        study.part(f"planted {name}", partial(_planted, model, planted, settings, name), _missing)


def _planted(model: LexicalSAE, planted: Planted, settings: Settings, name: str) -> list[Results]:
    return [row.to_dict() for row in planted_rows(model, planted, settings, [name])]


def _sums(model: LexicalSAE, texts: list[str], settings: Settings) -> Results:
    """captum's own measure of what its sums leave out, in units of the logit."""
    gaps = np.abs(integrated_gradients_gap(model, ask(model, texts), settings))
    return {"steps": settings.ig_steps, "mean": float(gaps.mean()), "max": float(gaps.max())}
