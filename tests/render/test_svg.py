"""Pictures are well-formed, inert, and keep all text inside."""

from xml.etree import ElementTree

import pytest

from splade.render.ledger import ledger
from splade.render.svg import explanation_svg
from tests.render.samples import CASES, REVIEW

_SPACE = "{http://www.w3.org/2000/svg}"
_DRAWN = {_SPACE + tag for tag in ("svg", "title", "rect", "text", "path")}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("width", [480, 880])
def test_every_explanation_is_a_well_formed_picture_with_its_text_inside(case: str, width: int) -> None:
    picture = ElementTree.fromstring(explanation_svg(CASES[case], width))
    assert {element.tag for element in picture.iter()} <= _DRAWN
    height = float(picture.get("height") or 0)
    for text in picture.iter(f"{_SPACE}text"):
        left, right = float(text.get("x") or -1), float(text.get("textLength") or 0)
        assert left >= 0
        assert left + right <= width, text.text
        assert 0 <= float(text.get("y") or -1) <= height


def test_the_figures_are_those_of_the_ledger() -> None:
    picture = ElementTree.fromstring(explanation_svg(REVIEW, top=5))
    drawn = [text.text for text in picture.iter(f"{_SPACE}text")]
    assert [text for text in drawn if text in ledger(REVIEW, 5).figures] == list(ledger(REVIEW, 5).figures)


@pytest.mark.parametrize("case", ["hostile", "unseen"])
def test_hostile_text_is_text(case: str) -> None:
    source = explanation_svg(CASES[case])
    assert not any(char in source for char in "\x00\x1b\u202e\u200b\ufeff")
    assert "<script" not in source
    assert "<img" not in source


def test_the_picture_reads_the_same_each_time() -> None:
    assert explanation_svg(REVIEW) == explanation_svg(REVIEW)
