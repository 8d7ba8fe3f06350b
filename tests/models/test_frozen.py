"""The frozen LM's words are those of its own logits, cached or not, and never learn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from splade.models.frozen import CACHE_LIMIT_BYTES, FrozenLM, TopWords
from splade.models.lexicon import GROUNDING_RANK
from tests.tiny import SENTENCES, tiny_batch, tiny_model

BATCHES = [[3, 0], [9, 1, 5], [2], [4, 6, 7, 8]]


def frozen_of(family: str) -> tuple[FrozenLM, Tensor, Tensor]:
    model = tiny_model(family)
    return FrozenLM.copy_of(model.backbone, model.lexicon), *tiny_batch(model)


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_top_words_are_the_dictionary_words_of_largest_logit(family: str) -> None:
    model = tiny_model(family)
    frozen = FrozenLM.copy_of(model.backbone, model.lexicon)
    ids, mask = tiny_batch(model)
    top_BLK = frozen.top_words(ids, mask)
    z_BLV = model.backbone.logits(ids, mask).masked_fill(~model.lexicon.dictionary_V, float("-inf"))
    count = min(GROUNDING_RANK, len(model.lexicon.words()))
    expected = z_BLV.argsort(dim=-1, descending=True)[..., :count]
    valid = model.lexicon.valid(ids, mask)
    assert top_BLK.shape == (*ids.shape, GROUNDING_RANK)
    assert torch.equal(top_BLK[valid][:, :count], expected[valid])
    assert (top_BLK[valid][:, count:] == -1).all()


def test_padding_and_special_tokens_have_no_words() -> None:
    frozen, ids, mask = frozen_of("roberta")
    special = mask.bool() & torch.isin(ids, torch.tensor([0, 2]))
    top_BLK = frozen.top_words(ids, mask)
    assert special.any()
    assert (mask == 0).any()
    assert (top_BLK[special | (mask == 0)] == -1).all()
    assert (top_BLK[mask.bool() & ~special][:, 0] >= 0).all()
    nothing = frozen.top_words(ids[:, :1], mask[:, :1])
    assert (nothing == -1).all()


def test_a_frozen_lm_neither_learns_nor_drops_out() -> None:
    model = tiny_model()
    frozen = FrozenLM.copy_of(model.backbone, model.lexicon).train()
    ids, mask = tiny_batch(model)
    before = frozen.top_words(ids, mask)
    with torch.no_grad():
        for parameter in model.backbone.parameters():
            parameter.add_(torch.randn_like(parameter))
    assert torch.equal(frozen.top_words(ids, mask), before)
    assert not any(module.training for module in frozen.modules())
    assert not any(parameter.requires_grad for parameter in frozen.parameters())


def cached(
    limit_bytes: int, folder: Path | None = None
) -> tuple[TopWords, list[tuple[list[int], Tensor, Tensor]]]:
    """A filled cache, and the batches it was filled with."""
    model = tiny_model("roberta")
    documents = [model.tokenizer(text)["input_ids"] for text in SENTENCES]

    def collate(indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        return tiny_batch(model, [SENTENCES[i] for i in indices])

    top = TopWords(FrozenLM.copy_of(model.backbone, model.lexicon), documents, folder, limit_bytes)
    done: list[int] = []
    top.fill(BATCHES, collate, done.append)
    assert sum(done) in (0, len(SENTENCES))
    return top, [(indices, *collate(indices)) for indices in ([0, 3], [8, 1], [5])]


def fresh_answers(top: TopWords, batches: list[tuple[list[int], Tensor, Tensor]]) -> None:
    for indices, ids, mask in batches:
        assert torch.equal(top.batch(indices, ids, mask).long(), top.frozen.top_words(ids, mask))


def test_the_cache_answers_as_the_lm_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top, batches = cached(CACHE_LIMIT_BYTES, tmp_path)
    fresh_answers(top, batches)
    file = next(tmp_path.rglob("*.npy"))
    assert np.load(file, mmap_mode="r").dtype == np.int16
    monkeypatch.setattr(top.frozen, "top_words", lambda *_: pytest.fail("asked the LM again"))
    top.batch(*batches[0])


def test_past_its_limit_the_lm_is_asked_anew(tmp_path: Path) -> None:
    top, batches = cached(100, tmp_path)
    assert not list(tmp_path.iterdir())
    fresh_answers(top, batches)


def test_the_cache_file_goes_with_the_cache(tmp_path: Path) -> None:
    top, _ = cached(CACHE_LIMIT_BYTES, tmp_path)
    assert list(tmp_path.iterdir())
    del top
    assert not list(tmp_path.iterdir())


def test_cached_words_serve_as_contextual_licences() -> None:
    model = tiny_model("roberta", honesty="licensed-contextual")
    documents = [model.tokenizer(text)["input_ids"] for text in SENTENCES]
    assert model.frozen is not None
    top = TopWords(model.frozen, documents)
    top.fill([range(len(SENTENCES))], lambda _: tiny_batch(model), lambda _: None)
    ids, mask = tiny_batch(model)
    cached_rows = model.encode(ids, mask, licence=top.batch(range(len(SENTENCES)), ids, mask))
    assert cached_rows.value_P.any()
    assert torch.equal(cached_rows.dense(), model.encode(ids, mask).dense())
