"""The dictionary holds content words under readable names, and licences follow the pretrained decoder."""

from __future__ import annotations

import time

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from splade.errors import ConfigError, DataError
from splade.models.lexicon import (
    HONESTY_MODES,
    STATIC_LICENCES,
    Lexicon,
    LexiconSpec,
    document_frequency,
    function_words,
    normalise,
)
from tests.tiny import PADDED_ROWS, SENTENCES, SPLIT, TOKENIZER_KINDS, tiny_tokenizer


def tiny_lexicon(kind: str = "wordpiece", df_V: Tensor | None = None, **spec: object) -> Lexicon:
    tokenizer = tiny_tokenizer(kind)
    return Lexicon.from_tokenizer(tokenizer, len(tokenizer) + PADDED_ROWS, LexiconSpec(**spec), df_V)


def plain_lexicon(names: list[str], begins: list[bool] | None = None, **spec: object) -> Lexicon:
    return Lexicon(names, begins or [True] * len(names), [], [], LexiconSpec(**spec))


def encode(kind: str, text: str) -> Tensor:
    return torch.tensor([tiny_tokenizer(kind)(text)["input_ids"]])


def frequencies(kind: str) -> Tensor:
    tokenizer = tiny_tokenizer(kind)
    return document_frequency(tokenizer(list(SENTENCES))["input_ids"], len(tokenizer) + PADDED_ROWS)


def test_normalise_folds_case_width_and_space() -> None:
    assert normalise(" Muslim ") == normalise("muslim") == normalise("ＭＵＳＬＩＭ")
    assert normalise("Straße") == normalise("STRASSE")


@pytest.mark.parametrize(
    ("kind", "surfaces"),
    [
        ("wordpiece", {"muslim", "Muslim"}),
        ("bpe", {"muslim", "Muslim", "Ġmuslim", "ĠMuslim"}),
        ("unigram", {"muslim", "▁muslim", "▁Muslim"}),
    ],
)
def test_a_word_is_found_under_every_mark_and_case(kind: str, surfaces: set[str]) -> None:
    lexicon = tiny_lexicon(kind)
    for asked in ("muslim", "Muslim", " MUSLIM "):
        found = tiny_tokenizer(kind).convert_ids_to_tokens(lexicon.ids(asked))
        assert set(found) == surfaces
    assert {lexicon.names[j] for j in lexicon.ids("muslim")} == {"muslim", "Muslim"}
    assert lexicon.ids("zebra") == lexicon.ids("") == []


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_names_carry_no_marks_and_there_is_one_for_every_decoder_row(kind: str) -> None:
    lexicon = tiny_lexicon(kind)
    assert lexicon.vocab_size == len(lexicon.names) == len(tiny_tokenizer(kind)) + PADDED_ROWS
    words = [lexicon.names[j] for j in lexicon.words().tolist()]
    assert words
    assert not any(mark in name for name in words for mark in ("##", "Ġ", "▁", " "))


