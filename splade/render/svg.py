"""One explanation as a static SVG picture for a document, which needs no style sheet and no font.

1. Every text runs in cells of a fixed width, which `textLength` makes the viewer keep to.
2. The input text is broken into lines of such cells, left to right, with a shade behind each span.
3. Below it, the largest words as bars about a common zero.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from markupsafe import escape
from rich.cells import cell_len, chop_cells

from splade.render.ledger import Ledger, equation, ledger, peak, percent, strength
from splade.render.palette import CARD, INK, LINE, MUTED, RULE, hue
from splade.render.text import Piece, excerpt, label, pieces, visible

_PAD, _LINE, _ROW, _SIZE = 28, 30, 26, 15  # pixels
_LONG_TEXT, _AROUND = 900, 120  # characters
_FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'Liberation Mono',monospace"


def explanation_svg(data: Mapping[str, Any], width: int = 880, top: int = 8) -> str:
    """The prediction, the text with its contributions, and the `top` largest words, on a light card."""
    account = ledger(data, top)
    lines = list(_text(data, width - _PAD, top=2 * _PAD + 30))
    drawn = [*_header(data, account, width - 2 * _PAD), *(mark for _, mark in lines)]
    rows = max((baseline for baseline, _ in lines), default=2.0 * _PAD + 30) + 24
    for index, (word, figure) in enumerate(zip(account.shown, account.figures, strict=True)):
        drawn += _row(word, figure, rows + _ROW * (index + 1), account, width)
    height = rows + _ROW * (len(account.shown) + bool(account.more)) + _PAD
    if account.more:
        drawn.append(_words(_PAD, height - _PAD, f"{account.more}  {account.rest}".rstrip(), MUTED, 13))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" font-family="{_FONT}">\n<title>{escape(_title(data))}</title>\n'
        f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="10" fill="{CARD}" '
        f'stroke="{LINE}"/>\n{chr(10).join(drawn)}\n</svg>\n'
    )


def _title(data: Mapping[str, Any]) -> str:
    return f"{_isolated(data['prediction'])} {percent(data['probability'])}"


def _header(data: Mapping[str, Any], account: Ledger, room: float) -> Iterator[str]:
    named = f'"{_isolated(data["row"]["text"])}" ' if data.get("row") else ""
    yield _words(_PAD, _PAD + 16, named + _title(data), INK, 18, room, weight="600")
    sum_up = f"logit of {_isolated(data['explained'])} {equation(account)}"
    yield _words(_PAD, _PAD + 40, sum_up, MUTED, 13, room)


def _isolated(name: str) -> str:
    """A name whose direction does not turn the figures beside it."""
    return f"\u2068{label(name, 30)}\u2069"


def _text(data: Mapping[str, Any], right: float, top: float) -> Iterator[tuple[float, str]]:
    """The lines of the text from `top` down, each mark with the baseline it stands on."""
    largest, x, y = peak(data["spans"]), float(_PAD), top + _LINE
    if not data["text"].strip():
        yield y, _words(x, y, "(empty text)", MUTED, _SIZE)
        return
    for piece in excerpt(pieces(data), _LONG_TEXT, _AROUND):
        for token in re.findall(r"\n|[^\S\n]+|\S+", visible(piece.text)):
            for part in chop_cells(token, int((right - _PAD) / (0.6 * _SIZE))):
                if part == "\n" or x + _width(part, _SIZE) > right:
                    x, y = float(_PAD), y + _LINE
                if not part.isspace():
                    yield y, _shaded(x, y, part, piece, largest)
                if not (part.isspace() and x == _PAD):
                    x += _width(part, _SIZE)


def _shaded(x: float, y: float, text: str, piece: Piece, largest: float) -> str:
    value = piece.contribution or 0.0
    opacity = 0.4 * strength(value, largest)
    edge = f' stroke="{MUTED}" stroke-width="1.5"' if piece.focus else ""
    rect = (
        f'<rect x="{x - 1:.1f}" y="{y - 16:.1f}" width="{_width(text, _SIZE) + 2:.1f}" height="22" rx="4" '
        f'fill="{hue(value)}" fill-opacity="{opacity:.2f}"{edge}/>'
    )
    return (rect if opacity >= 0.02 or piece.focus else "") + _words(x, y, text, INK, _SIZE)


def _row(word: Mapping[str, Any], figure: str, y: float, account: Ledger, width: int) -> Iterator[str]:
    """The word, its bar about the middle of the picture, and its figure."""
    value, half = word["contribution"], width * 0.22
    middle, length = width * 0.55, max(1.0, half * strength(word["contribution"], account.peak))
    left = middle if value > 0 else middle - length
    yield _words(_PAD, y, label(word["word"], 24), INK, _SIZE, room=middle - half - _PAD - 12)
    yield f'<rect x="{left:.1f}" y="{y - 11}" width="{length:.1f}" height="12" rx="2" fill="{hue(value)}"/>'
    yield f'<path d="M{middle:.1f} {y - 18}V{y + 8}" stroke="{RULE}"/>'
    yield _words(width - _PAD - _width(figure, _SIZE), y, figure, INK, _SIZE)


def _words(
    x: float, y: float, text: str, fill: str, size: float, room: float = math.inf, weight: str = "400"
) -> str:
    """A line of text, made smaller where it would be wider than the room."""
    size = min(size, math.floor(10 * room / _width(text, 1)) / 10) if text and room < math.inf else size
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" fill="{fill}" '
        f'textLength="{_width(text, size):.1f}" xml:space="preserve">{escape(text)}</text>'
    )


def _width(text: str, size: float) -> float:
    return 0.6 * size * cell_len(text)
