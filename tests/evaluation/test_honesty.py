"""Every figure of dictionary honesty is the one worked out by hand."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from splade.data.encoding import Batch
from splade.evaluation.honesty import Honesty, HonestyFitter
from splade.mechanistic.attribution import Attribution
from splade.models.lexicon import GROUNDING_RANK, Lexicon, LexiconSpec
from splade.models.state import CircuitState, SparseRows

NAMES = ["[CLS]", "[PAD]", "good", "bad", "film", "the", "Good", "##good", "slow", "code", "was"]
PAD, GOOD, BAD, FILM, THE, UPPER, PIECE, SLOW, CODE = range(1, 10)
LABELS = ["no", "yes"]
Read = tuple[int, int, float, dict[int, float]]  # row, word, contribution, share of each position
LEXICON = Lexicon(
    NAMES, [not name.startswith("##") for name in NAMES], [0, PAD], [], LexiconSpec(honesty="free")
)


def attribution(reads: Sequence[Read], classes: Sequence[int]) -> Attribution:
    """Contributions as a model would give them."""
    shares = [(pair, place, share) for pair, read in enumerate(reads) for place, share in read[3].items()]
    rows = SparseRows(
        row_P=torch.tensor([read[0] for read in reads], dtype=torch.long),
        word_P=torch.tensor([read[1] for read in reads], dtype=torch.long),
        value_P=torch.ones(len(reads)),
        logit_P=torch.ones(len(reads)),
        source_pair_Q=torch.tensor([pair for pair, _, _ in shares], dtype=torch.long),
        source_position_Q=torch.tensor([place for _, place, _ in shares], dtype=torch.long),
        source_share_Q=torch.tensor([share for _, _, share in shares]),
        n_rows=len(classes),
        vocab_size=len(NAMES),
    )
    state = CircuitState(rows, torch.zeros(len(classes), 2), None)
    amount = torch.tensor([read[2] for read in reads])
    return Attribution(state, torch.tensor(classes), amount, torch.zeros(len(classes)), "dla")


def batch_of(texts: Sequence[Sequence[int]], rows: Tensor | None = None) -> Batch:
    longest = max(map(len, texts))
    ids = torch.tensor([[*text, *[PAD] * (longest - len(text))] for text in texts])
    mask = torch.tensor([[1] * len(text) + [0] * (longest - len(text)) for text in texts])
    return Batch(ids, mask, rows, torch.zeros(len(texts)).long(), list(range(len(texts))))


def top_of(said: Sequence[Sequence[Sequence[int]]]) -> Tensor:
    """The frozen LM's words at each position, filled with -1."""
    longest = max(map(len, said))
    padded = [[*text, *[[]] * (longest - len(text))] for text in said]
    return torch.tensor([[[*w, *[-1] * (GROUNDING_RANK - len(w))] for w in text] for text in padded])


def measured(
    reads: Sequence[Read],
    classes: Sequence[int],
    texts: Sequence[Sequence[int]],
    top_BLK: Tensor | None = None,
    rows: Tensor | None = None,
) -> Honesty:
    fitter = HonestyFitter(LEXICON, LABELS)
    fitter.update(attribution(reads, classes), batch_of(texts, rows), top_BLK)
    return fitter.result()


def test_words_the_lm_would_say_where_they_were_read_are_grounded() -> None:
    reads = [(0, GOOD, 2.0, {1: 1.0}), (0, SLOW, -1.0, {2: 1.0})]
    texts = [[0, GOOD, FILM]]
    perfect = measured(reads, [1], texts, top_of([[[], [GOOD], [SLOW, FILM]]]))
    assert (perfect.grounding100, perfect.grounding100_anywhere) == (1.0, 1.0)
    elsewhere = measured(reads, [1], texts, top_of([[[], [SLOW], [GOOD]]]))
    assert (elsewhere.grounding100, elsewhere.grounding100_anywhere) == (0.0, 1.0)
    nowhere = measured(reads, [1], texts, top_of([[[], [BAD], [FILM]]]))
    assert (nowhere.grounding100, nowhere.grounding100_anywhere) == (0.0, 0.0)
    half = measured(reads, [1], texts, top_of([[[], [GOOD], [FILM]]]))
    assert half.grounding100 == pytest.approx(2 / 3)  # by magnitude: a negative word counts as much


