"""The frozen language model: which words an untouched LM would say at each position.

It is the backbone as it was when supervised training began, run on the unmasked text. It grounds training and
evaluation, and licenses words in `licensed-contextual` models; other models never run it to predict.

Where words were expanded, each of them brings its further senses with it, after the K words themselves: the
LM says words, and grounds or licenses all senses of what it says.

Legend: B documents, L positions, W dictionary words, T tokens of all texts, K = 100 words of a position.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from splade.models.backbone import Backbone
from splade.models.lexicon import GROUNDING_RANK, Lexicon

CACHE_LIMIT_BYTES = 8 << 30
_POSITIONS_AT_ONCE = 512


class FrozenLM(nn.Module):
    """A masked LM that no longer learns, asked only for its top dictionary words."""

    words_W: Tensor
    further_WM: Tensor

    def __init__(self, backbone: Backbone, lexicon: Lexicon) -> None:
        super().__init__()
        self.backbone = backbone.requires_grad_(False).eval()
        self.register_buffer("words_W", lexicon.words(), persistent=False)
        self.register_buffer("special_V", lexicon.special_V.clone(), persistent=False)
        self.register_buffer("further_WM", lexicon.further_senses(), persistent=False)

    @classmethod
    def copy_of(cls, backbone: Backbone, lexicon: Lexicon) -> FrozenLM:
        """Freeze a copy of `backbone` as it is now."""
        return cls(copy.deepcopy(backbone), lexicon)

    def train(self, mode: bool = True) -> FrozenLM:  # noqa: ARG002
        """A frozen LM has no training mode: dropout stays off."""
        return super().train(False)

    def top_words(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """The K dictionary words [B, L, K] of largest logit, best first; -1 at padding and special tokens.

        Further senses of these words follow as more columns, -1 where there are none.
        """
        return self.with_senses(self.best_words(input_ids, attention_mask))

    def with_senses(self, top_BLK: Tensor) -> Tensor:
        """The words, and the further senses of those which were expanded."""
        if not self.further_WM.shape[1]:
            return top_BLK
        further_BLKM = self.further_WM[top_BLK.long()].to(top_BLK.dtype)
        further_BLKM = torch.where(top_BLK[..., None] < 0, -1, further_BLKM)
        return torch.cat([top_BLK, further_BLKM.flatten(-2)], dim=-1)

    @torch.no_grad()
    def best_words(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """The K dictionary words [B, L, K] alone."""
        h_BLH = self.backbone(input_ids, attention_mask)
        special_V = self.special_V
        assert isinstance(special_V, Tensor)
        valid_BL = attention_mask.bool() & ~special_V[input_ids]
        h_NH = h_BLH[valid_BL]
        E_WH = self.backbone.E_VH[self.words_W].to(h_NH.dtype)
        bias = self.backbone.e_V
        e_W = None if bias is None else bias[self.words_W].to(h_NH.dtype)
        k = min(GROUNDING_RANK, len(self.words_W))
        top_BLK = torch.full((*input_ids.shape, GROUNDING_RANK), -1, device=input_ids.device)
        chunks = h_NH.split(_POSITIONS_AT_ONCE) if len(h_NH) else ()
        best = [nn.functional.linear(chunk, E_WH, e_W).topk(k, dim=-1).indices for chunk in chunks]
        if best:
            filled = top_BLK[valid_BL]
            filled[:, :k] = self.words_W[torch.cat(best)]
            top_BLK[valid_BL] = filled
        return top_BLK


class TopWords:
    """A frozen LM's top words for a fixed list of texts, kept in a memory-mapped file while that fits.

    1. `fill` runs the LM once over all texts and writes [T, K] ids, two or four bytes each.
    2. `batch` reads the rows of some texts back as a padded [B, L, K]; past the limit it asks the LM anew.
    """

    def __init__(
        self,
        frozen: FrozenLM,
        documents: Sequence[Sequence[int]],
        directory: Path | None = None,
        limit_bytes: int = CACHE_LIMIT_BYTES,
    ) -> None:
        self.frozen = frozen
        self.documents = documents
        lengths = np.array([len(ids) for ids in documents], dtype=np.int64)
        self._ends = np.cumsum(lengths)
        self._starts = self._ends - lengths
        self._dtype = np.dtype(np.int16 if len(frozen.special_V) < 2**15 else np.int32)  # type: ignore[arg-type]
        size = int(lengths.sum()) * GROUNDING_RANK * self._dtype.itemsize
        self._table: np.ndarray[tuple[int, int], np.dtype[np.signedinteger]] | None = None
        if 0 < size <= limit_bytes:
            self._folder = tempfile.TemporaryDirectory(dir=directory, prefix="top-words-")
            self._table = np.lib.format.open_memmap(
                Path(self._folder.name) / "top_words.npy",
                mode="w+",
                dtype=self._dtype,
                shape=(int(lengths.sum()), GROUNDING_RANK),
            )

    def fill(
        self,
        batches: Sequence[Sequence[int]],
        collate: Callable[[Sequence[int]], tuple[Tensor, Tensor]],
        advance: Callable[[int], None],
    ) -> None:
        """Run the LM over `batches` of text indices, made into tensors by `collate`."""
        if self._table is None:
            return
        for indices in batches:
            input_ids, attention_mask = collate(indices)
            top_BLK = self.frozen.best_words(input_ids, attention_mask).cpu().numpy().astype(self._dtype)
            for row, i in zip(top_BLK, indices, strict=True):
                self._table[self._starts[i] : self._ends[i]] = row[: len(self.documents[i])]
            advance(len(indices))

    def batch(self, indices: Sequence[int], input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Top words [B, L, K] of the texts at `indices`, whose tokens are `input_ids`."""
        if self._table is None:
            return self.frozen.top_words(input_ids, attention_mask)
        shape, device = (*input_ids.shape, GROUNDING_RANK), input_ids.device
        dtype = torch.int16 if self._dtype == np.int16 else torch.int32
        # from pinned memory a device copies while the host goes on
        top_BLK = torch.full(shape, -1, dtype=dtype, pin_memory=device.type == "cuda")
        for row, i in zip(top_BLK.numpy(), indices, strict=True):
            row[: len(self.documents[i])] = self._table[self._starts[i] : self._ends[i]]
        return self.frozen.with_senses(top_BLK.to(device, non_blocking=True))
