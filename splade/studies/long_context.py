"""A sentence that decides, hidden in long texts: one model, a part for each length.

1. Needles are test texts drawn among those that fill at most half of the shortest length; where there are too
   few, the shortest ones.
2. Filler is the file that the config names, a sentence on each line, or sentences of the embedded letters
   that judge nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from splade.config.schema import ExperimentConfig
from splade.data.corpora.planted import neutral_sentences
from splade.data.datasets import read_texts
from splade.data.rows import Texts
from splade.evaluation.experiment import Results
from splade.evaluation.needle import needle
from splade.inference.rows import EncodedRows
from splade.models.lexical_sae import LexicalSAE
from splade.studies.common import Study, drawn
from splade.training.progress import Progress


def run_long_context(
    config: ExperimentConfig, output: Path, progress: Progress, seeds: Sequence[int] = ()
) -> Results:
    """Train the config's model, and hide sentences at every depth of every length."""
    asked, study = config.needle, Study("long_context", config, output, progress, seeds)
    dataset = study.texts()
    assert isinstance(dataset.test, Texts)
    filler = read_texts(asked.filler) if asked.filler else list(neutral_sentences())
    model = study.train("trained", study.config).model()
    room = min(asked.lengths, default=0) // 2
    needles = _needles(model, dataset.test, room, asked.texts, study.config.seed)
    for length in asked.lengths:
        study.part(f"{length} tokens", partial(_at, model, needles, filler, length, asked.depths))
    return study.finish()


def _needles(model: LexicalSAE, rows: Texts, tokens: int, count: int, seed: int) -> Texts:
    lengths = EncodedRows(rows, model).lengths
    short = [i for i, length in enumerate(lengths) if length <= tokens]
    if len(short) < count:
        short = sorted(range(len(rows)), key=lengths.__getitem__)[:count]
    return drawn(rows.take(short), count, seed)


def _at(
    model: LexicalSAE, needles: Texts, filler: Sequence[str], length: int, depths: Sequence[float]
) -> list[Results]:
    """One cell for each depth."""
    cells = needle(model, needles.texts, needles.labels, filler, [length], depths)
    return [cell.to_dict() for cell in cells]
