"""Explanations and results on a terminal, readable in colour, without it, and through a pipe.

Everything printed is a `rich.text.Text`: markup in a user's text is never parsed, and `visible` has
replaced whatever could move the cursor.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from io import TextIOWrapper
from typing import IO, Any, Literal

from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from splade.render.ledger import Ledger, equation, is_number, ledger, number, peak, percent, signed, strength
from splade.render.text import Piece, excerpt, label, pieces, visible

_PIPED_WIDTH = 100
_UNBOUNDED = 100_000
_LONG_TEXT, _AROUND = 1_500, 120  # characters
_FAINT, _CLEAR, _FULL = 0.08, 0.35, 0.7  # strengths at which a word takes the next shade


def make_console(
    color: Literal["auto", "always", "never"] = "auto", file: IO[str] | None = None, stderr: bool = False
) -> Console:
    """A console that obeys the flag first, then NO_COLOR, then FORCE_COLOR, then whether it is a terminal."""
    stream = file or (sys.stderr if stderr else sys.stdout)
    if isinstance(stream, TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
        stream.reconfigure(errors="backslashreplace")  # a cp1252 pipe must not end a run
    tty = stream.isatty()
    colored = _wants_color(color, tty)
    dumb = os.environ.get("TERM") == "dumb"
    return Console(
        file=file,
        stderr=stderr,
        force_terminal=colored or tty,
        color_system=("standard" if dumb else "auto") if colored else None,
        no_color=not colored,
        width=None if tty else _PIPED_WIDTH,
        height=None if tty else 25,  # rich ignores a width that comes without a height on TERM=dumb
        highlight=False,
        markup=False,
        emoji=False,
    )


def explanation(console: Console, data: Mapping[str, Any], top: int = 12) -> None:
    """Print one explanation: its sum, the text with its contributions, and the concept words."""
    account = ledger(data, top)
    _print_line(console, _header(data, account))
    console.print()
    _print_text(console, _highlighted(console, data, account.places))
    if data.get("truncated"):
        _print_line(console, Text("The text was cut: the model did not read past its limit.", style="dim"))
    console.print()
    if account.shown:
        _print_table(console, _words(console, account))
    else:
        _print_line(console, Text("No active words.", style="dim"))


def table(console: Console, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows under their column names, numbers aligned to the right."""
    grid = _grid()
    for index, name in enumerate(columns):
        numeric = bool(rows) and all(row[index] is None or is_number(row[index]) for row in rows)
        grid.add_column(Text(label(name)), justify="right" if numeric else "left", no_wrap=numeric)
    for row in rows:
        grid.add_row(*(Text(_cell(value)) for value in row))
    if title:
        _print_line(console, Text(label(title, 200), style="bold"))
    _print_table(console, grid)


def metrics(console: Console, results: Mapping[str, Any]) -> None:
    """Print a nested dict as aligned names and values, one indented block per level."""
    lines = list(_flatten(results, 0))
    width = max((len(number(value)) for _, value in lines if is_number(value)), default=0)
    grid = _grid(show_header=False)
    grid.add_column(no_wrap=True)
    grid.add_column()
    for name, value in lines:
        if value is _SECTION:
            name.stylize("bold")
            grid.add_row(name, Text())
        else:
            grid.add_row(name, Text(number(value).rjust(width) if is_number(value) else _cell(value)))
    _print_table(console, grid)


def _wants_color(color: str, tty: bool) -> bool:
    if color != "auto":
        return color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return tty and os.environ.get("TERM") != "dumb"


def _header(data: Mapping[str, Any], account: Ledger) -> Text:
    line = Text()
    if data.get("row"):
        line.append(f'"{label(data["row"]["text"])}" ')
    line.append(label(data["prediction"]), style="bold")
    line.append(f" {percent(data['probability'])}   ")
    other = data["explained"] != data["prediction"]
    line.append(f"logit of {label(data['explained'])} " if other else "logit ")
    line.append(equation(account))
    note = (
        f"residual {data['residual']:.1e}"
        if account.sums
        else "the effects of removing words do not add up to it"
    )
    return line.append(f"   {note}", style="dim")


def _highlighted(console: Console, data: Mapping[str, Any], places: int) -> Text:
    if not data["text"].strip():
        return Text("(empty text)", style="dim")
    largest, line = peak(data["spans"]), Text()
    for piece in excerpt(pieces(data), _LONG_TEXT, _AROUND):
        value = piece.contribution or 0.0
        style = _shade(value, strength(value, largest))
        line.append(visible(piece.text), style=f"{style} underline".strip() if piece.focus else style)
        if not _has_color(console):
            line.append(_mark(piece, places))
    return line


