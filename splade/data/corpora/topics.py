"""Short letters to a newspaper page on six topics, most of which mention a second topic in passing.

1. A topic, one of its cases and a plan are drawn; other topics lend what is mentioned, quoted or set aside.
2. The label is the topic the writer asks about or tells of; the words of a topic set aside may be in the majority.
3. Of the eight cases of a topic one, drawn by the seed, is never the subject of a training text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from random import Random

from splade.data.corpora import grammar
from splade.data.corpora.topic_life import LIFE
from splade.data.corpora.topic_world import WORLD
from splade.data.rows import Dataset, Texts

TOPICS = ("food", "health", "money", "sports", "technology", "travel")
SIZES = {"train": 1500, "validation": 180, "test": 480}
NEW_CASES = 1  # of each topic's eight

# `a`, `f1` to `f3`, `ask`, `do` belong to the label's topic; `us`, `ua`, `uf`, `uf2` to another, `va` to a third.
PLANS: dict[str, tuple[str, ...]] = {
    "plain": (
        "{f1}. {f2}. {f3}.",
        "{f1}, and {f2}. does anyone [here|on this page] know {ask}?",
        "I would like to know {ask}. {f1}.",
        "a word about {a}: {f1}, and {f2}.",
        "{f1}. {f2}. my advice is to {do}.",
        "tell me {ask}. {f1}, and {f2}.",
    ),
    "passing": (
        "{us}, I thought about {a}. {f1}, and {f2}.",
        "I wrote this {us}. {f1}, and {f2}. what I do not know is {ask}.",
        "{f1}. {f2}. {us}, somebody gave me this advice: {do}.",
        "{us} I got to talking with a [stranger|neighbor|cousin] about {a}. {f1}.",
        "{uf}, but that is not why I write. {f1}, and I want to know {ask}.",
        "{uf}. so much for my week. my question is {ask}. {f1}.",
        "you will have heard that {uf}. my letter is about {a}. {f1}, and {f2}.",
        "{f1}, and {f2}. I would have written sooner, but {uf}.",
        "what is one to do? {f1}, and {f2}. I thought of it {us}.",
    ),
    "set aside": (
        "this is not about {ua} or {va}. it is about {a}. {f1}, and {f2}.",
        "last month I wrote about {ua}. {uf}. today I would rather ask {ask}. {f1}.",
        'everyone here talks about {ua}. "{uf}", one of you writes, and "{uf2}". nobody asks {ask}, and I wish '
        "somebody would.",
        "forget {ua}. {f1}. {f2}.",
        "my sister writes only about {ua}, and my neighbor about {va}. I want to know {ask}. {f1}.",
        'I asked about {a} and was told about {ua}: "{uf}". so I ask again {ask}.',
        "others may tell you about {ua} and {va}. I can only tell you that {f1}, and that {f2}.",
        "first {ua}, in one line: {uf}. now to my real subject, {a}: {f1}.",
        'you write: "{uf}". I could not care less. what I care about is {a}.',
        "enough about {ua}. yes, {uf}. let me tell you instead about {a}. {f1}.",
        "please print more about {a}. all I ever read about is {ua}.",
        "does anyone know {ask}? so far this page has been all about {ua} and {va}.",
        "{f1}. why does nobody write about that, when we get a whole page on {ua}?",
    ),
}
_PLAN_SHARES = {"plain": 0.44, "passing": 0.34, "set aside": 0.22}
_LOWERCASE = 0.05


@dataclass(frozen=True)
class Case:
    """One thing that is written about."""

    topic: str
    name: str
    lines: Mapping[str, tuple[str, ...]]


def _case(block: str) -> Case:
    head, *lines = block.strip().splitlines()
    topic, name = head.split(" | ")
    parts = (line.split(": ", 1) for line in lines)
    return Case(topic, name, {kind: tuple(text.split(" / ")) for kind, text in parts})


@cache
def cases() -> tuple[Case, ...]:
    """Every case, in the order in which it is written."""
    blocks = (block for text in (LIFE, WORLD) for block in text.split("\n= "))
    return tuple(_case(block) for block in blocks if block.strip())


def _slots(rng: Random, case: Case, second: Case, third: Case) -> dict[str, str]:
    """Every slot a plan can ask for."""
    facts, other = grammar.pick(rng, case.lines["fact"], 3), grammar.pick(rng, second.lines["fact"], 2)
    return {
        "a": rng.choice(case.lines["about"]),
        "ask": rng.choice(case.lines["ask"]),
        "do": rng.choice(case.lines["do"]),
        **{f"f{i}": fact for i, fact in enumerate(facts, 1)},
        "ua": rng.choice(second.lines["about"]),
        "us": rng.choice(second.lines["side"]),
        "uf": other[0],
        "uf2": other[1],
        "va": rng.choice(third.lines["about"]),
    }


def _letter(rng: Random, subjects: Sequence[Case]) -> str:
    """One text about one of the cases."""
    case = rng.choice(subjects)
    names = grammar.pick(rng, [topic for topic in TOPICS if topic != case.topic], 2)
    second, third = (rng.choice([other for other in cases() if other.topic == name]) for name in names)
    group = rng.choices(list(_PLAN_SHARES), list(_PLAN_SHARES.values()))[0]
    return grammar.tidy(grammar.fill(rng, rng.choice(PLANS[group]), _slots(rng, case, second, third)))


def _split(rng: Random, size: int, subjects: Sequence[Case], seen: set[str]) -> Texts:
    """Equally many texts of each topic, about these cases."""
    rows: list[tuple[str, int]] = []
    for label, topic in enumerate(TOPICS):
        own = [case for case in subjects if case.topic == topic]
        for _ in range(size // len(TOPICS)):
            text = grammar.distinct(partial(_letter, rng, own), str.lower, seen)
            rows.append((text.lower() if rng.random() < _LOWERCASE else text, label))
    rng.shuffle(rows)
    return Texts([text for text, _ in rows], [label for _, label in rows])


def _new_cases(rng: Random) -> list[Case]:
    """The cases kept from training."""
    return [
        case
        for topic in TOPICS
        for case in grammar.pick(rng, [c for c in cases() if c.topic == topic], NEW_CASES)
    ]


def topics(seed: int = 0) -> Dataset:
    """The corpus; `about` names the cases that training never has as a subject."""
    rng, seen = Random(f"topics-{seed}"), set[str]()
    new = _new_cases(rng)
    known = [case for case in cases() if case not in new]
    splits = {
        name: _split(rng, size, known if name == "train" else cases(), seen) for name, size in SIZES.items()
    }
    about: dict[str, object] = {"new_cases": [f"{case.topic}: {case.name}" for case in new]}
    return Dataset("topics", "classification", list(TOPICS), about=about, **splits)
