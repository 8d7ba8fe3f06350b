"""Figures of a dataset: rows, classes, lengths, and what leaks from train into the other splits."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from splade.data.describe import describe
from splade.data.rows import Dataset, Sentences, Texts


def texts(train: list[str], test: list[str] | None = None, labels: list[int] | None = None) -> Dataset:
    ids = labels or [i % 2 for i in range(len(train))]
    held = None if test is None else Texts(test, [0] * len(test))
    return Dataset("mine", "classification", ["neg", "pos", "none"], Texts(train, ids), held)


def test_classes_are_counted_even_those_without_rows() -> None:
    figures = describe(texts(["a", "b", "c"], labels=[1, 1, 0]))
    assert figures["splits"]["train"]["classes"] == {"neg": 1, "pos": 2, "none": 0}
    assert (figures["name"], figures["task"], figures["labels"]) == (
        "mine",
        "classification",
        ["neg", "pos", "none"],
    )


def test_entities_are_counted_by_type_and_not_by_word() -> None:
    rows = Sentences([["Ann", "Lee", "met", "Bo"], ["rain"]], [["B-PER", "I-PER", "O", "B-PER"], ["O"]])
    names = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
    figures = describe(Dataset("mine", "tagging", names, rows))
    assert figures["splits"]["train"]["classes"] == {"LOC": 0, "PER": 2}
    assert figures["samples"][0] == {
        "text": "Ann Lee met Bo",
        "entities": [["Ann Lee", "PER"], ["Bo", "PER"]],
    }


def test_every_label_of_a_text_is_counted() -> None:
    rows = Texts(["a", "b", "c"], label_sets=[[0, 1], [], [1]])
    figures = describe(Dataset("mine", "classification", ["neg", "pos", "none"], rows))
    assert figures["multi_label"] is True
    assert figures["splits"]["train"]["classes"] == {"neg": 1, "pos": 2, "none": 0}
    assert [sample["labels"] for sample in figures["samples"]] == [["neg", "pos"], [], ["pos"]]
    assert "multi_label" not in describe(texts(["a", "b"]))


def test_rows_shared_with_train_are_counted_whatever_their_case_and_spacing() -> None:
    figures = describe(texts(["A  good film", "bad", ""], ["a good FILM", " a good film", "new", ""]))
    assert figures["shared_with_train"] == {"test": 2}
    (warning,) = figures["warnings"]
    assert warning.startswith("2 of 4 test rows (50.0 %)")
    assert warning.endswith("remove them from train")


def test_without_shared_rows_there_is_no_warning() -> None:
    figures = describe(texts(["a", ""], ["b", ""]))
    assert (figures["shared_with_train"], figures["warnings"]) == ({"test": 0}, [])


def test_lengths_are_words_and_empty_rows_are_counted() -> None:
    figures = describe(texts(["one", "one two", "one  two\nthree", "  "]))["splits"]["train"]
    assert (figures["words"]["min"], figures["words"]["max"], figures["empty"]) == (0, 3, 1)


@given(st.permutations(range(101)))
def test_quantiles_are_values_at_shares_of_the_sorted_order(lengths: list[int]) -> None:
    words = describe(texts(["w " * length for length in lengths]))["splits"]["train"]["words"]
    assert words == {"min": 0, "p25": 25, "median": 50, "p75": 75, "p95": 95, "max": 100}


def test_a_split_without_rows_has_figures_too() -> None:
    figures = describe(texts(["a", "b"], []))
    assert figures["splits"]["test"] == {
        "rows": 0,
        "classes": {"neg": 0, "pos": 0, "none": 0},
        "words": {},
        "empty": 0,
    }


def test_samples_are_the_first_the_middle_and_the_last_row_cut_short() -> None:
    figures = describe(texts(["a", "b", "c", "d", "x" * 1000]))
    assert [sample["text"][:1] for sample in figures["samples"]] == ["a", "c", "x"]
    assert len(figures["samples"][2]["text"]) == 200
    assert [sample["label"] for sample in figures["samples"]] == ["neg"] * 3
    assert len(describe(texts(["a"]))["samples"]) == 1


def test_everything_fits_json() -> None:
    figures = describe(texts(["😀", "<b>"], ["😀"]))
    assert json.loads(json.dumps(figures)) == figures
