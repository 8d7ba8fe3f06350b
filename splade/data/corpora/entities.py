"""Sentences tagged with persons, places, organisations and the rest, with names that mean several things.

1. A frame is drawn, its choices are made, and it is cut into words.
2. Each slot draws a name: an ambiguous one, a known one, or, outside training, one that training never has.
3. Of each kind of frame a share, drawn by the seed, never occurs in training.
4. Some sentences are followed by one without names, and some are in lower case throughout.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from splade.data.corpora import entity_names as names
from splade.data.corpora import grammar
from splade.data.corpora.entity_frames import FRAMES, SHARES
from splade.data.rows import Dataset, Sentences

SIZES = {"train": 1600, "validation": 200, "test": 500}
TYPES = ("PER", "LOC", "ORG", "MISC")
LABELS = ["O", *(f"{prefix}-{kind}" for kind in TYPES for prefix in "BI")]
AMBIGUOUS_SHARE = 0.33  # of the names drawn
NEW_SHARE = 0.62  # of the other names of validation and test
NEW_NAMES = 0.4  # of each list, kept from training
NEW_FRAMES = 0.25  # of each kind, kept from training
LOWERCASE = 0.08

_FOLLOWED = {"nothing": 0.6}  # how often a sentence without names comes after
_FOLLOWED_ELSE = 0.12
_WORD = re.compile(r"\{\w+\}|(?:Dr|Mrs)\.|'s\b|\w+(?:-\w+)*|[^\w\s]")
_NUMBERS = {"{n}": (2, 9), "{k}": (11, 99)}
_LISTS: dict[str, list[str]] = {
    "first": names.FIRST,
    "last": names.LAST,
    "town": names.TOWN,
    "country": names.COUNTRY,
    "region": names.REGION,
    "river": names.RIVER,
    "club": names.TOWN,
    "firm": names.FIRM,
    "event": names.EVENT,
    "work": names.WORK,
}
_SLOTS = {
    "PER": ("per", "any", "first", "last"),
    "LOC": ("place", "town", "country", "region", "river"),
    "ORG": ("club", "firm", "body"),
    "MISC": ("nat", "event", "work"),
}
_TYPE = {slot: kind for kind, slots in _SLOTS.items() for slot in slots}
Row = tuple[list[str], list[str]]


@dataclass(frozen=True)
class _Halves:
    """Lists by name, each as what training knows and what it never has."""

    known: dict[str, list[str]]
    new: dict[str, list[str]]


def _halves(rng: Random, lists: Mapping[str, Sequence[str]], share: float) -> _Halves:
    known, new, orders = {}, {}, dict[int, list[str]]()
    for kind, members in lists.items():
        order = orders.setdefault(id(members), grammar.pick(rng, members, len(members)))  # clubs are towns
        cut = round(len(order) * share)
        new[kind], known[kind] = order[:cut], order[cut:]
    return _Halves(known, new)


@dataclass(frozen=True)
class _Namer:
    """Draws names; a share of the plain ones is new."""

    rng: Random
    halves: _Halves
    new_share: float

    def surface(self, slot: str) -> str:
        """A name for the slot, its words apart by spaces."""
        return self._draw(slot, self.rng.random() < self.new_share).replace("_", " ")

    def _draw(self, slot: str, new: bool) -> str:
        rng = self.rng
        if slot == "any":
            slot = rng.choice(("per", "per", "first", "last"))
        elif slot == "place":
            slot = rng.choice(("town", "town", "country", "region"))
        if slot == "per":
            return f"{self._draw('first', new)} {self._draw('last', new)}"
        if slot == "body":
            frame = grammar.choose(rng, rng.choice(names.BODIES))
            return frame.format(town=self._plain("town", new), firm=self._plain("firm", new))
        ambiguous = rng.random() < AMBIGUOUS_SHARE
        kind = "country" if slot == "nat" else slot
        name = rng.choice(names.AMBIGUOUS[kind]) if ambiguous else self._plain(kind, new)
        return self._finish(slot, name)

    def _plain(self, kind: str, new: bool) -> str:
        return self.rng.choice((self.halves.new if new else self.halves.known)[kind])

    def _finish(self, slot: str, name: str) -> str:
        """The name in the form its slot asks for."""
        if slot in ("country", "nat"):
            return name.split(":")[slot == "nat"]
        endings = {"club": names.CLUB_ENDINGS, "firm": names.FIRM_ENDINGS, "event": names.EVENT_ENDINGS}
        if slot in endings:
            return f"{name} {self.rng.choice(endings[slot])}".strip()
        return name


def _cut(rng: Random, frame: str) -> list[str]:
    """The words and slots of a frame, its choices made and its numbers filled in."""
    text = grammar.choose(rng, frame)
    for slot, (low, high) in _NUMBERS.items():
        while slot in text:
            text = text.replace(slot, str(rng.randint(low, high)), 1)
    return _WORD.findall(text)


def _fill(namer: _Namer, tokens: Sequence[str]) -> Row:
    """Names in the place of slots, each with its tags; no name stands twice."""
    words: list[str] = []
    tags: list[str] = []
    used: set[str] = set()
    for token in tokens:
        kind = _TYPE.get(token[1:-1], "") if token.startswith("{") else ""
        name = grammar.distinct(partial(namer.surface, token[1:-1]), str, used) if kind else token
        pieces = _WORD.findall(name)
        words += pieces
        tags += [f"B-{kind}"] + [f"I-{kind}"] * (len(pieces) - 1) if kind else ["O"]
    return _tidy(words), tags


def _tidy(words: Sequence[str]) -> list[str]:
    """A capital at the start, and `an` before a vowel."""
    start = 1 if words[0] == '"' else 0
    tidied = [
        "an" if word == "a" and following[:1].lower() in set("aeio") else word
        for word, following in zip(words, [*words[1:], ""], strict=True)
    ]
    tidied[start] = grammar.capital(tidied[start])
    return tidied


def _sentence(namer: _Namer, frames: Mapping[str, Sequence[str]]) -> Row:
    """One row: a sentence, and perhaps one without names after it."""
    rng = namer.rng
    kind = rng.choices(list(SHARES), list(SHARES.values()))[0]
    words, tags = _fill(namer, _cut(rng, rng.choice(frames[kind])))
    if rng.random() < _FOLLOWED.get(kind, _FOLLOWED_ELSE):
        more, outside = _fill(namer, _cut(rng, rng.choice(frames["nothing"])))
        words, tags = words + more, tags + outside
    return words, tags


def _split(namer: _Namer, frames: Mapping[str, Sequence[str]], size: int, seen: set[str]) -> Sentences:
    def lowered(words: list[str]) -> list[str]:
        return [word.lower() for word in words] if namer.rng.random() < LOWERCASE else words

    rows = [
        grammar.distinct(lambda: _sentence(namer, frames), lambda row: " ".join(row[0]).lower(), seen)
        for _ in range(size)
    ]
    return Sentences([lowered(words) for words, _ in rows], [tags for _, tags in rows])


def tagging(seed: int = 0) -> Dataset:
    """The corpus; `about` names the entity types and the shares that were asked for."""
    rng, seen = Random(f"tagging-{seed}"), set[str]()
    halves, known_frames = _halves(rng, _LISTS, NEW_NAMES), _halves(rng, FRAMES, NEW_FRAMES).known
    splits = {
        name: _split(_Namer(rng, halves, 0.0), known_frames, size, seen)
        if name == "train"
        else _split(_Namer(rng, halves, NEW_SHARE), FRAMES, size, seen)
        for name, size in SIZES.items()
    }
    about: dict[str, object] = {
        "types": list(TYPES),
        "ambiguous_share": AMBIGUOUS_SHARE,
        "new_frames": NEW_FRAMES,
        "lowercase": LOWERCASE,
    }
    return Dataset("tagging", "tagging", LABELS, about=about, **splits)