def test_a_word_read_at_several_places_is_grounded_by_its_shares() -> None:
    reads = [(0, GOOD, 4.0, {0: 0.25, 2: 0.75}), (0, BAD, 1.0, {1: 1.0})]
    found = measured(reads, [1], [[FILM, FILM, FILM]], top_of([[[GOOD], [BAD], [SLOW]]]))
    assert found.grounding100 == pytest.approx((4 * 0.25 + 1) / 5)
    assert found.grounding100_anywhere == 1.0


def test_shares_are_averaged_over_texts_and_not_over_mass() -> None:
    reads = [(0, GOOD, 100.0, {0: 1.0}), (1, BAD, 1.0, {0: 1.0})]
    found = measured(reads, [1, 0], [[GOOD], [FILM]], top_of([[[GOOD]], [[GOOD]]]))
    assert found.grounding100 == 0.5
    assert found.in_input == 0.5


def test_a_text_without_active_words_has_no_share_and_is_still_counted() -> None:
    reads = [(0, GOOD, 1.0, {0: 1.0})]
    found = measured(reads, [1, 1], [[GOOD], [FILM]], top_of([[[GOOD]], [[GOOD]]]))
    assert (found.grounding100, found.in_input) == (1.0, 1.0)
    assert found.texts == {"no": 0, "yes": 2}


def test_the_labelled_positions_of_a_sentence_are_one_text() -> None:
    reads = [(0, GOOD, 3.0, {0: 1.0}), (1, BAD, 1.0, {2: 1.0}), (2, SLOW, 1.0, {1: 1.0})]
    mask = torch.tensor([[True, False, True], [False, True, False]])
    found = measured(
        reads, [0, 1, 1], [[FILM, FILM, FILM], [SLOW, SLOW, SLOW]], top_of([[[GOOD]] * 3, [[GOOD]] * 3]), mask
    )
    assert found.grounding100 == pytest.approx((3 / 4 + 0) / 2)
    assert found.in_input == pytest.approx((0 + 1) / 2)
    assert found.texts == {"no": 1, "yes": 2}


def test_in_input_counts_the_ids_of_the_text_and_no_padding() -> None:
    reads = [(0, GOOD, 1.0, {0: 1.0}), (0, UPPER, 2.0, {0: 1.0}), (1, PAD, 1.0, {0: 1.0})]
    found = measured(reads, [1, 0], [[GOOD, FILM, FILM], [FILM]])
    assert found.in_input == pytest.approx((1 / 3 + 0) / 2)


def test_without_the_frozen_lm_grounding_is_not_measured() -> None:
    found = measured([(0, GOOD, 1.0, {0: 1.0})], [1], [[GOOD]])
    assert found.grounding100 is None
    assert found.grounding100_anywhere is None
    assert found.in_input == 1.0


def test_nothing_measured_is_none_and_not_zero() -> None:
    found = measured([], [0], [[FILM]], top_of([[[GOOD]]]))
    assert (found.grounding100, found.grounding100_anywhere, found.in_input) == (None, None, None)
    assert (found.effective_vocabulary, found.top_reasons, found.code_words) == ({}, {}, [])
    assert found.texts == {"no": 1, "yes": 0}
    assert found.size == int(LEXICON.dictionary_V.sum())


@pytest.mark.parametrize("words", [[GOOD], [GOOD, BAD], [GOOD, BAD, SLOW, FILM, CODE]])
def test_mass_spread_evenly_over_k_words_is_a_vocabulary_of_k(words: list[int]) -> None:
    reads = [(n, word, 0.3, {0: 1.0}) for n, word in enumerate(words)]
    found = measured(reads, [1] * len(words), [[FILM]] * len(words))
    assert found.effective_vocabulary == {"yes": pytest.approx(len(words))}
    assert found.texts["yes"] == len(words)


def test_effective_vocabulary_is_the_entropy_of_the_positive_mass_of_each_class() -> None:
    reads = [
        (0, GOOD, 3.0, {0: 1.0}),
        (0, BAD, -5.0, {0: 1.0}),
        (0, FILM, 1.0, {0: 1.0}),
        (1, BAD, 2.0, {0: 1.0}),
    ]
    found = measured(reads, [1, 0], [[FILM], [FILM]])
    entropy = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert found.effective_vocabulary == {"no": pytest.approx(1), "yes": pytest.approx(math.exp(entropy))}
    assert [(reason.word, reason.share) for reason in found.top_reasons["yes"]] == [
        ("good", 0.75),
        ("film", 0.25),
    ]


