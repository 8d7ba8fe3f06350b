"""Untrusted text is shown, never acted on, and nothing of it is lost where it is not cut."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splade.render.text import excerpt, label, pieces, visible
from tests.render.samples import CASES, LONG, REVIEW

any_text = st.text(st.characters(), max_size=60)
_ACTS = {"Cc", "Cs", "Zl", "Zp"}
_TURNS = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@given(any_text)
def test_visible_text_neither_controls_nor_turns_a_line(text: str) -> None:
    shown = visible(text)
    assert not any(unicodedata.category(char) in _ACTS for char in shown.replace("\n", ""))
    assert not _TURNS & set(shown)
    assert visible(shown) == shown


def test_ordinary_text_of_any_script_is_untouched() -> None:
    text = "naïve 東京 👩‍👩‍👧 שלום می\u200cخواهم\nsecond line"
    assert visible(text) == text


@given(any_text, st.integers(8, 40))
def test_a_label_is_one_short_line(text: str, most: int) -> None:
    assert "\n" not in label(text, most)
    assert len(label("x" * 500, most)) <= most


@pytest.mark.parametrize("case", CASES)
def test_pieces_joined_are_the_text(case: str) -> None:
    assert "".join(piece.text for piece in pieces(CASES[case])) == CASES[case]["text"]


def test_overlapping_and_overlong_spans_repeat_nothing() -> None:
    spans = [{"start": a, "end": b, "contribution": 1.0} for a, b in ((0, 4), (2, 6), (3, 5), (6, 99))]
    assert "".join(piece.text for piece in pieces({"text": "abcdefgh", "spans": spans})) == "abcdefgh"


def test_the_strong_words_carry_most_of_the_total() -> None:
    cut = [piece for piece in pieces(REVIEW) if piece.contribution is not None]
    strong = sum(abs(piece.contribution or 0) for piece in cut if piece.strong)
    assert strong >= 2 / 3 * sum(abs(piece.contribution or 0) for piece in cut)
    assert sum(piece.strong for piece in cut) < len(cut) / 2


def test_an_excerpt_is_short_and_keeps_what_matters() -> None:
    shown = excerpt(pieces(LONG), limit=1_000, around=100)
    text = "".join(piece.text for piece in shown)
    assert len(text) < 1_000
    assert text.startswith("filler words")
    assert text.endswith("superb")
    assert " … " in text
    assert excerpt(pieces(REVIEW), limit=1_000, around=100) == pieces(REVIEW)
