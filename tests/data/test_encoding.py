"""Rows become batches that hold each once, and what is read at labelled positions finds its word again."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from splade.circuits.decoding import decode
from splade.data.encoding import Example, buckets, by_length, collate, encode
from splade.data.rows import Sentences, Texts
from splade.errors import DataError
from tests.tiny import SENTENCES, TOKENIZER_KINDS, tiny_tokenizer

NAMES = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
WORDS = sorted({word for text in SENTENCES for word in text.split()})
some_words = st.lists(
    st.sampled_from([*WORDS, "unreliable", "Zoë's", "東京", "😀"])
    | st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=8),
    max_size=40,
)


@st.composite
def tagged(draw: st.DrawFn) -> Sentences:
    """A few sentences with any label on any word, since what is stitched need not be valid BIO."""
    words = draw(st.lists(some_words, max_size=4))
    return Sentences(words, [[draw(st.sampled_from(NAMES)) for _ in sentence] for sentence in words])


def stitched_tags(examples: list[Example], rows: Sentences) -> list[list[str]]:
    """A tag for every word of every sentence, from logits that are sure of each label."""
    labels = torch.tensor([label for example in examples for label in example.labels], dtype=torch.long)
    logits = torch.nn.functional.one_hot(labels, len(NAMES)).float()
    lengths = {source: len(words) for source, words in enumerate(rows.words)}
    found = decode(examples, logits, lengths, NAMES, "independent")
    return [[NAMES[tag] for tag in found[source]] for source in lengths]


# --- sentences --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
@given(rows=tagged(), max_length=st.integers(8, 40))
def test_windows_stitch_back_to_the_identical_tags(kind: str, rows: Sentences, max_length: int) -> None:
    examples = encode(rows, NAMES, tiny_tokenizer(kind), max_length)
    labelled = sorted(
        (example.source, word) for example in examples for group in example.words or () for word in group
    )
    everything = [(i, word) for i, words in enumerate(rows.words) for word in range(len(words))]
    assert labelled == sorted(set(labelled)), "no word is labelled twice"
    assert set(labelled) <= set(everything)
    stitched = stitched_tags(examples, rows)
    for source, words in enumerate(rows.words):
        assert len(stitched[source]) == len(words)
    first_of = {(e.source, group[0]) for e in examples for group in e.words or ()}
    assert all(stitched[i][word] == rows.tags[i][word] for i, word in first_of)
    assert all(stitched[i][word] == "O" for i, word in set(everything) - set(labelled))


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_ordinary_words_all_keep_their_tags(kind: str) -> None:
    words = [text.split() * 8 for text in SENTENCES]
    rows = Sentences(words, [[NAMES[len(word) % 5] for word in sentence] for sentence in words])
    examples = encode(rows, NAMES, tiny_tokenizer(kind), 24)
    assert len(examples) > 2 * len(words)
    assert stitched_tags(examples, rows) == rows.tags


def test_examples_know_their_sentence_and_never_pass_the_limit() -> None:
    rows = Sentences([["Paris"], [], ["slow", "film"] * 30])
    examples = encode(rows, NAMES, tiny_tokenizer(), 16)
    assert {example.source for example in examples} == {0, 2}
    assert all(len(example.input_ids) <= 16 for example in examples)
    assert stitched_tags(examples, rows) == [["O"], [], ["O"] * 60]


def test_the_row_mask_lists_positions_in_the_order_of_the_labels() -> None:
    words = [text.split() for text in SENTENCES]
    rows = Sentences(words, [[NAMES[i % 5] for i in range(len(sentence))] for sentence in words])
    examples = encode(rows, NAMES, tiny_tokenizer(), 64)
    batch = collate(examples, [3, 0, 7], 0)
    assert batch.row_mask is not None
    listed = batch.row_mask.nonzero().tolist()
    expected = [[row, at] for row, i in enumerate(batch.indices) for at in examples[i].positions or ()]
    assert listed == expected
    assert batch.labels_N.tolist() == [label for i in (3, 0, 7) for label in examples[i].labels]
    assert len(batch.labels_N) == int(batch.row_mask.sum())


def test_a_label_stands_at_the_first_piece_of_its_word() -> None:
    tokenizer = tiny_tokenizer()
    rows = Sentences([["unreliable", "film", "charming"]], [["B-PER", "O", "B-LOC"]])
    (example,) = encode(rows, NAMES, tokenizer, 64)
    pieces = tokenizer.convert_ids_to_tokens(example.input_ids)
    assert [pieces[at] for at in example.positions or ()] == ["un", "film", "charm"]
    assert example.labels == [1, 0, 3]


def test_a_tag_the_model_does_not_know_is_refused() -> None:
    with pytest.raises(DataError, match="'B-ORG' is not among the model's labels; remove"):
        encode(Sentences([["EU"]], [["B-ORG"]]), NAMES, tiny_tokenizer(), 16)


# --- texts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_a_long_text_is_cut_at_the_limit_with_its_special_tokens(kind: str) -> None:
    tokenizer = tiny_tokenizer(kind)
    long = "the film was slow " * 100
    (short, cut) = encode(Texts(["the film", long], [1, 0]), ["a", "b"], tokenizer, 16)
    assert short.input_ids == tokenizer("the film")["input_ids"]
    assert cut.input_ids == [*tokenizer(long)["input_ids"][:15], tokenizer.sep_token_id]
    assert (short.labels, cut.labels, short.source, cut.source) == ([1], [0], 0, 1)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=5))
def test_any_text_becomes_one_example(texts: list[str]) -> None:
    examples = encode(Texts(texts), ["a", "b"], tiny_tokenizer(), 16)
    assert [example.source for example in examples] == list(range(len(texts)))
    assert all(2 <= len(example.input_ids) <= 16 for example in examples)


def test_a_batch_is_padded_to_its_longest_and_masks_the_rest() -> None:
    tokenizer = tiny_tokenizer("bpe")
    examples = encode(Texts(list(SENTENCES), [0] * len(SENTENCES)), ["a"], tokenizer, 64)
    batch = collate(examples, [1, 4, 2], tokenizer.pad_token_id)
    longest = max(len(examples[i].input_ids) for i in (1, 4, 2))
    assert batch.input_ids.shape == batch.attention_mask.shape == (3, longest)
    assert batch.row_mask is None
    for row, i in enumerate(batch.indices):
        ids, mask = batch.input_ids[row], batch.attention_mask[row].bool()
        assert ids[mask].tolist() == examples[i].input_ids
        assert mask[: len(examples[i].input_ids)].all()
        assert (ids[~mask] == tokenizer.pad_token_id).all()


def test_several_labels_are_ones_and_zeros_a_row() -> None:
    rows = Texts(["the film", "slow", "Paris"], label_sets=[[2, 0], [], [1]])
    examples = encode(rows, ["a", "b", "c"], tiny_tokenizer(), 16)
    assert [len(example.labels) for example in examples] == [1, 1, 1]
    batch = collate(examples, [2, 0, 1], 0)
    assert batch.labels_N.dtype == torch.float
    assert batch.labels_N.tolist() == [[0, 1, 0], [1, 0, 1], [0, 0, 0]]
    taken = encode(rows.take([1, 0]), ["a", "b", "c"], tiny_tokenizer(), 16)
    assert [example.labels for example in taken] == [examples[1].labels, examples[0].labels]


def test_a_batch_moves_whole() -> None:
    rows = Sentences([["Paris", "film"]], [["B-LOC", "O"]])
    batch = collate(encode(rows, NAMES, tiny_tokenizer(), 16), [0], 0)
    moved = batch.to(torch.device("meta"))
    tensors = (moved.input_ids, moved.attention_mask, moved.row_mask, moved.labels_N)
    assert all(tensor is not None and tensor.is_meta for tensor in tensors)
    assert moved.indices == batch.indices


# --- batches ----------------------------------------------------------------------------------------------

some_lengths = st.lists(st.integers(1, 500), max_size=300)


@given(lengths=some_lengths, batch_size=st.integers(1, 40), seed=st.integers(0, 99))
def test_an_epoch_holds_each_example_once(lengths: list[int], batch_size: int, seed: int) -> None:
    for batches in (list(buckets(lengths, batch_size, seed)), by_length(lengths, batch_size)):
        assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
        assert all(1 <= len(batch) <= batch_size for batch in batches)
        assert len(batches) == -(-len(lengths) // batch_size)


@given(lengths=some_lengths, batch_size=st.integers(1, 40))
def test_scoring_begins_with_the_longest(lengths: list[int], batch_size: int) -> None:
    order = [lengths[i] for batch in by_length(lengths, batch_size) for i in batch]
    assert order == sorted(lengths, reverse=True)


def test_batches_of_an_epoch_hold_similar_lengths_in_random_order() -> None:
    lengths = [(7 * i) % 400 + 1 for i in range(1000)]
    batches = list(buckets(lengths, 20, seed=0))
    spread = [max(lengths[i] for i in batch) - min(lengths[i] for i in batch) for batch in batches]
    assert max(spread) < 40
    means = [sum(lengths[i] for i in batch) for batch in batches]
    assert means != sorted(means)
    assert batches == list(buckets(lengths, 20, seed=0)) != list(buckets(lengths, 20, seed=1))
