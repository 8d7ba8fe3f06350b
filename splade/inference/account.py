"""Contributions on tensors as the words and spans of single explanations.

Legend: N rows, P active (row, word) pairs, Q shares of pairs by input position.
"""

from __future__ import annotations

import math
from collections import defaultdict

import torch
from torch import Tensor

from splade.inference.explanation import Read, Span, Word
from splade.inference.reading import Reading
from splade.mechanistic.attribution import Attribution, compute_attribution_tensor, residual


class Account:
    """An attribution of one class a row, moved to plain numbers once for all its rows."""

    def __init__(self, attribution: Attribution, names: list[str]) -> None:
        state = attribution.state
        rows = state.rows
        exact = attribution
        if attribution.method == "ablation":  # effects do not sum; the residual is that of the exact sum
            exact = compute_attribution_tensor(state, attribution.classes)
        self.names = names
        self.logits, self.biases = attribution.logit.tolist(), attribution.bias.tolist()
        self.residuals = residual(exact).tolist()
        self.amounts, self.activations = attribution.amount.tolist(), rows.value_P.tolist()
        self.words = rows.word_P.tolist()
        self.pair_starts = _starts(rows.row_P, rows.n_rows)
        self.read_starts = _starts(rows.row_P[rows.source_pair_Q], rows.n_rows)
        order = torch.argsort(rows.row_P[rows.source_pair_Q], stable=True)
        self.read_pairs = rows.source_pair_Q[order].tolist()
        self.read_positions = rows.source_position_Q[order].tolist()
        self.read_shares = rows.source_share_Q[order].tolist()
        self.read_amounts = attribution.by_read[order].tolist()

    def row(self, n: int, reading: Reading) -> tuple[list[Word], list[Span]]:
        """The words of row n, largest first, and the spans of its input."""
        shares: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        parts: list[list[float]] = [[] for _ in reading.places]
        for q in range(self.read_starts[n], self.read_starts[n + 1]):
            place = reading.word_of[self.read_positions[q]]
            if place >= 0:
                shares[self.read_pairs[q]][place] += self.read_shares[q]
                parts[place].append(self.read_amounts[q])
        words = [
            Word(
                self.names[self.words[p]],
                self.words[p],
                self.activations[p],
                self.amounts[p],
                _reads(shares[p], reading),
            )
            for p in range(self.pair_starts[n], self.pair_starts[n + 1])
        ]
        words.sort(key=lambda word: -abs(word.contribution))
        spans = [
            Span(place.start, place.end, place.text, math.fsum(part))
            for place, part in zip(reading.places, parts, strict=True)
        ]
        return words, spans


def _reads(shares: dict[int, float], reading: Reading) -> list[Read]:
    """Input words a concept word was read at, largest share first."""
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    places = [(reading.places[index], share) for index, share in ordered]
    return [Read(place.start, place.end, place.text, share) for place, share in places]


def _starts(row: Tensor, n_rows: int) -> list[int]:
    """Where each row's entries begin once sorted by row, and where the last ends."""
    counts = torch.bincount(row, minlength=n_rows)
    return [0, *torch.cumsum(counts, 0).tolist()]
