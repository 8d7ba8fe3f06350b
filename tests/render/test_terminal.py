"""A terminal, a pipe and a log file all show the same figures, and no text reaches the cursor."""

import io
import re
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splade.render import terminal
from splade.render.terminal import make_console
from tests.render.samples import CASES, LONG, REVIEW

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
any_text = st.text(st.characters(), max_size=40)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def printed(case: str, color: str = "auto", file: io.StringIO | None = None) -> str:
    file = file or io.StringIO()
    terminal.explanation(make_console(color, file), CASES[case])  # type: ignore[arg-type]
    return file.getvalue()


@pytest.mark.parametrize("case", CASES)
def test_every_explanation_goes_through_a_pipe_without_escape_codes(case: str) -> None:
    shown = printed(case)
    assert "\x1b" not in shown
    assert shown.strip()


@pytest.mark.parametrize("case", CASES)
def test_on_a_terminal_only_colours_are_sent(case: str) -> None:
    assert not any(ord(c) < 32 and c != "\n" for c in _COLOUR.sub("", printed(case, file=Terminal())))


def test_printed_contributions_add_up_to_the_printed_logit() -> None:
    head, *lines = printed("review").split("\n")
    logit, bias, words = (Decimal(figure) for figure in re.findall(r"[+-]\d+\.\d\d(?= |$)", head))
    figures = [
        Decimal(found.group()) for line in lines if (found := re.search(r"(?<= )[+-]\d+\.\d\d(?= )", line))
    ]
    assert sum(figures) == words
    assert bias + words == logit


def test_without_colour_the_strong_words_are_marked() -> None:
    assert "superb[+1.30]" in printed("review")
    assert "superb[" not in _COLOUR.sub("", printed("review", "always"))


@pytest.mark.parametrize(
    ("flag", "environment", "tty", "colored"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"FORCE_COLOR": "1"}, False, True),
        ("auto", {"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
        ("always", {"NO_COLOR": "1"}, False, True),
        ("never", {"FORCE_COLOR": "1"}, True, False),
        ("auto", {"TERM": "dumb"}, True, False),
    ],
)
def test_the_flag_comes_before_the_environment_before_the_terminal(
    flag: str, environment: dict[str, str], tty: bool, colored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in printed("review", flag, Terminal() if tty else io.StringIO())) is colored


def test_markup_and_control_characters_are_printed_as_text() -> None:
    shown = printed("hostile")
    assert "[bold red]x[/]" in shown
    assert "\\x1b[31m\\x00\\u202eevil" in shown
    assert "no\\u202e\\x07\\nline" not in shown.split("\n")[0]  # only the predicted class is named


def test_a_long_text_is_cut_to_what_matters() -> None:
    shown = printed("long")
    assert len(shown) < 4_000 < len(LONG["text"])
    assert "superb[+2.00]" in shown


def test_the_row_that_was_classified_is_named() -> None:
    assert printed("row").startswith('"Paris" B-LOC')


def test_effects_that_overlap_are_not_called_a_sum() -> None:
    head = printed("ablation").split("\n")[0]
    assert "do not add up" in head
    assert "bias" not in head


@settings(max_examples=40, deadline=None)
@given(any_text, any_text)
def test_tables_and_metrics_print_any_name_and_value(name: str, value: str) -> None:
    file = io.StringIO()
    console = make_console("auto", file)
    terminal.table(console, name, [name, "n"], [[value, 1], [value, None]])
    terminal.metrics(console, {name: {value: 0.5, "list": [value, 3]}, "rows": [{"a": value}]})
    assert not any(ord(c) < 32 and c != "\n" for c in file.getvalue())


def test_columns_of_numbers_end_together() -> None:
    file = io.StringIO()
    terminal.table(make_console("never", file), "", ["name", "n"], [["a", 5], ["b", 12345]])
    assert {len(line.rstrip()) for line in file.getvalue().splitlines()[1:]} == {len("name  12,345")}


def test_a_pipe_without_unicode_does_not_end_the_run() -> None:
    raw = io.BytesIO()
    pipe = io.TextIOWrapper(raw, encoding="cp1252")
    terminal.explanation(make_console("auto", pipe), CASES["emoji"])
    pipe.flush()
    assert b"\\U0001f600" in raw.getvalue()


def test_metrics_are_nested_and_aligned() -> None:
    file = io.StringIO()
    terminal.metrics(make_console("never", file), {"score": {"accuracy": 0.9311, "rows": 600}})
    lines = [line.rstrip() for line in file.getvalue().splitlines()]
    assert lines == ["score", "  accuracy  0.931", "  rows        600"]


def test_a_residual_is_printed() -> None:
    assert "residual 1.1e-08" in printed("review")
    assert REVIEW["residual"] == 1.1e-8
