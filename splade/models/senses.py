"""Which words have several senses, where the senses lie, and texts that show them.

1. Occurrences: h wherever a candidate word stands whole, as one token of a text.
2. K-means of each word's occurrences. The gain is the share of variance that it removes from occurrences it
   was not fitted to, so that a single cloud of few points gains nothing.
3. The expander's scores rank the distances to the centroids μ: P h + c is largest for the nearest one,

       P_m = (μ_m - μ̄) / t,     c_m = -(|μ_m|² - mean |μ|²) / 2t,

   where t is the typical difference of scores, so that the softmax behind the choice is not saturated.
   Sense 1 is the commonest.

Legend: B documents, L positions, K expanded words, M senses, H width of h, n occurrences of a word.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from splade.config.model import SensesRecord
from splade.errors import ConfigError, DataError
from splade.models.build import add_senses
from splade.models.layers.virtual_expander import VirtualExpander
from splade.models.lexical_sae import LexicalSAE

LEAST_OCCURRENCES = 50  # of a word that is chosen automatically
MOST_OCCURRENCES = 256  # of any word: the first ones
_RESTARTS = 4  # of k-means

Batches = Iterable[tuple[Tensor, Tensor]]  # (input_ids, attention_mask)


@dataclass(frozen=True)
class Clusters:
    """Centroids of a word's occurrences, the commonest first, and the typical difference t of scores."""

    centroid_MH: Tensor
    spread: float

    def directions(self) -> tuple[Tensor, Tensor]:
        """P [M, H] and c [M], whose best score is that of the nearest centroid."""
        middle_H, square_M = self.centroid_MH.mean(0), self.centroid_MH.square().sum(-1)
        return (self.centroid_MH - middle_H) / self.spread, (square_M.mean() - square_M) / (2 * self.spread)


def expand(
    model: LexicalSAE,
    words: Sequence[int] | Literal["auto"],
    num_senses: int,
    documents: Batches,
    most_words: int = 32,
) -> LexicalSAE:
    """Expand words of `model` in place: a list of ids, or up to `most_words` of the largest gain.

    Thresholds and head rows are copied, so with the ReLU MLP a row's logits change only where max pooling
    finds two senses of a word in one text: each but the largest adds its value. (The columns of a B-cos head
    have unit norm, which copied rows change.)
    """
    _require(model, words, num_senses)
    batches = list(documents)
    found = (
        _gainful(model, num_senses, batches, most_words)
        if isinstance(words, str)
        else _named(model, words, num_senses, batches)
    )
    add_senses(model, SensesRecord(token_ids=list(found), num_senses=num_senses))
    expander = model.expander
    assert isinstance(expander, VirtualExpander)
    with torch.no_grad():
        for k, clusters in enumerate(found.values()):
            expander.P_KMH[k], expander.c_KM[k] = clusters.directions()
    return model


def _require(model: LexicalSAE, words: Sequence[int] | str, num_senses: int) -> None:
    if isinstance(model.expander, VirtualExpander):
        raise ConfigError("this model is expanded already: expand a model once, with all its words")
    if num_senses < 2:
        raise ConfigError(f"{num_senses} sense is no expansion: choose num_senses of 2 or more")
    if isinstance(words, str):
        if words != "auto":
            raise ConfigError(f"words '{words}': give a list of token ids, or 'auto'")
        return
    if not words:
        raise ConfigError("no word to expand: give token ids, or 'auto'")
    if len(set(words)) < len(words):
        raise ConfigError("a token id is named twice: name every word to expand once")
    dictionary = set(model.lexicon.words().tolist())
    strange = [word for word in words if word not in dictionary]
    if strange:
        name = model.lexicon.names[strange[0]] if 0 <= strange[0] < model.lexicon.vocab_size else ""
        raise ConfigError(
            f"token {strange[0]} ('{name}') is not in the dictionary: expand only words that are"
        )


def _named(
    model: LexicalSAE, words: Sequence[int], num_senses: int, batches: list[tuple[Tensor, Tensor]]
) -> dict[int, Clusters]:
    met = occurrences(model, batches, words)
    for word in words:
        if len(torch.unique(met[word], dim=0)) < num_senses:
            raise DataError(
                f"'{model.lexicon.names[word]}' stands in the texts {len(met[word])} times, too seldom for "
                f"{num_senses} senses: give more texts, or leave it out"
            )
    return {word: cluster(met[word], num_senses) for word in words}


def _gainful(
    model: LexicalSAE, num_senses: int, batches: list[tuple[Tensor, Tensor]], most_words: int
) -> dict[int, Clusters]:
    lexicon = model.lexicon
    count_W = torch.zeros(lexicon.decoder_rows, dtype=torch.long)
    every_W = lexicon.dictionary_V.cpu()
    for ids_BL, mask_BL in batches:
        at_BL = _stands(model, ids_BL, mask_BL, every_W)
        count_W += torch.bincount(ids_BL.cpu()[at_BL], minlength=lexicon.decoder_rows)
    often = (count_W >= LEAST_OCCURRENCES).nonzero()[:, 0].tolist()
    if not often:
        raise DataError(
            f"no word stands {LEAST_OCCURRENCES} times in the texts: give more, or name token ids"
        )
    met = occurrences(model, batches, often)
    gains = {word: gain(met[word], num_senses) for word in often}
    best = sorted(often, key=lambda word: -gains[word])[:most_words]
    return {word: cluster(met[word], num_senses) for word in sorted(best)}


