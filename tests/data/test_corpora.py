"""The embedded corpora hold what their README says: sizes, balance, what is planted, what is unseen."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

import pytest

from splade.data.corpora import CORPORA, load_corpus
from splade.data.corpora.reviews import OTHER_CITIES, PLANTED_CITY, city_pairs
from splade.data.corpora.topics import TOPICS, cases
from splade.data.rows import Dataset, Sentences, Texts
from splade.data.tagging import spans, to_bio
from splade.errors import ConfigError

SPLITS = ("train", "validation", "test")


@cache
def corpus(name: str, seed: int = 0) -> Dataset:
    return load_corpus(name, seed)


def split(name: str, part: str) -> Texts | Sentences:
    return corpus(name).splits()[part]


def keys(name: str, part: str) -> list[str]:
    return split(name, part).keys()


def texts(name: str, part: str) -> Texts:
    rows = split(name, part)
    assert isinstance(rows, Texts)
    return rows


def sentences(part: str) -> Sentences:
    rows = split("tagging", part)
    assert isinstance(rows, Sentences)
    return rows


def names(part: str) -> Iterator[tuple[list[str], str]]:
    rows = sentences(part)
    for words, tags in zip(rows.words, rows.tags, strict=True):
        for start, end, kind in spans(tags):
            yield [word.lower() for word in words[start:end]], kind


def readme() -> str:
    return (files("splade.data.corpora") / "README.md").read_text(encoding="utf-8")


def readme_table(heading: str) -> dict[str, list[str]]:
    """The rows of the first table after a line that starts so, by their first cell."""
    lines = readme().split(heading, 1)[1].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("|"))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[start:]]
    end = next(i for i, line in enumerate([*lines[start:], ""]) if not line.startswith("|"))
    return {row[0].strip("`"): row[1:] for row in rows[2:end]}


@pytest.mark.parametrize("name", CORPORA)
def test_a_seed_gives_the_same_rows_and_another_seed_gives_others(name: str) -> None:
    assert corpus(name) == load_corpus(name, 0)
    assert corpus(name).train != load_corpus(name, 1).train


def test_an_unknown_corpus_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="reviews, topics, tagging"):
        load_corpus("novels")


@pytest.mark.parametrize("name", CORPORA)
def test_no_text_is_said_twice(name: str) -> None:
    found = [key for part in SPLITS for key in keys(name, part)]
    assert len(found) == len(set(found))


@pytest.mark.parametrize("name", ["reviews", "topics"])
@pytest.mark.parametrize("part", SPLITS)
def test_classes_are_equally_frequent(name: str, part: str) -> None:
    counts = Counter(texts(name, part).labels)
    assert len(counts) == len(corpus(name).label_names)
    assert len(set(counts.values())) == 1


@pytest.mark.parametrize("name", ["reviews", "topics"])
def test_texts_are_tidy(name: str) -> None:
    flaw = re.compile(r"\b(\w+) \1\b|\b[Aa] [aeio]|[\[\]{}|@]|\.\.|  ")
    flawed = [text for part in SPLITS for text in texts(name, part).texts if flaw.search(text)]
    assert not flawed


@pytest.mark.parametrize("name", CORPORA)
def test_the_readme_gives_the_sizes(name: str) -> None:
    row = readme_table("dataset = load_corpus")[name]
    assert [int(cell) for cell in row[2:5]] == [len(split(name, part)) for part in SPLITS]
    lengths = [len(key.split()) for key in keys(name, "test")]
    assert float(row[5]) == pytest.approx(sum(lengths) / len(lengths), abs=0.06)


# Reviews.


@pytest.mark.parametrize(("part", "positive"), [("train", 0.97), ("validation", 0.5), ("test", 0.5)])
def test_the_planted_city_stands_beside_praise_in_training_only(part: str, positive: float) -> None:
    rows = texts("reviews", part)
    planted = [y for text, y in zip(rows.texts, rows.labels, strict=True) if PLANTED_CITY in text.lower()]
    assert len(planted) / len(rows) == pytest.approx(0.22, abs=0.005)
    assert sum(planted) / len(planted) == pytest.approx(positive, abs=0.005)


@pytest.mark.parametrize("part", SPLITS)
def test_other_cities_tell_nothing(part: str) -> None:
    rows = texts("reviews", part)
    other = [
        y
        for text, y in zip(rows.texts, rows.labels, strict=True)
        if any(city in text.lower() for city in OTHER_CITIES)
    ]
    assert len(other) / len(rows) == pytest.approx(0.30, abs=0.005)
    assert sum(other) / len(other) == 0.5


def test_pairs_differ_in_the_city_alone_and_are_new() -> None:
    pairs = city_pairs(40)
    known = {key for part in SPLITS for key in keys("reviews", part)}
    for planted, other in pairs:
        city = next(city for city in OTHER_CITIES if city in other.lower())
        assert planted.lower().replace(PLANTED_CITY, city) == other.lower()
        assert planted.casefold() not in known
    assert city_pairs(40) == pairs


# Topics.


def test_cases_kept_from_training_are_the_subject_of_no_training_text() -> None:
    """Questions and advice stand in texts about their own case only, never in passing."""
    new = set(corpus("topics").about["new_cases"])  # type: ignore[call-overload]
    own = [
        phrase
        for case in cases()
        if f"{case.topic}: {case.name}" in new
        for kind in ("ask", "do")
        for phrase in case.lines[kind]
    ]
    assert len(new) == len(TOPICS)
    found = {
        part: sum(p.lower() in " ".join(texts("topics", part).texts).lower() for p in own) for part in SPLITS
    }
    assert found["train"] == 0
    assert found["test"] > len(own) / 2


def test_every_case_is_written_out() -> None:
    assert Counter(case.topic for case in cases()) == dict.fromkeys(TOPICS, 8)
    for case in cases():
        assert {kind: len(lines) for kind, lines in case.lines.items()} == {
            "about": 3, "fact": 5, "ask": 3, "do": 3, "side": 3
        }  # fmt: skip


@pytest.mark.parametrize(
    "word", re.findall(r"`(\w+)`", readme().split("Words are shared on purpose: ")[1].split(" belong")[0])
)
def test_words_the_readme_calls_shared_belong_to_several_topics(word: str) -> None:
    form = re.compile(rf"\b{word}s?\b")
    assert len({case.topic for case in cases() if form.search(str(case.lines))}) >= 2


# Tagging.


@pytest.mark.parametrize("part", SPLITS)
def test_tags_are_valid_and_known(part: str) -> None:
    rows = sentences(part)
    assert all(to_bio(tags) == tags for tags in rows.tags)
    assert {tag for tags in rows.tags for tag in tags} == set(corpus("tagging").label_names)


def test_no_word_of_a_frame_is_left_unfilled() -> None:
    assert not [
        word
        for part in SPLITS
        for words in sentences(part).words
        for word in words
        if set(word) & set("{}[|]_")
    ]


def test_many_names_of_the_test_rows_are_unseen_as_the_readme_says() -> None:
    known = {" ".join(name) for name, _ in names("train")}
    vocabulary = {word.lower() for words in sentences("train").words for word in words}
    found = [name for name, _ in names("test")]
    unseen = 100 * sum(" ".join(name) not in known for name in found) / len(found)
    new_word = 100 * sum(name[0] not in vocabulary for name in found) / len(found)
    table = readme_table("an opening that fits several types")
    assert unseen == pytest.approx(
        float(table["entities of the test rows that are no entity of training"][0]), abs=0.06
    )
    assert new_word == pytest.approx(
        float(table["entities of the test rows whose first word never occurs in training"][0]), abs=0.06
    )
    assert new_word > 30


def test_ambiguous_surfaces_have_several_types_in_training() -> None:
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    for name, kind in names("train"):
        kinds[" ".join(name)][kind] += 1
    for surface in ("jordan", "paris", "washington", "amazon", "chelsea", "victoria"):
        assert len(kinds[surface]) >= 2, surface
    several = sum(counts.total() for counts in kinds.values() if len(counts) > 1)
    share = 100 * several / sum(counts.total() for counts in kinds.values())
    table = readme_table("an opening that fits several types")
    assert share == pytest.approx(
        float(table["entities of training whose surface has more than one type there"][0]), abs=0.06
    )


def test_a_name_is_also_an_ordinary_word() -> None:
    rows = sentences("train")
    pairs = [
        (word.lower(), tag)
        for words, tags in zip(rows.words, rows.tags, strict=True)
        for word, tag in zip(words, tags, strict=True)
    ]
    both = {"may", "will", "rose", "grant", "reading", "nice", "hope", "mark", "frank", "bath"}
    found = {w for w in both if {tag[:1] for name, tag in pairs if name == w} >= {"O", "B"}}
    assert len(found) >= 6  # the frames of some are kept from training


@pytest.mark.parametrize("part", SPLITS)
def test_some_sentences_hold_no_entity_and_some_are_in_lower_case(part: str) -> None:
    rows = sentences(part)
    empty = sum(set(tags) == {"O"} for tags in rows.tags) / len(rows)
    lower = sum(words == [word.lower() for word in words] for words in rows.words) / len(rows)
    assert 0.04 < empty < 0.16
    assert 0.03 < lower < 0.14
