"""What was read off a tensor, kept until the tensor changes: reading makes the host wait for the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

Value = TypeVar("Value")


class Remembered(Generic[Value]):
    """The result of a reading of a tensor, read anew for another tensor or after a write in place."""

    def __init__(self) -> None:
        self._of: tuple[Tensor, int, Value] | None = None

    def __call__(self, table: Tensor, read: Callable[[], Value]) -> Value:
        """What `read()` gave when `table` was as it is now."""
        if table.is_inference():  # such a tensor does not count its changes
            return read()
        if self._of is None or self._of[0] is not table or self._of[1] != table._version:
            with torch.inference_mode(False):
                self._of = table, table._version, read()
        return self._of[2]

    def __deepcopy__(self, memo: dict[int, Any]) -> Remembered[Value]:
        return Remembered()  # a copied tensor counts its changes from 0

    def __reduce__(self) -> tuple[type[Remembered[Value]], tuple[()]]:
        return Remembered, ()
