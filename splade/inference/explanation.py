"""An explanation: one logit as an exact sum of named words, and of the input words they were read at.

    logit = bias + Σ words = bias + Σ spans

holds for the methods `dla` and `path`; the effects of `ablation` overlap.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Place:
    """A stretch text[start:end] of the input."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Read(Place):
    """An input word that a concept word was read at, with its share of it."""

    share: float


@dataclass(frozen=True)
class Span(Place):
    """An input word and what it contributes."""

    contribution: float


@dataclass(frozen=True)
class Word:
    """A concept word: a dimension of the model, what it contributes, and where it was read."""

    word: str
    id: int
    activation: float
    contribution: float
    read_at: list[Read]


@dataclass(frozen=True)
class Explanation:
    """Why a model gave one logit to one text, or to one word (`row`) of a sentence.

    `prediction` is a class. Where a text may have several labels it is about the explained one: its name, or
    "not" and its name, and `probability` is that of this being so.

    `text` is the input without NULs, and places index it. `words` are sorted by magnitude, `spans` by place;
    what was read past the last word, at a closing line end say, is a last span without text, present only
    when it is not zero. `residual` is the relative gap between the logit, recomputed in float64, and the sum;
    with `ablation`, whose effects do not sum, that of `dla`.
    """

    text: str
    truncated: bool
    row: Place | None
    prediction: str
    probability: float
    probabilities: dict[str, float]
    explained: str
    method: str
    logit: float
    bias: float
    residual: float
    active_words: int
    words: list[Word]
    spans: list[Span]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, fit for JSON."""
        words = [{**vars(word), "read_at": [dict(vars(r)) for r in word.read_at]} for word in self.words]
        return {  # by hand: `asdict` takes half a minute over a million spans
            **{field.name: getattr(self, field.name) for field in fields(self)},
            "row": None if self.row is None else dict(vars(self.row)),
            "probabilities": dict(self.probabilities),
            "words": words,
            "spans": [dict(vars(span)) for span in self.spans],
        }

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def to_html(self) -> str:
        """A self-contained page."""
        from splade.render.html import explanation, page

        return page("Explanation", [explanation(self._data)])

    def to_svg(self) -> str:
        """A picture for a document."""
        from splade.render.svg import explanation_svg

        return explanation_svg(self._data)

    def plot(self, top: int = 15, path: str | PathLike[str] | None = None) -> Axes:
        """The largest words as bars; needs matplotlib."""
        from splade.render.plot import word_bars

        return word_bars(self._data, top, path)

    def _repr_html_(self) -> str:
        from splade.render.html import explanation_fragment

        return explanation_fragment(self._data)

    def __str__(self) -> str:
        from io import StringIO

        from splade.render.terminal import explanation, make_console

        file = StringIO()
        explanation(make_console("never", file=file), self._data)
        return file.getvalue()

    @cached_property
    def _data(self) -> dict[str, Any]:
        return self.to_dict()
