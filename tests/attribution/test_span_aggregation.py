"""Word scores keep the total of the piece scores, their signs, and their places in the text."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast

import splade
from splade.attribution.span_aggregation import (
    aggregate_subword_attributions,
    position_words,
    span_contributions,
)
from splade.attribution.words import segment
from splade.errors import ConfigError, DataError, ModelError

CORPUS = [
    "The quick brown fox jumps over Zoë's naïve dog .",
    "Paris , 1996-08-22 : 東京 is far 😀 away",
    "aaa b",
]


def byte_level_tokenizer(trim_offsets: bool) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<s>", "</s>", "<pad>"]
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", 1), ("<s>", 0), trim_offsets=trim_offsets, add_prefix_space=False
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )


def sentencepiece_tokenizer() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<unk>", "</s>", "<pad>"]
    trainer = trainers.UnigramTrainer(vocab_size=80, special_tokens=special, unk_token="<unk>")
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing("$A </s>", None, [("</s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="</s>", unk_token="<unk>", pad_token="<pad>"
    )


TOKENIZERS = {
    "wordpiece": AutoTokenizer.from_pretrained(Path(splade.__file__).parent / "assets" / "minilm-l6-mlm"),
    "byte-level": byte_level_tokenizer(trim_offsets=True),
    "byte-level-untrimmed": byte_level_tokenizer(trim_offsets=False),
    "sentencepiece": sentencepiece_tokenizer(),
}
every_tokenizer = pytest.mark.parametrize("kind", TOKENIZERS)
quietly = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
texts = st.lists(
    st.sampled_from(
        [
            "fox ",
            "Zoë's",
            " naïve",
            "東京",
            " 😀",
            "👩‍👩‍👧‍👦",
            "🇫🇷",
            "👍🏽",
            "e\u0301",
            "שלום ",
            "नमस्ते",
            "ﬁ",
            "  \n",
        ]
    )
    | st.sampled_from(["\x00", "\x07", "\ufeff", "\u200d", "...", "[SEP]", "supercalifragilistic"])
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    max_size=12,
).map("".join)


def ids_of(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    return list(tokenizer(text)["input_ids"])


def random_scores(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(shape[0]))


@every_tokenizer
@quietly
@given(text=texts)
def test_sum_keeps_the_total(kind: str, text: str) -> None:
    tokenizer = TOKENIZERS[kind]
    ids = ids_of(tokenizer, text)
    size = len(tokenizer) + 1000  # more than the pieces of any text here: a vector of that size is [L]
    for scores, total in (
        (score_L := random_scores(len(ids)), score_L.sum()),
        (score_LV := random_scores(len(ids), 7), score_LV.sum()),
        (score_V := random_scores(size), score_V[sorted(set(ids))].sum()),
    ):
        words = aggregate_subword_attributions(ids, scores, tokenizer, text)
        assert sum(score for _, score in words) == pytest.approx(float(total), abs=1e-9)


@every_tokenizer
@quietly
@given(text=texts)
def test_words_lie_where_their_spans_say(kind: str, text: str) -> None:
    tokenizer = TOKENIZERS[kind]
    ids = ids_of(tokenizer, text)
    found = span_contributions(ids, random_scores(len(ids)), tokenizer, text)
    assert all(text[span.start : span.end] == span.text for span in found)
    spans = [(span.start, span.end) for span in found if span.text]
    assert spans == segment(text)[: len(spans)]
    pairs = aggregate_subword_attributions(ids, random_scores(len(ids)), tokenizer, text)
    assert pairs == [(span.text, span.score) for span in found]


@every_tokenizer
@quietly
@given(text=texts)
def test_max_abs_is_a_signed_piece_of_the_word(kind: str, text: str) -> None:
    tokenizer = TOKENIZERS[kind]
    encoded = tokenizer(text, return_offsets_mapping=True)
    scores = random_scores(len(encoded["input_ids"]))
    found = span_contributions(encoded["input_ids"], scores, tokenizer, text, "max_abs")
    spans, word_L = position_words(text, encoded["offset_mapping"])
    for index, span in enumerate(found[: len(spans)]):
        mine = [float(score) for score, word in zip(scores, word_L, strict=True) if word == index]
        assert abs(span.score) == max(map(abs, mine), default=0.0)
        assert span.score in (mine or [0.0])


@every_tokenizer
@quietly
@given(text=texts, length=st.integers(3, 12), padding=st.integers(0, 3), left=st.booleans())
def test_truncated_and_padded_ids_keep_the_total(
    kind: str, text: str, length: int, padding: int, left: bool
) -> None:
    tokenizer = TOKENIZERS[kind]
    ids = tokenizer(text, truncation=True, max_length=length)["input_ids"]
    scores = random_scores(len(ids))
    plain = span_contributions(ids, scores, tokenizer, text)
    pad, nothing = [tokenizer.pad_token_id] * padding, torch.zeros(padding)
    padded_ids, padded_scores = (pad + ids, [nothing, scores]) if left else (ids + pad, [scores, nothing])
    assert span_contributions(padded_ids, torch.cat(padded_scores), tokenizer, text) == plain
    assert sum(span.score for span in plain) == pytest.approx(float(scores.sum()), abs=1e-9)


@every_tokenizer
def test_ordinary_text_leaves_only_special_tokens_without_a_word(kind: str) -> None:
    text = "The quick naïve 😀 fox, 東京\n\njumps over 👩‍👩‍👧‍👦 away: שלום 1996."
    encoded = TOKENIZERS[kind](text, return_offsets_mapping=True, return_special_tokens_mask=True)
    _, word_L = position_words(text, encoded["offset_mapping"])
    assert [word == -1 for word in word_L] == [bool(m) for m in encoded["special_tokens_mask"]]


def test_pieces_of_a_split_word_are_merged() -> None:
    tokenizer = TOKENIZERS["wordpiece"]
    text = "Unremarkably\tnaïve 👍🏽!"
    ids = ids_of(tokenizer, text)
    scores = torch.zeros(len(ids))
    scores[1:3] = torch.tensor([0.75, -1.0])
    assert tokenizer.convert_ids_to_tokens(ids[1:3])[1].startswith("##")
    summed = span_contributions(ids, scores, tokenizer, text)
    assert [tuple(span) for span in summed] == [
        (0, 12, "Unremarkably", -0.25),
        (13, 18, "naïve", 0.0),
        (19, 21, "👍🏽", 0.0),
        (21, 22, "!", 0.0),
    ]
    assert span_contributions(ids, scores, tokenizer, text, "max_abs")[0].score == -1.0


def test_a_repeated_id_divides_its_score() -> None:
    tokenizer = TOKENIZERS["wordpiece"]
    ids = ids_of(tokenizer, "good bad good")
    scores = torch.zeros(len(tokenizer))
    scores[ids[1]], scores[ids[2]] = 3.0, -1.0
    words = aggregate_subword_attributions(ids, scores, tokenizer, "good bad good")
    assert words == [("good", 1.5), ("bad", -1.0), ("good", 1.5)]


def test_what_no_word_holds_is_the_last_entry() -> None:
    tokenizer = TOKENIZERS["wordpiece"]
    ids = ids_of(tokenizer, "good")
    words = span_contributions(ids, torch.tensor([0.5, 1.0, 0.25]), tokenizer, "good")
    assert [tuple(span) for span in words] == [(0, 4, "good", 1.0), (4, 4, "", 0.75)]


def test_words_past_the_last_token_are_left_out() -> None:
    tokenizer = TOKENIZERS["wordpiece"]
    text = "one two three four"
    ids = tokenizer(text, truncation=True, max_length=4)["input_ids"]
    assert aggregate_subword_attributions(ids, torch.ones(4), tokenizer, text)[:2] == [
        ("one", 1.0),
        ("two", 1.0),
    ]
    assert [span.text for span in span_contributions(ids, torch.zeros(4), tokenizer, text)] == ["one", "two"]


def test_an_empty_text_has_no_words() -> None:
    tokenizer = TOKENIZERS["wordpiece"]
    assert span_contributions(ids_of(tokenizer, ""), torch.zeros(2), tokenizer, "") == []
    assert position_words("", []) == ([], [])


@pytest.mark.parametrize("text", ["another text", "good bade", "good", "good bad ugly"])
def test_ids_of_another_text_are_refused(text: str) -> None:
    tokenizer = TOKENIZERS["wordpiece"]
    ids = ids_of(tokenizer, "good bad")
    with pytest.raises(DataError, match="pass tokenizer"):
        span_contributions([*ids, tokenizer.sep_token_id], torch.zeros(5), tokenizer, text)
    with pytest.raises(DataError, match="pass tokenizer"):
        span_contributions(ids[1:], torch.zeros(3), tokenizer, "good bad")


@pytest.mark.parametrize("shape", [(5,), (4, 1, 1), (3, 7), ()])
def test_scores_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    tokenizer = TOKENIZERS["wordpiece"]
    with pytest.raises(DataError, match="pass one per token id"):
        span_contributions(ids_of(tokenizer, "good bad"), torch.zeros(shape), tokenizer, "good bad")


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(ConfigError, match="max_abs"):
        span_contributions([], torch.zeros(0), TOKENIZERS["wordpiece"], "", "mean")


def test_a_tokenizer_without_offsets_is_refused() -> None:
    class Slow:
        is_fast = False
        pad_token_id = None

    with pytest.raises(ModelError, match="fast tokenizer"):
        span_contributions([1], torch.zeros(1), Slow(), "fox")
