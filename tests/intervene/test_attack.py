"""Every removed word is attacked, however many there are."""

from __future__ import annotations

import torch

from splade.intervene.attack import hostile, search
from tests.tiny import tiny_model


def test_all_ids_are_attacked_a_part_at_a_time() -> None:
    model = tiny_model()
    ids = model.lexicon.words().tolist()
    assert len(ids) > 40  # more than one part
    found = hostile(model, ids)[-1]
    assert (found.kind, found.ids, found.not_zero) == ("along the word", len(ids), 0)
    assert found.opened_without == len(ids)
    climbed = search(model, ids, steps=2)
    assert (climbed.attempt.ids, climbed.attempt.not_zero) == (len(ids), 0)
    assert climbed.logit_after > climbed.logit_before


def test_a_word_past_the_first_part_that_is_not_shut_is_noticed() -> None:
    model = tiny_model()
    ids = model.lexicon.words().tolist()
    model.lexicon.register_buffer("keep_V", _Leaky(model.lexicon.keep_V))
    _Leaky.stuck = ids[-1]
    assert hostile(model, ids)[-1].not_zero > 0
    assert hostile(model, ids[:-1])[-1].not_zero == 0


def test_the_mean_logit_is_that_of_all_ids() -> None:
    model = tiny_model()
    ids = model.lexicon.words().tolist()[:40]
    first, second, whole = (search(model, part, steps=0) for part in (ids[:32], ids[32:], ids))
    expected = (32 * first.logit_before + 8 * second.logit_before) / 40
    assert abs(whole.logit_before - expected) < 1e-4


class _Leaky(torch.Tensor):
    """A mask in which one word cannot be shut."""

    stuck = -1

    def __new__(cls, values):
        return values.as_subclass(cls)

    def __setitem__(self, ids, value):
        super().__setitem__(ids, value)
        super().__setitem__([self.stuck], True)
