"""An autoencoder of h learns what it can, says what it is, repeats, and leaves a model as it found it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from splade.errors import ConfigError, DataError
from splade.mechanistic.sae import KINDS, Kind, SparseAutoencoder, decoder_inputs, splice, train_sae
from tests.tiny import FAMILIES, SENTENCES, Sizes, tiny_batch, tiny_model

H, FEATURES, ACTIVE = 16, 32, 3


def planted(n: int = 3000, seed: int = 0) -> Tensor:
    """Positions that are sums of three of 24 directions, off centre and on another scale than 1."""
    maker = torch.Generator().manual_seed(seed)
    directions = torch.nn.functional.normalize(
        torch.randn(24, H, generator=torch.Generator().manual_seed(7)), dim=1
    )
    chosen = torch.rand(n, 24, generator=maker).topk(ACTIVE).indices
    weight = torch.zeros(n, 24).scatter(1, chosen, torch.rand(n, ACTIVE, generator=maker) + 0.5)
    return weight @ directions * 20 + 3


def trained(kind: Kind, steps: int = 400, seed: int = 0) -> SparseAutoencoder:
    return train_sae(planted(), kind, FEATURES, ACTIVE, steps, batch_size=256, learning_rate=5e-3, seed=seed)


def unexplained(sae: SparseAutoencoder, h_NH: Tensor) -> float:
    return float((sae(h_NH) - h_NH).square().sum() / (h_NH - h_NH.mean(0)).square().sum())


@pytest.mark.parametrize("kind", KINDS)
def test_training_explains_positions_it_has_not_seen(kind: Kind) -> None:
    held_out = planted(500, seed=1)
    fresh, fitted = trained(kind, steps=1), trained(kind)
    assert unexplained(fitted, held_out) < 0.25
    assert unexplained(fitted, held_out) < unexplained(fresh, held_out) / 2
    assert float((fitted.encode(held_out) > 0).float().sum(1).mean()) == pytest.approx(ACTIVE, rel=0.35)


def test_topk_never_keeps_more_than_k_and_no_feature_is_negative() -> None:
    f_NF = trained("topk", steps=20).encode(planted(200, seed=1))
    assert int((f_NF > 0).sum(1).max()) == ACTIVE
    assert float(f_NF.min()) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_features_are_unit_vectors_and_what_was_learned_is_fixed(kind: Kind) -> None:
    sae = trained(kind, steps=20)
    torch.testing.assert_close(sae.W_dec_FH.norm(dim=1), torch.ones(FEATURES))
    assert not any(parameter.requires_grad for parameter in sae.parameters())


@pytest.mark.parametrize("kind", KINDS)
def test_training_repeats_with_its_seed_and_leaves_the_random_state_alone(kind: Kind) -> None:
    state = torch.get_rng_state()
    one, other, third = trained(kind, 20), trained(kind, 20), trained(kind, 20, seed=1)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(one.W_enc_FH, other.W_enc_FH)
    assert not torch.equal(one.W_enc_FH, third.W_enc_FH)


def test_only_text_is_collected_and_no_more_than_asked() -> None:
    model = tiny_model()
    batches = [tiny_batch(model, SENTENCES[i : i + 4]) for i in range(0, len(SENTENCES), 4)]
    h_NH = decoder_inputs(model, batches)
    count = sum(int(model.lexicon.valid(*batch).sum()) for batch in batches)
    assert len(h_NH) == count < sum(batch[1].sum() for batch in batches)
    assert torch.equal(decoder_inputs(model, batches, limit=20), h_NH[:20])
    assert not h_NH.requires_grad
    assert decoder_inputs(model, []).shape == (0, h_NH.shape[1])


@pytest.mark.parametrize("family", FAMILIES)
def test_a_splice_is_read_inside_and_gone_afterwards(family: str) -> None:
    model = tiny_model(family)
    batch = tiny_batch(model)
    h_NH = decoder_inputs(model, [batch])
    sae = train_sae(h_NH, "topk", 8, 2, steps=5, batch_size=16)
    with torch.no_grad():
        before, h_BLH = model.decide(model.encode(*batch)).logits, model.backbone(*batch)
        with splice(model, sae), splice(model, sae):
            assert torch.equal(model.backbone(*batch), sae(sae(h_BLH)))
        with splice(model, sae):
            assert torch.equal(model.backbone(*batch), sae(h_BLH))
            assert not torch.allclose(model.decide(model.encode(*batch)).logits, before)
        assert torch.equal(model.decide(model.encode(*batch)).logits, before)
    assert "forward" not in vars(model.backbone)


def test_an_error_inside_ends_the_splice_too() -> None:
    model = tiny_model()
    sae = SparseAutoencoder("topk", 32, 8, 2)
    with pytest.raises(ZeroDivisionError), splice(model, sae):
        raise ZeroDivisionError
    assert "forward" not in vars(model.backbone)


def test_reconstruction_never_makes_all_features_of_many_positions() -> None:
    sae = SparseAutoencoder("topk", 8, 64, 2)
    h_NH = torch.randn(20_000, 8)
    with Sizes() as sizes:
        whole = sae(h_NH)
    assert sizes.largest < 20_000 * 64 / 2
    torch.testing.assert_close(whole[:10], sae(h_NH[:10]))
    assert sae(h_NH[:0]).shape == (0, 8)


def test_what_cannot_be_trained_is_said_in_one_line() -> None:
    with pytest.raises(DataError, match="texts with words"):
        train_sae(torch.empty(0, 4))
    with pytest.raises(DataError, match="no finite position"):
        train_sae(torch.full((3, 4), float("nan")))
    with pytest.raises(ConfigError, match="choose one of topk, jumprelu"):
        SparseAutoencoder("vanilla", 4, 8, 2)
    with pytest.raises(ConfigError, match="choose 1 to 8"):
        SparseAutoencoder("topk", 4, 8, 9)
