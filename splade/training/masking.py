"""Hiding tokens for a masked LM to guess, and the loss of its guesses; nothing of size [B, L, V] is made.

Legend: B windows, L positions, S of them text, N masked positions, H hidden size, V vocabulary size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from splade.data.tokens import Frame
from splade.training.windows import Windows

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_HIDDEN, _RANDOM = 0.8, 0.1  # shares of the masked positions; the rest keep their token
IGNORED = -100


@dataclass(frozen=True)
class Masked:
    """Windows with some tokens hidden; `at_N` are flat positions, `labels_N` their tokens or IGNORED."""

    input_ids_BL: Tensor
    at_N: Tensor
    labels_N: Tensor


class Masker:
    """Hides ordinary tokens; special ones are neither hidden nor put in the place of others."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, device: torch.device) -> None:
        self.mask = Frame.of(tokenizer).mask
        special = torch.zeros(len(tokenizer), dtype=torch.bool)
        special[[j for j in tokenizer.all_special_ids if j < len(tokenizer)]] = True
        self.special_V = special.to(device)
        self.ordinary = (~special).nonzero()[:, 0].to(device)

    def __call__(
        self, ids_BL: Tensor, number: int, generator: torch.Generator, mixed: bool = True, room: int = 0
    ) -> Masked:
        """Mask `number` positions: all hidden, or `mixed`: 80 % hidden, 10 % another token, 10 % kept.

        Where fewer tokens are ordinary, or there is `room` for more, what is over gets the label IGNORED and
        stays as it is: so shapes, which compiled code depends on, can be the same for every batch.
        """
        flat, device = ids_BL.flatten(), ids_BL.device
        chance = torch.rand(flat.shape, device=device, generator=generator) + self.special_V[flat]
        at_N = chance.topk(min(max(number, room), len(flat)), largest=False).indices
        labels_N = flat[at_N]
        fit_N = (chance[at_N] < 1) & (torch.arange(len(at_N), device=device) < number)
        put_N = torch.full_like(labels_N, self.mask)
        if mixed:
            kind_N = torch.rand(at_N.shape, device=device, generator=generator)
            drawn_N = torch.randint(len(self.ordinary), at_N.shape, device=device, generator=generator)
            put_N = torch.where(kind_N < _HIDDEN + _RANDOM, self.ordinary[drawn_N], labels_N)
            put_N = torch.where(kind_N < _HIDDEN, self.mask, put_N)
        flat = flat.scatter(0, at_N, torch.where(fit_N, put_N, labels_N))
        return Masked(flat.view_as(ids_BL), at_N, torch.where(fit_N, labels_N, IGNORED))


def gather(shard_T: Tensor, windows: Windows, length: int, frame: Frame) -> tuple[Tensor, Tensor | None]:
    """(ids [B, L], attention mask) of some windows, text and special tokens; no mask where all are full.

    Without a mask attention takes its fastest kernel. `shard_T` may be the bits of uint16 ids in an int16.
    """
    device, n_text = shard_T.device, length - frame.added
    starts_B = torch.from_numpy(windows.starts).to(device)
    place_S = torch.arange(n_text, device=device)
    text_BS = shard_T[(starts_B[:, None] + place_S).clamp(max=len(shard_T) - 1)].long()
    if shard_T.dtype == torch.int16:
        text_BS &= 0xFFFF
    ids_BL = framed(text_BS, frame)
    if (windows.counts == n_text).all():
        return ids_BL, None
    count_B1 = torch.from_numpy(windows.counts).to(device)[:, None] + len(frame.prefix)
    place_L = torch.arange(length, device=device)
    used_BL = place_L < count_B1 + len(frame.suffix)
    ids_BL = torch.where(used_BL, ids_BL, frame.pad)
    for offset, end in enumerate(frame.suffix):
        ids_BL = torch.where(place_L == count_B1 + offset, end, ids_BL)
    return ids_BL, used_BL.long()


def framed(text_BS: Tensor, frame: Frame) -> Tensor:
    """Windows [B, L]: the special tokens of the tokenizer around each row of text."""
    before, after = (
        torch.tensor(some, dtype=torch.long, device=text_BS.device).expand(len(text_BS), -1)
        for some in (frame.prefix, frame.suffix)
    )
    return torch.cat([before, text_BS, after], 1)


def guesses(h_BLH: Tensor, at_N: Tensor, E_VH: Tensor, e_V: Tensor | None) -> Tensor:
    """Logits at the masked positions alone, in float32."""
    return F.linear(h_BLH.flatten(0, 1)[at_N], E_VH, e_V).float()


def mean_loss(h_BLH: Tensor, at_N: Tensor, labels_N: Tensor, E_VH: Tensor, e_V: Tensor | None) -> Tensor:
    """Mean cross-entropy over the masked positions that have a label; 0 where none has."""
    z_NV = guesses(h_BLH, at_N, E_VH, e_V)
    total = F.cross_entropy(z_NV, labels_N, ignore_index=IGNORED, reduction="sum")
    return total / (labels_N != IGNORED).sum().clamp(min=1)
