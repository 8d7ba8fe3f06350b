"""Scores of the words a reader sees, one list a text, from each explainer.

    ours                   exact contributions by the place each concept word was read at; one pass
    integrated_gradients   captum, from the embeddings of the masked text to its own; `ig_steps` passes
    gradient_shap          captum, the same path at random points
    lime                   lime, a linear fit to `lime_samples` texts with some words gone
    shap                   shap's Partition explainer over the words, `shap_evaluations` passes at most
    attention_rollout      attentions multiplied through the layers, read at the positions the decision used
    random                 for scale

The gradient methods assume a function without jumps. A JumpReLU gate jumps, so their sums can be off however
many steps they take; `integrated_gradients_gap` says by how much.

Legend: M variants of a text, B documents, L positions, W words, H hidden size, Q shares by position.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from splade.data.encoding import Batch
from splade.evaluation.explainers.attention import recording
from splade.evaluation.explainers.questions import (
    Question,
    Settings,
    decide,
    keeping,
    logits_of,
    mask_token,
    masking,
    package,
)
from splade.mechanistic.attribution import compute_attribution_tensor
from splade.models.lexical_sae import LexicalSAE
from splade.models.state import CircuitState

Scores = list[list[float]]
Explain = Callable[[LexicalSAE, Sequence[Question], Settings], Scores]
_Game = Callable[[NDArray[np.bool_]], NDArray[np.float64]]


@dataclass(frozen=True)
class InputExplainer:
    """An explainer of input words; `batches` if it answers several questions in one pass."""

    explain: Explain
    batches: bool = False


def ours(model: LexicalSAE, questions: Sequence[Question], settings: Settings) -> Scores:
    """Contributions by input word; with the bias they sum to the logit."""

    found: Scores = [[] for _ in questions]
    for indices, batch, state in decide(model, questions, settings):
        with torch.no_grad():
            classes_N = torch.tensor([questions[i].label for i in indices], device=state.logits.device)
            scores_BL = _spread(compute_attribution_tensor(state, classes_N).by_read, state, batch)
        _hand_out(found, questions, indices, scores_BL)
    return found


def attention_rollout(model: LexicalSAE, questions: Sequence[Question], settings: Settings) -> Scores:
    """Rollout from the positions where the decision's words were read, each by what was read there."""
    found: Scores = [[] for _ in questions]
    with recording(model) as recorded:
        for indices, batch, state in decide(model, questions, settings):
            rows = state.rows
            read_BL = _spread(rows.value_P[rows.source_pair_Q] * rows.source_share_Q, state, batch)
            scores_BL = torch.einsum("bl,blm->bm", read_BL, recorded.rollout)
            _hand_out(found, questions, indices, scores_BL)
    return found


def integrated_gradients(model: LexicalSAE, questions: Sequence[Question], settings: Settings) -> Scores:
    """captum's integrated gradients of the embeddings, summed over each word's pieces."""
    attr = package("captum.attr")
    found = []
    for question in questions:
        with _embedded(model, question) as (logit, x_1LH, base_1LH):
            amount_1LH = _integrate(attr.IntegratedGradients(logit), x_1LH, base_1LH, settings)
        found.append(question.by_word(amount_1LH[0].sum(-1).tolist()))
    return found


def integrated_gradients_gap(
    model: LexicalSAE, questions: Sequence[Question], settings: Settings
) -> list[float]:
    """captum's convergence delta of each text: Σ scores - (logit - logit of the baseline)."""
    attr = package("captum.attr")
    gaps = []
    for question in questions:
        with _embedded(model, question) as (logit, x_1LH, base_1LH):
            method = attr.IntegratedGradients(logit)
            amount_1LH = _integrate(method, x_1LH, base_1LH, settings)
            gaps.append(float(method.compute_convergence_delta(amount_1LH, base_1LH, x_1LH)))
    return gaps


def gradient_shap(model: LexicalSAE, questions: Sequence[Question], settings: Settings) -> Scores:
    """captum's GradientShap of the embeddings, against the masked text."""
    attr = package("captum.attr")
    found = []
    for question in questions:
        with _embedded(model, question) as (logit, x_1LH, base_1LH), _numpy_seed(settings.seed):
            amount_1LH = attr.GradientShap(logit).attribute(
                x_1LH, baselines=base_1LH, n_samples=settings.gradient_shap_samples
            )
        found.append(question.by_word(amount_1LH[0].sum(-1).tolist()))
    return found


def lime(model: LexicalSAE, questions: Sequence[Question], settings: Settings) -> Scores:
    """LIME's weights of all words; its texts name words by number, so that a repeated word counts apart."""
    lime_text = package("lime.lime_text")
    found = []
    for question in questions:
        explainer = lime_text.LimeTextExplainer(
            split_expression=str.split,
            bow=False,
            mask_string="-",
            feature_selection="none",
            random_state=settings.seed,
        )
        game, n = _game(model, question, settings), question.words

        def answer(variants: list[str], game: _Game = game) -> NDArray[np.float64]:
            return game(np.array([[word != "-" for word in v.split()] for v in variants]))[:, None]

        if n < 2:
            found.append(_alone(game, n))
            continue
        numbered = " ".join(f"w{i}" for i in range(n))
        fit = explainer.explain_instance(
            numbered, answer, labels=(0,), num_features=n, num_samples=settings.lime_samples
        )
        weight = dict(fit.local_exp[0])
        found.append([float(weight.get(i, 0.0)) for i in range(n)])
    return found


