"""An explanation is the whole logit, named twice: by concept words and by the words of the text."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splade.attribution.words import segment
from splade.errors import ConfigError
from splade.inference import Explanation, Predictor, explain_model_spans
from tests.inference.texts import LONG, STRANGE, assert_sums, predictor
from tests.tiny import SENTENCES

KINDS = [
    {"pooling": pooling, "family": family}
    for pooling in ("max", "attention")
    for family in ("bert", "roberta")
]
ALL = (*SENTENCES, *STRANGE, LONG)


@pytest.mark.parametrize("method", ["dla", "path"])
@pytest.mark.parametrize("head", ["relu_mlp", "bcos"])
@pytest.mark.parametrize("kinds", KINDS)
def test_words_and_spans_sum_with_the_bias_to_the_logit(kinds: dict, head: str, method: str) -> None:
    for found in predictor(head=head, **kinds).explain(ALL, method):
        assert_sums(found)


@pytest.mark.parametrize("kinds", [{}, {"family": "xlm-roberta"}])
def test_words_and_spans_sum_for_every_tagged_word(kinds: dict) -> None:
    tagger = predictor(task="tagging", **kinds)
    for method in ("dla", "path"):
        for found in tagger.explain(ALL, method, target=tagger.names[1]):
            assert_sums(found)
            places = [read for word in found.words for read in word.read_at]
            assert all((read.start, read.end) == (found.row.start, found.row.end) for read in places)


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta"])
def test_spans_cover_the_words_of_the_text(family: str) -> None:
    for text, found in zip(ALL, predictor(family=family).explain(ALL), strict=True):
        assert found.text == text
        worded = [span for span in found.spans if span.text]
        read = [(span.start, span.end) for span in worded]
        assert read == segment(text)[: len(read)]
        assert found.truncated or len(read) == len(segment(text))
        for place in (*worded, *(read for word in found.words for read in word.read_at)):
            assert text[place.start : place.end] == place.text


@settings(max_examples=25)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), min_size=1, max_size=3))
def test_any_text_is_explained(texts: list[str]) -> None:
    for text, found in zip(texts, predictor(family="roberta").explain(texts), strict=True):
        assert_sums(found)
        assert found.text == text.replace("\0", "")


def test_what_is_read_past_the_last_word_is_a_span_of_its_own() -> None:
    texts = [f"{sentence} \n " for sentence in SENTENCES]
    found = predictor(family="roberta", pooling="attention").explain(texts)
    closing = [explanation.spans[-1] for explanation in found if not explanation.spans[-1].text]
    assert closing
    assert all(span.start == span.end and span.contribution for span in closing)
    for explanation in found:
        assert_sums(explanation)


def test_words_are_sorted_by_magnitude_and_spans_by_place() -> None:
    for found in predictor().explain(SENTENCES):
        sizes = [abs(word.contribution) for word in found.words]
        assert sizes == sorted(sizes, reverse=True)
        assert [s.start for s in found.spans] == sorted(s.start for s in found.spans)
        assert found.active_words == len(found.words) == len({word.id for word in found.words})


def test_the_predicted_class_is_explained_unless_another_is_asked_for() -> None:
    model = predictor()
    for found in model.explain(SENTENCES):
        assert found.explained == found.prediction == max(found.probabilities, key=found.probabilities.get)
        assert sum(found.probabilities.values()) == pytest.approx(1)
    for name in model.names:
        asked = model.explain(SENTENCES, target=name)
        assert {explanation.explained for explanation in asked} == {name}
        for plain, other in zip(model.explain(SENTENCES), asked, strict=True):
            assert plain.prediction == other.prediction
            assert plain.probabilities == other.probabilities


def test_ablation_names_effects_and_keeps_the_residual_of_the_exact_sum() -> None:
    model = predictor()
    for plain, found in zip(model.explain(SENTENCES), model.explain(SENTENCES, "ablation"), strict=True):
        assert (found.logit, found.residual, found.bias) == (plain.logit, plain.residual, 0.0)
        assert {word.id for word in found.words} == {word.id for word in plain.words}


def test_unknown_methods_and_targets_are_named_with_the_known_ones() -> None:
    model = predictor()
    with pytest.raises(ConfigError, match="no method 'lime': choose one of dla, ablation, path"):
        model.explain(["film"], "lime")
    with pytest.raises(ConfigError, match="no class 'sad': choose one of class a, class b, class c"):
        model.explain(["film"], target="sad")
    with pytest.raises(ConfigError, match="no class 'sad'"):
        explain_model_spans(model.model, "film", target="sad")


@pytest.mark.parametrize("kinds", KINDS)
def test_model_spans_are_the_spans_of_the_explanation(kinds: dict) -> None:
    model = predictor(**kinds)
    for text in ALL:
        for target in (None, "class b"):
            [found] = model.explain([text], target=target)
            spans = explain_model_spans(model.model, text, target=target)
            assert [word for word, _ in spans] == [span.text for span in found.spans]
            expected = [span.contribution for span in found.spans]
            assert [score for _, score in spans] == pytest.approx(expected, abs=1e-5)


def test_model_spans_can_show_the_largest_piece_instead_of_the_sum() -> None:
    model = predictor().model
    summed, largest = (explain_model_spans(model, SENTENCES[0], method) for method in ("sum", "max_abs"))
    assert [word for word, _ in summed] == [word for word, _ in largest]
    pieces = [len(model.tokenizer.tokenize(word)) for word, _ in summed]
    assert 2 in pieces
    for (_, total), (_, piece), count in zip(summed, largest, pieces, strict=True):
        assert count > 1 or piece == pytest.approx(total, abs=1e-6)


@pytest.mark.parametrize("task", ["classification", "tagging"])
def test_an_explanation_is_plain_json_and_every_picture_of_it_is_safe(task: str) -> None:
    model = predictor(task=task, pooling="attention" if task == "classification" else "max")
    target = "B-PER" if task == "tagging" else None
    for found in model.explain([STRANGE[-1], STRANGE[2], SENTENCES[0]], target=target):
        assert json.loads(found.to_json()) == found.to_dict() == dataclasses.asdict(found)
        for shown in (found.to_html(), found._repr_html_(), found.to_svg()):
            assert "<script>alert" not in shown
            assert found.prediction in shown
        assert found.prediction in str(found)


def test_an_explanation_keeps_no_tensor() -> None:
    [found] = predictor().explain(["clever film"])

    def plain(value: object) -> bool:
        if isinstance(value, dict):
            return all(map(plain, value.values()))
        if isinstance(value, list):
            return all(map(plain, value))
        return value is None or type(value) in (str, int, float, bool)

    assert isinstance(found, Explanation)
    assert plain(found.to_dict())


@pytest.mark.parametrize("batch_size", [1, 3, 32])
def test_an_explanation_does_not_depend_on_its_batch_but_for_rounding(batch_size: int) -> None:
    one, many = predictor(17), predictor(batch_size)
    for a, b in zip(one.explain(ALL), many.explain(ALL), strict=True):
        assert (a.text, a.prediction, a.active_words) == (b.text, b.prediction, b.active_words)
        assert a.logit == pytest.approx(b.logit, abs=1e-4)
        named = {word.id: word.contribution for word in a.words}
        assert named == pytest.approx({word.id: word.contribution for word in b.words}, abs=1e-4)


def test_repeats_are_bit_identical() -> None:
    for kinds in KINDS:
        model = predictor(**kinds)
        assert model.explain(ALL) == model.explain(ALL) == Predictor(model.model, 4).explain(ALL)
