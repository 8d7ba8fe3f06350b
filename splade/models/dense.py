"""The dense twin: the same backbone with an ordinary linear head, to know what the words cost.

It answers `encode` and `decide` as a LexicalSAE does, so that one loop trains and measures both; it has no
words, so its decisions have no rows.

Legend: B documents, L positions, N rows, H hidden size, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor, nn

from splade.models.backbone import Backbone

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from splade.config.model import LexicalConfig


@dataclass(frozen=True)
class DenseState:
    """Logits without reasons."""

    logits: Tensor
    rows: None = None


class DenseModel(nn.Module):
    """The mean of what would enter the decoder (when tagging, each position's own), and a linear head."""

    gate = None

    def __init__(
        self, config: LexicalConfig, backbone: Backbone, tokenizer: PreTrainedTokenizerBase | None = None
    ) -> None:
        super().__init__()
        self.config, self.backbone, self.tokenizer = config, backbone, tokenizer
        self.head = nn.Linear(backbone.E_VH.shape[1], len(config.label_names))

    def encode(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        row_mask: Tensor | None = None,
        licence: Tensor | None = None,  # noqa: ARG002
    ) -> Tensor:
        """One vector [N, H] a document, or a position marked in `row_mask` [B, L]."""
        h_BLH: Tensor = self.backbone(input_ids, attention_mask)
        if row_mask is not None:
            return h_BLH[row_mask.bool()]
        seen_BL1 = attention_mask[..., None].to(h_BLH.dtype)
        return (h_BLH * seen_BL1).sum(1) / seen_BL1.sum(1)

    def decide(self, rows_NH: Tensor) -> DenseState:
        """Class logits of vectors."""
        return DenseState(self.head(rows_NH.float()).float())
