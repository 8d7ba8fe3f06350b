"""The dictionary of a model: which words may be reasons, what they are called, and what licenses them.

Legend: V dimensions (one for each row of the decoder, then the further senses of expanded words),
B documents, L positions, K licensed words of a position.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from splade.errors import ConfigError, DataError
from splade.models.function_words import ENGLISH

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from splade.models.edits import Edit

Honesty = Literal["grounded", "free", "licensed-static", "licensed-contextual"]
HONESTY_MODES: tuple[Honesty, ...] = ("grounded", "free", "licensed-static", "licensed-contextual")

GROUNDING_RANK = 100  # a word is grounded at a position if the frozen LM ranks it among its top 100 there
STATIC_LICENCES = 16
CONTEXTUAL_LICENCES = 50
FREQUENT_WORDS = 100  # stands in for the closed-class list of a language that has none here

_RESERVED = re.compile(r"^(\[?unused\s*_?\d+\]?|<.*>|\[.*\]|\|\|\|.*\|\|\||madeupword\d+)$", re.IGNORECASE)


def normalise(word: str) -> str:
    """The form under which words are looked up: NFKC, case folded, no surrounding space."""
    return unicodedata.normalize("NFKC", word).strip().casefold()


def piece_names(tokenizer: PreTrainedTokenizerBase, vocab_size: int) -> tuple[list[str], list[bool]]:
    """The readable name of every id, and whether the piece begins a word.

    The commonest mark tells: WordPiece marks continuations (`##`), byte-level BPE and SentencePiece mark
    beginnings (`Ġ`, `▁`). Ids past the tokenizer's end (padded vocabularies) have an empty name.
    """
    size = min(len(tokenizer), vocab_size)
    pieces: list[str] = [piece or "" for piece in tokenizer.convert_ids_to_tokens(list(range(size)))]
    # counted, because byte-level vocabularies hold runs of # and some WordPiece ones hold the letter Ġ
    mark = max(("##", "Ġ", "▁"), key=lambda mark: sum(piece.startswith(mark) for piece in pieces))
    names, begins = [], []
    for piece in pieces:
        if mark == "##":
            continuation = piece.startswith("##") and len(piece) > 2
            name = piece[2:] if continuation else piece
        elif mark == "Ġ":
            continuation = not piece.startswith("Ġ")
            name = tokenizer.convert_tokens_to_string([piece]).strip()
        else:
            continuation = not piece.startswith("▁")
            name = piece.replace("▁", " ").strip()
        names.append(name)
        begins.append(not continuation)
    padding = vocab_size - size
    return names + [""] * padding, begins + [False] * padding


def function_words(
    language: str, document_frequency_V: Tensor | None, names: Sequence[str]
) -> frozenset[str]:
    """The closed class of a language: a written list for English, the most frequent words for others."""
    if language == "en":
        return ENGLISH
    if document_frequency_V is None:
        return frozenset()
    ranked = document_frequency_V.argsort(descending=True, stable=True).tolist()
    seen = (j for j in ranked if document_frequency_V[j] > 0 and _is_word(names[j]))
    return frozenset(normalise(names[j]) for j in itertools.islice(seen, FREQUENT_WORDS))


def document_frequency(documents: Iterable[Sequence[int]], vocab_size: int) -> Tensor:
    """Share of documents [V] in which each id occurs."""
    counts_V, total = torch.zeros(vocab_size), 0
    for ids in documents:
        counts_V[torch.tensor(sorted(set(ids)), dtype=torch.long)] += 1
        total += 1
    return counts_V / max(total, 1)


@dataclass(frozen=True)
class LexiconSpec:
    """What a lexicon was built from; saved with the model."""

    honesty: Honesty = "grounded"
    language: str = "en"
    stop_df: float = 0.4


class Lexicon(nn.Module):
    """Dictionary, names, licences and edits (mask, factors and journal), saved with the model."""

    dictionary_V: Tensor
    function_V: Tensor
    keep_V: Tensor
    scale_V: Tensor
    special_V: Tensor
    begins_V: Tensor
    wordlike_V: Tensor
    word_V: Tensor
    licence_VK: Tensor

    def __init__(
        self,
        names: Sequence[str],
        begins: Sequence[bool],
        special_ids: Iterable[int],
        text_special_ids: Iterable[int],
        spec: LexiconSpec,
        document_frequency_V: Tensor | None = None,
    ) -> None:
        """`special_ids` are never reasons; `text_special_ids` ([UNK]) stand for text all the same."""
        super().__init__()
        if spec.honesty not in HONESTY_MODES:
            raise ConfigError(
                f"honesty '{spec.honesty}' is unknown: choose one of {', '.join(HONESTY_MODES)}"
            )
        self.names = list(names)
        self.spec = spec
        V = len(self.names)
        special = set(special_ids)
        stop = function_words(spec.language, document_frequency_V, self.names)
        ordinary_V = torch.tensor([j not in special and _is_word(name) for j, name in enumerate(self.names)])
        function_V = torch.tensor([normalise(name) in stop for name in self.names])
        stopped_V = function_V.clone()
        if document_frequency_V is not None:
            stopped_V |= document_frequency_V > spec.stop_df
        dictionary_V = ordinary_V if spec.honesty == "free" else ordinary_V & ~stopped_V
        if not dictionary_V.any():
            raise DataError("the dictionary is empty: check the tokenizer, or raise stop_df")
        special_V = torch.tensor([j in special for j in range(V)])
        special_V[list(text_special_ids)] = False
        self.register_buffer("dictionary_V", dictionary_V)
        self.register_buffer("function_V", function_V)
        self.register_buffer("keep_V", torch.ones(V, dtype=torch.bool))
        self.register_buffer("scale_V", torch.ones(V, dtype=torch.float32))
        self.register_buffer("special_V", special_V)
        self.register_buffer("begins_V", torch.tensor(list(begins)))
        wordlike = [j not in special and _is_wordlike(name) for j, name in enumerate(self.names)]
        self.register_buffer("wordlike_V", torch.tensor(wordlike))
        licensing = V if spec.honesty == "licensed-static" else 0
        self.register_buffer("licence_VK", torch.full((licensing, STATIC_LICENCES), -1, dtype=torch.int32))
        self.decoder_rows = V  # dimensions past these are further senses of expanded words
        self.surfaces = self.names  # the words themselves, where names number their senses
        self.register_buffer("word_V", torch.arange(V), persistent=False)
        self._by_surface: dict[str, list[int]] | None = None
        self.edits: list[Edit] = []

    @classmethod
    def from_tokenizer(
        cls,
        tokenizer: PreTrainedTokenizerBase,
        vocab_size: int,
        spec: LexiconSpec,
        document_frequency_V: Tensor | None = None,
    ) -> Lexicon:
        """The lexicon of a tokenizer whose decoder has `vocab_size` rows."""
        names, begins = piece_names(tokenizer, vocab_size)
        special = {j for j in tokenizer.all_special_ids if j < vocab_size}
        special |= {j for j, t in tokenizer.added_tokens_decoder.items() if t.special and j < vocab_size}
        unknown = tokenizer.unk_token_id
        in_text = [unknown] if unknown is not None and unknown < vocab_size else []
        return cls(names, begins, special, in_text, spec, document_frequency_V)

    @property
    def vocab_size(self) -> int:
        return len(self.names)

    @property
    def honesty(self) -> Honesty:
        return self.spec.honesty

    @property
    def licensed_only(self) -> bool:
        """Whether a position may speak only of words licensed there."""
        return self.spec.honesty.startswith("licensed")

    def ids(self, word: str) -> list[int]:
        """Every id whose normalised surface equals the word's: `muslim` finds muslim, Muslim, Ġmuslim …

        A word that was expanded is found with all its senses, and one of them as `bank#2`.
        """
        if self._by_surface is None:
            self._by_surface = {}
            for j, names in enumerate(zip(self.surfaces, self.names, strict=True)):
                for name in {normalise(name) for name in names if name and not self.special_V[j]}:
                    self._by_surface.setdefault(name, []).append(j)
        return list(self._by_surface.get(normalise(word), ()))

    def words(self) -> Tensor:
        """The ids [W] of the dictionary that are rows of the decoder, ascending."""
        return self.dictionary_V[: self.decoder_rows].nonzero()[:, 0]

    def further_senses(self) -> Tensor:
        """The dimensions [W, M - 1] that each row of the decoder has beside its own, -1 where it has none."""
        appended = self.word_V[self.decoder_rows :]
        each = int(torch.bincount(appended).max()) if len(appended) else 0
        further_WM = self.word_V.new_full((self.decoder_rows, each), -1)
        if each:  # the senses of one word follow each other
            further_WM[appended[::each]] = (
                (torch.arange(len(appended)) + self.decoder_rows).view(-1, each).to(appended.device)
            )
        return further_WM

    def kept_words(self) -> Tensor:
        """Rows of the decoder that have a dimension which was not removed."""
        return torch.bincount(self.word_V[self.keep_V], minlength=self.decoder_rows) > 0

    def expand(self, word_V: Tensor, sense_V: Tensor) -> None:
        """Give expanded words a dimension for each sense, alike in everything but the name.

        `word_V` is the word of every dimension, `sense_V` which of the word's senses it is, from 0.
        """
        tables = ("dictionary_V", "function_V", "keep_V", "scale_V", "special_V", "begins_V", "wordlike_V")
        for name in tables:
            setattr(self, name, getattr(self, name)[word_V])
        for i, edit in enumerate(self.edits):
            ids_E = torch.isin(word_V, torch.tensor(edit.ids, device=word_V.device)).nonzero()[:, 0]
            self.edits[i] = edit.model_copy(update={"ids": ids_E.tolist()})
        self.word_V = word_V.clone()
        self.surfaces = [self.surfaces[j] for j in word_V.tolist()]
        split = torch.bincount(word_V)[word_V] > 1
        numbers = torch.where(split, sense_V + 1, 0).tolist()
        self.names = [f"{w}#{n}" if n else w for w, n in zip(self.surfaces, numbers, strict=True)]
        self._by_surface = None

    def valid(self, input_ids_BL: Tensor, attention_mask_BL: Tensor) -> Tensor:
        """Positions [B, L] that stand for text: neither padding nor special tokens."""
        return attention_mask_BL.bool() & ~self.special_V[input_ids_BL]

    # --- static licences -------------------------------------------------------------------------------

    @torch.no_grad()
    def build_licences(self, E_VH: Tensor, chunk: int = 1024) -> None:
        """Fill the table [V, 16]: slot 0 the word itself, then its nearest whole words by cosine of E.

        Function words, special tokens and names outside the dictionary license nothing (-1). Pieces without a
        word's beginning have neighbours too, for where they stand alone: byte-level text starts unmarked.
        """
        direction_VH = F.normalize(E_VH.float(), dim=-1)
        V = len(E_VH)
        licence_VK = torch.full((V, STATIC_LICENCES), -1, dtype=torch.int32, device=E_VH.device)
        licence_VK[:, 0] = torch.where(self.dictionary_V[:V], torch.arange(V, device=E_VH.device), -1)
        whole_W = (self.dictionary_V & self.begins_V)[:V].nonzero()[:, 0]
        neighbours = max(0, min(STATIC_LICENCES - 1, len(whole_W) - 1))
        words_D = self.words()
        for start in range(0, len(words_D), chunk):
            rows_w = words_D[start : start + chunk]
            cosine_wW = direction_VH[rows_w] @ direction_VH[whole_W].T
            cosine_wW.masked_fill_(rows_w[:, None] == whole_W, -2.0)
            nearest = cosine_wW.topk(neighbours, dim=-1).indices
            licence_VK[rows_w, 1 : 1 + neighbours] = whole_W[nearest].int()
        self.licence_VK = licence_VK

    def licensed(self, input_ids_BL: Tensor) -> Tensor:
        """Licensed words [B, L, 16] (-1: none); a piece of a split word licenses only itself."""
        licence_BLK = self.licence_VK[input_ids_BL].long()
        alone = self.split_pieces(input_ids_BL)
        licence_BLK[..., 1:] = torch.where(alone[..., None], -1, licence_BLK[..., 1:])
        return licence_BLK

    def split_pieces(self, input_ids_BL: Tensor) -> Tensor:
        """Positions [B, L] whose token is one piece of a longer word."""
        wordlike_BL = self.wordlike_V[input_ids_BL]
        goes_on_BL = wordlike_BL & ~self.begins_V[input_ids_BL]
        goes_on_BL[:, 1:] &= wordlike_BL[:, :-1]  # after a space, a mark or a special token a word begins
        goes_on_BL[:, 0] = False
        split_BL = goes_on_BL.clone()
        split_BL[:, :-1] |= goes_on_BL[:, 1:]
        return split_BL


def _is_word(name: str) -> bool:
    return any(ch.isalpha() for ch in name) and "\ufffd" not in name and not _RESERVED.match(name)


def _is_wordlike(name: str) -> bool:
    """Whether a piece can be the middle of a word: digits can, a clitic ('s) cannot."""
    return any(map(str.isalnum, name)) and not name.startswith(("'", "’"))
