"""Word-in-context pairs are read from folders and archives alike, and a broken item is named."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from splade.data.wic import Use, WordPair, read_mcl_wic, read_wic
from splade.errors import DataError

ITEM = {
    "id": "dev.en-en.0",
    "lemma": "bank",
    "pos": "NOUN",
    "sentence1": "The bank lent money.",
    "sentence2": "We sat on the bank.",
    "start1": "4",
    "end1": "8",
    "start2": "14",
    "end2": "18",
}
TAG = {"id": "dev.en-en.0", "tag": "F"}
PAIR = WordPair("bank", Use("The bank lent money.", 4, 8), Use("We sat on the bank.", 14, 18), False)
REAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "mcl_wic"


def files(folder: Path, data: object, gold: object) -> tuple[Path, Path]:
    paths = folder / "dev.data", folder / "dev.gold"
    for path, items in zip(paths, (data, gold), strict=True):
        path.write_text(items if isinstance(items, str) else json.dumps(items), encoding="utf-8")
    return paths


def test_pairs_are_the_items_with_their_answers(tmp_path: Path) -> None:
    numbers = {**ITEM, "id": "dev.en-en.1", "start1": 4, "end1": 8}
    answers = [{"id": "dev.en-en.1", "tag": "T"}, TAG]  # in any order
    found = read_wic(*files(tmp_path, [ITEM, numbers], answers))
    assert found == [PAIR, WordPair(PAIR.lemma, PAIR.first, PAIR.second, True)]
    for use in (PAIR.first, PAIR.second):
        assert use.text[use.start : use.end] == "bank"


def test_the_archives_are_read_as_distributed(tmp_path: Path) -> None:
    gold = json.dumps([TAG])
    for archive, names in {
        "all-datasets": ["MCL-WiC/dev/multilingual/dev.en-en", "MCL-WiC/test/multilingual/test.en-en"],
        "test-gold-data": ["test.en-en"],
    }.items():
        with zipfile.ZipFile(tmp_path / f"SemEval-2021_MCL-WiC_{archive}.zip", "w") as made:
            for name in names:
                made.writestr(f"{name}.data", json.dumps([ITEM]))
                made.writestr(f"{name}.gold", gold)
    assert read_mcl_wic(tmp_path, "dev") == read_mcl_wic(tmp_path, "test") == [PAIR]
    with pytest.raises(DataError, match="cannot be read"):
        read_mcl_wic(tmp_path, "dev", "fr-fr")
    with pytest.raises(DataError, match="train, dev, test"):
        read_mcl_wic(tmp_path, "trial")


@pytest.mark.parametrize(
    ("data", "gold", "message"),
    [
        ([ITEM], [], "item 'dev.en-en.0' has no tag T or F"),
        ([ITEM], [{**TAG, "tag": "?"}], "no tag T or F"),
        ([{**ITEM, "end2": "99"}], [TAG], "marks no word of its sentence 2"),
        ([{**ITEM, "start1": "-4"}], [TAG], "marks no word of its sentence 1"),
        ([{**ITEM, "start1": "8"}], [TAG], "marks no word of its sentence 1"),
        ([{key: ITEM[key] for key in ITEM if key != "lemma"}], [TAG], "no 'lemma'"),
        ({"items": [ITEM]}, [TAG], "no list of items"),
        ("<html>", [TAG], "cannot be read"),
    ],
)
def test_a_broken_file_is_refused_in_one_line(
    data: object, gold: object, message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message) as refusal:
        read_wic(*files(tmp_path, data, gold))
    assert "\n" not in str(refusal.value)


def test_missing_archives_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"SemEval-2021_MCL-WiC_all-datasets\.zip"):
        read_mcl_wic(tmp_path, "train")


@pytest.mark.skipif(not REAL.exists(), reason="MCL-WiC is not here")
def test_the_real_splits_have_their_published_sizes() -> None:
    sizes = {split: read_mcl_wic(REAL, split) for split in ("train", "dev", "test")}
    assert {split: len(pairs) for split, pairs in sizes.items()} == {"train": 8000, "dev": 1000, "test": 1000}
    assert all(sum(pair.same for pair in pairs) * 2 == len(pairs) for pairs in sizes.values())
