"""Dictionary honesty: do the words mean what they say, and are they many enough to say anything?

All figures are about |a| or a⁺, the contributions to the predicted class c of each text.

1. Grounding@100: share of |a| on words that the frozen LM ranks among its top 100 dictionary words where they
   were read, averaged over texts; `anywhere` asks only that it ranks them so at some position of the text.
2. In-input share: share of |a| on words whose id stands in the text.
3. Effective vocabulary of a class: exp(entropy) of a⁺ summed over the texts predicted as it. It grows with
   their number, which is always given beside it.
4. Top reasons of a class: the ten words of largest Σ a⁺, and which of them are function words.
5. Code-word alarm: a word with a tenth of a class's positive mass that is active five times as often as it
   occurs.

Legend: N rows, P active pairs, Q shares of pairs by position, C classes, V vocabulary, K the frozen LM's words.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from splade.circuits.losses import outside_top_words
from splade.circuits.objective import places
from splade.data.encoding import Batch
from splade.inference.rows import document_of_row
from splade.mechanistic.attribution import Attribution
from splade.models.lexicon import Lexicon

TOP_REASONS = 10
CODE_WORD_MASS = 0.1
CODE_WORD_RATIO = 5


@dataclass(frozen=True)
class Reason:
    """A word's share of a class's positive mass."""

    word: str
    share: float
    function_word: bool


@dataclass(frozen=True)
class CodeWord:
    """A word that carries much and is active far more often than it occurs."""

    word: str
    label: str
    share: float
    active: int
    occurs: int


@dataclass(frozen=True)
class Honesty:
    """Figures over a split; groundings are None where the frozen LM could not be had."""

    size: int
    grounding100: float | None
    grounding100_anywhere: float | None
    in_input: float
    effective_vocabulary: dict[str, float]
    texts: dict[str, int]
    top_reasons: dict[str, list[Reason]]
    function_words: dict[str, list[str]]
    code_words: list[CodeWord]


class HonestyFitter:
    """Accumulates attributions of the predicted class, batch by batch."""

    def __init__(self, lexicon: Lexicon, label_names: list[str]) -> None:
        self.lexicon, self.label_names = lexicon, label_names
        device, V = lexicon.keep_V.device, lexicon.vocab_size
        self._positive_CV = torch.zeros(len(label_names), V, dtype=torch.double, device=device)
        self._texts_C = torch.zeros(len(label_names), dtype=torch.long, device=device)
        self._active_V = torch.zeros(V, dtype=torch.long, device=device)
        self._occurs_V = torch.zeros(V, dtype=torch.long, device=device)
        self._shares: dict[str, list[Tensor]] = {"position": [], "anywhere": [], "input": []}

    @torch.no_grad()
    def update(self, attribution: Attribution, batch: Batch, top_BLK: Tensor | None) -> None:
        """Count the rows of a batch; `top_BLK` are the frozen LM's words at its positions, where it is there."""
        rows, classes_N = attribution.state.rows, attribution.classes
        assert classes_N is not None
        mass_P = attribution.amount.double()
        self._texts_C += torch.bincount(classes_N, minlength=len(self._texts_C))
        self._active_V += torch.bincount(rows.word_P, minlength=len(self._active_V))
        key_P = classes_N[rows.row_P] * rows.vocab_size + rows.word_P
        self._positive_CV.view(-1).index_add_(0, key_P, mass_P.clamp(min=0))
        document_N = document_of_row(batch)
        document_P = rows.row_P if document_N is None else document_N[rows.row_P]
        seen_BV = _present(torch.where(batch.attention_mask.bool(), batch.input_ids, -1), rows.vocab_size)
        self._occurs_V += seen_BV.sum(0)
        self._share("input", attribution, seen_BV[document_P, rows.word_P].double())
        if top_BLK is None:
            return
        said_BV = _present(top_BLK.flatten(1), rows.vocab_size)
        self._share("anywhere", attribution, said_BV[document_P, rows.word_P].double())
        outside_Q = outside_top_words(rows, *places(rows, top_BLK.to(rows.word_P.device), document_N))
        inside_P = torch.zeros_like(mass_P).index_add_(
            0, rows.source_pair_Q, rows.source_share_Q.double() * ~outside_Q
        )
        self._share("position", attribution, inside_P)

    def _share(self, name: str, attribution: Attribution, inside_P: Tensor) -> None:
        """Each row's share of |a| inside; rows without any mass have none to share and are left out."""
        rows, mass_P = attribution.state.rows, attribution.amount.double().abs()
        whole_N, inside_N = rows.sum_by_row(mass_P), rows.sum_by_row(mass_P * inside_P)
        self._shares[name].append((inside_N / whole_N)[whole_N > 0])

    def result(self) -> Honesty:
        """The figures of everything counted so far."""
        mass_CV = self._positive_CV / self._positive_CV.sum(1, keepdim=True).clamp(min=1e-300)
        entropy_C = -(mass_CV * mass_CV.clamp(min=1e-300).log()).sum(1)
        spoken = [c for c in range(len(self.label_names)) if self._positive_CV[c].sum() > 0]
        reasons = {self.label_names[c]: self._reasons(mass_CV[c]) for c in spoken}
        return Honesty(
            size=int((self.lexicon.dictionary_V & self.lexicon.keep_V).sum()),
            grounding100=_mean(self._shares["position"]),
            grounding100_anywhere=_mean(self._shares["anywhere"]),
            in_input=_mean(self._shares["input"]) or 0.0,
            effective_vocabulary={self.label_names[c]: float(entropy_C[c].exp()) for c in spoken},
            texts={name: int(n) for name, n in zip(self.label_names, self._texts_C, strict=True)},
            top_reasons=reasons,
            function_words={c: [r.word for r in found if r.function_word] for c, found in reasons.items()},
            code_words=[word for c in spoken for word in self._code_words(c, mass_CV[c])],
        )

    def _reasons(self, mass_V: Tensor) -> list[Reason]:
        top = mass_V.topk(min(TOP_REASONS, len(mass_V)))
        return [
            Reason(self.lexicon.names[j], share, bool(self.lexicon.function_V[j]))
            for j, share in zip(top.indices.tolist(), top.values.tolist(), strict=True)
            if share > 0
        ]

    def _code_words(self, c: int, mass_V: Tensor) -> list[CodeWord]:
        often_V = self._active_V >= CODE_WORD_RATIO * self._occurs_V.clamp(min=1)
        found = ((mass_V >= CODE_WORD_MASS) & often_V).nonzero()[:, 0].tolist()
        return [
            CodeWord(
                self.lexicon.names[j],
                self.label_names[c],
                float(mass_V[j]),
                int(self._active_V[j]),
                int(self._occurs_V[j]),
            )
            for j in found
        ]


def _present(ids_BM: Tensor, vocab_size: int) -> Tensor:
    """Which ids [B, V] stand in each row of `ids_BM`; negative ones are none."""
    present_BV = torch.zeros(len(ids_BM), vocab_size + 1, dtype=torch.bool, device=ids_BM.device)
    slot_BM = torch.where(ids_BM < 0, vocab_size, ids_BM).long()
    return present_BV.scatter_(1, slot_BM, True)[:, :-1]


def _mean(parts: list[Tensor]) -> float | None:
    values = torch.cat(parts) if parts else torch.empty(0)
    return float(values.mean()) if len(values) else None
