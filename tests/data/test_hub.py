"""Named datasets come as local files would, whatever their columns are called on the hub."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from splade.data.datasets import load_dataset
from splade.data.hub import NAMED, PARQUET, GroupedTexts, load_named
from splade.data.rows import Dataset, Sentences, Texts
from splade.errors import ConfigError, DataError

WORDS = ["rain", "fell", "hard", "today", "again", "there"]
TAGS = {"conll2003": (1, 4), "wnut17": (9, 7)}  # ids of B-PER and I-ORG; of B-person and B-location


def civil(number: int) -> dict[str, Any]:
    scores = dict.fromkeys(NAMED["civilcomments"].identities, 0.0)
    scores |= {"muslim": 0.6, "female": 0.5} if number % 3 == 0 else {"muslim": 0.4}
    return {"comment_text": f"comment {number}", "toxicity": 0.5 if number % 2 else 0.49, **scores}


def row(name: str, number: int) -> dict[str, Any]:
    """A row of the form it has on the hub."""
    binary = {"label": number % 2}
    forms: dict[str, dict[str, Any]] = {
        "sst2": {"idx": number, "sentence": f"film {number} ", **binary},
        "ag_news": {"text": f"news {number}", "label": number % 4},
        "imdb": {"text": f"film {number}", **binary},
        "yelp": {"text": f"place {number}", **binary},
        "civilcomments": civil(number),
        "banking77": {"text": f"card {number}", "label": number % 3, "label_text": f"intent_{number % 3}"},
        "beavertails": {
            "prompt": f"how {number}",
            "response": f"so {number}",
            "category": {"animal_abuse": False},
            "is_safe": number % 2 == 0,
        },
    }
    if name in forms:
        return forms[name]
    tags = [0, TAGS[name][number % 2], 0, 0, 0, 0]
    return {"id": str(number), "tokens": [f"w{number}", *WORDS[1:]], "ner_tags": tags}


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """A `datasets` package that reads JSON lines from `tmp_path`; what it was asked, and what it raises."""
    state: dict[str, Any] = {"asked": [], "raises": []}

    def stand_in(repository: str, subset: str | None, revision: str, cache_dir: str | None) -> Any:
        state["asked"].append((repository, subset, revision, cache_dir))
        if state["raises"]:
            raise state["raises"].pop(0)
        folder = tmp_path / repository
        return {
            file.stem: [json.loads(line) for line in file.read_text().splitlines()]
            for file in folder.glob("*.jsonl")
        }

    package = ModuleType("datasets")
    package.load_dataset = stand_in  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", package)
    for name in NAMED:
        write(tmp_path, name, [row(name, number) for number in range(24)])
    return state


def write(root: Path, name: str, rows: list[dict[str, Any]]) -> None:
    """The rows as every split of a repository, or with a column that names theirs."""
    named = NAMED[name]
    folder = root / named.repository
    folder.mkdir(parents=True, exist_ok=True)
    if named.part:
        parts = [{**row, named.part: split} for split in named.splits.values() for row in rows]
        (folder / "train.jsonl").write_text("\n".join(map(json.dumps, parts)))
        return
    for split in named.splits.values():
        (folder / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))


def names_of(dataset: Dataset, split: str = "test") -> list[str]:
    rows = dataset.splits()[split]
    assert isinstance(rows, Texts)
    return [dataset.label_names[label] for label in rows.labels]


@pytest.mark.parametrize("name", NAMED)
def test_every_named_set_has_rows_for_training_validation_and_test(name: str, hub: dict[str, Any]) -> None:
    dataset = load_named(name, cache="/somewhere")
    assert dataset.task == NAMED[name].task
    assert set(dataset.splits()) == {"train", "validation", "test"}
    assert len(dataset.test or []) == 24
    own = "validation" in NAMED[name].splits
    assert len(dataset.validation or []) == (24 if own else 2)
    assert len(dataset.train) == (24 if own else 22)
    named = NAMED[name]
    subset = None if named.branch == PARQUET else named.subset
    assert hub["asked"] == [(named.repository, subset, named.branch, "/somewhere")]


def test_labels_have_names_in_every_form(hub: dict[str, Any]) -> None:
    assert names_of(load_named("sst2"))[:2] == ["negative", "positive"]
    assert names_of(load_named("ag_news"))[:4] == ["World", "Sports", "Business", "Sci/Tech"]
    assert names_of(load_named("banking77"))[:3] == ["intent_0", "intent_1", "intent_2"]
    assert names_of(load_named("beavertails"))[:2] == ["safe", "unsafe"]
    assert names_of(load_named("civilcomments"))[:2] == ["civil", "toxic"]  # 0.49 and 0.5


def test_a_question_and_its_answer_are_one_text(hub: dict[str, Any]) -> None:
    test = load_named("beavertails").test
    assert isinstance(test, Texts)
    assert test.texts[3] == "how 3\nso 3"


def test_tags_become_bio_by_name(hub: dict[str, Any]) -> None:
    test = load_named("conll2003").test
    assert isinstance(test, Sentences)
    assert test.words[0] == ["w0", *WORDS[1:]]
    assert [tags[1] for tags in test.tags[:2]] == ["B-PER", "B-ORG"]  # I-ORG opens its entity
    assert "B-person" in load_named("wnut17").label_names


def test_the_same_rows_in_a_local_folder_are_the_same_dataset(hub: dict[str, Any], tmp_path: Path) -> None:
    local = tmp_path / "local"
    local.mkdir()
    for split in ("train", "test"):
        lines = [f"{row('imdb', i)['text']}\t{('negative', 'positive')[i % 2]}" for i in range(24)]
        (local / f"{split}.tsv").write_text("\n".join(["text\tlabel", *lines]) + "\n")
    there, here = load_named("imdb", seed=3), load_dataset(local, seed=3)
    assert there.label_names == here.label_names
    assert there.splits() == here.splits()


def test_groups_stay_with_their_rows(hub: dict[str, Any], tmp_path: Path) -> None:
    rows = [civil(number) for number in range(24)]
    rows[4]["comment_text"] = "  "
    rows[5]["comment_text"] = None
    write(tmp_path, "civilcomments", rows)
    dataset = load_named("civilcomments", train_samples=12, test_samples=9, seed=5)
    assert dataset.about["dropped_empty"] == 2
    assert [len(rows) for rows in dataset.splits().values()] == [12, 24, 9]
    for part in dataset.splits().values():
        assert isinstance(part, GroupedTexts)
        assert len(part.groups) == len(part)
        for text, groups in zip(part.texts, part.groups, strict=True):
            number = text.removeprefix("comment ").strip()
            if number:
                assert groups == (frozenset({"muslim", "female"}) if int(number) % 3 == 0 else frozenset())
    assert len(NAMED["civilcomments"].identities) == 24


def test_a_missing_score_is_no_group(hub: dict[str, Any], tmp_path: Path) -> None:
    rows = [{**civil(number), "muslim": None} for number in range(8)]
    write(tmp_path, "civilcomments", rows)
    test = load_named("civilcomments").test
    assert isinstance(test, GroupedTexts)
    assert {group for groups in test.groups for group in groups} == {"female"}


def test_samples_keep_the_proportions_and_the_seed(hub: dict[str, Any]) -> None:
    drawn = load_named("ag_news", train_samples=8, test_samples=12, validation_share=0, seed=1)
    assert set(Counter(names_of(drawn, "train")).values()) == {2}
    assert set(Counter(names_of(drawn)).values()) == {3}
    again = load_named("ag_news", train_samples=8, test_samples=12, validation_share=0, seed=1)
    assert again.splits() == drawn.splits()
    other = load_named("ag_news", train_samples=8, test_samples=12, validation_share=0, seed=2)
    assert other.splits() != drawn.splits()


def test_without_the_hub_the_local_form_is_named(hub: dict[str, Any]) -> None:
    hub["raises"] = [ConnectionError("Couldn't reach the Hub\n(offline)")] * 2
    with pytest.raises(DataError, match=r"sst2: .*Couldn't reach.*data\.path.*train\.tsv") as caught:
        load_named("sst2")
    assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match=r"train\.conll"):
        load_named("conll2003")


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DataError, match=r"lexical-sae\[data\]"):
        load_named("imdb")


def test_a_repository_with_a_script_is_read_from_its_parquet_branch(hub: dict[str, Any]) -> None:
    hub["raises"] = [RuntimeError("Dataset scripts are no longer supported, but found yelp_polarity.py")]
    assert len(load_named("yelp").test or []) == 24
    assert [(subset, branch) for _, subset, branch, _ in hub["asked"]] == [
        ("plain_text", "main"),
        (None, PARQUET),
    ]


def test_a_revision_is_passed_on_and_told(hub: dict[str, Any]) -> None:
    assert load_named("conll2003", revision="abc").about["hub"] == {
        "repository": "eriktks/conll2003",
        "revision": "abc",
    }
    assert hub["asked"][0][2] == "abc"


def test_an_unknown_name_lists_the_valid_ones() -> None:
    with pytest.raises(ConfigError, match=r"'sst-2'.*sst2, ag_news.*wnut17, reviews"):
        load_named("sst-2")


@pytest.mark.parametrize(
    "broken", [{"sentence": "x", "label": -1}, {"sentence": "x", "label": 2}, {"text": "x", "label": 1}]
)
def test_rows_of_another_form_are_refused(
    broken: dict[str, Any], hub: dict[str, Any], tmp_path: Path
) -> None:
    write(tmp_path, "sst2", [row("sst2", 0), row("sst2", 1), broken])
    with pytest.raises(DataError, match="row 3: is not of the expected form"):
        load_named("sst2")


def test_a_missing_split_is_named(hub: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / NAMED["sst2"].repository / "validation.jsonl").unlink()
    with pytest.raises(DataError, match="no split 'validation' \\(found train\\)"):
        load_named("sst2")
