"""How well a masked LM guesses text it was not trained on: loss by position, and words for blanks.

Legend: B windows, L positions, N masked positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F

from splade.data.tokens import Frame, Ids
from splade.errors import DataError
from splade.models.backbone import Backbone
from splade.training import optim
from splade.training.masking import IGNORED, Masked, Masker, framed, guesses

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SENTENCES = (
    "We drove to the coast and swam in the {} all afternoon.",
    "The doctor told him to stay in {} until the fever was gone.",
    "The soup was cold and the waiter was {}, so we left early.",
    "Parliament voted to raise the {} on fuel next year.",
)
RATE = 0.15


@dataclass(frozen=True)
class Bucket:
    """Mean loss at the masked positions from `first` to `last`, counted from 0 with special tokens."""

    first: int
    last: int
    loss: float
    masked: int


@dataclass(frozen=True)
class HeldOut:
    """Mean loss and share of right guesses over all masked positions, and the loss by position."""

    length: int
    loss: float
    accuracy: float
    masked: int
    buckets: list[Bucket]


@dataclass(frozen=True)
class Filled:
    """The likeliest words for the blank of a sentence."""

    text: str
    words: list[str]


@torch.no_grad()
def held_out_loss(
    backbone: Backbone,
    tokenizer: PreTrainedTokenizerBase,
    ids: Ids,
    length: int,
    bucket: int = 128,
    *,
    rate: float = RATE,
    seed: int = 0,
    tokens_at_once: int = 8192,
) -> HeldOut:
    """Loss in windows of `length`, special tokens included, cut from `ids` one after another.

    `rate` of the text's tokens are hidden behind the mask token, the same for every model of a tokenizer.
    """
    n_buckets = -(-length // bucket)
    total, right, count = (torch.zeros(n_buckets, dtype=torch.float64) for _ in range(3))
    backbone.eval()
    for masked in _batches(backbone, tokenizer, ids, length, rate, seed, tokens_at_once):
        with optim.autocast(backbone.E_VH.device, "auto"):
            h_BLH = backbone(masked.input_ids_BL, torch.ones_like(masked.input_ids_BL))
            z_NV = guesses(h_BLH, masked.at_N, backbone.E_VH, backbone.e_V)
        loss_N = F.cross_entropy(z_NV, masked.labels_N, ignore_index=IGNORED, reduction="none")
        fit_N = masked.labels_N != IGNORED
        bucket_N = (masked.at_N % length // bucket).cpu()
        total.index_add_(0, bucket_N, loss_N.double().cpu())
        right.index_add_(0, bucket_N, (z_NV.argmax(-1) == masked.labels_N).double().cpu())
        count.index_add_(0, bucket_N, fit_N.double().cpu())
    if not count.sum():
        raise DataError(f"the held-out text has no window of {length} tokens; give more of it to --held-out")
    buckets = [
        Bucket(i * bucket, min((i + 1) * bucket, length) - 1, float(total[i] / count[i]), int(count[i]))
        for i in range(n_buckets)
        if count[i]
    ]
    n_masked = int(count.sum())
    return HeldOut(length, float(total.sum()) / n_masked, float(right.sum()) / n_masked, n_masked, buckets)


def _batches(
    backbone: Backbone,
    tokenizer: PreTrainedTokenizerBase,
    ids: Ids,
    length: int,
    rate: float,
    seed: int,
    tokens_at_once: int,
) -> Iterator[Masked]:
    device, frame = backbone.E_VH.device, Frame.of(tokenizer)
    masker = Masker(tokenizer, torch.device("cpu"))
    generator = torch.Generator().manual_seed(seed)
    inner, size = length - frame.added, max(1, tokens_at_once // length)
    text = torch.from_numpy(np.asarray(ids[: len(ids) // inner * inner], dtype=np.int64)).view(-1, inner)
    for start in range(0, len(text), size):
        rows = text[start : start + size]
        found = masker(framed(rows, frame), max(1, round(rate * rows.numel())), generator, mixed=False)
        yield Masked(found.input_ids_BL.to(device), found.at_N.to(device), found.labels_N.to(device))


@torch.no_grad()
def fill_blanks(
    backbone: Backbone,
    tokenizer: PreTrainedTokenizerBase,
    sentences: Sequence[str] = SENTENCES,
    top: int = 5,
) -> list[Filled]:
    """The `top` words for the `{}` of each sentence."""
    backbone.eval()
    device, found = backbone.E_VH.device, []
    for sentence in sentences:
        ids = tokenizer(sentence.format(tokenizer.mask_token), return_tensors="pt")["input_ids"].to(device)
        h_LH = backbone(ids, torch.ones_like(ids))[0]
        at = int((ids[0] == tokenizer.mask_token_id).nonzero()[0, 0])
        z_V = F.linear(h_LH[at], backbone.E_VH, backbone.e_V)[: len(tokenizer)]
        words = [tokenizer.decode([j]).strip() for j in z_V.topk(min(top, len(z_V))).indices.tolist()]
        found.append(Filled(sentence.format("___"), words))
    return found
