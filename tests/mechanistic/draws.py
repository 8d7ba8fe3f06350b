"""Random heads and rows for tests of the exact algebra, without a language model."""

from __future__ import annotations

import torch
from hypothesis import strategies as st
from torch import Tensor, nn

from splade.models.heads import HEADS, Head
from splade.models.state import CircuitState, SparseRows
from tests.tiny import tiny_rows

V, C, D = 24, 3, 8
SEEDS = st.integers(0, 2**16)
NAMES = st.sampled_from(sorted(HEADS))


def draw_head(name: str, seed: int = 0, vocab: int = V, classes: int = C) -> Head:
    """A head whose every weight and bias is random."""
    torch.manual_seed(seed)
    head = HEADS[name](vocab, classes, D)
    for parameter in head.parameters():
        nn.init.normal_(parameter, std=0.7)
    return head


def draw_state(
    name: str, seed: int = 0, n_rows: int = 4, vocab: int = V, classes: int = C, double: bool = False
) -> CircuitState:
    """A decision over random rows, the last of them empty."""
    head = draw_head(name, seed, vocab, classes)
    return decide(head.double() if double else head, tiny_rows(n_rows, vocab, seed=seed))


def decide(head: Head, rows: SparseRows) -> CircuitState:
    """The decision of a head, without gradients."""
    with torch.no_grad():
        return CircuitState(rows, head(rows), head)


def labels_of(state: CircuitState, seed: int = 0) -> Tensor:
    """A random class for each row."""
    maker = torch.Generator().manual_seed(seed)
    return torch.randint(state.head.classes, (state.rows.n_rows,), generator=maker)
