"""Text from templates: `{slot}` is filled, then `[this|that]` is chosen, then the sentence is tidied."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")

_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_ARTICLE = re.compile(r"\b([Aa]) (?=[aeio]|u(?!se|ni|su)|honest|hour)(?!one\b|eu)")
_SENTENCE = re.compile(r"(^\"?|[.!?] \"?)([a-z])")


def choose(rng: Random, template: str) -> str:
    """Replace every `[a|b|c]`, innermost first, by one of its alternatives."""
    while match := _CHOICE.search(template):
        picked = rng.choice(match.group(1).split("|"))
        template = template[: match.start()] + picked + template[match.end() :]
    return template


def fill(rng: Random, template: str, slots: Mapping[str, str]) -> str:
    """Fill the `{slots}` of a template (slots may hold slots, two deep) and make its choices."""
    return choose(rng, template.format_map(slots).format_map(slots))


def tidy(text: str) -> str:
    """Right article before a vowel, single spaces, a capital at the start of each sentence."""
    text = _ARTICLE.sub(r"\1n ", " ".join(text.split()))
    return _SENTENCE.sub(lambda match: match.group(1) + match.group(2).upper(), text)


def capital(text: str) -> str:
    """The text with its first letter raised."""
    return text[:1].upper() + text[1:]


def pick(rng: Random, options: Sequence[T], n: int) -> list[T]:
    """n different members in random order."""
    return rng.sample(list(options), n)


def distinct(make: Callable[[], T], key: Callable[[T], str], seen: set[str]) -> T:
    """Draw until the key is new, and remember it."""
    while True:
        value = make()
        if key(value) not in seen:
            seen.add(key(value))
            return value


def words_between(text: str, low: int, high: int) -> bool:
    """Whether the text has between low and high words, both included."""
    return low <= len(text.split()) <= high
