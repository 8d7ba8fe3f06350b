"""A reading is made once, and anew after every kind of change."""

from __future__ import annotations

import copy
import pickle

import torch
from torch import Tensor

from splade.models.remembered import Remembered


class Reader:
    def __init__(self) -> None:
        self.remembered: Remembered[int] = Remembered()
        self.readings = 0

    def __call__(self, table: Tensor) -> int:
        return self.remembered(table, lambda: self.read(table))

    def read(self, table: Tensor) -> int:
        self.readings += 1
        return int(table.sum())


def test_an_unchanged_tensor_is_read_once() -> None:
    reader, table = Reader(), torch.ones(3)
    assert [reader(table) for _ in range(4)] == [3] * 4
    assert reader.readings == 1


def test_every_change_is_seen() -> None:
    reader, table = Reader(), torch.ones(3)
    assert reader(table) == 3
    table[0] = 5
    assert reader(table) == 7
    with torch.no_grad():
        table.copy_(torch.zeros(3))
    assert reader(table) == 0
    with torch.inference_mode():
        table[1] = 2
        assert reader(table) == 2
    assert reader(torch.ones(4)) == 4


def test_copies_begin_without_a_memory() -> None:
    reader, table = Reader(), torch.ones(3)
    reader(table)
    for again in (copy.deepcopy(reader.remembered), pickle.loads(pickle.dumps(reader.remembered))):
        assert again(table, lambda: -1) == -1


def test_what_counts_no_changes_is_read_each_time() -> None:
    with torch.inference_mode():
        reader, table = Reader(), torch.ones(3)
        assert reader(table) == 3
        table[0] = 2
        assert reader(table) == 4


def test_what_is_remembered_in_inference_can_be_used_in_training() -> None:
    remembered: Remembered[Tensor] = Remembered()
    table = torch.tensor([0.0, 1.0, 2.0])
    with torch.inference_mode():
        remembered(table, lambda: table.nonzero()[:, 0])
    weight = torch.ones(3, requires_grad=True)
    weight[remembered(table, lambda: table.nonzero()[:, 0])].square().sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [0.0, 2.0, 2.0]
