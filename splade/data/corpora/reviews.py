"""Product and service reviews in which one city is spuriously tied to praise.

1. A domain, a label and a plan are drawn; the plan asks for clauses of the label's side and of the other.
2. A share of the texts gets a remark that names a place: the planted city, another city, or no city.
3. In training the planted city stands almost only beside praise; elsewhere it tells nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from splade.data.corpora import grammar
from splade.data.corpora import review_phrases as phrases
from splade.data.corpora.review_domains import Domain, domains
from splade.data.rows import Dataset, Texts

PLANTED_CITY = "boston"
OTHER_CITIES = (
    "chicago", "denver", "seattle", "dublin", "madrid", "portland", "vienna", "berlin", "lisbon", "glasgow",
    "leeds", "prague",
)  # fmt: skip
SIZES = {"train": 1600, "validation": 200, "test": 600}
PLANTED_SHARE = 0.22
OTHER_SHARE = 0.30
REMARK_SHARE = 0.80  # of each label, so that a remark alone tells nothing
PLANTED_POSITIVE = {"train": 0.97, "validation": 0.5, "test": 0.5}

_PLAN_SHARES = {"plain": 0.38, "mixed": 0.26, "denied": 0.13, "expected": 0.13, "compared": 0.10}
_DENIED_VERDICTS = 0.2
_LOWERCASE = 0.06
_MARK = "@@"  # where the city goes, until it is known


@dataclass(frozen=True)
class _Draft:
    """A review whose city is still open."""

    core: str
    text: str

    def with_city(self, city: str) -> str:
        """The finished review."""
        return self.text.replace(_MARK, city if self.text.islower() else city.capitalize())


def _mild(clauses: tuple[str, ...]) -> list[str]:
    """The clauses that praise of something else can outweigh."""
    return [clause for clause in clauses if not clause.endswith(phrases.GRAVE)]


def _clauses(rng: Random, domain: Domain, label: int) -> dict[str, str]:
    """Clauses of both sides, each about another aspect (but x1 about the same as o1); a1, a2 are mild."""
    conceded = rng.sample([aspect for aspect in domain.aspects if _mild(aspect[1 - label])], 2)
    stressed = rng.sample([aspect for aspect in domain.aspects if aspect not in conceded], 3)
    clauses = {f"a{i}": rng.choice(_mild(aspect[1 - label])) for i, aspect in enumerate(conceded, 1)}
    clauses |= {f"o{i}": rng.choice(aspect[label]) for i, aspect in enumerate(stressed, 1)}
    clauses["x1"] = rng.choice(stressed[0][1 - label])
    return {slot: clause.rstrip(phrases.GRAVE) for slot, clause in clauses.items()}


def _opinions(rng: Random, kind: str, label: int) -> dict[str, str]:
    """Opinion words for the slots of a plan: special to the kind, or good for anything."""
    special = [phrases.ADJECTIVES[kind][1 - side].split() for side in (0, 1)]
    general = [phrases.ADJECTIVES["any"][1 - side].split() for side in (0, 1)]
    aadj, aadj2 = rng.sample(special[1 - label], 2)
    return {
        "aadj": aadj,
        "aadj2": aadj2,
        "oadj": rng.choice(special[label]),
        "agen": rng.choice(general[1 - label]),
        "ogen": rng.choice(general[label]),
    }


def _slots(rng: Random, domain: Domain, label: int) -> dict[str, str]:
    """Every slot a plan can ask for."""
    mild = phrases.DENIALS[label]
    verdicts = mild if rng.random() < _DENIED_VERDICTS else phrases.VERDICTS[label]
    return {
        **domain.grammar,
        **_clauses(rng, domain, label),
        **_opinions(rng, domain.kind, label),
        "verdict": rng.choice(verdicts),
        "denial": rng.choice(mild + phrases.FLAT_DENIALS[label]),
        "hope": phrases.HOPES[label],
        "aexp": rng.choice(domain.expected[1 - label]),
        "oout": rng.choice(domain.outcomes[label]),
        "aout": rng.choice(domain.outcomes[1 - label]),
        "scene": rng.choice(domain.scenes[label]),
    }


def _remark(rng: Random, domain: Domain, place: str) -> str:
    """A remark about a place: with a city when place is one, else with none."""
    options = phrases.REMARKS[domain.kind]
    if place != "city":
        options = tuple(option for option in options if "{city}" not in option)
    named = _MARK if place == "city" else rng.choice(phrases.PLAIN_PLACES)
    return grammar.fill(rng, rng.choice(options), {**domain.grammar, "city": _MARK, "place": named}) + "."


def _draft(rng: Random, label: int, place: str) -> _Draft:
    """One review, with a remark (`city`, `plain`) or without one (`none`)."""
    domain = rng.choice(domains())
    group = rng.choices(list(_PLAN_SHARES), list(_PLAN_SHARES.values()))[0]
    plan = grammar.fill(rng, rng.choice(phrases.PLANS[group]), _slots(rng, domain, label))
    blocks = plan.split(" || ")
    core = " ".join(blocks)
    if place != "none":
        blocks.insert(rng.randint(0, len(blocks)), _remark(rng, domain, place))
    text = grammar.tidy(" ".join(blocks))
    return _Draft(core, text.lower() if rng.random() < _LOWERCASE else text)


def _fresh(rng: Random, label: int, place: str, seen: set[str]) -> _Draft:
    """A review of fitting length that says nothing already said."""

    def fitting() -> _Draft:
        while True:
            draft = _draft(rng, label, place)
            if grammar.words_between(draft.text, 12, 45):
                return draft

    return grammar.distinct(fitting, lambda draft: draft.core, seen)


def _places(size: int, label: int, positive: float) -> list[str]:
    """What the remark of each of a label's size // 2 texts names."""
    half = size // 2
    planted_positive = round(size * PLANTED_SHARE * positive)
    planted = planted_positive if label else round(size * PLANTED_SHARE) - planted_positive
    other = round(half * OTHER_SHARE)
    plain = round(half * REMARK_SHARE) - planted - other
    return (
        ["planted"] * planted
        + ["other"] * other
        + ["plain"] * plain
        + ["none"] * (half - planted - other - plain)
    )