def shap(model: LexicalSAE, questions: Sequence[Question], settings: Settings) -> Scores:
    """Owen values over shap's own grouping of the words."""
    explainers, maskers = package("shap.explainers"), package("shap.maskers")
    found = []
    for question in questions:
        game = _game(model, question, settings)
        if question.words < 2:
            found.append(_alone(game, question.words))
            continue
        masker = maskers.Text(_WordNumbers(question), mask_token=0, output_type="token_ids")

        def answer(kept: Any, game: _Game = game) -> NDArray[np.float64]:
            return game(np.asarray(kept) > 0)

        with _numpy_seed(settings.seed):
            values = explainers.Partition(answer, masker)(
                [question.reading.text],
                max_evals=settings.shap_evaluations,
                batch_size=settings.batch_size,
                silent=True,
            ).values[0]
        found.append([float(value) for value in np.ravel(values)])
    return found


def random(_model: LexicalSAE, questions: Sequence[Question], settings: Settings) -> Scores:
    """Seeded noise."""
    maker = np.random.default_rng(settings.seed)
    return [maker.random(question.words).tolist() for question in questions]


EXPLAINERS: dict[str, InputExplainer] = {
    "ours": InputExplainer(ours, batches=True),
    "integrated_gradients": InputExplainer(integrated_gradients),
    "gradient_shap": InputExplainer(gradient_shap),
    "lime": InputExplainer(lime),
    "shap": InputExplainer(shap),
    "attention_rollout": InputExplainer(attention_rollout, batches=True),
    "random": InputExplainer(random, batches=True),
}


class _WordNumbers:
    """shap's idea of a tokenizer: the words of one text, numbered from 1; 0 is a word that is gone."""

    def __init__(self, question: Question) -> None:
        self._text = question.reading.text
        self._offsets = [(place.start, place.end) for place in question.reading.places]

    def __call__(self, text: str, return_offsets_mapping: bool = False) -> dict[str, list[Any]]:  # noqa: ARG002
        offsets = self._offsets if text == self._text else []
        return {"input_ids": [i + 1 for i in range(len(offsets))], "offset_mapping": list(offsets)}


def _game(model: LexicalSAE, question: Question, settings: Settings) -> _Game:
    """The logit as a function of which words [M, W] are there."""

    def play(keep_MW: NDArray[np.bool_]) -> NDArray[np.float64]:
        keep = torch.from_numpy(np.ascontiguousarray(keep_MW))
        if settings.removal == "mask":
            logit_MC = logits_of(model, masking(question, keep, model), settings.batch_size)
        else:
            logit_MC = logits_of(model, keeping(question, keep, "deletion", model), settings.batch_size)
        logit_M = logit_MC[:, question.label]
        return np.asarray(logit_M.double().numpy())

    return play


def _alone(game: _Game, words: int) -> list[float]:
    """A text of one word needs no explainer: the word is worth what it changes."""
    return [float(game(np.array([[True]]))[0] - game(np.array([[False]]))[0])] * words if words else []


def _spread(amount_Q: Tensor, state: CircuitState, batch: Batch) -> Tensor:
    """Amounts at the positions [B, L] they were read at."""
    rows, (B, L) = state.rows, batch.input_ids.shape
    place_Q = rows.row_P[rows.source_pair_Q] * L + rows.source_position_Q
    return amount_Q.new_zeros(B * L).index_add_(0, place_Q, amount_Q).view(B, L)


def _hand_out(
    found: Scores, questions: Sequence[Question], indices: Sequence[int], scores_BL: Tensor
) -> None:
    for i, scores_L in zip(indices, scores_BL.tolist(), strict=True):
        found[i] = questions[i].by_word(scores_L[: len(questions[i].reading.word_of)])


def _integrate(method: Any, x_1LH: Tensor, base_1LH: Tensor, settings: Settings) -> Tensor:
    amount: Tensor = method.attribute(
        x_1LH, baselines=base_1LH, n_steps=settings.ig_steps, internal_batch_size=settings.batch_size
    )
    return amount


@contextlib.contextmanager
def _embedded(
    model: LexicalSAE, question: Question
) -> Iterator[tuple[Callable[[Tensor], Tensor], Tensor, Tensor]]:
    """The logit as a function of word embeddings [M, L, H], the text's own and those of its masked twin.

    The ids stay the text's own, so that the function is the same all along: positions that may be read
    stay so, though in a text that is masked for good nothing is read at a mask token.
    """
    table, device = model.backbone.mlm.get_input_embeddings(), model.backbone.E_VH.device
    ids_1L = torch.tensor([question.reading.example.input_ids], device=device)
    word_L = torch.tensor(question.reading.word_of, device=device)
    with torch.no_grad():
        x_1LH = table(ids_1L)
        base_1LH = table(torch.where(word_L >= 0, mask_token(model), ids_1L))
    given: list[Tensor] = []

    def logit(embedded_MLH: Tensor) -> Tensor:
        given[:] = [embedded_MLH]
        ids_ML = ids_1L.expand(len(embedded_MLH), -1)
        state = model.decide(model.encode(ids_ML, torch.ones_like(ids_ML)))
        return state.logits[:, question.label]

    handle = table.register_forward_hook(lambda _module, _inputs, _output: given[0])
    try:
        with warnings.catch_warnings(), torch.enable_grad():
            warnings.simplefilter("ignore")
            yield logit, x_1LH.detach(), base_1LH.detach()
    finally:
        handle.remove()


@contextlib.contextmanager
def _numpy_seed(seed: int) -> Iterator[None]:
    """captum and shap draw from the global generators; they are left as they were."""
    before = np.random.get_state()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        np.random.seed(seed)
        try:
            yield
        finally:
            np.random.set_state(before)