@torch.no_grad()
def occurrences(model: LexicalSAE, batches: Batches, words: Sequence[int]) -> dict[int, Tensor]:
    """h [n, H] at the first `MOST_OCCURRENCES` places where each word stands as one token."""
    was_training, device = model.training, model.backbone.E_VH.device
    model.eval()
    wanted_W = _marked(model, words)
    met: dict[int, list[Tensor]] = {word: [] for word in words}
    for ids_BL, mask_BL in batches:
        at_BL = _stands(model, ids_BL, mask_BL, wanted_W)
        if not at_BL.any():
            continue
        h_BLH = model.backbone(ids_BL.to(device), mask_BL.to(device))
        found = ids_BL.cpu()[at_BL].tolist()
        for word, h_H in zip(found, h_BLH[at_BL.to(device)].float().cpu(), strict=True):
            met[word].append(h_H)
        wanted_W &= ~_marked(model, [word for word in set(found) if len(met[word]) >= MOST_OCCURRENCES])
    model.train(was_training)
    nothing = torch.empty(0, model.backbone.E_VH.shape[1])
    return {word: torch.stack(h[:MOST_OCCURRENCES]) if h else nothing for word, h in met.items()}


def cluster(h_nH: Tensor, num_senses: int) -> Clusters:
    """K-means of occurrences, the same for the same occurrences."""
    centroid_MH = _centroids(h_nH, num_senses)
    sense_n = torch.cdist(h_nH, centroid_MH).argmin(-1)
    order = torch.bincount(sense_n, minlength=num_senses).argsort(descending=True, stable=True)
    P_MH, c_M = Clusters(centroid_MH[order], 1.0).directions()
    return Clusters(centroid_MH[order], max(float((h_nH @ P_MH.T + c_M).std()), 1e-6))


def gain(h_nH: Tensor, num_senses: int) -> float:
    """Share of the variance of every other occurrence that centroids of the rest remove."""
    fitted_nH, held_out_nH = h_nH[::2], h_nH[1::2]
    whole = _distance(held_out_nH, fitted_nH.mean(0, keepdim=True))
    return 1 - _distance(held_out_nH, _centroids(fitted_nH, num_senses)) / max(whole, 1e-12)


def _centroids(h_nH: Tensor, num_senses: int) -> Tensor:
    from sklearn.cluster import KMeans

    fitted = KMeans(num_senses, n_init=_RESTARTS, random_state=0).fit(h_nH.double().numpy())
    return torch.from_numpy(fitted.cluster_centers_).float()


def _distance(h_nH: Tensor, centroid_MH: Tensor) -> float:
    """Sum of squared distances to the nearest centroid."""
    return float(torch.cdist(h_nH, centroid_MH).amin(-1).square().sum())


@torch.no_grad()
def describe_senses(
    model: LexicalSAE, batches: Batches, most: int = 3, reach: int = 6
) -> dict[str, list[str]]:
    """For every sense, by name, the texts that show it best, as windows of `reach` tokens to either side.

    Best is the largest lead of the sense's score over the next; a sense that no text means has none.
    """
    expander, tokenizer = model.expander, model.tokenizer
    if not isinstance(expander, VirtualExpander) or tokenizer is None:
        raise ConfigError("this model has no senses to describe: expand it, with its tokenizer, first")
    was_training, device = model.training, model.backbone.E_VH.device
    model.eval()
    wanted_W = _marked(model, expander.word_K.tolist())
    best: dict[int, dict[str, float]] = defaultdict(dict)
    for ids_BL, mask_BL in batches:
        at_BL = _stands(model, ids_BL, mask_BL, wanted_W)
        if not at_BL.any():
            continue
        ids, mask, at = ids_BL.to(device), mask_BL.to(device), at_BL.to(device)
        slot_n, margin_n = meant(expander, model.backbone(ids, mask)[at], ids[at])
        places = at_BL.nonzero().tolist()
        for (b, place), slot, margin in zip(places, slot_n.tolist(), margin_n.tolist(), strict=True):
            window = ids_BL[b, max(place - reach, 0) : place + reach + 1]
            shown = tokenizer.decode(window, skip_special_tokens=True).strip()
            best[slot][shown] = max(margin, best[slot].get(shown, margin))
    model.train(was_training)
    return {
        model.lexicon.names[slot]: heapq.nlargest(most, best[slot], key=best[slot].__getitem__)
        for slot in expander.slot_KM.flatten().tolist()
    }


def meant(expander: VirtualExpander, h_nH: Tensor, word_n: Tensor) -> tuple[Tensor, Tensor]:
    """The slot of each occurrence of an expanded word, and its lead over the next."""
    senses = expander(h_nH, torch.ones_like(word_n, dtype=torch.bool))
    k_n = expander.place_V[word_n]
    score_nM = senses.score_NKM[torch.arange(len(k_n), device=k_n.device), k_n]
    top_n2 = score_nM.topk(2, dim=-1)
    return expander.slot_KM[k_n, top_n2.indices[:, 0]], top_n2.values[:, 0] - top_n2.values[:, 1]


def _marked(model: LexicalSAE, words: Iterable[int]) -> Tensor:
    wanted_W = torch.zeros(model.lexicon.decoder_rows, dtype=torch.bool)
    wanted_W[list(words)] = True
    return wanted_W


def _stands(model: LexicalSAE, ids_BL: Tensor, mask_BL: Tensor, wanted_W: Tensor) -> Tensor:
    """Where a wanted word stands as one token [B, L], on the CPU."""
    lexicon = model.lexicon
    ids = ids_BL.to(lexicon.special_V.device)
    whole_BL = lexicon.valid(ids, mask_BL.to(ids.device)) & ~lexicon.split_pieces(ids)
    return whole_BL.cpu() & wanted_W[ids_BL.cpu()]