def _mark(piece: Piece, places: int) -> str:
    return f"[{signed(piece.contribution, places)}]" if piece.strong and piece.contribution else ""


def _has_color(console: Console) -> bool:
    return console.color_system is not None and not console.no_color


def _shade(value: float, magnitude: float) -> str:
    """Four shades out of the reader's own palette, which suits light and dark terminals alike."""
    if magnitude < _FAINT:
        return ""
    hue = "green" if value > 0 else "red"
    if magnitude < _CLEAR:
        return hue
    return f"bold {hue}" if magnitude < _FULL else f"bold reverse {hue}"


def _words(console: Console, account: Ledger) -> Table:
    half = 10 if console.width >= _PIPED_WIDTH else 6
    plain = console.options.ascii_only
    axis, dots = ("|", "...") if plain else ("│", "…")
    grid = _grid()
    grid.add_column("word", no_wrap=True)
    grid.add_column(account.measure.lower(), justify="right", no_wrap=True)
    grid.add_column(
        f"{'against' if half > 8 else '-':>{half - 1}} {axis} {'for' if half > 8 else '+'}", no_wrap=True
    )
    grid.add_column("read")
    for word, figure in zip(account.shown, account.figures, strict=True):
        value = word["contribution"]
        hue = "green" if value > 0 else "red"
        bar, amount = Text(_bar(value, account.peak, half, plain), style=hue), Text(figure, style=hue)
        grid.add_row(Text(label(word["word"])), amount, bar, Text(_places_read(word["read_at"]), style="dim"))
    if account.more:
        grid.add_row(Text(f"{dots} and {account.more}", style="dim"), account.rest, "", "")
    return grid


def _bar(value: float, largest: float, half: int, plain: bool) -> str:
    """A bar left or right of a centre axis, to half a cell; whatever is not zero leaves a trace."""
    halves = round(2 * half * strength(value, largest))
    full, rest = divmod(halves, 2)
    if plain:
        ink = "#" * full
    elif value > 0:
        ink = "█" * full + "▌" * rest or "▏"
    else:
        ink = "▐" * rest + "█" * full or "▕"
    axis = "|" if plain else "│"
    return f"{'':>{half}}{axis}{ink}" if value > 0 else f"{ink if value else '':>{half}}{axis}"


def _places_read(read_at: Sequence[Mapping[str, Any]], most: int = 3) -> str:
    if not read_at:
        return ""
    named = [
        f'"{label(place["text"], 40)}"' + (f" {percent(place['share'])}" if len(read_at) > 1 else "")
        for place in read_at[:most]
    ]
    more = f" and {len(read_at) - most} more" if len(read_at) > most else ""
    return f"at {', '.join(named)}{more}"


_SECTION = object()


def _flatten(results: Mapping[str, Any], depth: int) -> Iterator[tuple[Text, object]]:
    for key, value in results.items():
        name = Text("  " * depth + label(key).replace("_", " "))
        if isinstance(value, Mapping):
            yield name, _SECTION
            yield from _flatten(value, depth + 1)
        elif _is_records(value):
            yield name, _SECTION
            yield from _flatten({str(index + 1): record for index, record in enumerate(value)}, depth + 1)
        else:
            yield name, value


def _is_records(value: object) -> bool:
    return isinstance(value, list | tuple) and any(isinstance(item, Mapping) for item in value)


def _cell(value: object) -> str:
    if isinstance(value, list | tuple):
        return "  ".join(_cell(item) for item in value)
    return label(number(value), 200)


def _grid(show_header: bool = True) -> Table:
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=show_header, header_style="dim")


def _print_line(console: Console, line: Text) -> None:
    console.print(line, no_wrap=True, overflow="ignore", crop=False)


def _print_text(console: Console, text: Text) -> None:
    """Wrapped between words; into a pipe a word longer than the line stays whole."""
    longest = max((cell_len(chunk) for chunk in text.plain.split()), default=0)
    width = console.width if console.file.isatty() else max(console.width, longest)
    console.print(text, width=width, crop=False)


def _print_table(console: Console, grid: Table) -> None:
    """Whole rows into a pipe; on a terminal that is too narrow, text cells fold between words."""
    natural = Measurement.get(console, console.options.update(max_width=_UNBOUNDED), grid).maximum
    if natural <= console.width or console.file.isatty():
        console.print(grid)
    else:
        width, console.width = console.width, natural  # rich caps the width of a print at the console's
        console.print(grid, crop=False)
        console.width = width
