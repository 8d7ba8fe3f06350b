"""Pages are self-contained and inert, and their figures add up."""

import re
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markupsafe import Markup

from splade.render import html
from tests.render.documents import Document, self_contained
from tests.render.samples import CASES, HOSTILE, LONG, REVIEW

hostile = st.text(st.characters(), max_size=30) | st.sampled_from(
    [
        "</style>",
        "<script>x</script>",
        "{{ 1 }}",
        '"><img src=x onerror=y>',
        "&lt;",
        "]]>",
        "\x00\x1b[2J",
        "-->",
    ]
)


@pytest.mark.parametrize("case", CASES)
def test_every_explanation_is_a_closed_inert_page(case: str) -> None:
    document = self_contained(html.page("Case", [html.explanation(CASES[case])]))
    assert "Logit" in document.text


def test_the_figures_of_a_page_add_up_to_its_logit() -> None:
    cells = re.findall(r'class="num">([+−][\d.]+)<', html.explanation(REVIEW))
    *parts, logit = (Decimal(cell.replace("−", "-")) for cell in cells)
    assert sum(parts) == logit


def test_hostile_text_is_shown_not_run() -> None:
    page = html.page(HOSTILE["text"], [html.explanation(HOSTILE)], subtitle=HOSTILE["text"])
    document = self_contained(page)
    assert page.count("<script") == 0
    assert page.count("</style>") == 1
    assert (
        "<script>alert(1)</script> & \"quoted\" 'single' [bold red]x[/] \\x1b[31m\\x00\\u202eevil"
        in document.text
    )
    assert not any(char in page for char in "\x00\x1b\u202e")


@settings(max_examples=60, deadline=None)
@given(hostile, hostile)
def test_no_value_breaks_out_of_any_part(name: str, value: str) -> None:
    sections = [
        html.table(name, [name, value], [[value, 1], [name, None]]),
        html.facts({name: value, "figure": 0.25}),
        html.prose(f"{value}\n\n## {name}\n\n- {value}"),
        html.bars(name, [(value, -1.0), (name, 2.0)], unit=value),
    ]
    page = html.page(name, sections, subtitle=value)
    self_contained(page)
    parts = Document(
        html.page("", [html.facts({}), html.table("", ["a", "b"], []), html.prose(""), html.bars("", [])])
    )
    assert {tag for tag, _ in Document(page).tags} <= {tag for tag, _ in parts.tags} | _PARTS


_PARTS = {"h3", "tbody", "tr", "td", "th", "div", "dt", "dd", "p", "h2", "ul", "li", "span", "i"}


def test_a_section_that_is_not_markup_is_escaped() -> None:
    assert "&lt;b&gt;" in html.page("t", ["<b>"])  # type: ignore[list-item]
    assert "<em>" in html.page("t", [Markup("<em></em>")])


def test_a_long_text_is_cut_to_what_matters() -> None:
    shown = html.explanation(LONG)
    assert len(shown) < 100_000 < len(LONG["text"])
    assert "superb" in shown


def test_every_shade_and_length_has_a_rule() -> None:
    page = html.page("t", [html.explanation(data) for data in CASES.values()])
    style = page[page.index("<style>") : page.index("</style>")]
    used = {name for name in Document(page).classes() if re.fullmatch(r"[pnw]\d+", name)}
    assert used
    assert all(f".{name}{{" in style for name in used)


def test_a_fragment_styles_only_itself() -> None:
    fragment = html.explanation_fragment(REVIEW)
    style = fragment[fragment.index("<style>") + 7 : fragment.index("</style>")]
    selectors = re.findall(r"(?:^|[}{])\s*([^@{};]+)\{", re.sub(r"@media[^{]*", "", style))
    assert selectors
    assert all(
        ".lexsae" in part for selector in selectors if selector.strip() for part in selector.split(",")
    )
    assert Document(fragment).faults == []


def test_numbers_stand_to_the_right_of_their_names() -> None:
    shown = html.table("t", ["name", "score"], [["a", 0.5], ["b", None]])
    assert shown.count('class="num"') == 3
    assert '<td class="num">–</td>' in shown


def test_many_classes_name_the_likeliest() -> None:
    document = Document(html.explanation(CASES["77 classes"]))
    assert document.text.startswith("card_arrival 60.0%")
    assert sum("intent_" in word for word in document.words) == 4