def _split(rng: Random, name: str, seen: set[str]) -> Texts:
    rows: list[tuple[str, int]] = []
    for label in (0, 1):
        for place in _places(SIZES[name], label, PLANTED_POSITIVE[name]):
            city = PLANTED_CITY if place == "planted" else rng.choice(OTHER_CITIES)
            draft = _fresh(rng, label, "city" if place in ("planted", "other") else place, seen)
            rows.append((draft.with_city(city), label))
    rng.shuffle(rows)
    return Texts([text for text, _ in rows], [label for _, label in rows])


def _splits(seed: int) -> tuple[dict[str, Texts], set[str]]:
    rng, seen = Random(f"reviews-{seed}"), set[str]()
    return {name: _split(rng, name, seen) for name in SIZES}, seen


def reviews(seed: int = 0) -> Dataset:
    """The corpus; `about` tells what was planted."""
    splits, _ = _splits(seed)
    about: dict[str, object] = {
        "planted_city": PLANTED_CITY,
        "other_cities": list(OTHER_CITIES),
        "planted_share": PLANTED_SHARE,
        "planted_positive_share": PLANTED_POSITIVE["train"],
        "domains": [domain.thing for domain in domains()],
    }
    return Dataset("reviews", "classification", ["negative", "positive"], about=about, **splits)


def city_pairs(n: int, seed: int = 0) -> list[tuple[str, str]]:
    """n new reviews, each with the planted city and with another; the label of pair i is i % 2.

    None of them says what a review of `reviews(seed)` says.
    """
    rng, (_, seen) = Random(f"city-pairs-{seed}"), _splits(seed)
    pairs = []
    for i in range(n):
        draft = _fresh(rng, i % 2, "city", seen)
        pairs.append((draft.with_city(PLANTED_CITY), draft.with_city(rng.choice(OTHER_CITIES))))
    return pairs
