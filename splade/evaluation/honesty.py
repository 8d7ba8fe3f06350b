"""Dictionary honesty: do the words mean what they say, and are they many enough to say anything?

All figures are about |a| or a⁺, the contributions to the predicted class c of each text.

1. Grounding@100: share of |a| on words that the frozen LM ranks among its top 100 dictionary words where they
   were read, averaged over texts; `anywhere` asks only that it ranks them so at some position of the text.
2. In-input share: share of |a| on words whose id stands in the text, averaged over texts.
3. Effective vocabulary of a class: exp(entropy) of a⁺ summed over the rows predicted as it. It grows with
   their number, which is always given beside it.
4. Top reasons of a class: the ten words of largest Σ a⁺, and which of them are function words.
5. Code-word alarm: a word with a tenth of a class's positive mass that is active in five times as many texts
   as it occurs in, in any case and at any place of a word.

A text without any contribution has no share to average and is left out. When tagging, a text is the sentence
(or window of it), with the contributions of all its labelled positions.

Legend: B texts, N rows, P active pairs, Q shares of pairs by position, C classes, V vocabulary, K the frozen
LM's words.
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
from splade.models.lexicon import Lexicon, normalise

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
    """A word that carries much and is active in far more texts than it occurs in."""

    word: str
    label: str
    share: float
    active: int
    occurs: int


@dataclass(frozen=True)
class Honesty:
    """Figures over a split; groundings are None without the frozen LM, shares where nothing contributes.

    `texts` counts the rows predicted as each class.
    """

    size: int
    grounding100: float | None
    grounding100_anywhere: float | None
    in_input: float | None
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
        first: dict[str, int] = {}
        surface = [first.setdefault(normalise(name), j) for j, name in enumerate(lexicon.surfaces)]
        self._surface_V = torch.tensor(surface, device=device)  # one id for all ids of a word
        self._shares: dict[str, list[Tensor]] = {"position": [], "anywhere": [], "input": []}

    @torch.no_grad()
    def update(self, attribution: Attribution, batch: Batch, top_BLK: Tensor | None) -> None:
        """Count a batch; `top_BLK` are the frozen LM's words at its positions, None where it is missing."""
        rows, classes_N = attribution.state.rows, attribution.classes
        assert classes_N is not None
        document_N = document_of_row(batch)
        document_P = rows.row_P if document_N is None else document_N[rows.row_P]
        text_BL = torch.where(batch.attention_mask.bool(), batch.input_ids, -1)
        self._count(attribution, classes_N, document_P, text_BL)
        mass_P = attribution.amount.double().abs()
        said_BV = _present(text_BL, rows.vocab_size)
        self._share("input", mass_P, document_P, said_BV[document_P, self.lexicon.word_V[rows.word_P]])
        if top_BLK is None:
            return
        top_BLK = top_BLK.to(rows.word_P.device)
        likely_BV = _present(top_BLK.flatten(1), rows.vocab_size)
        self._share("anywhere", mass_P, document_P, likely_BV[document_P, rows.word_P])
        inside_Q = ~outside_top_words(rows, *places(rows, top_BLK, document_N))
        share_Q = rows.source_share_Q.double() * inside_Q
        inside_P = torch.zeros_like(mass_P).index_add_(0, rows.source_pair_Q, share_Q)
        self._share("position", mass_P, document_P, inside_P)

    def _count(
        self, attribution: Attribution, classes_N: Tensor, document_P: Tensor, text_BL: Tensor
    ) -> None:
        """Add to the positive mass of each class, and to the texts in which words are active and occur."""
        rows, V = attribution.state.rows, attribution.state.rows.vocab_size
        self._texts_C += torch.bincount(classes_N, minlength=len(self._texts_C))
        key_P = classes_N[rows.row_P] * V + rows.word_P
        self._positive_CV.view(-1).index_add_(0, key_P, attribution.amount.double().clamp(min=0))
        active = torch.unique((document_P * V + rows.word_P)[rows.open_P])
        self._active_V += torch.bincount(active % V, minlength=V)
        surface_BL = torch.where(text_BL < 0, -1, self._surface_V[text_BL])
        self._occurs_V += _present(surface_BL, V).sum(0)

    def _share(self, name: str, mass_P: Tensor, document_P: Tensor, inside_P: Tensor) -> None:
        """Each text's share of |a| inside; texts without any have none to share and are left out."""
        whole_B = torch.bincount(document_P, mass_P)
        inside_B = torch.bincount(document_P, mass_P * inside_P)
        self._shares[name].append((inside_B / whole_B)[whole_B > 0])

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
            in_input=_mean(self._shares["input"]),
            effective_vocabulary={self.label_names[c]: float(entropy_C[c].exp()) for c in spoken},
            texts={name: int(n) for name, n in zip(self.label_names, self._texts_C, strict=True)},
            top_reasons=reasons,
            function_words={c: [r.word for r in found if r.function_word] for c, found in reasons.items()},
            code_words=[word for c in spoken for word in self._code_words(c, mass_CV[c])],
        )

    def _reasons(self, mass_V: Tensor) -> list[Reason]:
        share_V, word_V = mass_V.sort(descending=True, stable=True)
        return [
            Reason(self.lexicon.names[j], share, bool(self.lexicon.function_V[j]))
            for j, share in zip(word_V[:TOP_REASONS].tolist(), share_V[:TOP_REASONS].tolist(), strict=True)
            if share > 0
        ]

    def _code_words(self, c: int, mass_V: Tensor) -> list[CodeWord]:
        occurs_V = self._occurs_V[self._surface_V]
        often_V = self._active_V >= CODE_WORD_RATIO * occurs_V
        found = ((mass_V >= CODE_WORD_MASS) & often_V).nonzero()[:, 0].tolist()
        return [
            CodeWord(
                self.lexicon.names[j],
                self.label_names[c],
                float(mass_V[j]),
                int(self._active_V[j]),
                int(occurs_V[j]),
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
