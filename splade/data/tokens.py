"""Raw text as token ids: documents one after another, each ended by the tokenizer's separator.

1. A `Frame` says what a tokenizer puts around a text and which ids are its boundary, mask and padding.
2. A source gives shards, arrays of ids that fit in memory, pass after pass, from any `Place` on.
3. `prepare_tokens` writes a whole corpus as one .npy file, which is memory-mapped when read.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from splade.data.raw import documents
from splade.errors import DataError, ModelError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Ids = npt.NDArray[Any]

SHARD_OF_TEXT, SHARD_OF_ARRAY = 2**20, 2**27  # tokens
_HELD_SHARE = 20  # held-out tokens are at most one in so many
_PROBE = "a"


@dataclass(frozen=True)
class Frame:
    """What a tokenizer puts before and after a text; `boundary` ends a document within a window."""

    prefix: tuple[int, ...]
    suffix: tuple[int, ...]
    boundary: int
    mask: int
    pad: int

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerBase) -> Frame:
        plain = tokenizer(_PROBE, add_special_tokens=False)["input_ids"]
        whole, size = tokenizer(_PROBE)["input_ids"], len(plain)
        at = next((i for i in range(len(whole)) if whole[i : i + size] == plain), 0)
        prefix, suffix = tuple(whole[:at]), tuple(whole[at + size :])
        ends = [tokenizer.sep_token_id, tokenizer.eos_token_id, *suffix, *prefix]
        boundary = next((end for end in ends if end is not None), None)
        if boundary is None or tokenizer.mask_token_id is None:
            missing = "separator" if boundary is None else "mask"
            raise ModelError(f"the tokenizer has no {missing} token; choose the checkpoint of a masked LM")
        pad = boundary if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        return cls(prefix, suffix, int(boundary), int(tokenizer.mask_token_id), int(pad))

    @property
    def added(self) -> int:
        """Special tokens around each window."""
        return len(self.prefix) + len(self.suffix)


@dataclass(frozen=True)
class Place:
    """Where a shard begins: the pass, and the document (of text) or token (of an array) in it."""

    number: int
    at: int


class Source(Protocol):
    """Shards without end, pass after pass; `begin` is where every pass begins."""

    begin: int

    def hold_out(self, most: int) -> Ids:
        """Take up to `most` tokens away from the front of every pass, and return them."""

    def shards(self, place: Place) -> Iterator[tuple[Place, Ids]]: ...


def open_source(path: Path, column: str | None, tokenizer: PreTrainedTokenizerBase) -> Source:
    """Text to be tokenised while it is read, or ids that `prepare_tokens` wrote."""
    if path.suffix.lower() in (".npy", ".bin"):
        return ArraySource(read_array(path, tokenizer), Frame.of(tokenizer).boundary)
    return TextSource(path, column, tokenizer)


class TextSource:
    """Documents tokenised as they are read; text that fits in one shard is tokenised once."""

    def __init__(
        self, path: Path, column: str | None, tokenizer: PreTrainedTokenizerBase, shard: int = SHARD_OF_TEXT
    ) -> None:
        self.path, self.column, self.tokenizer, self.shard = path, column, tokenizer, shard
        self.begin = 0
        self._whole: Ids | None = None

    def hold_out(self, most: int) -> Ids:
        """The first documents, as many as make `most` tokens or a twentieth of the text."""
        seen = _at_most(self._encoded(0), most * _HELD_SHARE)
        lengths = np.cumsum([len(ids) for ids in seen])
        wanted = min(most, int(lengths[-1]) // _HELD_SHARE)
        held = int(np.searchsorted(lengths, wanted)) + 1
        if held >= len(seen):
            raise DataError(f"{self.path}: too few documents to hold one out; name other text to --held-out")
        self.begin = held
        return np.concatenate(seen[:held])

    def shards(self, place: Place) -> Iterator[tuple[Place, Ids]]:
        for number in itertools.count(place.number):
            at = place.at if number == place.number else self.begin
            for first, ids in self._pass(at):
                yield Place(number, first), ids

    def _pass(self, at: int) -> Iterator[tuple[int, Ids]]:
        if self._whole is not None and at == self.begin:
            yield at, self._whole
            return
        parts: list[Ids] = []
        first, size = at, 0
        for document, ids in enumerate(self._encoded(at), at + 1):
            parts.append(ids)
            size += len(ids)
            if size >= self.shard:
                yield first, np.concatenate(parts)
                parts, first, size = [], document, 0
        if size and first == self.begin:
            self._whole = np.concatenate(parts)
        if size:
            yield first, np.concatenate(parts)

    def _encoded(self, at: int) -> Iterator[Ids]:
        return encoded(documents(self.path, self.column, at), self.tokenizer)


class ArraySource:
    """Slices of an array of ids."""

    def __init__(self, ids: Ids, boundary: int | None = None, shard: int = SHARD_OF_ARRAY) -> None:
        self.ids, self.boundary, self.shard = ids, boundary, shard
        self.begin = 0

    def hold_out(self, most: int) -> Ids:
        """The front of the array, up to the end of a document where one is near."""
        held = min(most, len(self.ids) // _HELD_SHARE)
        if held < 1:
            raise DataError("too few tokens to hold some out; name other text to --held-out")
        ends = np.flatnonzero(self.ids[held - 1 : 4 * held] == self.boundary)
        self.begin = held + int(ends[0]) if len(ends) else held
        return np.array(self.ids[: self.begin])

    def shards(self, place: Place) -> Iterator[tuple[Place, Ids]]:
        for number in itertools.count(place.number):
            begin = place.at if number == place.number else self.begin
            for at in range(begin, len(self.ids), self.shard):
                yield Place(number, at), np.array(self.ids[at : at + self.shard])


def encoded(texts: Iterable[str], tokenizer: PreTrainedTokenizerBase) -> Iterator[Ids]:
    """The ids of each document and its boundary."""
    end, kind = Frame.of(tokenizer).boundary, _kind(len(tokenizer))
    texts = iter(texts)
    while some := list(itertools.islice(texts, 256)):
        # `verbose` would warn of documents longer than the model reads at once
        for ids in tokenizer(some, add_special_tokens=False, return_attention_mask=False, verbose=False)[
            "input_ids"
        ]:
            yield np.asarray([*ids, end] if ids else [], dtype=kind)


def read_tokens(path: Path, column: str | None, tokenizer: PreTrainedTokenizerBase, most: int) -> Ids:
    """The first `most` tokens of text or of an array."""
    if path.suffix.lower() in (".npy", ".bin"):
        return np.array(read_array(path, tokenizer)[:most])
    return np.concatenate(_at_most(encoded(documents(path, column), tokenizer), most))[:most]


def prepare_tokens(
    path: Path, tokenizer: PreTrainedTokenizerBase, out: Path, column: str | None = None
) -> int:
    """Write the ids of a corpus to `out`, a .npy file, document by document; returns how many."""
    kind, total = np.dtype(_kind(len(tokenizer))), 0
    with out.open("wb") as file:
        _header(file, kind, 0)
        for ids in encoded(documents(path, column), tokenizer):
            ids.tofile(file)
            total += len(ids)
        file.seek(0)
        _header(file, kind, total)
    return total


def read_array(path: Path, tokenizer: PreTrainedTokenizerBase) -> Ids:
    """Token ids in a file, memory-mapped; refused where they cannot be this tokenizer's."""
    kind = _kind(len(tokenizer))
    try:
        if path.suffix.lower() == ".npy":
            ids: Ids = np.load(path, mmap_mode="r", allow_pickle=False)
        else:
            ids = np.memmap(path, dtype=kind, mode="r")
    except (OSError, ValueError, EOFError) as problem:
        reason = " ".join(str(getattr(problem, "strerror", None) or problem).split())
        raise DataError(f"{path}: cannot be read ({reason}); write it with --prepare") from problem
    if ids.ndim != 1 or ids.dtype not in (np.uint16, np.uint32) or not len(ids):
        raise DataError(f"{path}: is not one row of token ids (uint16 or uint32); write it with --prepare")
    if max(int(ids[i : i + 2**24].max()) for i in range(0, len(ids), 2**24)) >= len(tokenizer):
        raise DataError(
            f"{path}: has ids that this tokenizer has not; write it with --prepare for this model"
        )
    return ids


def _header(file: Any, kind: np.dtype[Any], size: int) -> None:
    """A .npy header; numpy leaves room in it for the size to grow."""
    np.lib.format.write_array_header_1_0(
        file, {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": (size,)}
    )


def _kind(vocabulary: int) -> type[np.uint16 | np.uint32]:
    return np.uint16 if vocabulary <= 2**16 else np.uint32


def _at_most(parts: Iterable[Ids], most: int) -> list[Ids]:
    """Arrays from the front until they hold `most` ids."""
    taken, size = [], 0
    for part in parts:
        taken.append(part)
        size += len(part)
        if size >= most:
            break
    return taken
