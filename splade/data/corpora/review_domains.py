"""The reviews' material, read from its written form into domains."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from splade.data.corpora.review_products import PRODUCTS, PROGRAMS
from splade.data.corpora.review_services import PLACES, SERVICES

# Blame first, praise second: the index is the label.
Sides = tuple[tuple[str, ...], tuple[str, ...]]

_PRONOUNS = {
    # kind: it, him/her/it, is, this, the new one, its verb, the old one's verb
    "product": ("it", "it", "is", "this", "this one", "is", "was"),
    "pair": ("they", "them", "are", "these", "this pair", "is", "were"),
    "program": ("it", "it", "is", "this", "this one", "is", "was"),
    "place": ("it", "it", "was", "this", "this one", "was", "was"),
    "service": ("they", "them", "were", "this", "this one", "was", "was"),
}
_NAMES = ("it", "obj", "be", "this", "new", "newbe", "oldbe")


@dataclass(frozen=True)
class Domain:
    """One thing that is reviewed: its aspects with clauses of both sides, and what surrounds them."""

    thing: str
    kind: str
    grammar: dict[str, str]
    aspects: tuple[Sides, ...]
    expected: Sides
    outcomes: Sides
    scenes: Sides


def _sides(text: str, subject: str = "") -> Sides:
    praise, blame = text.split(" - ")
    good, bad = (tuple(subject + part.strip() for part in side.split(" / ")) for side in (praise, blame))
    return bad, good


def _aspect(line: str) -> Sides:
    subject, predicates = line.split(" + ", 1)
    return _sides(predicates, subject + " ")


def _domain(block: str) -> Domain:
    head, *lines = block.strip().splitlines()
    thing, kind, old, time = head.split(" | ")
    marked = {line.split(" + ")[0]: _sides(line.split(" + ", 1)[1]) for line in lines if line.startswith("@")}
    kind_words = dict(zip(_NAMES, _PRONOUNS[kind], strict=True))
    return Domain(
        thing=thing,
        kind="product" if kind == "pair" else kind,
        grammar={"thing": thing, "old": old, "time": time, **kind_words},
        aspects=tuple(_aspect(line) for line in lines if not line.startswith("@")),
        expected=marked["@expect"],
        outcomes=marked["@out"],
        scenes=marked["@scene"],
    )


@cache
def domains() -> tuple[Domain, ...]:
    """Every domain, in the order in which it is written."""
    return tuple(
        _domain(block)
        for text in (PRODUCTS, PROGRAMS, PLACES, SERVICES)
        for block in text.split("\n= ")
        if block.strip()
    )