def byte_level(vocab: list[str]) -> PreTrainedTokenizerFast:
    inner = Tokenizer(models.BPE(vocab={piece: j for j, piece in enumerate(vocab)}, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=inner)


def test_runs_of_hashes_do_not_make_a_byte_level_vocabulary_wordpiece() -> None:
    """RoBERTa's vocabulary holds '###'."""
    tokenizer = byte_level(["###", "####", "Ġfilm", "ĠFilm", "ĠcafÃ©", "ing"])
    lexicon = Lexicon.from_tokenizer(tokenizer, 6, LexiconSpec())
    assert lexicon.names == ["###", "####", "film", "Film", "café", "ing"]
    assert lexicon.begins_V.tolist()[2:] == [True, True, True, False]


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_special_unused_padding_letterless_and_function_words_are_no_reasons(kind: str) -> None:
    tokenizer, lexicon = tiny_tokenizer(kind), tiny_lexicon(kind)
    inside = lexicon.dictionary_V
    assert not inside[tokenizer.all_special_ids].any()
    assert not inside[len(tokenizer) :].any()
    for piece in ("[unused0]", ",", ";", "!", "##!"):
        assert not inside[lexicon.ids(piece)].any()
    for word in ("the", "and", "was", "without", "after"):
        assert not inside[lexicon.ids(word)].any()
    for word in ("film", "clever", "Paris"):
        assert inside[lexicon.ids(word)].any()


def test_reserved_names_of_other_vocabularies_are_no_reasons() -> None:
    reserved = [
        "[unused7]",
        "unused_3",
        "<extra_id_0>",
        "<0xE2>",
        "|||PHONE|||",
        "madeupword0001",
        "\ufffd",
        "12",
    ]
    assert plain_lexicon(["film", *reserved]).words().tolist() == [0]


@pytest.mark.parametrize(("kind", "mark"), [("wordpiece", "##"), ("unigram", "")])
def test_continuation_pieces_stay(kind: str, mark: str) -> None:
    tokenizer, lexicon = tiny_tokenizer(kind), tiny_lexicon(kind)
    for first, rest in SPLIT.values():
        continuation = tokenizer.convert_tokens_to_ids(mark + rest)
        assert lexicon.dictionary_V[continuation]
        assert not lexicon.begins_V[continuation]
        assert lexicon.ids(first)


def test_words_of_too_many_documents_are_no_reasons() -> None:
    df_V = frequencies("wordpiece")
    film = tiny_lexicon().ids("film")
    assert float(df_V[film]) == pytest.approx(0.2)
    assert tiny_lexicon(df_V=df_V, stop_df=0.2).dictionary_V[film].all()
    assert not tiny_lexicon(df_V=df_V, stop_df=0.19).dictionary_V[film].any()


def test_document_frequency_counts_a_document_once() -> None:
    assert document_frequency([[1, 1, 2], [1], []], 4).tolist() == pytest.approx([0, 2 / 3, 1 / 3, 0])
    assert document_frequency([], 2).tolist() == [0, 0]


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_free_mode_keeps_every_ordinary_word(kind: str) -> None:
    free = tiny_lexicon(kind, df_V=frequencies(kind), stop_df=0.01, honesty="free")
    grounded = tiny_lexicon(kind)
    for word in ("the", "and", "film"):
        assert free.dictionary_V[free.ids(word)].all()
    assert (free.dictionary_V >= grounded.dictionary_V).all()
    assert not free.dictionary_V[tiny_tokenizer(kind).all_special_ids].any()
    assert torch.equal(free.function_V, grounded.function_V)


def test_other_languages_take_their_most_frequent_words_for_function_words() -> None:
    names = ["der", "Haus", "[CLS]", ",", "und", *(f"wort{chr(97 + j)}" for j in range(20))]
    df_V = torch.tensor([0.9, 0.01, 1.0, 1.0, 0.8, *([0.0] * 20)])
    assert function_words("de", df_V, names) == {"der", "und", "haus"}
    assert function_words("de", None, names) == frozenset()
    many = [f"w{'x' * j}" for j in range(300)]
    assert len(function_words("de", torch.linspace(1, 0.1, 300), many)) == 100


def test_an_unknown_mode_and_an_empty_dictionary_are_refused() -> None:
    with pytest.raises(ConfigError, match=", ".join(HONESTY_MODES)):
        plain_lexicon(["film"], honesty="honest")
    with pytest.raises(DataError, match="dictionary is empty"):
        plain_lexicon(["the", "12", ""])


def test_unknown_tokens_are_text_but_no_reason() -> None:
    lexicon, tokenizer = tiny_lexicon(), tiny_tokenizer()
    ids = encode("wordpiece", "film 漢 clever")
    assert tokenizer.unk_token_id in ids
    assert lexicon.valid(ids, torch.ones_like(ids)).tolist() == [[False, True, True, True, False]]
    assert not lexicon.dictionary_V[tokenizer.unk_token_id]


# --- static licences -----------------------------------------------------------------------------------


def brute_licence(lexicon: Lexicon, E_VH: Tensor, j: int) -> list[int]:
    """Word j, then its 15 nearest whole words by cosine, one by one."""
    if not lexicon.dictionary_V[j]:
        return []
    whole = [i for i in range(len(E_VH)) if lexicon.dictionary_V[i] and lexicon.begins_V[i] and i != j]
    cosine = {i: float(torch.cosine_similarity(E_VH[j], E_VH[i], dim=0)) for i in whole}
    return [j, *sorted(whole, key=lambda i: -cosine[i])[: STATIC_LICENCES - 1]]


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_a_word_licenses_itself_first_and_then_its_nearest_whole_words(kind: str) -> None:
    lexicon = tiny_lexicon(kind, honesty="licensed-static")
    E_VH = torch.randn(lexicon.vocab_size, 8)
    lexicon.build_licences(E_VH, chunk=7)
    for j, licence in enumerate(lexicon.licence_VK.tolist()):
        expected = brute_licence(lexicon, E_VH, j)
        assert licence == expected + [-1] * (STATIC_LICENCES - len(expected))


def licences_of(kind: str, text: str) -> list[tuple[str, list[str]]]:
    lexicon = tiny_lexicon(kind, honesty="licensed-static")
    lexicon.build_licences(torch.randn(lexicon.vocab_size, 8))
    ids = encode(kind, text)
    pieces = tiny_tokenizer(kind).convert_ids_to_tokens(ids[0])
    words = [[lexicon.names[j] for j in row if j >= 0] for row in lexicon.licensed(ids)[0].tolist()]
    return list(zip(pieces, words, strict=True))


@pytest.mark.parametrize(
    ("kind", "first", "rest"), [("wordpiece", "un", "##reliable"), ("unigram", "▁un", "reliable")]
)
def test_a_piece_of_a_split_word_licenses_only_itself(kind: str, first: str, rest: str) -> None:
    licences = dict(licences_of(kind, "clever unreliable film"))
    assert licences[first] == ["un"]
    assert licences[rest] == ["reliable"]
    whole = [words for piece, words in licences.items() if piece.strip("▁") in ("clever", "film")]
    assert [len(words) for words in whole] == [STATIC_LICENCES] * 2


def test_the_first_word_of_a_byte_level_text_is_a_whole_word() -> None:
    """It carries no mark, as if it continued a word."""
    licences = dict(licences_of("bpe", "muslim film"))
    assert licences["muslim"][0] == "muslim"
    assert licences["Ġfilm"][0] == "film"
    assert len(licences["muslim"]) == len(licences["Ġfilm"]) == STATIC_LICENCES


@pytest.mark.parametrize(
    ("pieces", "split"),
    [
        (["Ġun", "reli", "able", "Ġfilm"], [1, 1, 1, 0]),
        (["Ġ(", "film", "Ġfilm", "'s", ","], [0, 0, 0, 0, 0]),
        (["Ġ3", "rd", "Ġfilm", "2"], [1, 1, 1, 1]),
        (["film", "Ġfilm", "<s>", "able"], [0, 0, 0, 0]),
    ],
)
def test_split_pieces_are_those_that_touch_within_a_word(pieces: list[str], split: list[int]) -> None:
    vocab = sorted({"<s>", "Ġun", "reli", "able", "Ġfilm", "Ġ(", "film", "'s", ",", "Ġ3", "rd", "2"})
    lexicon = Lexicon.from_tokenizer(byte_level(vocab), len(vocab), LexiconSpec())
    ids = torch.tensor([[vocab.index(piece) for piece in pieces]])
    lexicon.wordlike_V[vocab.index("<s>")] = False
    assert lexicon.split_pieces(ids).int().tolist() == [split]


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_special_stop_and_letterless_tokens_license_nothing(kind: str) -> None:
    licences = licences_of(kind, "the film, and the clever scene!")
    silent = [piece for piece, words in licences if not words]
    stripped = {piece.strip("Ġ▁") for piece in silent}
    assert {"the", "and"} <= stripped
    assert silent[0] == tiny_tokenizer(kind).cls_token
    assert silent[-1] == tiny_tokenizer(kind).sep_token


def test_a_dictionary_smaller_than_the_table_leaves_empty_slots() -> None:
    lexicon = plain_lexicon(["film", "clever", "the"], honesty="licensed-static")
    lexicon.build_licences(torch.eye(3))
    assert lexicon.licence_VK[:, :3].tolist() == [[0, 1, -1], [1, 0, -1], [-1, -1, -1]]
    assert (lexicon.licence_VK[:, 3:] == -1).all()


@pytest.mark.slow
def test_licences_of_a_large_vocabulary_take_seconds() -> None:
    """V = 50,000 and H = 64; a table of all cosines would take 10 GB."""
    V = 50_000
    names = ["w" + "".join(chr(97 + int(digit)) for digit in str(j)) for j in range(V)]
    lexicon = plain_lexicon(names, honesty="licensed-static")
    E_VH = torch.randn(V, 64)
    start = time.perf_counter()
    lexicon.build_licences(E_VH)
    assert time.perf_counter() - start < 60
    for j in (0, 1024, V - 1):
        cosine_V = torch.cosine_similarity(E_VH, E_VH[j], dim=-1)
        assert lexicon.licence_VK[j].tolist() == cosine_V.topk(STATIC_LICENCES).indices.tolist()
