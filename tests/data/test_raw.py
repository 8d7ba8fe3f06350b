"""Raw text comes document by document, the same from every form, and as token ids that partition it."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import tarfile
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from splade.data.raw import documents
from splade.data.tokens import (
    ArraySource,
    Frame,
    Place,
    TextSource,
    encoded,
    open_source,
    prepare_tokens,
    read_array,
    read_tokens,
)
from splade.errors import DataError, ModelError
from tests.tiny import SENTENCES, TOKENIZER_KINDS, tiny_tokenizer

TEXTS = ["one line, “naïve” 東京", "a second\nwith two lines", 'a "third" one']


def as_jsonl() -> bytes:
    rows = [*TEXTS, "", " \0 "]
    return "".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(rows)).encode()


def as_csv() -> bytes:
    rows = "".join('{},"{}"\n'.format(i, text.replace('"', '""')) for i, text in enumerate(TEXTS))
    return ("\ufeffid,text\n" + rows + '9,""\n').encode()


def as_parquet() -> bytes:
    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"text": [*TEXTS, None], "n": [1, 2, 3, 4]}), out)
    return out.getvalue()


def as_wiki() -> bytes:
    return "".join(f'<doc id="1" title="x">\n{text}\n\n</doc>\n' for text in TEXTS).encode()


FORMS = {
    "t.jsonl": as_jsonl(),
    "t.csv": as_csv(),
    "t.parquet": as_parquet(),
    "wiki_00": as_wiki(),
    "paragraphs.txt": "\n\n".join(TEXTS).encode(),
    "articles.tokens": "".join(
        f" \n = {n} = \n \n{text}\n" for n, text in zip("ABC", TEXTS, strict=True)
    ).encode(),
}


def write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_bytes(content)
    return path


def tarred(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:xz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_documents(tmp_path, form) -> None:
    found = list(documents(write(tmp_path, form, FORMS[form])))
    if form.endswith(".tokens"):
        assert [text.split("= \n \n")[0] for text in found] == ["= A ", "= B ", "= C "]
        found = [text.split("= \n \n")[1] for text in found]
    assert found == TEXTS


@pytest.mark.parametrize(
    ("suffix", "press"), [(".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)]
)
def test_compression_changes_nothing(tmp_path, suffix, press) -> None:
    assert list(documents(write(tmp_path, f"t.jsonl{suffix}", press(as_jsonl())))) == TEXTS


def test_archives_and_folders_hold_files_of_all_forms_and_skip_the_rest(tmp_path) -> None:
    members = {name: FORMS[name] for name in ("t.csv", "t.parquet", "wiki_00")}
    members |= {"t.jsonl.xz": lzma.compress(as_jsonl()), ".hidden.txt": b"no", "logo.png": b"\xff"}
    archive = tarred(tmp_path / "all.tar.xz", members)
    assert list(documents(archive)) == TEXTS * 4
    for name, content in members.items():
        write(tmp_path / "folder", f"{name}", content)
    write(tmp_path / "folder" / "a", "first.txt", b"first of all\n")
    archive.rename(tmp_path / "folder" / "z.tar.xz")
    assert list(documents(tmp_path / "folder")) == ["first of all", *TEXTS * 8]


def test_lines_without_a_blank_one_between_are_a_document_each(tmp_path) -> None:
    path = write(tmp_path, "lines.txt", b"\none\r\ntwo\nthr\0ee\n\n")
    assert list(documents(path)) == ["one", "two", "three"]


def test_documents_go_on_from_any_number(tmp_path) -> None:
    path = write(tmp_path, "t.jsonl", as_jsonl())
    assert [list(documents(path, start=n)) for n in range(3)] == [TEXTS, TEXTS[1:], TEXTS[2:]]


def test_nothing_is_read_before_it_is_needed(tmp_path) -> None:
    path = write(tmp_path, "t.jsonl", as_jsonl() + b"not json\n")
    stream = documents(path)
    assert [next(stream) for _ in TEXTS] == TEXTS
    with pytest.raises(DataError, match="line 6: is not an object"):
        next(stream)


@pytest.mark.parametrize(
    ("name", "content", "column", "line"),
    [
        ("t.txt", b"good\nbad \xff\n", None, "line 2: byte 0xff is not UTF-8"),
        ("t.jsonl.gz", b"not gzip", None, "cannot be read"),
        ("t.jsonl.xz", lzma.compress(as_jsonl())[:-20], None, "cannot be read"),
        ("t.tar", b"not a tar", None, "cannot be read"),
        ("t.parquet", b"not parquet", None, "cannot be read"),
        ("t.csv", b'text\n"open\n', None, "quotes do not match"),
        ("t.csv", as_csv(), "body", "no column 'body'.*id, text.*--text"),
        ("t.jsonl", b'{"title": "x"}\n', None, "no text column.*title.*--text"),
        ("t.jsonl", b'{"text": 3}\n', None, "the text is 3"),
        ("t.txt", b" \n\0\n", None, "holds no text"),
    ],
)
def test_what_is_wrong_is_one_line_that_names_the_file(tmp_path, name, content, column, line) -> None:
    path = write(tmp_path, name, content)
    with pytest.raises(DataError, match=line) as caught:
        list(documents(path, column))
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_missing_path_and_a_folder_without_text_are_refused(tmp_path) -> None:
    with pytest.raises(DataError, match="no such file or folder"):
        documents(tmp_path / "gone")
    with pytest.raises(DataError, match="has no text"):
        documents(tmp_path)


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_the_frame_is_what_the_tokenizer_puts_around_a_text(kind) -> None:
    tokenizer = tiny_tokenizer(kind)
    frame = Frame.of(tokenizer)
    for text in SENTENCES:
        plain = tokenizer(text, add_special_tokens=False)["input_ids"]
        assert [*frame.prefix, *plain, *frame.suffix] == tokenizer(text)["input_ids"]
    assert (frame.boundary, frame.mask) == (tokenizer.sep_token_id, tokenizer.mask_token_id)


def test_a_tokenizer_without_a_mask_is_refused() -> None:
    class Maskless:
        sep_token_id, eos_token_id, mask_token_id, pad_token_id = 1, None, None, 0

        def __call__(self, text, add_special_tokens=True):
            return {"input_ids": [5]}

    with pytest.raises(ModelError, match="no mask token"):
        Frame.of(Maskless())


@pytest.fixture
def corpus(tmp_path) -> Path:
    return write(
        tmp_path, "corpus.txt", "\n".join(f"{text} {i}" for i in range(9) for text in SENTENCES).encode()
    )


def whole(path: Path) -> np.ndarray:
    return np.concatenate(list(encoded(documents(path), tiny_tokenizer())))


def one_pass(source, number: int = 0, place: Place | None = None) -> list[tuple[Place, np.ndarray]]:
    found = []
    for at, ids in source.shards(place or Place(number, source.begin)):
        if at.number > number:
            return found
        found.append((at, ids))
    raise AssertionError


def test_each_document_ends_with_the_boundary(corpus) -> None:
    ids, tokenizer = whole(corpus), tiny_tokenizer()
    assert (ids == tokenizer.sep_token_id).sum() == 90
    first = tokenizer(f"{SENTENCES[0]} 0", add_special_tokens=False)["input_ids"]
    assert ids[: len(first) + 1].tolist() == [*first, tokenizer.sep_token_id]


@pytest.mark.parametrize("shard", [1, 100, 10**6])
def test_the_shards_of_a_pass_are_the_text_and_any_of_them_can_be_gone_on_from(corpus, shard) -> None:
    array = ArraySource(whole(corpus), shard=shard * 50)
    for source in (TextSource(corpus, None, tiny_tokenizer(), shard), array):
        found = one_pass(source)
        assert np.array_equal(np.concatenate([ids for _, ids in found]), whole(corpus))
        for index, (place, _) in enumerate(found[:3]):
            again = one_pass(source, place=place)
            assert all(np.array_equal(a[1], b[1]) for a, b in zip(again, found[index:], strict=True))


def test_text_held_out_is_in_no_pass(corpus) -> None:
    ids = whole(corpus)
    for source in (TextSource(corpus, None, tiny_tokenizer(), 100), ArraySource(ids, 3, 100)):
        held = source.hold_out(30)
        assert 30 <= len(held) < 60
        assert held[-1] == tiny_tokenizer().sep_token_id
        for number in (0, 1):
            rest = np.concatenate([ids for _, ids in one_pass(source, number)])
            assert np.array_equal(np.concatenate([held, rest]), ids)


def test_a_single_document_cannot_be_held_out(tmp_path) -> None:
    with pytest.raises(DataError, match="--held-out"):
        TextSource(write(tmp_path, "t.txt", b"only one"), None, tiny_tokenizer()).hold_out(10)


def test_prepared_tokens_are_those_of_the_text_and_are_not_loaded(corpus, tmp_path) -> None:
    tokenizer, out = tiny_tokenizer(), tmp_path / "ids.npy"
    assert prepare_tokens(corpus, tokenizer, out) == len(whole(corpus))
    found = read_array(out, tokenizer)
    assert isinstance(found, np.memmap)
    assert found.dtype == np.uint16
    assert np.array_equal(found, whole(corpus))
    found.tofile(tmp_path / "ids.bin")
    assert np.array_equal(read_array(tmp_path / "ids.bin", tokenizer), found)
    assert np.array_equal(read_tokens(out, None, tokenizer, 50), read_tokens(corpus, None, tokenizer, 50))
    assert isinstance(open_source(out, None, tokenizer), ArraySource)


@pytest.mark.parametrize(
    ("ids", "line"),
    [
        (np.array([[1, 2]], dtype=np.uint16), "not one row"),
        (np.array([1.5]), "not one row"),
        (np.array([1, 60_000], dtype=np.uint16), "ids that this tokenizer has not"),
        (np.zeros(0, dtype=np.uint16), "not one row"),
        (np.array([{}], dtype=object), "cannot be read"),
    ],
)
def test_arrays_that_cannot_be_token_ids_are_refused(tmp_path, ids, line) -> None:
    np.save(tmp_path / "ids.npy", ids)
    with pytest.raises(DataError, match=line):
        read_array(tmp_path / "ids.npy", tiny_tokenizer())
