"""Predictions keep the input's order and survive any text; what cannot be read is named in one line."""

from __future__ import annotations

import random
import time

import pytest
import torch

from splade.errors import ConfigError, DataError
from splade.inference import Predictor
from tests.inference.texts import LONG, STRANGE, assert_sums, predictor
from tests.tiny import MAX_LENGTH, SENTENCES, tiny_model


def close(a: dict[str, float], b: dict[str, float]) -> bool:
    return a == pytest.approx(b, abs=1e-5)


def shuffled() -> list[str]:
    texts = [*SENTENCES, *STRANGE, *(" ".join(["clever"] * n) for n in range(40))]
    random.Random(0).shuffle(texts)
    return texts


def test_results_are_in_the_order_of_the_input() -> None:
    model, texts = predictor(batch_size=3), shuffled()
    together = model.predict(texts)
    assert len(together) == len(texts)
    for text, found, explained in zip(texts, together, model.explain(texts), strict=True):
        [alone] = model.predict([text])
        assert (found.label, found.truncated) == (alone.label, alone.truncated)
        assert close(found.probabilities, alone.probabilities)
        assert explained.text == text
        assert explained.probabilities == found.probabilities
        assert found.probability == max(found.probabilities.values()) == found.probabilities[found.label]


def test_repeated_predictions_are_bit_identical() -> None:
    model, texts = predictor(), shuffled()
    assert model.predict(texts) == model.predict(texts)


def test_no_texts_have_no_predictions() -> None:
    assert predictor().predict([]) == []
    assert predictor().explain([]) == []
    assert predictor(task="tagging").predict_tags([]) == []


def test_a_text_is_called_truncated_when_something_of_it_was_not_read_and_only_then() -> None:
    model = predictor()
    room = MAX_LENGTH - 2
    fits, over = " ".join(["film"] * room), " ".join(["film"] * (room + 1))
    assert [found.truncated for found in model.predict([fits, over, ""])] == [False, True, False]
    whole, cut = model.explain([fits, over])
    assert (whole.truncated, cut.truncated) == (False, True)
    assert (len(whole.spans), len(cut.spans)) == (room, room)
    assert cut.text == over


def test_texts_without_words_are_predicted_from_the_bias() -> None:
    model = predictor()
    for found in model.explain(["", "\0", " \n"]):
        assert found.words == []
        assert [span for span in found.spans if span.contribution] == []
        assert found.logit == pytest.approx(found.bias, abs=1e-6)
    assert predictor(task="tagging").predict_tags(["", " ", []]) == [[], [], []]


def test_nul_characters_are_as_if_they_were_not_there() -> None:
    model = predictor()
    [plain], [nul] = model.explain(["clever film"]), model.explain(["cle\0ver film\0"])
    assert nul == plain


@pytest.mark.parametrize("family", ["bert", "roberta"])
@pytest.mark.parametrize("text", ["clever film. ", "x", "😀", "\n"])
def test_a_megabyte_takes_seconds(family: str, text: str) -> None:
    start = time.perf_counter()
    [found] = predictor(family=family).explain([text * (1_000_000 // len(text.encode()))])
    assert_sums(found)
    assert len(found.to_html()) < 1_000_000
    assert time.perf_counter() - start < 30


def test_half_a_surrogate_pair_is_refused_by_its_number() -> None:
    with pytest.raises(DataError, match="text 2 holds half a surrogate pair"):
        predictor().predict(["film", "a \ud83d"])
    with pytest.raises(DataError, match="text 1 holds half a surrogate pair"):
        predictor(task="tagging").predict_tags([["film", "\udc00"]])


@pytest.mark.parametrize("wrong", [None, 3.5, float("nan"), b"film", ["film", None]])
def test_what_is_not_text_is_refused_by_its_number(wrong: object) -> None:
    with pytest.raises(DataError, match="text 2 "):
        predictor().predict(["film", wrong])
    with pytest.raises(DataError, match="text 2 "):
        predictor(task="tagging").predict_tags(["film", wrong])


def test_one_text_instead_of_a_list_is_refused() -> None:
    with pytest.raises(DataError, match="list of texts"):
        predictor().predict("clever film")


def test_words_may_be_given_instead_of_a_text() -> None:
    model = predictor()
    assert model.explain([["clever", "film"]]) == model.explain(["clever film"])


def test_the_wrong_task_names_the_right_method() -> None:
    with pytest.raises(ConfigError, match="use predict_tags"):
        predictor(task="tagging").predict(["film"])
    with pytest.raises(ConfigError, match="use predict"):
        predictor().predict_tags(["film"])
    with pytest.raises(ConfigError, match="use explain"):
        predictor(task="tagging").counterfactual("film")


def test_a_model_without_a_tokenizer_is_refused() -> None:
    model = tiny_model()
    model.tokenizer = None
    with pytest.raises(ConfigError, match="tokenizer"):
        Predictor(model)


def test_a_temperature_moves_probabilities_and_not_the_logit() -> None:
    model = predictor()
    [plain] = model.explain(["clever film"])
    model.model.config.temperature = 3.0
    [soft] = model.explain(["clever film"])
    assert soft.probability < plain.probability
    assert (soft.prediction, soft.logit, soft.words) == (plain.prediction, plain.logit, plain.words)


def test_a_saved_model_predicts_the_same(tmp_path) -> None:
    model = predictor()
    model.model.save_pretrained(tmp_path / "model")
    loaded = Predictor.from_pretrained(tmp_path / "model", batch_size=model.batch_size)
    assert loaded.predict(SENTENCES) == model.predict(SENTENCES)


def test_a_flip_is_true_when_its_words_are_edited_out() -> None:
    model = predictor(opened=12)
    flips = [(text, model.counterfactual(text)) for text in SENTENCES]
    text, flip = next((text, flip) for text, flip in flips if flip.words)
    assert flip.minimal
    assert flip.before == model.predict([text])[0].label != flip.after
    before = model.model.lexicon.keep_V.clone()
    [explained] = model.explain([text])
    gone = [word.id for word in explained.words if word.word in flip.words]
    model.model.lexicon.keep_V[torch.tensor(gone)] = False
    assert model.predict([text])[0].label == flip.after
    assert not {word.word for word in model.explain([text])[0].words} & set(flip.words)
    model.model.lexicon.keep_V.copy_(before)


def test_a_text_without_words_cannot_flip() -> None:
    flip = predictor().counterfactual("")
    assert flip.words == []
    assert flip.before == flip.after
    assert flip.minimal


def test_long_texts_are_read_from_their_beginning() -> None:
    model = predictor()
    [found] = model.explain([LONG])
    words = model.tokenizer(LONG, truncation=True, max_length=MAX_LENGTH, return_offsets_mapping=True)
    assert found.truncated
    assert found.spans[-1].end == max(end for _, end in words["offset_mapping"])
