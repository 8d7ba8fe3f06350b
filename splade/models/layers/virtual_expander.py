"""Virtual polysemy expansion: a word of several senses gets one dimension for each of them.

At every position one sense of an expanded word k is meant, and the word's logit z goes to that slot only:

    sense = argmax_m (P_k h + c_k)_m,      s[slot(k, m)] = 1[m = sense] · gate(z_k, θ[slot(k, m)])

1. `forward` scores the senses at every position.
2. `Senses.pooled` and `Senses.spread` turn pairs of words into pairs of slots.
3. `Senses.route` sets the slots that are not meant to 0. The choice has no gradient, so it takes that of
   softmax(P_k h + c_k): in training the other slots stay as pairs of value 0, and learn too.

Slot (k, 0) is the word's own dimension; the others are appended after the decoder's rows. Under max pooling
a slot is read where its logit is largest among the positions that mean it; in training a slot that no
position means is read, at value 0, where its word's logit is largest.

Legend: B documents, L positions, N rows of h, H width of h, K expanded words, M senses of each, V dimensions
(decoder rows, then appended slots), P pairs, S pairs of expanded words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from splade.kernels import Pairs

if TYPE_CHECKING:
    from splade.models.backbone import Backbone

_NEVER = float("-inf")


class _Choose(torch.autograd.Function):
    """1[m has the best score] · s forward; backward the scores learn as if it were softmax(score)_m · s."""

    @staticmethod
    def forward(ctx, s, score_M, m):  # type: ignore[no-untyped-def]
        chosen = score_M.argmax(-1) == m
        ctx.save_for_backward(s, score_M, m, chosen)
        return torch.where(chosen, s, 0.0)

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        s, score_M, m, chosen = ctx.saved_tensors
        live = grad != 0  # no 0·∞ where s is infinite
        p_M = torch.where(live[..., None], score_M, 0.0).softmax(-1)
        pull = torch.where(live, grad * s, 0.0) * p_M.gather(-1, m[..., None])[..., 0]
        grad_M = pull[..., None] * (F.one_hot(m, score_M.shape[-1]) - p_M)
        return torch.where(chosen, grad, 0.0), grad_M, None


class VirtualExpander(nn.Module):
    """Which slots an expanded word has, and which of them is meant where."""

    word_K: Tensor
    slot_KM: Tensor
    word_V: Tensor
    place_V: Tensor
    sense_V: Tensor

    def __init__(self, words: Sequence[int], num_senses: int, decoder_rows: int, width: int) -> None:
        super().__init__()
        K, M = len(words), num_senses
        word_K = torch.tensor(list(words))
        appended_KM = torch.arange(K * (M - 1)).view(K, M - 1) + decoder_rows
        slot_KM = torch.cat([word_K[:, None], appended_KM], dim=1)
        word_V = torch.arange(decoder_rows + K * (M - 1))
        word_V[slot_KM] = word_K[:, None].expand(K, M)
        place_V, sense_V = torch.full_like(word_V, -1), torch.zeros_like(word_V)
        place_V[slot_KM] = torch.arange(K)[:, None].expand(K, M)
        sense_V[slot_KM] = torch.arange(M).expand(K, M)
        tables = {"word_K": word_K, "slot_KM": slot_KM}
        tables |= {"word_V": word_V, "place_V": place_V, "sense_V": sense_V}
        for name, table in tables.items():
            self.register_buffer(name, table, persistent=False)
        self.P_KMH = nn.Parameter(torch.zeros(K, M, width))
        self.c_KM = nn.Parameter(torch.zeros(K, M))

    @property
    def num_senses(self) -> int:
        return int(self.slot_KM.shape[1])

    def forward(self, h: Tensor, valid: Tensor) -> Senses:
        """The senses at positions [...] of h; those that are not valid say nothing and get no gradient."""
        with _full_precision(h):
            h_NH = h.flatten(0, -2).to(self.P_KMH.dtype).masked_fill(~valid.flatten()[:, None], 0.0)
            score_NS = F.linear(h_NH, self.P_KMH.flatten(0, 1), self.c_KM.flatten())
        return Senses(self, score_NS.view(-1, *self.c_KM.shape))

    def floor(self, floor_V: Tensor) -> Tensor:
        """The least logit of each decoder row that can matter to one of its slots."""
        least_V = floor_V[: len(floor_V) - self.slot_KM[:, 1:].numel()].clone()
        least_V[self.word_K] = floor_V[self.slot_KM].amin(1)
        return least_V


class Senses:
    """The scores [N, K, M] of all senses at N positions, and what follows from them."""

    def __init__(self, expander: VirtualExpander, score_NKM: Tensor) -> None:
        self.expander, self.score_NKM = expander, score_NKM

    @property
    def best_NK(self) -> Tensor:
        """The sense meant by each word at each position."""
        return self.score_NKM.argmax(-1)

    @torch.no_grad()
    def pooled(self, pairs: Pairs, h_BLH: Tensor, valid_BL: Tensor, backbone: Backbone) -> Pairs:
        """Pairs of documents, with the expanded words' replaced by one for each slot."""
        expander, (B, L, _) = self.expander, h_BLH.shape
        if B * L == 0:
            return pairs
        z_BLK = self._logits(h_BLH, backbone).masked_fill(~valid_BL[..., None], _NEVER)
        meant_BLKM = F.one_hot(self.best_NK, expander.num_senses).bool().view(B, L, -1, expander.num_senses)
        best_BKM, at_BKM = torch.where(meant_BLKM, z_BLK[..., None], _NEVER).max(dim=1)
        if expander.training:
            any_BK, any_at_BK = z_BLK.max(dim=1)
            unmeant_BKM = best_BKM == _NEVER
            best_BKM = torch.where(unmeant_BKM, any_BK[..., None], best_BKM)
            at_BKM = torch.where(unmeant_BKM, any_at_BK[..., None], at_BKM)
        row_S, k_S, m_S = (best_BKM > _NEVER).nonzero(as_tuple=True)
        slots = Pairs(row_S, expander.slot_KM[k_S, m_S], row_S * L + at_BKM[row_S, k_S, m_S])
        return self._instead_of_words(pairs, slots)

    @torch.no_grad()
    def spread(self, pairs: Pairs) -> Pairs:
        """Pairs of positions, with the expanded words' replaced by the slot meant, in training by all."""
        expander = self.expander
        k_P = expander.place_V[pairs.word_P]
        split = Pairs(*(column[k_P >= 0] for column in pairs))
        slot_SM = expander.slot_KM[k_P[k_P >= 0]]
        if not expander.training:
            meant_S = self.best_NK[split.position_P, k_P[k_P >= 0]]
            slot_SM = slot_SM.gather(1, meant_S[:, None])
        row_S, position_S = (
            column.repeat_interleave(slot_SM.shape[1]) for column in (split.row_P, split.position_P)
        )
        return self._instead_of_words(pairs, Pairs(row_S, slot_SM.flatten(), position_S))

    def route(self, pairs: Pairs, s_P: Tensor, z_P: Tensor) -> tuple[Tensor, Tensor]:
        """Activations and logits after the choice: a slot that is not meant has s = 0 and z = -inf."""
        expander = self.expander
        at_S = (expander.place_V[pairs.word_P] >= 0).nonzero()[:, 0]
        slot_S = pairs.word_P[at_S]
        score_SM = self.score_NKM[pairs.position_P[at_S], expander.place_V[slot_S]]
        sense_S = expander.sense_V[slot_S]
        unmeant_S = score_SM.argmax(-1) != sense_S
        s_S = _chosen(s_P[at_S], score_SM, sense_S)
        return s_P.index_copy(0, at_S, s_S), z_P.index_fill(0, at_S[unmeant_S], _NEVER)

    def route_all(self, s_V: Tensor) -> Tensor:
        """Materialised activations [..., V] after the choice."""
        expander, s_NV = self.expander, s_V.flatten(0, -2)
        slot_S = expander.slot_KM.flatten()
        score_NSM = self.score_NKM.repeat_interleave(expander.num_senses, dim=1)
        sense_NS = expander.sense_V[slot_S].expand(len(s_NV), -1)
        routed_NV = s_NV.index_copy(1, slot_S, _chosen(s_NV[:, slot_S], score_NSM, sense_NS))
        return routed_NV.view_as(s_V)

    def _logits(self, h_BLH: Tensor, backbone: Backbone) -> Tensor:
        """The expanded words' logits [B, L, K]: few words, so all of them."""
        word_K, e_V = self.expander.word_K, backbone.e_V
        bias_K = None if e_V is None else e_V[word_K].float()
        with _full_precision(h_BLH):
            return F.linear(h_BLH.float(), backbone.E_VH[word_K].float(), bias_K)

    def _instead_of_words(self, pairs: Pairs, slots: Pairs) -> Pairs:
        """The pairs of other words together with those of slots, by row and then word."""
        other_P = self.expander.place_V[pairs.word_P] < 0
        both = Pairs(*(torch.cat([old[other_P], new]) for old, new in zip(pairs, slots, strict=True)))
        order = (both.row_P * len(self.expander.word_V) + both.word_P).argsort()
        return Pairs(*(column[order] for column in both))


class OneSense(nn.Module):
    """The expander of a model in which no word is expanded: everything passes as it is."""

    def forward(self, h: Tensor, valid: Tensor) -> WholeWords:  # noqa: ARG002
        return WholeWords()

    def floor(self, floor_V: Tensor) -> Tensor:
        return floor_V


class WholeWords(Senses):
    """What follows from senses where every word has one."""

    def __init__(self) -> None:
        """Nothing is scored."""

    def pooled(self, pairs: Pairs, h_BLH: Tensor, valid_BL: Tensor, backbone: Backbone) -> Pairs:  # noqa: ARG002
        return pairs

    def spread(self, pairs: Pairs) -> Pairs:
        return pairs

    def route(self, pairs: Pairs, s_P: Tensor, z_P: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        return s_P, z_P

    def route_all(self, s_V: Tensor) -> Tensor:
        return s_V


def _chosen(s: Tensor, score_M: Tensor, m: Tensor) -> Tensor:
    routed: Tensor = _Choose.apply(s, score_M, m)  # type: ignore[no-untyped-call]
    return routed


def _full_precision(tensor: Tensor) -> torch.autocast:
    return torch.autocast(tensor.device.type, enabled=False)
