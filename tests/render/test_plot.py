"""Plots show every explanation, and a user's word is never mathematics."""

from pathlib import Path

import pytest

from splade.render.ledger import ledger
from splade.render.plot import word_bars
from tests.render.samples import CASES, HOSTILE, REVIEW

pytest.importorskip("matplotlib")


@pytest.mark.parametrize("case", ["review", "hostile", "empty", "not a number", "huge", "tiny"])
def test_an_explanation_is_saved_as_a_picture(case: str, tmp_path: Path) -> None:
    word_bars(CASES[case], path=tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_the_plot_names_the_words_and_figures_of_the_ledger(tmp_path: Path) -> None:
    axes = word_bars(REVIEW, top=5, path=tmp_path / "plot.svg")
    book = ledger(REVIEW, 5)
    assert [tick.get_text() for tick in axes.get_yticklabels()] == [word["word"] for word in book.shown]
    assert [text.get_text().replace("−", "-") for text in axes.texts] == list(book.figures)


def test_hostile_words_are_written_out(tmp_path: Path) -> None:
    axes = word_bars(HOSTILE, path=tmp_path / "plot.png")
    assert "[red]$\\frac\\x1b[2J" in [tick.get_text() for tick in axes.get_yticklabels()]
