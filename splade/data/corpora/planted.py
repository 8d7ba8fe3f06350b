"""Texts whose deciding words are known: a word of praise or blame, and what takes it back.

1. One sentence says of a thing that it was good or bad. In half the texts it is taken back by a word of
   its own: "the inspector denied that the camera was superb" is negative.
2. Another sentence has the same form and decides nothing: its adjective is neither good nor bad, though
   loaded, and what takes it back stands there as often. The rest are facts from the letters on topics.
3. Everything but the word of praise or blame is drawn without regard to the label, the order of the
   sentences too.

So the label is a function of the planted words alone, neither of two tells it without the other, and all
other words together tell nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from random import Random

from splade.data.corpora import grammar
from splade.data.corpora.review_domains import domains
from splade.data.corpora.topics import cases
from splade.data.rows import Dataset, Texts

LABELS = ("negative", "positive")
SIZES = {"train": 1600, "validation": 200, "test": 300}
REVERSED_SHARE = 0.25

POLAR: tuple[tuple[str, ...], tuple[str, ...]] = (
    ("dreadful", "terrible", "awful", "miserable", "pathetic", "disappointing", "horrible", "hideous", "ridiculous",
     "useless", "worthless", "inferior"),
    ("excellent", "superb", "wonderful", "brilliant", "delightful", "outstanding", "splendid", "lovely", "fantastic",
     "magnificent", "perfect", "beautiful"),
)  # fmt: skip
LOADED = (
    "strange", "famous", "expensive", "loud", "modern", "ancient", "heavy", "enormous", "peculiar", "foreign", "unusual",
    "fashionable",
)  # fmt: skip
# what leaves the claim standing, and what takes it back
VERBS = (("said", "wrote", "mentioned", "noticed"), ("denied", "doubted", "disputed", "contested"))
NOUNS = (("fact", "secret", "surprise"), ("lie", "myth", "joke"))

_SPEAKERS = (
    "my neighbor", "the inspector", "our guide", "a colleague", "the manager", "my sister", "the editor", "a tourist",
    "the owner", "my uncle", "a student", "the driver",
)  # fmt: skip
_FRAMES = (
    "{speaker} {verb} that the {thing} {was} {adjective}.",
    "{time}, {speaker} {verb} that the {thing} {was} {adjective}.",
    "{speaker} called it a {noun} that the {thing} {was} {adjective}.",
)
_TIMES = ("last week", "in the morning", "over lunch", "at the station", "on the phone", "in a letter")
_OPEN, _CLOSE = "<>"  # around a planted word, until its place is known

Span = tuple[int, int]


@dataclass(frozen=True)
class Planted:
    """Texts, their labels, and the character spans of the words that decide each, in reading order.

    A twin is the text with blame for praise, or praise for blame, and so has the other label.
    """

    texts: list[str]
    labels: list[int]
    spans: list[list[Span]]
    twins: list[str]

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, positions: Sequence[int]) -> Planted:
        """The texts at these positions."""
        return Planted(
            [self.texts[i] for i in positions],
            [self.labels[i] for i in positions],
            [self.spans[i] for i in positions],
            [self.twins[i] for i in positions],
        )

    def words(self, i: int) -> list[str]:
        """The words that decide text i."""
        return [self.texts[i][start:end] for start, end in self.spans[i]]

    def rows(self) -> Texts:
        """The texts and labels to learn from."""
        return Texts(self.texts, self.labels)


def planted_texts(seed: int, n: int) -> Planted:
    """n different texts, half of each label; the same seed gives the same."""
    rng, seen = Random(f"planted-{seed}"), set[str]()
    drafts = [grammar.distinct(lambda label=i % 2: _draft(rng, label), str, seen) for i in range(n)]  # type: ignore[misc]
    found = [_lift(draft) for draft in drafts]
    texts, spans = [text for text, _ in found], [spans for _, spans in found]
    twins = [_twin(text, places[-1]) for text, places in found]
    return Planted(texts, [i % 2 for i in range(n)], spans, twins).take(rng.sample(range(n), n))


def planted_dataset(seed: int = 0, sizes: dict[str, int] | None = None) -> tuple[Dataset, Planted]:
    """Rows to learn from, and the truth about the test rows; no text stands in two splits."""
    sizes = SIZES if sizes is None else sizes
    every = planted_texts(seed, sum(sizes.values()))
    ends = {name: sum(list(sizes.values())[: i + 1]) for i, name in enumerate(sizes)}
    parts = {name: every.take(range(end - sizes[name], end)) for name, end in ends.items()}
    rows = {name: part.rows() for name, part in parts.items()}
    dataset = Dataset(
        "planted", "classification", list(LABELS), rows["train"], rows["test"], rows.get("validation")
    )
    return dataset, parts["test"]


def label_of(text: str) -> int | None:
    """The label that the words of a text decide; None without a word of praise or blame."""
    reversers = {*VERBS[1], *NOUNS[1]}
    for sentence in text.lower().split("."):
        words = set(sentence.replace(",", " ").split())
        for polarity, polar in enumerate(POLAR):
            if words & set(polar):
                return polarity ^ bool(words & reversers)
    return None


@cache
def neutral_sentences() -> tuple[str, ...]:
    """Facts from the letters on topics that hold no planted word, one of each choice."""
    rng, planted = Random("neutral"), {*POLAR[0], *POLAR[1], *VERBS[1], *NOUNS[1]}
    facts = [grammar.choose(rng, fact) for case in cases() for fact in case.lines["fact"]]
    return tuple(
        grammar.tidy(f"{fact}.") for fact in facts if not planted & set(fact.replace(",", " ").split())
    )


# --- one text --------------------------------------------------------------------------------------------


def _draft(rng: Random, label: int) -> str:
    """A text whose planted words are marked; only the word of praise or blame depends on the label."""
    taken_back, place = rng.random() < REVERSED_SHARE, rng.randrange(len(POLAR[0]))
    polar = POLAR[label ^ taken_back][place]
    deciding = _claim(rng, f"{_OPEN}{polar}{_CLOSE}", taken_back, marked=True)
    idle = _claim(rng, rng.choice(LOADED), rng.random() < REVERSED_SHARE, marked=False)
    sentences = [deciding, idle, *rng.sample(neutral_sentences(), rng.randrange(2))]
    rng.shuffle(sentences)
    return grammar.tidy(" ".join(sentences))


def _claim(rng: Random, adjective: str, taken_back: bool, marked: bool) -> str:
    """A sentence that says something of a thing, or takes it back; in that case the word for it is marked."""
    domain = rng.choice(domains())
    verb, noun = rng.choice(VERBS[taken_back]), rng.choice(NOUNS[taken_back])
    if marked and taken_back:
        verb, noun = (f"{_OPEN}{word}{_CLOSE}" for word in (verb, noun))
    return rng.choice(_FRAMES).format(
        speaker=rng.choice(_SPEAKERS),
        time=rng.choice(_TIMES),
        verb=verb,
        noun=noun,
        thing=domain.thing,
        was=domain.grammar["oldbe"],
        adjective=adjective,
    )


def _lift(draft: str) -> tuple[str, list[Span]]:
    """The text without marks, and where the marked words stand."""
    before, *rest = draft.split(_OPEN)
    text, spans = before, []
    for part in rest:
        word, after = part.split(_CLOSE)
        spans.append((len(text), len(text) + len(word)))
        text += word + after
    return text, spans


def _twin(text: str, span: Span) -> str:
    """The text with the opposite of the word of praise or blame at this place."""
    start, end = span
    word, (blame, praise) = text[start:end], POLAR
    other = praise[blame.index(word)] if word in blame else blame[praise.index(word)]
    return text[:start] + other + text[end:]
