"""Lexical-SAE: text -> vocabulary logits -> few named words -> class logits that are an exact sum over them.

1. The backbone, any masked LM, gives h at every position; its decoder (E, e) turns h into logits over words.
2. The lexicon says which words may be reasons; the gate keeps the few whose logit passes their threshold.
   A word that was expanded has a dimension for each sense, and each position speaks of one of them.
3. Pooling merges positions into one sparse vector s a document, remembering where each word was read.
   Tagging skips this step: every labelled position is a row of its own.
4. The head reads only s. It is piecewise linear, so logit_c = Σ_j s_j W_eff[c, j] + b_eff[c], exactly.

Two ways lead to s. `forward`, `classify` and `tag` are the tensor interface for research and make [B, L, V];
`encode` and `decide` are the fast path for everything else and never do. Both agree to rounding.

Legend: B documents, L positions, V dimensions, H hidden size, N rows, P active (row, word) pairs, C classes.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from splade import kernels
from splade.kernels import Pairs
from splade.models.backbone import Backbone
from splade.models.frozen import FrozenLM
from splade.models.heads import Head
from splade.models.layers.activation import Gate
from splade.models.layers.virtual_expander import OneSense, Senses, VirtualExpander
from splade.models.lexicon import CONTEXTUAL_LICENCES, Lexicon
from splade.models.materialised import activations, rows_of
from splade.models.pooling import AttentionPooling, MaxPooling, one_source
from splade.models.remembered import Remembered
from splade.models.state import CircuitState, SparseRows, TagCircuitState

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from splade.config.model import LexicalConfig


class LexicalSAE(nn.Module):
    """A masked LM, a lexicon, a gate, a pooling and a head."""

    def __init__(
        self,
        config: LexicalConfig,
        backbone: Backbone,
        lexicon: Lexicon,
        gate: Gate,
        pooling: MaxPooling | AttentionPooling,
        head: Head,
        tokenizer: PreTrainedTokenizerBase | None = None,
        frozen: FrozenLM | None = None,
        expander: VirtualExpander | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        self.backbone = backbone
        self.lexicon = lexicon
        self.gate = gate
        self.pooling = pooling
        self.head = head
        self.tokenizer = tokenizer
        self.frozen = frozen  # the licensor of licensed-contextual models, None otherwise
        self.expander = expander or OneSense()  # gives chosen words a dimension for each sense
        self._ids: Remembered[Tensor] = Remembered()
        self._whole: Remembered[bool] = Remembered()
        self._unscaled: Remembered[bool] = Remembered()

    # --- the fast path ---------------------------------------------------------------------------------

    def encode(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        row_mask: Tensor | None = None,
        licence: Tensor | None = None,
    ) -> SparseRows:
        """Sparse rows with provenance: one a document, or one a position marked in `row_mask` [B, L].

        `licence` [B, L, 50] may carry a frozen LM's cached words for contextual licences.
        """
        h_BLH = self.backbone(input_ids, attention_mask)
        valid_BL = self.lexicon.valid(input_ids, attention_mask)
        if row_mask is not None:
            return self._read_positions(h_BLH, input_ids, attention_mask, row_mask.bool(), licence)
        if self.pooling.has_shortcut and not self.lexicon.licensed_only and not self.topk():
            return self._read_pooled(h_BLH, valid_BL)
        B, L = input_ids.shape
        flat = self._read_positions(h_BLH, input_ids, attention_mask, valid_BL, licence)
        position_N = valid_BL.flatten().nonzero()[:, 0]
        spread = replace(flat, row_P=position_N[flat.row_P], n_rows=B * L)
        pooled: SparseRows = self.pooling(spread, L, B)
        return pooled

    def decide(self, rows: SparseRows) -> CircuitState:
        """Class logits of sparse rows."""
        return CircuitState(rows, self.head(rows), self.head)

    def topk(self) -> int:
        """How many words a position may keep; 0 is all of them, as always in training."""
        return 0 if self.training else self.config.topk_per_position

    def _read_pooled(self, h_BLH: Tensor, valid_BL: Tensor) -> SparseRows:
        (B, L), words_W = valid_BL.shape, self._words()
        E_WH, e_W = self._decoder_rows(words_W, h_BLH)
        floor_W = self.gate.floor()[words_W]
        pairs = kernels.scan_pooled(h_BLH.detach().to(E_WH.dtype), E_WH, e_W, valid_BL, floor_W)
        pairs = pairs._replace(word_P=words_W[pairs.word_P])
        senses = self.expander(h_BLH, valid_BL)
        pairs = senses.pooled(pairs, h_BLH, valid_BL, self.backbone)
        return self._open(h_BLH.flatten(0, 1), pairs, pairs.position_P % L, B, senses)

    def _read_positions(
        self,
        h_BLH: Tensor,
        input_ids: Tensor,
        attention_mask: Tensor,
        mask_BL: Tensor,
        licence: Tensor | None,
    ) -> SparseRows:
        """One row for every position in `mask_BL`, in order."""
        at_N = mask_BL.flatten().nonzero()[:, 0]
        h_NH = h_BLH.flatten(0, 1).index_select(0, at_N)
        floor_V = self.expander.floor(self.gate.floor())
        valid_N = self.lexicon.valid(input_ids, attention_mask).flatten()[at_N]
        if self.lexicon.licensed_only:
            licence_NK = self.licence(input_ids, attention_mask, licence).flatten(0, 1)[at_N]
            E_VH, e_V = self.backbone.E_VH.detach(), self._decoder_biases()
            scanned_NH = h_NH.detach().to(self._scanned(h_NH))
            pairs = kernels.scan_licensed(scanned_NH, E_VH, e_V, licence_NK, floor_V)
        else:
            words_W = self._words()
            E_WH, e_W = self._decoder_rows(words_W, h_BLH)
            pairs = kernels.scan_positions(h_NH.detach().to(E_WH.dtype), E_WH, e_W, floor_V[words_W])
            pairs = pairs._replace(word_P=words_W[pairs.word_P])
        if not valid_N.all():  # a marked special token is a row, and an empty one
            spoken_P = valid_N[pairs.row_P].nonzero()[:, 0]
            pairs = Pairs(*(column[spoken_P] for column in pairs))
        senses = self.expander(h_NH, valid_N)
        pairs = senses.spread(pairs)
        return self._open(h_NH, pairs, (at_N % mask_BL.shape[1])[pairs.row_P], len(h_NH), senses)

    def _open(self, h_NH: Tensor, pairs: Pairs, source_P: Tensor, n_rows: int, senses: Senses) -> SparseRows:
        """The one place where s is made on the fast path: exact logits, gate, senses, top-k, edits."""
        lexicon, backbone = self.lexicon, self.backbone
        by_word = by_row_of_E = kernels.Order(pairs.word_P)
        if lexicon.vocab_size > lexicon.decoder_rows:  # a sense has its word's row
            by_row_of_E = kernels.Order(lexicon.word_V[pairs.word_P])
        z_P = kernels.pair_logits(
            h_NH, backbone.E_VH, backbone.e_V, pairs.position_P, by_row_of_E.id_P, by_word=by_row_of_E
        )
        s_P = self.gate(z_P, self.gate.theta_at(by_word))
        s_P, z_P = senses.route(pairs, s_P, z_P)
        rows = one_source(pairs.row_P, pairs.word_P, s_P, z_P, source_P, n_rows, lexicon.vocab_size)
        vars(rows).update(by_word=by_word)  # what sorts the words once serves every sum
        if self.training and self._untouched():
            return rows
        keep_P = lexicon.keep_V[pairs.word_P] & (self.training | (s_P.detach() > 0))
        if k := self.topk():
            keep_P &= rows.largest(k)
        rows = rows.with_values(rows.value_P * lexicon.scale_V[rows.word_P])
        return rows.where(keep_P)

    def _untouched(self) -> bool:
        """Whether no word was removed or scaled."""
        keep_V, scale_V = self.lexicon.keep_V, self.lexicon.scale_V
        whole = self._whole(keep_V, lambda: bool(keep_V.all()))
        return whole and self._unscaled(scale_V, lambda: bool((scale_V == 1).all()))

    def licence(self, input_ids: Tensor, attention_mask: Tensor, licence: Tensor | None = None) -> Tensor:
        """Licensed words [B, L, K] (-1: none) of a licensed model; `licence` may carry cached ones."""
        if self.lexicon.honesty == "licensed-static":
            return self.lexicon.licensed(input_ids)
        if licence is None:
            assert self.frozen is not None
            licence = self.frozen.top_words(input_ids, attention_mask)
        return licence[..., :CONTEXTUAL_LICENCES].long()

    def _words(self) -> Tensor:
        """The dictionary's decoder rows [W], found once."""
        return self._ids(self.lexicon.dictionary_V, self.lexicon.words)

    def _scanned(self, h: Tensor) -> torch.dtype:
        """The precision to scan in: that of the surrounding autocast."""
        kind = h.device.type
        enabled = torch.is_autocast_enabled(kind)
        return torch.get_autocast_dtype(kind) if enabled else self.backbone.E_VH.dtype

    @torch.no_grad()
    def _decoder_rows(self, words_W: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """Decoder rows and biases of the words to scan."""
        # narrowed before it is gathered: half the bytes
        return self.backbone.E_VH.detach().to(self._scanned(h))[words_W], self._decoder_biases()[words_W]

    def _decoder_biases(self) -> Tensor:
        E_VH, e_V = self.backbone.E_VH, self.backbone.e_V
        return E_VH.new_zeros(len(E_VH), dtype=torch.float32) if e_V is None else e_V.detach().float()

    # --- the tensor interface --------------------------------------------------------------------------

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Activations and soft gates [B, L, V] at every position, materialised."""
        return activations(self, input_ids, attention_mask)

    def classify(self, sparse_seq: Tensor, attention_mask: Tensor) -> CircuitState:
        """Decide documents from activations [B, L, V]."""
        B, L, _ = sparse_seq.shape
        seen = torch.where(attention_mask[..., None].bool(), sparse_seq, 0.0)
        return self.decide(self.pooling(rows_of(seen), L, B))

    def tag(self, sparse_seq: Tensor) -> Tensor:
        """Class logits [B, L, C] at every position of activations [B, L, V]."""
        state = self.tag_circuit(sparse_seq)
        return state.by_position(state.logits)

    def tag_circuit(self, sparse_seq: Tensor) -> TagCircuitState:
        """Decide every position of activations [B, L, V]."""
        B, L, _ = sparse_seq.shape
        rows = rows_of(sparse_seq)
        return TagCircuitState(rows, self.head(rows), self.head, batch=B, length=L)

    # --- folders and the hub ---------------------------------------------------------------------------

    def save_pretrained(self, folder: str | Path) -> None:
        """Write a self-describing folder of safetensors and JSON."""
        from splade.models.saving import save

        save(self, Path(folder))

    @classmethod
    def from_pretrained(cls, name: str | Path, revision: str = "main") -> LexicalSAE:
        """Load a folder or a hub repository; predictions are bit-identical to the saved model's."""
        from splade.models.saving import load

        return load(name, revision)

    def push_to_hub(self, repo_id: str, private: bool = False) -> str:
        """Upload the model folder to the hub; returns its address."""
        from splade.models.saving import push

        return push(self, repo_id, private)