def test_function_words_among_the_ten_largest_reasons_are_named() -> None:
    reads = [(0, THE, 2.0, {0: 1.0}), (0, GOOD, 1.0, {0: 1.0}), (1, BAD, 1.0, {0: 1.0})]
    found = measured(reads, [1, 0], [[FILM], [FILM]])
    assert found.function_words == {"no": [], "yes": ["the"]}
    assert [reason.function_word for reason in found.top_reasons["yes"]] == [True, False]


def test_only_the_ten_largest_reasons_are_looked_at() -> None:
    many = [f"word{chr(97 + i)}" for i in range(12)]
    lexicon = Lexicon([*many, "the"], [True] * 13, [], [], LexiconSpec(honesty="free"))
    found = attribution([(0, j, 12.0 - j, {0: 1.0}) for j in range(12)], [0])
    rows = dataclasses.replace(found.state.rows, vocab_size=13)
    state = dataclasses.replace(found.state, rows=rows)
    fitter = HonestyFitter(lexicon, LABELS)
    fitter.update(dataclasses.replace(found, state=state), batch_of([[0]]), None)
    assert [reason.word for reason in fitter.result().top_reasons["no"]] == many[:10]


def code_case(texts: list[list[int]], active: int, mass: float = 1.0) -> Honesty:
    """The word 'code' active in the first texts, beside 'film' in all of them."""
    reads = [(n, FILM, 1.0, {0: 1.0}) for n in range(len(texts))]
    reads += [(n, CODE, mass, {0: 1.0}) for n in range(active)]
    return measured(sorted(reads), [1] * len(texts), texts)


def test_a_planted_code_word_raises_the_alarm() -> None:
    [alarm] = code_case([[CODE, FILM], *[[FILM]] * 9], active=5).code_words
    assert (alarm.word, alarm.label, alarm.active, alarm.occurs) == ("code", "yes", 5, 1)
    assert alarm.share == pytest.approx(5 / 15)
    [never_said] = code_case([[FILM]] * 10, active=2).code_words
    assert (never_said.active, never_said.occurs) == (2, 0)


@pytest.mark.parametrize(
    ("said", "active", "mass"),
    [(2, 9, 1.0), (1, 4, 1.0), (1, 10, 0.1)],
    ids=["often said", "seldom active", "little mass"],
)
def test_ordinary_words_raise_no_alarm(said: int, active: int, mass: float) -> None:
    texts = [[CODE, FILM]] * said + [[FILM]] * (10 - said)
    assert code_case(texts, active, mass).code_words == []


def test_a_word_occurs_whatever_its_case_and_place() -> None:
    reads = [(n, GOOD, 1.0, {0: 1.0}) for n in range(6)]
    assert len(measured(reads, [1] * 6, [[FILM]] * 6).code_words) == 1
    spelled = [[UPPER], [PIECE, GOOD], *[[FILM]] * 4]
    assert measured(reads, [1] * 6, spelled).code_words == []


def test_a_sentence_counts_once_however_many_of_its_positions_a_word_is_active_at() -> None:
    reads = [(n, CODE, 1.0, {n: 1.0}) for n in range(6)]
    mask = torch.ones(1, 6, dtype=torch.bool)
    assert measured(reads, [1] * 6, [[CODE, *[FILM] * 5]], rows=mask).code_words == []


def test_batches_add_up_to_the_whole() -> None:
    reads = [(0, GOOD, 2.0, {1: 1.0}), (1, BAD, 1.0, {0: 1.0}), (1, THE, 0.5, {1: 1.0})]
    texts, top_BLK = [[FILM, GOOD], [BAD, FILM]], top_of([[[GOOD], [BAD]], [[BAD], []]])
    parts = HonestyFitter(LEXICON, LABELS)
    for n in (0, 1):
        mine = [(0, *read[1:]) for read in reads if read[0] == n]
        parts.update(attribution(mine, [n]), batch_of([texts[n]]), top_BLK[n : n + 1])
    assert parts.result() == measured(reads, [0, 1], texts, top_BLK)
