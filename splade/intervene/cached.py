"""Texts read once, and the head's exact decision over whatever is left of them when words go.

Under max pooling a removed word leaves all others alone, so the sparse rows without it are those that the
edited model would give. No pass through the backbone is needed to try a removal.

Legend: N texts, V dimensions, P active (text, word) pairs, K texts in which a word is active, D head width,
C classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from splade.errors import ConfigError
from splade.intervene.leakage import encoded
from splade.models.heads import Head
from splade.models.lexical_sae import LexicalSAE
from splade.models.state import SparseRows


class Cached:
    """What a model reads of some texts, and what it decides over what is left of that."""

    def __init__(self, rows: SparseRows, head: Head) -> None:
        self.rows, self.head = rows, head

    @classmethod
    @torch.no_grad()
    def read(cls, model: LexicalSAE, texts: Sequence[str]) -> Cached:
        """The rows of all texts, in their order."""
        if model.pooling.name != "max" or model.config.task != "classification":
            raise ConfigError(
                "removals are tried on texts read once, which needs a classifier with max pooling: "
                "train one with training.pooling: max"
            )
        return cls(_joined(model, texts), model.head)

    @torch.no_grad()
    def logits(self) -> Tensor:
        """Logits [N, C]."""
        found_NC: Tensor = self.head(self.rows)
        return found_NC

    def without(self, ids: Sequence[int]) -> Cached:
        """The texts without some words."""
        gone = torch.tensor(list(ids), dtype=torch.long, device=self.rows.word_P.device)
        return Cached(self.rows.without(gone), self.head)

    @torch.no_grad()
    def without_each(self, sets: Sequence[Sequence[int]]) -> Iterator[Tensor]:
        """Logits [N, C] without the words of each set by itself; texts that have none stay as they are."""
        rows, W_VD = self.rows, self.head.projection()
        u_ND, square_N = self.head.project(rows), self.head.square_norm(rows)
        whole_NC = self.head.rest(u_ND, square_N)
        order_P = torch.argsort(rows.word_P, stable=True)
        ends = torch.bincount(rows.word_P, minlength=rows.vocab_size).cumsum(0).tolist()
        for ids in sets:
            mine_P = torch.cat([order_P[ends[j - 1] if j else 0 : ends[j]] for j in ids])
            value_P = rows.value_P[mine_P].to(W_VD.dtype)
            moved_K, place_P = torch.unique(rows.row_P[mine_P], return_inverse=True)
            less_PD = -value_P[:, None] * W_VD[rows.word_P[mine_P]]
            u_KD = u_ND[moved_K].index_add_(0, place_P, less_PD)
            square_K = square_N[moved_K].index_add_(0, place_P, -(value_P**2)).clamp(min=0)
            yield whole_NC.index_copy(0, moved_K, self.head.rest(u_KD, square_K))

    def matrix(self) -> Any:
        """s as a SciPy matrix [N, V]."""
        from scipy.sparse import csr_matrix

        rows = self.rows
        row_P, word_P, value_P = (x.cpu().numpy() for x in (rows.row_P, rows.word_P, rows.value_P))
        return csr_matrix((value_P.astype("float64"), (row_P, word_P)), shape=(rows.n_rows, rows.vocab_size))


def _joined(model: LexicalSAE, texts: Sequence[str]) -> SparseRows:
    """All texts as one value, sorted by text; where each word was read is not kept."""
    parts = list(encoded(model, texts))
    device = model.backbone.E_VH.device
    none = torch.empty(0, dtype=torch.long, device=device)

    def column(name: str) -> Tensor:
        return torch.cat([none, *(getattr(rows, name) for _, rows in parts)])

    row_P = torch.cat([none, *(torch.tensor(i, device=device)[rows.row_P] for i, rows in parts)])
    order_P = torch.argsort(row_P, stable=True)
    value_P, logit_P = column("value_P")[order_P], column("logit_P")[order_P]
    rows = SparseRows(
        row_P=row_P[order_P],
        word_P=column("word_P")[order_P],
        value_P=value_P,
        logit_P=logit_P,
        source_pair_Q=none,
        source_position_Q=none,
        source_share_Q=value_P.new_empty(0),
        n_rows=len(texts),
        vocab_size=model.lexicon.vocab_size,
    )
    return rows.where(rows.open_P)
