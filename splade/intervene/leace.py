"""LEACE: the smallest affine change of s after which no linear probe reads a concept; a rival of surgery.

1. A subspace is chosen: at most 2,000 words (`most_active` proposes those active in most texts), because the
   statistics are dense, A² numbers. Words outside it pass unchanged, and may still tell of the concept.
2. Batches of training text with concept labels (never those of the task) are counted, and the package
   `concept-erasure` solves for s' = P s + b, whose mean is the same with the concept and without it.
3. While a block of `erased` runs, the head of a model reads s' in place of s.

What this breaks. s' is dense: every row carries a value on nearly every word of the subspace, read or not,
and some are negative. A logit is still an exact sum over s', but no longer one of active words that stand for
something in the text; `damage` says how far. What no position was read for counts to position 0, the special
token in front, so that spans still sum. The guarantee is about linear probes on the rows it was fitted on:
another probe, or another text, can do better. The word itself stays in the model, unlike after a removal.

Legend: N rows, P active pairs, A words of the subspace, K columns of concept labels, V dimensions.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from splade.errors import ConfigError, DataError
from splade.intervene.leakage import encoded
from splade.mechanistic.attribution import compute_attribution_tensor
from splade.models.lexical_sae import LexicalSAE
from splade.models.state import CircuitState, SparseRows

MOST_WORDS = 2000
_TRUNCATED = 1e-9  # singular values below this are rounding; the package's .01 would spare rare concepts
_EQUAL = 1e-6  # how far the means may lie apart afterwards, as a share of how far they lay before


@dataclass(frozen=True)
class Leace:
    """s' = s - left (right (s - mean)) on the words `ids_A`, fitted on `rows` rows."""

    ids_A: Tensor
    left_AK: Tensor
    right_KA: Tensor
    mean_A: Tensor
    rows: int

    def project(self, s_NA: Tensor) -> Tensor:
        """s' [N, A] of dense activations on the words of the subspace."""
        left_AK, right_KA, mean_A = (m.to(s_NA.device) for m in (self.left_AK, self.right_KA, self.mean_A))
        exact_NA = s_NA.double()
        return (exact_NA - ((exact_NA - mean_A) @ right_KA.T) @ left_AK.T).to(s_NA.dtype)

    def apply(self, rows: SparseRows) -> SparseRows:
        """The rows with s' in place of s."""
        s_NA, slot_P = self.project(columns(rows, self.ids_A)), _slots(rows, self.ids_A)
        inside_P = slot_P >= 0
        pair_NA = torch.full(s_NA.shape, -1, device=slot_P.device)
        pair_NA[rows.row_P[inside_P], slot_P[inside_P]] = inside_P.nonzero()[:, 0]
        row_R, slot_R = s_NA.nonzero(as_tuple=True)
        outside_O = (~inside_P).nonzero()[:, 0]
        row = torch.cat([rows.row_P[outside_O], row_R])
        word = torch.cat([rows.word_P[outside_O], self.ids_A.to(slot_R.device)[slot_R]])
        value = torch.cat([rows.value_P[outside_O], s_NA[row_R, slot_R]])
        order = torch.argsort(row * rows.vocab_size + word)
        pair = torch.cat([outside_O, pair_NA[row_R, slot_R]])[order]
        return _rebuilt(rows, row[order], word[order], value[order], pair)


class LeaceFitter:
    """Accumulates rows with their concept labels, in float64."""

    def __init__(self, ids: Sequence[int]) -> None:
        if not 0 < len(ids) <= MOST_WORDS:
            raise ConfigError(f"{len(ids)} words: give from 1 to {MOST_WORDS:,}, say most_active(...)")
        self._package = _package()
        self._ids_A = torch.tensor(sorted(set(ids)))
        self._sums: Any = None

    def update(self, rows: SparseRows, concept: Tensor) -> None:
        """Count rows whose texts have the concept (1) or not (0): [N], or [N, K] for several."""
        if not rows.n_rows:
            return
        concept_NK = torch.as_tensor(concept).reshape(rows.n_rows, -1).double().cpu()
        if self._sums is None:
            self._sums = self._package.LeaceFitter(
                len(self._ids_A),
                concept_NK.shape[1],
                dtype=torch.float64,
                constrain_cov_trace=False,  # it can only act on rounding here, and then breaks the guarantee
                svd_tol=_TRUNCATED,
            )
        self._sums.update(columns(rows, self._ids_A).detach().double().cpu(), concept_NK)

    def result(self) -> Leace:
        """The map that was fitted, by a shrunk covariance unless that breaks the guarantee.

        The package's shrinkage divides by how far the covariance is from a multiple of the identity.
        """
        sums = self._sums
        if sums is None or sums.n < 2 or bool(((sums.mean_z == 0) | (sums.mean_z == 1)).any()):
            raise DataError("LEACE needs rows with the concept and rows without it: give texts of both kinds")
        for shrinkage in (True, False):
            solver = copy.copy(sums)
            solver.shrinkage = shrinkage
            found = solver.eraser
            left_AK, right_KA = found.proj_left, found.proj_right
            apart_AK = sums.sigma_xz - left_AK @ (right_KA @ sums.sigma_xz)
            if float(apart_AK.norm()) <= _EQUAL * float(sums.sigma_xz.norm()):
                break
        return Leace(self._ids_A, left_AK, right_KA, sums.mean_x.clone(), int(sums.n))


