"""A deciding sentence in filler: where it is put, what is counted, and what happens past the limit."""

from __future__ import annotations

import pytest

from splade.errors import ConfigError, DataError
from splade.evaluation import needle as module
from splade.evaluation.explainers.questions import ask
from splade.evaluation.needle import needle
from tests.tiny import MAX_LENGTH, SENTENCES, tiny_model

NEEDLES = ["charming and clever", "the screen was broken", "a slow hotel"]
FILLER = SENTENCES[6:]
DEPTHS = (0.0, 0.5, 1.0)


def labels_of(model, texts=NEEDLES):
    return [question.label for question in ask(model, texts)]


def material(tokenizer):
    return module._Filler(list(FILLER), module._sizes(tokenizer, FILLER))


@pytest.mark.parametrize("family", ["bert", "roberta", "deberta-v2"])
@pytest.mark.parametrize("depth", [*DEPTHS, 0.3])
def test_the_needle_stands_where_it_was_put(family, depth) -> None:
    tokenizer = tiny_model(family).tokenizer
    filler = material(tokenizer)
    drawn = module._draw(filler, 100, seed=1)
    hidden = module.hide(tokenizer, NEEDLES[0], filler, drawn, depth)
    assert hidden.text[hidden.start : hidden.end] == NEEDLES[0]
    before, after = hidden.text[: hidden.start].strip(), hidden.text[hidden.end :].strip()
    assert " ".join(part for part in (before, after) if part) == " ".join(FILLER[j] for j in drawn)
    total = sum(filler.tokens[j] for j in drawn)
    stands = sum(module._sizes(tokenizer, [before])) if before else 0
    assert abs(stands - depth * total) <= max(filler.tokens) / 2 + 2  # half a sentence, and the joints
    if depth in (0.0, 1.0):
        assert (before, after)[int(depth)] == ""


@pytest.mark.parametrize("length", [30, 60, 150])
def test_a_text_has_the_length_asked_for(length) -> None:
    model = tiny_model()
    cells = needle(model, NEEDLES, labels_of(model), FILLER, [length], DEPTHS)
    shortest = min(module._sizes(model.tokenizer, FILLER))
    assert all(length - shortest < cell.tokens <= length for cell in cells)
    assert [cell.truncated for cell in cells] == [float(length > MAX_LENGTH)] * len(DEPTHS)


def test_the_needle_alone_and_the_filler_alone_are_what_they_would_be() -> None:
    model = tiny_model()
    labels = labels_of(model)
    cells = needle(model, NEEDLES, labels, FILLER, [5], [0.5])  # no room for filler
    [cell] = cells
    assert cell.accuracy_alone.mean == cell.accuracy.mean == 1
    [empty] = {question.label for question in ask(model, [""])}
    assert cell.accuracy_without.mean == pytest.approx(sum(label == empty for label in labels) / 3)
    assert cell.share is not None
    assert cell.share.mean == pytest.approx(1)
    assert cell.word_share is not None
    assert cell.word_share.mean == 1


def test_past_the_limit_a_needle_is_cut_off_and_the_text_reads_as_if_it_had_none() -> None:
    model = tiny_model(classes=2)
    labels = [0, 1, 0]
    first, _, last = needle(model, NEEDLES, labels, FILLER, [8 * MAX_LENGTH], DEPTHS)
    assert (first.truncated, first.partly, first.cut) == (1, 0, 0)
    assert first.share is not None
    assert (last.truncated, last.partly, last.cut) == (1, 0, 1)
    assert last.share is last.word_share is None
    assert last.accuracy == last.accuracy_without


def test_a_needle_over_the_limit_is_partly_there() -> None:
    model = tiny_model()
    long = " ".join(SENTENCES)
    [cell] = needle(model, [long], [0], FILLER, [20], [0.0])
    assert (cell.truncated, cell.partly, cell.cut) == (1, 1, 0)
    assert cell.word_share is not None
    assert cell.word_share.mean == 1


def test_shares_are_of_what_speaks_for_the_class(monkeypatch) -> None:
    model = tiny_model()

    def scores(_model, questions, _settings):
        marks = {"clever": 3.0, "charming": 1.0, "the": 1.0, "a": -9.0}
        return [[marks.get(p.text, 0.0) for p in q.reading.places] for q in questions]

    monkeypatch.setattr(module, "ours", scores)
    filler = ["the a", "a a"]
    [cell] = needle(model, NEEDLES[:1], [0], filler, [11], [0.5])  # 2 ends, 4 pieces of the needle, 4 words
    assert cell.tokens == 10
    assert cell.share is not None
    assert cell.share.mean == pytest.approx(4 / 5)
    assert cell.word_share is not None
    assert cell.word_share.mean == pytest.approx(3 / 7)


def test_the_same_seed_hides_in_the_same_filler() -> None:
    model = tiny_model()
    runs = [needle(model, NEEDLES, [0, 1, 2], FILLER, [40], [0.5], seed=seed) for seed in (3, 3, 4)]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [0]}, "one label for each"),
        ({"sentences": [], "labels": []}, "at least one needle"),
        ({"filler": [" "]}, "no filler"),
        ({"lengths": [0]}, "numbers of tokens"),
        ({"depths": [1.5]}, "from 0 to 1"),
    ],
)
def test_mistakes_are_answered_in_one_line(change, message) -> None:
    asked = {
        "sentences": NEEDLES,
        "labels": [0, 1, 2],
        "filler": FILLER,
        "lengths": [20],
        "depths": [0.5],
        **change,
    }
    with pytest.raises((ConfigError, DataError), match=message):
        needle(tiny_model(), **asked)


def test_a_model_with_several_labels_a_text_is_refused() -> None:
    model = tiny_model()
    model.config.multi_label = True
    with pytest.raises(ConfigError, match="one label a text"):
        needle(model, NEEDLES, [0, 1, 2], FILLER, [20], [0.5])
