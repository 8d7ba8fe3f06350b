"""Tag schemes keep the entities, and windows label every word exactly once."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

import splade
from splade.data.tagging import Alignment, align, detect_scheme, spans, to_bio
from splade.errors import ConfigError, DataError, ModelError

ASSETS = Path(splade.__file__).parent / "assets"
SPACES = " ▁"  # SentencePiece writes a space as ▁, which may be a piece of its own
CORPUS = [
    "The quick brown fox jumps over Zoë's naïve dog .",
    "Paris , 1996-08-22 : 東京 is far 😀 away",
    "aaa b",
]


@st.composite
def bio_tags(draw: st.DrawFn) -> list[str]:
    """Valid BIO tags, built from random entities."""
    tags: list[str] = []
    for kind, length in draw(st.lists(st.tuples(st.sampled_from(["", "PER", "LOC-x"]), st.integers(1, 4)))):
        tags += ["O"] * length if not kind else [f"B-{kind}"] + [f"I-{kind}"] * (length - 1)
    return tags


def to_iob1(tags: list[str]) -> list[str]:
    """B- only where an entity follows one of its own type."""
    written = ["O"] * len(tags)
    ends = {(end, kind) for _, end, kind in spans(tags)}
    for start, end, kind in spans(tags):
        written[start:end] = [f"I-{kind}"] * (end - start)
        if (start, kind) in ends:
            written[start] = f"B-{kind}"
    return written


def to_bioes(tags: list[str], end_mark: str = "E", single_mark: str = "S") -> list[str]:
    written = ["O"] * len(tags)
    for start, end, kind in spans(tags):
        inner = [f"I-{kind}"] * (end - start - 2)
        several = [f"B-{kind}", *inner, f"{end_mark}-{kind}"]
        written[start:end] = several if end - start > 1 else [f"{single_mark}-{kind}"]
    return written


@given(bio_tags())
def test_bio_survives_every_scheme(tags: list[str]) -> None:
    assert to_bio(tags) == tags
    assert to_bio(to_iob1(tags)) == tags
    assert to_bio(to_bioes(tags)) == tags
    assert to_bio(to_bioes(tags, "L", "U")) == tags


@given(st.lists(st.sampled_from(["O", *(f"{p}-{k}" for p in "BIELSU" for k in ("X", "Y"))])))
def test_any_tags_become_bio_with_the_same_spans(tags: list[str]) -> None:
    bio = to_bio(tags)
    assert spans(bio) == spans(tags)
    assert to_bio(bio) == bio
    assert all(tag[:2] in ("O", "B-", "I-") for tag in bio)
    covered = [i for start, end, _ in spans(tags) for i in range(start, end)]
    assert covered == [i for i, tag in enumerate(tags) if tag != "O"]


def test_spans_follow_conlleval_on_irregular_tags() -> None:
    assert spans(["I-X", "I-X", "I-Y", "O", "I-X", "B-X"]) == [
        (0, 2, "X"),
        (2, 3, "Y"),
        (4, 5, "X"),
        (5, 6, "X"),
    ]
    assert spans(["B-X", "E-X", "I-X", "S-X", "E-X"]) == [(0, 2, "X"), (2, 3, "X"), (3, 4, "X"), (4, 5, "X")]
    assert spans([]) == []


def test_schemes_are_told_apart() -> None:
    bio = ["O", "B-X", "I-X", "B-X", "O", "B-Y"]
    assert detect_scheme([bio]) == "BIO"
    assert detect_scheme([to_iob1(bio)]) == "IOB1"
    assert detect_scheme([to_bioes(bio)]) == "BIOES"
    assert detect_scheme([to_bioes(bio, "L", "U")]) == "BILOU"
    assert detect_scheme([["O"], []]) == "BIO"
    assert detect_scheme([["I-X", "O", "B-X"]]) == "BIO", "a B- after O is no IOB1: a stray I- in BIO"


@pytest.mark.parametrize("tag", ["PER", "B-", "X-PER", "", "BI-PER", "o"])
def test_a_tag_of_no_scheme_is_refused(tag: str) -> None:
    with pytest.raises(DataError, match="O, B-TYPE or I-TYPE"):
        to_bio(["O", tag])


def test_mixed_end_marks_are_refused() -> None:
    with pytest.raises(DataError, match="convert"):
        detect_scheme([["B-X", "E-X"], ["U-X"]])


# --- alignment --------------------------------------------------------------------------------------------


def byte_level_tokenizer() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<s>", "</s>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0), add_prefix_space=False)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")


def sentencepiece_tokenizer() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=80, special_tokens=["<unk>", "</s>"], unk_token="<unk>")
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing("$A </s>", None, [("</s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>", unk_token="<unk>")


TOKENIZERS = {
    "wordpiece": AutoTokenizer.from_pretrained(ASSETS / "minilm-l6-mlm"),
    "byte-level": byte_level_tokenizer(),
    "sentencepiece": sentencepiece_tokenizer(),
}
some_words = st.lists(
    st.sampled_from(
        ["fox", "Zoë's", "naïve", "東京", "😀", "supercalifragilistic", ".", "1996-08-22", "\x07", "ﬁ"]
    )
    | st.text(
        st.characters(categories=["L", "N", "P", "S", "M", "Zs", "Cc"], exclude_characters="\0"), max_size=6
    ),
    max_size=60,
)


def assert_each_word_once(aligned: Alignment, words: list[str]) -> None:
    labelled = [word for window in aligned.windows for word in window.word_index]
    assert sorted(labelled + aligned.silent) == list(range(len(words)))
    for window in aligned.windows:
        assert len(window.first_piece) == len(window.word_index) > 0


@pytest.mark.parametrize("kind", TOKENIZERS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(words=some_words, max_length=st.integers(3, 40), overlap=st.integers(0, 30))
def test_windows_label_every_word_once(kind: str, words: list[str], max_length: int, overlap: int) -> None:
    tokenizer = TOKENIZERS[kind]
    aligned = align(words, tokenizer, max_length=max_length, overlap=overlap)
    assert_each_word_once(aligned, words)
    assert [aligned.text[a:b] for a, b in aligned.word_spans] == words
    whole = tokenizer(aligned.text, truncation=False, verbose=False)["input_ids"]
    assert all(len(window.input_ids) <= max_length for window in aligned.windows)
    if len(whole) <= max_length:
        assert [window.input_ids for window in aligned.windows] in ([whole], [])


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_a_labelled_piece_begins_its_word(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    words = CORPUS[0].split() * 20
    aligned = align(words, tokenizer, max_length=24, overlap=8)
    assert len(aligned.windows) > 1
    assert aligned.silent == []
    for window in aligned.windows:
        ends = [*window.first_piece[1:], len(window.input_ids)]
        for position, end, word in zip(window.first_piece, ends, window.word_index, strict=True):
            shown = tokenizer.decode(window.input_ids[position:end], skip_special_tokens=True)
            alone = tokenizer.decode(tokenizer(words[word], add_special_tokens=False)["input_ids"])
            assert shown.lower().lstrip(SPACES)[:1] == alone.lower().lstrip(SPACES)[:1]


def test_a_word_is_labelled_where_it_has_most_surroundings() -> None:
    words = ["a"] * 50  # one piece each: room for 10 words a window, 5 shared
    aligned = align(words, TOKENIZERS["wordpiece"], max_length=12, overlap=5)
    for window in aligned.windows:
        for position, word in zip(window.first_piece, window.word_index, strict=True):
            left = position - 1 if word > 9 else 99
            right = 10 - position if word < 40 else 99
            assert min(left, right) >= 2
    assert {len(window.input_ids) for window in aligned.windows} == {12}


def test_a_word_longer_than_a_window_keeps_its_first_piece() -> None:
    words = ["one", "x1" * 100, "two"]
    aligned = align(words, TOKENIZERS["wordpiece"], max_length=16)
    assert_each_word_once(aligned, words)
    assert aligned.silent == []


def test_a_long_sentence_is_aligned_without_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    words = ["word"] * 20_000
    assert_each_word_once(align(words, TOKENIZERS["wordpiece"], max_length=128), words)
    assert not caplog.records


def test_words_without_pieces_are_named() -> None:
    aligned = align(["\x07", "fox", "", "\x1f\x7f"], TOKENIZERS["wordpiece"], max_length=16)
    assert aligned.silent == [0, 2, 3]
    assert [window.word_index for window in aligned.windows] == [[1]]
    assert align([], TOKENIZERS["wordpiece"], max_length=16) == Alignment("", [], [], [])


def test_special_tokens_typed_as_words_are_words() -> None:
    aligned = align(["[CLS]", "fox", "[SEP]"], TOKENIZERS["wordpiece"], max_length=16)
    assert [window.word_index for window in aligned.windows] == [[0, 1, 2]]
    assert aligned.windows[0].first_piece == [1, 2, 3]


def test_a_limit_below_the_special_tokens_is_refused() -> None:
    with pytest.raises(ConfigError, match="raise it"):
        align(["fox"], TOKENIZERS["wordpiece"], max_length=2)


def test_a_tokenizer_without_offsets_is_refused() -> None:
    class Slow:
        is_fast = False

    with pytest.raises(ModelError, match="fast tokenizer"):
        align(["fox"], Slow(), max_length=16)
