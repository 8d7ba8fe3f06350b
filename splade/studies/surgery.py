"""Taking a concept out of a trained model: which words, at what cost, and what of the concept is left.

1. The config's model is trained, or taken as it is where its run is complete.
2. Without confirmed words, words that go with a group are proposed (`groups.py`) to a person, no more.
3. With them: training texts say which further words go with the concept (`closure`), validation rows what
   that costs. The words are removed from a copy of the model, `OUTPUT/model`.
4. Measured on rows that chose nothing: accuracy, gap and leakage word by word; error rates by group before
   and after; other ways to remove a concept beside it; a certificate.

The concept is about a text if one of the confirmed words stands in it. With the embedded reviews the gap is
that of pairs of texts which differ in the city alone; elsewhere it is the mean difference between the false
positive rate of a group and that of the rows outside it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splade.config.schema import ExperimentConfig
from splade.data.corpora.reviews import PLANTED_CITY, city_pairs
from splade.data.hub import GroupedTexts
from splade.data.rows import Dataset, Texts
from splade.errors import ConfigError, DataError
from splade.evaluation.bias import evaluate_bias
from splade.evaluation.experiment import Results, changed
from splade.evaluation.frozen import find_frozen
from splade.evaluation.intervals import Interval
from splade.evaluation.records import read_json, write_json
from splade.evaluation.removals import Marked, compare_removals
from splade.intervene import suppress_token_globally, word_ids
from splade.intervene.cached import Cached
from splade.intervene.certificate import certify
from splade.intervene.closure import close, propose
from splade.intervene.harm import Harm, PairGap, ProbeLeakage
from splade.intervene.leakage import contain
from splade.models.lexical_sae import LexicalSAE
from splade.studies.common import Study
from splade.studies.curve import curve, said, summary
from splade.studies.groups import by_mention, centroid_words, grouped_file
from splade.training.progress import Progress

PAIRS, CHOOSING_PAIRS = 150, 300
_PROPOSED, _READ, _FEWEST = 20, 2000, 10  # words; training texts read; texts on either side of a concept
_REASON = "confirmed as what must not matter"
_CLOSURE = "goes with the confirmed words"


@dataclass(frozen=True)
class _Case:
    """A trained model with the rows to choose words on and those to measure on."""

    config: ExperimentConfig
    dataset: Dataset
    model: LexicalSAE
    learned: GroupedTexts
    measured: GroupedTexts
    label: int

    @property
    def held_out(self) -> Texts:
        """Rows that tell what a removal costs: validation rows, training rows where there are none."""
        found = self.dataset.validation or self.learned
        assert isinstance(found, Texts)
        return found

    @property
    def test(self) -> Texts:
        """Rows like those of training, for accuracy."""
        assert isinstance(self.dataset.test, Texts)
        return self.dataset.test

    @property
    def planted(self) -> bool:
        """Whether pairs can be made that differ in the concept alone."""
        return self.dataset.name == "reviews" and self.words == [PLANTED_CITY]

    @property
    def words(self) -> list[str]:
        """The confirmed words."""
        return list(self.config.surgery.words)


def run_surgery(
    config: ExperimentConfig,
    output: Path,
    progress: Progress,
    seeds: Sequence[int] = (),
    confirmed: Sequence[str] = (),
) -> Results:
    """Propose words, or remove the confirmed ones (`all`: those proposed) and measure what that does."""
    words = _confirmed(confirmed, output) or list(config.surgery.words)
    study = Study("surgery", changed(config, {"surgery.words": words}), output, progress, seeds)
    case = _case(study)
    if not words:
        found = study.part("proposals", partial(_proposals, case))
        if found:
            write_json(output / "proposals.json", found)
        return study.finish()
    order = study.part("closure", partial(_closure, case))
    if order is not None:
        study.part("curve", partial(_curve, case, order))
        study.part("bias", partial(_bias, case, order))
        study.part("removals", partial(_removals, study, case, order))
        study.part("certificate", partial(_certificate, case, order, output), _broken)
    return study.finish()


def _confirmed(words: Sequence[str], output: Path) -> list[str]:
    if list(words) != ["all"]:
        return list(words)
    proposed = read_json(output / "proposals.json")
    if not isinstance(proposed, list) or not proposed:
        raise ConfigError(f"{output} holds no proposals: run the command without --confirm first")
    return [str(found["word"]) for found in proposed]


def _case(study: Study) -> _Case:
    """Train, and find the rows and their groups."""
    dataset, settings = study.texts(), study.config.surgery
    names = dataset.label_names
    if dataset.multi_label or (settings.positive is None and len(names) != 2):
        raise ConfigError("errors are compared for one label of a text: name it as surgery.positive")
    if settings.positive not in (None, *names):
        known = ", ".join(names)
        raise ConfigError(f"no label {settings.positive!r}: name one of {known} as surgery.positive")
    assert isinstance(dataset.train, Texts)
    measured = _measured(dataset, study.config)
    learned = _half_grouped(_with_groups(dataset.train, measured, dataset), study.config.seed)
    model = study.train("trained", study.config).model()
    label = names.index(settings.positive) if settings.positive else 1
    return _Case(study.config, dataset, model, learned, measured, label)


def _measured(dataset: Dataset, config: ExperimentConfig) -> GroupedTexts:
    """The rows on which groups are compared."""
    settings, test = config.surgery, dataset.test
    assert isinstance(test, Texts)
    if settings.test_path:
        return grouped_file(settings.test_path, settings.group, dataset.label_names)
    if isinstance(test, GroupedTexts):
        return test
    if names := _cities(dataset) or settings.words:
        return by_mention(test, names)
    raise DataError(
        f"{dataset.name}: nothing tells the groups of a text; name rows that have a column of groups as "
        "surgery.test_path, or words as surgery.words"
    )


def _with_groups(rows: Texts, measured: GroupedTexts, dataset: Dataset) -> GroupedTexts:
    """Training rows with their groups: their own, or those of the measured rows that they mention."""
    if isinstance(rows, GroupedTexts):
        return rows
    return by_mention(rows, _cities(dataset) or sorted(set().union(*measured.groups)))


def _half_grouped(rows: GroupedTexts, seed: int) -> GroupedTexts:
    """Some of the rows, up to half of them of a group: groups are rare."""
    maker = random.Random(seed)
    chosen: list[int] = []
    for of_group in (True, False):
        there = [i for i, names in enumerate(rows.groups) if bool(names) == of_group]
        chosen += maker.sample(there, min(len(there), _READ // 2))
    return rows.take(sorted(chosen))


def _cities(dataset: Dataset) -> list[str]:
    """The groups of the embedded reviews: the city that a text names."""
    others = dataset.about.get("other_cities")
    return [str(dataset.about["planted_city"]), *map(str, others)] if isinstance(others, list) else []


# --- parts ---------------------------------------------------------------------------------------------


def _proposals(case: _Case) -> list[dict[str, Any]]:
    found = centroid_words(case.model, case.learned, case.label, _PROPOSED)
    if not found:
        raise DataError("no word goes with a group: give words of your own with --confirm")
    return [candidate.to_dict() for candidate in found]


def _closure(case: _Case) -> list[str]:
    """The words that go after the confirmed ones, in their order."""
    settings = case.config.surgery
    frozen = find_frozen(case.model)
    decoder = None if frozen is None else frozen.backbone.E_VH
    related = propose(case.model, case.words, case.learned.texts, decoder, settings.closure)
    harm = _harm(case)
    if harm is None:
        return []
    names = [proposal.word for proposal in related]
    steps = close(
        case.model, case.words, names, harm, case.held_out, settings.accuracy_cost, settings.closure
    )
    return [step.word for step in steps]


def _harm(case: _Case) -> Harm | None:
    """What the closure brings down; None where too few training texts are about the concept."""
    if case.planted:
        pairs = city_pairs(PAIRS + CHOOSING_PAIRS, case.config.seed)[PAIRS:]
        return PairGap(case.model, pairs, case.label)
    about_N = _about(case, case.learned)
    return None if about_N is None else ProbeLeakage(Cached.read(case.model, case.learned.texts), about_N)


def _about(case: _Case, rows: Texts) -> NDArray[np.bool_] | None:
    """Which rows are about the concept; None with too few on a side."""
    about_N = contain(rows.texts, case.words)
    return about_N if min(about_N.sum(), (~about_N).sum()) >= _FEWEST else None


def _curve(case: _Case, order: Sequence[str]) -> Results:
    pairs = city_pairs(PAIRS, case.config.seed) if case.planted else []
    removals = [[], case.words, *([word] for word in order)]
    about_N = _about(case, case.test)
    groups = None if case.planted else case.measured
    rows = Cached.read(case.model, case.test.texts)
    points = curve(case.model, removals, rows, case.test.labels, pairs, case.label, about_N, groups)
    return {"paired": case.planted, **summary(points)}


def _bias(case: _Case, order: Sequence[str]) -> Results:
    """Error rates by group, before and after."""
    whole = Cached.read(case.model, case.measured.texts)
    ids = _ids(case, order)
    states = {"before": whole, "after": whole.without(ids)}
    gold = [label == case.label for label in case.measured.labels]
    return {
        when: evaluate_bias(said(found, case.label), gold, case.measured.groups).to_dict()
        for when, found in states.items()
    }


def _removals(study: Study, case: _Case, order: Sequence[str]) -> list[dict[str, Any]]:
    """Surgery beside LEACE, and a model that never had the words if asked for, on the rows by group."""
    train, test = (
        Marked(rows, contain(rows.texts, case.words).tolist()) for rows in (case.learned, case.measured)
    )
    gold = [label == case.label for label in case.measured.labels]

    def gap(probability_NC: NDArray[np.float64]) -> Interval | None:
        said_N = probability_NC.argmax(1) == case.label
        return evaluate_bias(said_N, gold, case.measured.groups).mean_fpr_difference

    words, retrained = [*case.words, *order], None
    if case.config.surgery.retrain:
        retrained = study.train("retrained", changed(case.config, {"without": words})).model()
    rows = compare_removals(case.model, words, train, test, retrained, gap)
    return [row.to_dict() for row in rows]


def _certificate(case: _Case, order: Sequence[str], output: Path) -> Results:
    """Remove the words, save the model, certify it; the whole certificate goes to a file."""
    for words, reason in ((case.words, _REASON), (order, _CLOSURE)):
        if words:
            suppress_token_globally(case.model, words, reason)
    case.model.save_pretrained(output / "model")
    frozen = find_frozen(case.model)
    found = certify(case.model, case.test, None if frozen is None else frozen.backbone.E_VH)
    write_json(output / "certificate.json", found.to_dict())
    return {"holds": found.holds, "hash": found.model_hash, "words": found.words}


def _broken(certificate: Results) -> str:
    return "" if certificate["holds"] else "an attack moved a removed word: do not use this model"


def _ids(case: _Case, order: Sequence[str]) -> list[int]:
    return word_ids(case.model, [*case.words, *order])