@dataclass(frozen=True)
class Damage:
    """Means over rows: words active before, values that are not 0 after; shares of what is there after.

    `negative` is the share of values below 0, `unread` that of the predicted class's |contribution| on words
    that were not active before.
    """

    rows: int
    active_before: float
    present_after: float
    negative: float
    unread: float


def most_active(model: LexicalSAE, texts: Sequence[str], most: int = MOST_WORDS) -> list[int]:
    """The words active in most texts, ties broken by id."""
    count_V = torch.zeros(model.lexicon.vocab_size, dtype=torch.long)
    for _, rows in encoded(model, texts):
        count_V += torch.bincount(rows.word_P[rows.open_P].cpu(), minlength=len(count_V))
    found = count_V.argsort(descending=True, stable=True)[: min(most, int((count_V > 0).sum()))]
    return sorted(found.tolist())


def fit_leace_eraser(
    model: LexicalSAE, texts: Sequence[str], concept: Sequence[bool], ids: Sequence[int] | None = None
) -> Leace:
    """LEACE from training texts and whether each has the concept, on `ids` or else the most active words."""
    if model.config.task != "classification":
        raise ConfigError("a tagging model's rows are words: give these to LeaceFitter.update yourself")
    if len(texts) != len(concept):
        raise DataError(f"{len(texts)} texts and {len(concept)} concept labels: give one label a text")
    fitter = LeaceFitter(most_active(model, texts) if ids is None else ids)
    for indices, rows in encoded(model, texts):
        fitter.update(rows, torch.tensor([bool(concept[i]) for i in indices]))
    return fitter.result()


@contextlib.contextmanager
def erased(model: LexicalSAE, leace: Leace) -> Iterator[LexicalSAE]:
    """The model deciding on s' while the block runs."""
    inner, outer = model.decide, vars(model).get("decide")

    def decide(rows: SparseRows) -> CircuitState:
        keep_V = model.lexicon.keep_V
        if not bool(keep_V[leace.ids_A.to(keep_V.device)].all()):
            raise ConfigError("LEACE would bring removed words back: fit it again after their removal")
        return inner(leace.apply(rows))

    vars(model)["decide"] = decide
    try:
        yield model
    finally:
        del vars(model)["decide"]
        if outer is not None:
            vars(model)["decide"] = outer


@torch.no_grad()
def damage(model: LexicalSAE, leace: Leace, texts: Sequence[str]) -> Damage:
    """What LEACE does to the sums of words that decide some texts."""
    count = torch.zeros(5, dtype=torch.double)
    for _, rows in encoded(model, texts):
        with erased(model, leace):
            state = model.decide(rows)
        after = state.rows
        amount_P = compute_attribution_tensor(state, state.logits.argmax(-1)).amount.abs().double()
        unread_P = ~torch.isin(_keys(after), _keys(rows))
        count += torch.stack(
            [
                rows.open_P.sum().double(),
                (after.value_P != 0).sum().double(),
                (after.value_P < 0).sum().double(),
                amount_P[unread_P].sum(),
                amount_P.sum(),
            ]
        ).cpu()
    before, present, negative, unread, whole = count.tolist()
    n = max(len(texts), 1)
    return Damage(len(texts), before / n, present / n, negative / max(present, 1), unread / (whole or 1))


def columns(rows: SparseRows, ids_A: Tensor) -> Tensor:
    """s [N, A] on some words."""
    slot_P = _slots(rows, ids_A)
    inside_P = slot_P >= 0
    s_NA = rows.value_P.new_zeros(rows.n_rows, len(ids_A))
    return s_NA.index_put((rows.row_P[inside_P], slot_P[inside_P]), rows.value_P[inside_P])


def _slots(rows: SparseRows, ids_A: Tensor) -> Tensor:
    """The place [P] of each pair's word among `ids_A`, -1 for others."""
    slot_V = torch.full((rows.vocab_size,), -1, device=rows.word_P.device)
    slot_V[ids_A.to(slot_V.device)] = torch.arange(len(ids_A), device=slot_V.device)
    return slot_V[rows.word_P]


def _keys(rows: SparseRows) -> Tensor:
    return rows.row_P * rows.vocab_size + rows.word_P


def _rebuilt(rows: SparseRows, row_R: Tensor, word_R: Tensor, value_R: Tensor, pair_R: Tensor) -> SparseRows:
    """Rows of other pairs, sorted; `pair_R` is the pair of `rows` that each continues, or -1."""
    device = row_R.device
    place_P = torch.full((len(rows.row_P),), -1, device=device)
    place_P[pair_R[pair_R >= 0]] = (pair_R >= 0).nonzero()[:, 0]
    kept_Q = place_P[rows.source_pair_Q] >= 0
    unread_U = (pair_R < 0).nonzero()[:, 0]
    share_U = rows.source_share_Q.new_ones(len(unread_U))
    return SparseRows(
        row_P=row_R,
        word_P=word_R,
        value_P=value_R,
        logit_P=torch.cat([rows.logit_P, rows.logit_P.new_zeros(1)])[pair_R],
        source_pair_Q=torch.cat([place_P[rows.source_pair_Q][kept_Q], unread_U]),
        source_position_Q=torch.cat([rows.source_position_Q[kept_Q], torch.zeros_like(unread_U)]),
        source_share_Q=torch.cat([rows.source_share_Q[kept_Q], share_U]),
        n_rows=rows.n_rows,
        vocab_size=rows.vocab_size,
    )


def _package() -> Any:
    try:
        return importlib.import_module("concept_erasure")
    except ImportError as error:
        raise ConfigError('LEACE needs concept-erasure: pip install "lexical-sae[erasure]"') from error
