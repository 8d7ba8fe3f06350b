"""Pooling agrees with dense brute force, and says where every value was read."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from splade.models.lexical_sae import LexicalSAE
from splade.models.materialised import rows_of
from splade.models.pooling import POOLINGS, AttentionPooling, MaxPooling
from splade.models.state import SparseRows
from tests.tiny import SENTENCES, tiny_batch, tiny_model

SEEDS = st.integers(0, 2**16)
NAMES = st.sampled_from(sorted(POOLINGS))


def draw(seed: int, B: int = 3, L: int = 5, V: int = 6) -> Tensor:
    """Activations [B, L, V] with ties, zeros and a document without any."""
    torch.manual_seed(seed)
    s_BLV = torch.randint(-3, 4, (B, L, V)).clamp(min=0).float() / 2
    s_BLV[-1] = 0
    return s_BLV


def draw_pooling(name: str, V: int = 6) -> MaxPooling | AttentionPooling:
    pooling = POOLINGS[name](V)
    for parameter in pooling.parameters():
        torch.nn.init.normal_(parameter)
    return pooling


def pool(pooling: MaxPooling | AttentionPooling, s_BLV: Tensor) -> SparseRows:
    rows: SparseRows = pooling(rows_of(s_BLV), s_BLV.shape[1], s_BLV.shape[0])
    return rows


@given(SEEDS)
def test_max_pooling_is_the_largest_value_read_at_its_first_position(seed: int) -> None:
    s_BLV = draw(seed)
    rows = pool(draw_pooling("max"), s_BLV)
    assert torch.equal(rows.dense(), s_BLV.amax(1))
    assert torch.equal(rows.source_position_Q, s_BLV.argmax(1)[rows.row_P, rows.word_P])


@given(SEEDS)
def test_attention_pooling_is_a_softmax_over_positions_with_an_active_word(seed: int) -> None:
    s_BLV = draw(seed)
    pooling = draw_pooling("attention")
    assert isinstance(pooling, AttentionPooling)
    expected = torch.zeros(s_BLV.shape[0], s_BLV.shape[2])
    for b, s_LV in enumerate(s_BLV):
        voters = s_LV[s_LV.any(-1)]
        expected[b] = torch.softmax(voters @ pooling.query_V, 0) @ voters
    torch.testing.assert_close(pool(pooling, s_BLV).dense(), expected)


@given(NAMES, SEEDS)
def test_shares_of_a_word_sum_to_one_and_rebuild_its_value(name: str, seed: int) -> None:
    rows = pool(draw_pooling(name), draw(seed))
    pairs = len(rows.word_P)
    total_P = torch.zeros(pairs).index_add(0, rows.source_pair_Q, rows.source_share_Q)
    torch.testing.assert_close(total_P, torch.ones(pairs))
    part_Q = rows.source_share_Q * rows.value_P[rows.source_pair_Q]
    torch.testing.assert_close(torch.zeros(pairs).index_add(0, rows.source_pair_Q, part_Q), rows.value_P)


@given(NAMES, SEEDS)
def test_every_share_stands_where_its_word_was_active(name: str, seed: int) -> None:
    s_BLV = draw(seed)
    rows = pool(draw_pooling(name), s_BLV)
    pair_Q = rows.source_pair_Q
    assert (s_BLV[rows.row_P[pair_Q], rows.source_position_Q, rows.word_P[pair_Q]] > 0).all()


@given(NAMES, SEEDS)
def test_pairs_are_sorted_by_row_and_word_and_name_a_word_once(name: str, seed: int) -> None:
    rows = pool(draw_pooling(name), draw(seed))
    key_P = rows.row_P * rows.vocab_size + rows.word_P
    assert (key_P.diff() > 0).all()


@given(SEEDS)
def test_attention_survives_very_large_scores(seed: int) -> None:
    pooling = draw_pooling("attention")
    rows = pool(pooling, draw(seed) * 1e4)
    assert rows.value_P.isfinite().all()


@given(SEEDS, st.integers(1, 8))
def test_largest_marks_the_k_largest_of_a_row_and_breaks_ties_by_word(seed: int, k: int) -> None:
    s_BLV = draw(seed)
    rows = rows_of(s_BLV)
    kept = rows.largest(k)
    for n, s_V in enumerate(s_BLV.flatten(0, 1).tolist()):
        ranked = sorted((j for j, s in enumerate(s_V) if s), key=lambda j, s_V=s_V: (-s_V[j], j))
        assert sorted(ranked[:k]) == rows.word_P[kept & (rows.row_P == n)].tolist()


@given(NAMES, SEEDS)
def test_rows_without_a_word_keep_everything_else(name: str, seed: int) -> None:
    rows = pool(draw_pooling(name), draw(seed))
    left = rows.without(torch.tensor([0, 3]))
    expected = rows.dense()
    expected[:, [0, 3]] = 0
    assert torch.equal(left.dense(), expected)
    total_P = torch.zeros(len(left.word_P)).index_add(0, left.source_pair_Q, left.source_share_Q)
    torch.testing.assert_close(total_P, torch.ones(len(left.word_P)))


def with_loud_padding(model: LexicalSAE, texts: tuple[str, ...]) -> tuple[SparseRows, SparseRows]:
    """Rows of `texts`, before and after all that stands at padding and special tokens was replaced."""
    ids, mask = tiny_batch(model, texts)
    h_BLH = model.backbone(ids, mask)
    loud_BLH = torch.where(model.lexicon.valid(ids, mask)[..., None], h_BLH, 1e6)
    loud_ids = torch.where(mask.bool(), ids, ids[0, 1])
    found = []
    with pytest.MonkeyPatch.context() as patch:
        for h, tokens in ((h_BLH, ids), (loud_BLH, loud_ids)):
            patch.setattr(model.backbone, "forward", lambda *_, h=h: h)
            found.append(model.encode(tokens, mask))
    return found[0], found[1]


@pytest.mark.parametrize("pooling", sorted(POOLINGS))
@pytest.mark.parametrize("honesty", ["grounded", "licensed-static"])
def test_padding_and_special_tokens_never_enter(pooling: str, honesty: str) -> None:
    before, after = with_loud_padding(tiny_model(pooling=pooling, honesty=honesty), SENTENCES)
    assert before.value_P.any()
    assert torch.equal(before.dense(), after.dense())
    assert torch.equal(before.source_position_Q, after.source_position_Q)
