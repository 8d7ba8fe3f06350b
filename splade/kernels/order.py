"""Which pairs share an id: what sums over words, rows or positions have to know, found once for all of them.

Legend: P pairs.
"""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor


class Order:
    """Ids [P] of pairs; the work is done when `groups` is first read, if ever."""

    def __init__(self, id_P: Tensor, is_sorted: bool = False) -> None:
        self.id_P, self.is_sorted = id_P, is_sorted

    @cached_property
    def groups(self) -> tuple[Tensor, Tensor, Tensor]:
        """The ids in ascending order, the pair of each place, and the place where its id's group ends."""
        if self.is_sorted:
            key_P, order_P = self.id_P, torch.arange(len(self.id_P), device=self.id_P.device)
        else:
            key_P, order_P = torch.sort(self.id_P.int(), stable=True)  # half the passes over the bits
        return key_P, order_P, torch.searchsorted(key_P, key_P, right=True)
