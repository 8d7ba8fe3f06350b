"""What training minimises: cross-entropy, the word budget and the grounding constraint, and their weights.

    CE + sparsity_weight · relu(L0 / target_active - 1) + λ · outside share,    λ held by outside share <= 5 %

The outside share is the share of activation mass on words that the frozen LM does not rank among its top 100
where they were read. It is a constraint of `grounded` models only; the other modes constrain nothing or
license words by construction.

Legend: B documents, L positions, N rows, K words the frozen LM would say at a position.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from splade.circuits import losses
from splade.circuits.geco import Multiplier
from splade.models.layers.activation import Gate
from splade.models.state import CircuitState, SparseRows

OUTSIDE_BOUND = 0.05  # of activation mass, by specification


@dataclass(frozen=True)
class Terms:
    """The unweighted terms of one batch; `outside` is None where nothing grounds the model."""

    ce: Tensor
    active: Tensor
    excess: Tensor
    outside: Tensor | None

    def named(self) -> dict[str, Tensor]:
        """Every term that is there, detached, by name."""
        values = {"ce": self.ce, "active": self.active, "excess": self.excess, "outside": self.outside}
        return {name: value.detach() for name, value in values.items() if value is not None}


class Objective:
    """Weighs the terms and moves the multiplier."""

    def __init__(
        self, target_active: float, sparsity_weight: float, dual_step: float, grounded: bool
    ) -> None:
        self.target_active = target_active
        self.sparsity_weight = sparsity_weight
        self.grounding = Multiplier(OUTSIDE_BOUND, dual_step) if grounded else None

    def terms(
        self,
        state: CircuitState,
        labels_N: Tensor,
        gate: Gate,
        top_BLK: Tensor | None,
        rows_per: Tensor | None,
    ) -> Terms:
        """The terms of a decided batch."""
        rows = state.rows
        # z is detached: the budget moves thresholds and leaves the words' logits to the task
        opened_P = gate.opened(rows.logit_P.detach(), gate.theta()[rows.word_P])
        outside = None
        if top_BLK is not None:
            outside = losses.outside_share(
                rows, losses.outside_top_words(rows, *places(rows, top_BLK, rows_per))
            )
        return Terms(
            F.cross_entropy(state.logits, labels_N),
            losses.active_words(rows, opened_P),
            losses.excess_words(rows, opened_P, self.target_active),
            outside,
        )

    def loss(self, terms: Terms) -> Tensor:
        """The weighted sum."""
        total = terms.ce + self.sparsity_weight * terms.excess
        if self.grounding is not None and terms.outside is not None:
            total = total + self.grounding.value.to(total.device) * terms.outside
        return total

    def update(self, terms: Terms) -> None:
        """Move the multiplier by what this batch showed."""
        if self.grounding is not None and terms.outside is not None:
            self.grounding.update(terms.outside)


def places(rows: SparseRows, top_BLK: Tensor, document_N: Tensor | None) -> tuple[Tensor, Tensor]:
    """`top_BLK` flattened to [B·L, K], and the place in it that each read [Q] of `rows` has.

    `document_N` names the document of each row; None where row n is document n.
    """
    row_Q = rows.row_P[rows.source_pair_Q]
    document_Q = row_Q if document_N is None else document_N[row_Q]
    return top_BLK.flatten(0, 1), document_Q * top_BLK.shape[1] + rows.source_position_Q
