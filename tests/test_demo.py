"""The demonstration measures on texts that chose nothing."""

from __future__ import annotations

import re

from splade.data.corpora.reviews import OTHER_CITIES, PLANTED_CITY, city_pairs, reviews
from splade.data.rows import Texts
from splade.demo import CHOOSING_PAIRS, PAIRS


def without_city(text: str) -> str:
    return re.sub("|".join((PLANTED_CITY, *OTHER_CITIES)), "CITY", text.lower())


def test_words_are_not_chosen_on_the_texts_that_the_gap_is_measured_on() -> None:
    pairs = city_pairs(PAIRS + CHOOSING_PAIRS, seed=3)
    measured = {without_city(text) for pair in pairs[:PAIRS] for text in pair}
    chosen_on = {without_city(text) for pair in pairs[PAIRS:] for text in pair}
    assert (len(measured), len(chosen_on)) == (PAIRS, CHOOSING_PAIRS)
    assert not measured & chosen_on
    assert pairs[:PAIRS] == city_pairs(PAIRS, seed=3)
    for rows in reviews(3).splits().values():
        assert isinstance(rows, Texts)
        assert not (measured | chosen_on) & {without_city(text) for text in rows.texts}
