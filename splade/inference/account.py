"""Contributions on tensors as the words and spans of single explanations.

Legend: N rows, P active (row, word) pairs, Q shares of pairs by input position.
"""

from __future__ import annotations

import math
from collections import defaultdict

import torch
from torch import Tensor

from splade.inference.explanation import Place, Read, Span, Word
from splade.inference.reading import Reading
from splade.mechanistic.attribution import Attribution, compute_attribution_tensor, residual


class Account:
    """An attribution of one class a row, moved to plain numbers once for all its rows."""

    def __init__(self, attribution: Attribution, names: list[str]) -> None:
        rows, exact = attribution.state.rows, attribution
        if attribution.method == "ablation":  # effects do not sum; the residual is that of the exact sum
            exact = compute_attribution_tensor(attribution.state, attribution.classes)
        self.names = names
        self.logits, self.biases = attribution.logit.tolist(), attribution.bias.tolist()
        self.residuals = residual(exact).tolist()
        self.words, self.activations = rows.word_P.tolist(), rows.value_P.tolist()
        self.amounts = attribution.amount.tolist()
        self.pair_starts = _starts(rows.row_P, rows.n_rows)
        row_Q = rows.row_P[rows.source_pair_Q]
        order = torch.argsort(row_Q, stable=True)
        self.read_starts = _starts(row_Q, rows.n_rows)
        self.reads = list(
            zip(
                rows.source_pair_Q[order].tolist(),
                rows.source_position_Q[order].tolist(),
                rows.source_share_Q[order].tolist(),
                attribution.by_read[order].tolist(),
                strict=True,
            )
        )

    def row(self, n: int, reading: Reading) -> tuple[list[Word], list[Span]]:
        """The words of row n, largest first, and the spans of its input."""
        end = len(reading.text)
        places = [*reading.places, Place(end, end, "")]  # the last, -1, takes what no word holds
        shares: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        parts: list[list[float]] = [[] for _ in places]
        for pair, position, share, amount in self.reads[self.read_starts[n] : self.read_starts[n + 1]]:
            index = reading.word_of[position]
            shares[pair][index] += share
            parts[index].append(amount)
        pairs = range(self.pair_starts[n], self.pair_starts[n + 1])
        words = [self._word(p, _reads(shares[p], places)) for p in pairs]
        words.sort(key=lambda word: -abs(word.contribution))
        spans = [Span(p.start, p.end, p.text, math.fsum(part)) for p, part in zip(places, parts, strict=True)]
        return words, spans if spans[-1].contribution else spans[:-1]

    def _word(self, p: int, read_at: list[Read]) -> Word:
        j = self.words[p]
        return Word(self.names[j], j, self.activations[p], self.amounts[p], read_at)


def _reads(shares: dict[int, float], places: list[Place]) -> list[Read]:
    """Input words a concept word was read at, largest share first."""
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    return [Read(places[i].start, places[i].end, places[i].text, share) for i, share in ordered]


def _starts(row: Tensor, n_rows: int) -> list[int]:
    """Where each row's entries begin once sorted by row, and where the last ends."""
    counts = torch.bincount(row, minlength=n_rows)
    return [0, *torch.cumsum(counts, 0).tolist()]
