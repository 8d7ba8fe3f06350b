"""Self-contained HTML out of plain dicts: every value escaped, no script, no network.

Shades and lengths are classes (`p1`..`n10`, `w0`..`w100`), never style attributes, so that a page's policy
can allow one hashed style sheet and nothing else.
"""

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from splade.render import ledger as account
from splade.render.text import excerpt, label, pieces, visible

_LONG_TEXT, _AROUND = 20_000, 1_000  # characters
_METHODS = {"dla": "exact sum of words", "ablation": "word ablation", "path": "path integral"}
_OTHERS = 4  # classes named beside the prediction


def _show(value: object) -> object:
    """Whatever a template prints is visible text or markup made here."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


_environment = Environment(
    loader=PackageLoader("splade.render"),
    autoescape=True,
    finalize=_show,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_environment.filters["label"] = label


def render(name: str, **values: Any) -> Markup:
    """One of the templates filled in; a value that is not `Markup` is escaped."""
    return Markup(_environment.get_template(name).render(**values))


def page(title: str, sections: Sequence[Markup], subtitle: str = "") -> str:
    """A whole document around the sections; a section that is not `Markup` is escaped."""
    style = _style("page.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    whole = render("page.html", title=title, subtitle=subtitle, sections=sections, style=style, digest=digest)
    return str(whole)  # a `Markup` would escape whatever is later put into it


def explanation(data: Mapping[str, Any], top: int = 15) -> Markup:
    """One explanation: the text with its contributions, the concept words, and the sum they make."""
    book = account.ledger(data, top)
    return render(
        "explanation.html",
        data=data,
        book=book,
        pieces=list(_marks(data, book.places)),
        long=len(data["text"]) > 2_500,
        words=[_word(word, figure, book.peak) for word, figure in zip(book.shown, book.figures, strict=True)],
        sums=_sums(book),
        logit=_minus(book.logit),
        probability=account.percent(data["probability"]),
        others=_others(data),
        method=_METHODS.get(data["method"], data["method"]),
        residual=_minus(f"{data['residual']:.1e}"),
    )


def explanation_fragment(data: Mapping[str, Any]) -> str:
    """An explanation with its own scoped style, for a notebook cell."""
    return str(render("fragment.html", style=_style("style.css"), body=explanation(data)))


def table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Markup:
    """Rows under their column names; the first column names its row, numbers stand to the right."""
    numeric = [
        bool(rows) and all(row[index] is None or account.is_number(row[index]) for row in rows)
        for index in range(len(columns))
    ]
    cells = [[_cell(value) for value in row] for row in rows]
    return render("table.html", caption=caption, columns=columns, rows=cells, numeric=numeric)


def facts(values: Mapping[str, object]) -> Markup:
    """Key figures, each under its name."""
    return render(
        "facts.html", values={name.replace("_", " "): _cell(value) for name, value in values.items()}
    )


def prose(text: str) -> Markup:
    """Paragraphs between blank lines; a line opening with `## ` or `### ` is a heading, `- ` a list item."""
    blocks = [block.strip() for block in re.split(r"\n\s*\n", text) if block.strip()]
    return render("prose.html", blocks=[_block(block) for block in blocks])


def bars(caption: str, rows: Sequence[tuple[str, float]], unit: str = "") -> Markup:
    """Labelled values as bars from a common zero, in the middle when any value is negative."""
    largest = account.peak([{"contribution": value} for _, value in rows])
    drawn = [
        {"label": name, "value": _minus(account.number(value)), **_bar(value, largest)}
        for name, value in rows
    ]
    return render("bars.html", caption=caption, rows=drawn, unit=unit, centred=any(v < 0 for _, v in rows))


def columns(parts: Sequence[Markup]) -> Markup:
    """Parts side by side where the page is wide enough; a part that is not `Markup` is escaped."""
    return render("columns.html", parts=parts)


@cache
def _style(name: str) -> Markup:
    return render(name)


def _minus(figure: str) -> str:
    """The minus sign that is as wide as a plus."""
    return figure.replace("-", "−")


def _cell(value: object) -> str | Markup:
    if isinstance(value, Markup):
        return value
    shown = account.number(value)
    return _minus(shown) if account.is_number(value) else shown


def _block(block: str) -> dict[str, object]:
    lines = block.split("\n")
    level, _, title = block.partition(" ")
    if level in ("##", "###") and len(lines) == 1:
        return {"kind": "heading", "level": len(level), "text": title}
    if all(line.startswith("- ") for line in lines):
        return {"kind": "list", "items": [line[2:] for line in lines]}
    return {"kind": "paragraph", "text": block}


def _bar(value: float, largest: float) -> dict[str, object]:
    """Side and length in percent of the half axis; whatever is not zero keeps a visible sliver."""
    width = round(100 * account.strength(value, largest))
    return {"side": "p" if value > 0 else "n", "width": max(1, width) if value else 0}


def _marks(data: Mapping[str, Any], places: int) -> Iterator[dict[str, object]]:
    """Pieces with their shade (`p1`..`p10`, `n1`..`n10`), tooltip, and the printed value of strong ones."""
    largest = account.peak(data["spans"])
    for piece in excerpt(pieces(data), _LONG_TEXT, _AROUND):
        value = piece.contribution or 0.0
        shade = round(10 * account.strength(value, largest))
        figure = _minus(account.signed(value, places))
        yield {
            "text": piece.text,
            "shade": f"{'p' if value > 0 else 'n'}{shade}" if shade else "",
            "title": None if piece.contribution is None else f"{label(piece.text)} {figure}",
            "value": figure if piece.strong else "",
            "focus": piece.focus,
        }


def _word(word: Mapping[str, Any], figure: str, largest: float) -> dict[str, object]:
    read_at, several = word["read_at"], len(word["read_at"]) > 1
    return {
        "word": word["word"],
        "value": _minus(figure),
        "activation": f"activation {word['activation']:.2f}",
        "read": [
            {"text": place["text"], "share": account.percent(place["share"]) if several else ""}
            for place in read_at[:3]
        ],
        "unread": max(0, len(read_at) - 3),
        **_bar(word["contribution"], largest),
    }


def _sums(book: account.Ledger) -> list[tuple[str, str]]:
    """The lines under the words that complete the sum."""
    lines = [(book.more, book.rest)] if book.more else []
    if book.sums:
        lines.append(("Bias", book.bias))
    if book.unattributed:
        lines.append(("Unattributed", book.unattributed))
    return [(name, _minus(figure)) for name, figure in lines]


def _others(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The most probable classes besides the predicted one."""
    ranked = sorted(data["probabilities"].items(), key=lambda item: -item[1])
    rest = [(name, account.percent(value)) for name, value in ranked if name != data["prediction"]]
    return rest[:_OTHERS]
