"""Keeping few words a position costs score and never words; keeping all of them is no top-k at all."""

from __future__ import annotations

import pytest

from splade.data.rows import Sentences, Texts
from splade.evaluation.suite import evaluate
from splade.evaluation.topk import KS, TopK, sweep
from tests.tiny import SENTENCES, tiny_model

WORDS = [sentence.split() for sentence in SENTENCES]
ROWS = {
    "classification": Texts(list(SENTENCES), [i % 3 for i in range(len(SENTENCES))]),
    "tagging": Sentences(WORDS, [["B-PER", *["O"] * (len(words) - 1)] for words in WORDS]),
}


@pytest.mark.parametrize("task", ["classification", "tagging"])
def test_keeping_every_active_word_is_no_top_k(task: str) -> None:
    model = tiny_model(task=task, opened=20)
    plain = evaluate(model, ROWS[task])
    everything = sweep(model, ROWS[task], [10_000])[0]
    assert everything.k == 10_000
    assert everything.score == pytest.approx(plain.quality.score)
    assert everything.active == pytest.approx(plain.active_words.mean)
    assert everything.sparsity == pytest.approx(plain.active_words.sparsity)
    assert sweep(model, ROWS[task], [0])[0] == TopK(
        0, everything.score, everything.active, everything.sparsity
    )


@pytest.mark.parametrize("task", ["classification", "tagging"])
def test_fewer_words_are_active_at_smaller_k(task: str) -> None:
    model = tiny_model(task=task, opened=20)
    found = sweep(model, ROWS[task], KS, batch_size=3)
    assert [one.k for one in found] == list(KS)
    assert [one.active for one in found] == sorted(one.active for one in found)
    assert found[0].active < found[-1].active
    for one in found:
        assert one.sparsity == pytest.approx(1 - one.active / model.lexicon.vocab_size)
        if task == "tagging":
            assert one.active <= one.k


def test_each_k_is_what_a_model_built_with_it_scores() -> None:
    rows = ROWS["classification"]
    [found] = sweep(tiny_model(opened=20), rows, [2])
    built = evaluate(tiny_model(opened=20, topk=2), rows)
    assert (found.score, found.active) == pytest.approx((built.quality.score, built.active_words.mean))


def test_the_model_keeps_its_own_k_even_when_interrupted() -> None:
    model = tiny_model(topk=7)

    def stop(_: int) -> None:
        raise KeyboardInterrupt

    sweep(model, ROWS["classification"], [1])
    assert model.config.topk_per_position == 7
    with pytest.raises(KeyboardInterrupt):
        sweep(model, ROWS["classification"], [1], advance=stop)
    assert model.config.topk_per_position == 7


def test_progress_counts_every_text_once_a_k() -> None:
    seen: list[int] = []
    sweep(tiny_model(), ROWS["classification"], [1, 5], advance=seen.append)
    assert sum(seen) == 2 * len(SENTENCES)
