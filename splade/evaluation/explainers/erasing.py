"""Are the words that an explainer ranks highest the ones that matter? ERASER's questions, in both tables.

The first k = max(1, ceil(fraction · words)) words by score are named, as `evaluation/eraser.py` defines it. A
text flips when its class (or its set of labels) changes without the named words.

Legend: T texts, N rows of a batch, K fractions, M = 2K + 1 variants: whole, K without the named words, K of
these words alone; C classes, W words of a text, P active pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from splade.circuits.prediction import probabilities
from splade.config.model import LexicalConfig
from splade.evaluation.eraser import circuit_sizes, nested_logits
from splade.evaluation.explainers.questions import Question, Removal, keeping, logits_of
from splade.evaluation.intervals import Interval, intervals
from splade.models.lexical_sae import LexicalSAE
from splade.models.state import CircuitState


@dataclass(frozen=True)
class Erased:
    """What naming one share of the words shows."""

    fraction: float
    comprehensiveness: Interval
    sufficiency: Interval
    flip_rate: Interval


@dataclass(frozen=True)
class Faithfulness:
    """Figures at each fraction, smallest first, and their means over fractions."""

    aopc_comprehensiveness: Interval
    aopc_sufficiency: Interval
    flip_rate: Interval
    at: list[Erased]


class Erasures(NamedTuple):
    """Of each text: what it loses without its named words, what with them alone, and whether it flips."""

    needed_TK: Tensor
    enough_TK: Tensor
    flips_TK: Tensor


@torch.no_grad()
def erase_active(
    config: LexicalConfig, state: CircuitState, classes_N: Tensor, score_P: Tensor, fractions: Sequence[float]
) -> Erasures:
    """Active words are set to zero."""
    alone_NKC, without_NKC = nested_logits(state, score_P, circuit_sizes(state.rows, fractions))
    logits_NMC = torch.cat([state.logits[:, None], without_NKC, alone_NKC], 1)
    return _erasures(config, logits_NMC.cpu(), classes_N.cpu())


def erase_inputs(
    model: LexicalSAE,
    questions: Sequence[Question],
    scores: Sequence[Sequence[float]],
    removal: Removal,
    fractions: Sequence[float],
    batch_size: int,
) -> Erasures:
    """Words of the text are masked or deleted."""
    variants = [
        ids
        for question, score_W in zip(questions, scores, strict=True)
        for ids in keeping(question, kept(score_W, fractions), removal, model)
    ]
    logits_TMC = logits_of(model, variants, batch_size).view(len(questions), 2 * len(fractions) + 1, -1)
    return _erasures(model.config, logits_TMC, torch.tensor([q.label for q in questions]))


def kept(score_W: Sequence[float], fractions: Sequence[float]) -> Tensor:
    """Which words [M, W] each variant has; ties go by place in the text."""
    rank_W = torch.tensor(score_W, dtype=torch.double).argsort(descending=True, stable=True).argsort()
    sizes = [max(1, math.ceil(fraction * len(score_W) - 1e-9)) for fraction in fractions]
    named_KW = rank_W[None] < torch.tensor(sizes)[:, None]
    return torch.cat([torch.ones_like(named_KW[:1]), ~named_KW, named_KW])


def faithfulness(erasures: Erasures, fractions: Sequence[float]) -> Faithfulness:
    """Means over texts with their intervals."""
    K = len(fractions)
    means = [figure_TK.mean(1, keepdim=True) for figure_TK in erasures]
    found = intervals(torch.cat([*erasures, *means], 1).numpy())
    columns = (found[:K], found[K : 2 * K], found[2 * K : 3 * K])
    at = [Erased(*figures) for figures in zip(fractions, *columns, strict=True)]
    needed, enough, flips = found[3 * K :]
    return Faithfulness(needed, enough, flips, at)


def _erasures(config: LexicalConfig, logits_TMC: Tensor, label_T: Tensor) -> Erasures:
    K = (logits_TMC.shape[1] - 1) // 2
    p_TMC = probabilities(logits_TMC, config.multi_label, config.temperature)
    p_TM = p_TMC[torch.arange(len(label_T)), :, label_T]
    gap_TM = p_TM[:, :1] - p_TM[:, 1:]
    if config.multi_label:
        flips_TM = ((logits_TMC >= 0) != (logits_TMC[:, :1] >= 0)).any(-1)
    else:
        flips_TM = logits_TMC.argmax(-1) != logits_TMC[:, :1].argmax(-1)
    return Erasures(gap_TM[:, :K], gap_TM[:, K:], flips_TM[:, 1 : K + 1].double())
