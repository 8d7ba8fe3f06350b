"""Words are what a reader sees, wherever they are written, and cover the text once."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splade.attribution.words import assign, segment

FAMILY, ENGLAND, THUMB = "👩‍👩‍👧‍👦", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "👍🏽"
SHAKE, WALK = "🙂‍↔️", "🚶🏿‍♀️‍➡️"

pieces_of_text = st.sampled_from(
    [
        "don't ",
        "naïve",
        "e\u0301",
        "東京",
        "カ\u3099",
        "שלום",
        "नमस्ते",
        "한국어",
        FAMILY,
        ENGLAND,
        THUMB,
        "🇫🇷",
        "🇩",
        *["❤️", "1️⃣", "--", "...", "\u200d", "\u200c", "\ufeff", "\u200f", "\u0301", "\n\n", "\x07"],
        *["\u200b", "’"],
    ]
)
texts = st.lists(pieces_of_text | st.text(max_size=4), max_size=12).map("".join)


def words(text: str) -> list[str]:
    return [text[start:end] for start, end in segment(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It isn't, really...", ["It", "isn't", ",", "really", "..."]),
        ("'quoted' l’été dogs'", ["'", "quoted", "'", "l’été", "dogs", "'"]),
        ("well-known -- x_1 = $5!?", ["well", "-", "known", "--", "x", "_", "1", "=", "$", "5", "!", "?"]),
        ("cafe\u0301 नमस्ते می\u200cخواهم", ["cafe\u0301", "नमस्ते", "می\u200cخواهم"]),
        ("我爱tokyo東京。カ\u3099ーです", [*"我爱", "tokyo", *"東京。", "カ\u3099", *"ーです"]),
        ("한국어 텍스트", ["한국어", "텍스트"]),
        ('צה״ל "שלום"', ["צה״ל", '"', "שלום", '"']),
        (f"ok{FAMILY}{THUMB}😀😀", ["ok", FAMILY, THUMB, "😀", "😀"]),
        ("🇫🇷🇩🇪🇺", ["🇫🇷", "🇩🇪", "🇺"]),
        (f"{SHAKE}{WALK}{ENGLAND}🏳️‍🌈", [SHAKE, WALK, ENGLAND, "🏳️‍🌈"]),
        ("1️⃣ ❤️‍🔥 \U0001fae9", ["1️⃣", "❤️‍🔥", "\U0001fae9"]),
        ("a\x00b\x07 \t\u200b\ufeffc \u0301d", ["a", "b", "c", "\u0301", "d"]),
        ("", []),
        (" \n\u3000\ufeff", []),
    ],
)
def test_words_are_what_a_reader_sees(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@given(texts)
def test_words_are_disjoint_and_miss_only_the_invisible(text: str) -> None:
    spans = segment(text)
    bounds = [bound for span in spans for bound in span]
    assert bounds == sorted(bounds)
    assert all(start < end for start, end in spans)
    covered = {i for start, end in spans for i in range(start, end)}
    for i, char in enumerate(text):
        if i not in covered:
            assert char.isspace() or unicodedata.category(char) in ("Cc", "Cf")
        else:
            assert not char.isspace()
            assert unicodedata.category(char) != "Cc"


@given(texts, texts)
def test_a_space_separates_and_changes_nothing_else(left: str, right: str) -> None:
    assert words(f"{left} {right}") == words(left) + words(right)


@given(texts, st.integers(0, 40))
def test_a_limit_keeps_the_words_that_begin_before_it(text: str, limit: int) -> None:
    assert segment(text, before=limit) == [span for span in segment(text) if span[0] < limit]


@given(texts)
def test_each_character_of_a_word_belongs_to_it(text: str) -> None:
    spans = segment(text)
    for index, (start, end) in enumerate(spans):
        assert assign([(i, i + 1) for i in range(start, end)], spans) == [index] * (end - start)
        assert assign([(start, len(text)), (0, 0)], spans) == [index, -1]


def test_a_piece_of_spaces_belongs_to_the_next_word() -> None:
    spans = segment("a  😀 \n")
    assert assign([(0, 1), (1, 2), (2, 3), (1, 3), (3, 3), (3, 4), (4, 6)], spans) == [0, 1, 1, 1, 1, 1, -1]
    assert assign([(0, 0), (0, 1)], []) == [-1, -1]


def test_a_long_text_is_read_in_linear_time() -> None:
    long = "a'" * 100_000 + "\u0301" * 100_000 + "👍🏽\u200d" * 100_000 + "." * 100_000
    assert len(segment(long)) == 4  # the last apostrophe takes the marks, the emoji one full stop
