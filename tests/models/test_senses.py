"""Senses lie where a word's occurrences fall apart, and the texts that show them best say which is which."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from splade.config.model import SensesRecord
from splade.errors import ConfigError, DataError
from splade.models.build import add_senses
from splade.models.lexical_sae import LexicalSAE
from splade.models.senses import LEAST_OCCURRENCES, cluster, describe_senses, expand, gain
from tests.tiny import tiny_batch, tiny_model


def test_the_best_score_is_the_nearest_centroid() -> None:
    torch.manual_seed(0)
    h_nH = torch.randn(60, 8) + torch.randint(0, 3, (60, 1)) * torch.randn(8) * 4
    found = cluster(h_nH, 3)
    P_MH, c_M = found.directions()
    probe_nH = torch.randn(500, 8) * 4
    nearest_n = torch.cdist(probe_nH, found.centroid_MH).argmin(-1)
    assert torch.equal((probe_nH @ P_MH.T + c_M).argmax(-1), nearest_n)
    assert torch.equal(cluster(h_nH, 3).centroid_MH, found.centroid_MH)
    counts = torch.bincount(torch.cdist(h_nH, found.centroid_MH).argmin(-1), minlength=3).tolist()
    assert counts == sorted(counts, reverse=True), "sense 1 is the commonest"
    assert 0.5 < float((h_nH @ P_MH.T + c_M).std()) < 2


def test_one_cloud_gains_nothing_however_few_its_points() -> None:
    torch.manual_seed(0)
    two = torch.randn(50, 32) + torch.where(torch.rand(50) < 0.4, -2.0, 2.0)[:, None]
    assert gain(two, 2) > 0.6
    assert max(gain(torch.randn(n, 32), 2) for n in (50, 50, 50, 250)) < 0.03


def planted(model: LexicalSAE, word: int, cue: int, patch: pytest.MonkeyPatch) -> list[tuple[Tensor, Tensor]]:
    """Texts in which h of `word` points one way before `cue` and the other way elsewhere."""
    others = [j for j in model.lexicon.words().tolist() if model.lexicon.begins_V[j] and j not in (word, cue)]
    maker = torch.Generator().manual_seed(3)
    ids = torch.tensor(others)[torch.randint(0, 12, (90, 9), generator=maker)]
    ids[:, 3] = word
    ids[::3, 4] = cue
    width = model.backbone.E_VH.shape[1]

    def forward(ids_BL: Tensor, _mask: Tensor) -> Tensor:
        h_BLH = torch.randn(*ids_BL.shape, width, generator=torch.Generator().manual_seed(4))
        turn_BL = torch.where(ids_BL.roll(-1, 1) == cue, 3.0, -3.0) * (ids_BL == word)
        return h_BLH + turn_BL[..., None]

    patch.setattr(model.backbone, "forward", forward)
    return [(ids[:50], torch.ones_like(ids[:50])), (ids[50:], torch.ones_like(ids[50:]))]


def test_the_word_with_two_clouds_is_chosen_and_its_senses_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_model()
    word, cue = model.lexicon.ids("film")[0], model.lexicon.ids("cup")[0]
    texts = planted(model, word, cue, monkeypatch)
    assert expand(model, "auto", 2, iter(texts), most_words=1) is model
    assert model.config.senses == SensesRecord(token_ids=[word], num_senses=2)
    shown = describe_senses(model, texts, most=4, reach=2)
    assert list(shown) == ["film#1", "film#2"]
    assert len(shown["film#1"]) == len(shown["film#2"]) == 4
    assert all("film cup" in window for window in shown["film#2"]), "the rarer sense is the second"
    assert not any("cup" in window for window in shown["film#1"])


def test_listed_words_take_their_senses_from_the_texts() -> None:
    model = tiny_model(opened=20)
    words = [model.lexicon.ids(word)[0] for word in ("film", "Paris")]
    expand(model, words, 2, [tiny_batch(model)])
    assert model.config.senses.token_ids == words
    assert not model.training
    assert model.expander.P_KMH.any(-1).all()
    ids, mask = tiny_batch(model)
    means_NK = model.expander(model.backbone(ids, mask), model.lexicon.valid(ids, mask)).best_NK
    for k, word in enumerate(words):
        assert means_NK[ids.flatten() == word, k].unique().tolist() == [0, 1]


@pytest.mark.parametrize(
    ("words", "senses", "message"),
    [
        ([], 2, "no word to expand"),
        ("all", 2, "'auto'"),
        (["film", "film"], 2, "named twice"),
        (["the"], 2, "'the'.*not in the dictionary"),
        (["film"], 1, "num_senses of 2 or more"),
        (["film"], 3, "stands in the texts 2 times"),
        ("auto", 2, f"{LEAST_OCCURRENCES} times"),
    ],
)
def test_what_cannot_be_expanded_is_refused_in_one_line(
    words: list[str] | str, senses: int, message: str
) -> None:
    model = tiny_model()
    asked = words if isinstance(words, str) else [model.lexicon.ids(word)[0] for word in words]
    with pytest.raises((ConfigError, DataError), match=message):
        expand(model, asked, senses, [tiny_batch(model)])
    assert model.config.senses is None


def test_a_model_is_expanded_once_and_described_only_then() -> None:
    model = tiny_model()
    with pytest.raises(ConfigError, match="expand it"):
        describe_senses(model, [])
    add_senses(model, SensesRecord(token_ids=model.lexicon.ids("film")))
    with pytest.raises(ConfigError, match="expanded already"):
        expand(model, [model.lexicon.ids("Paris")[0]], 2, [])
