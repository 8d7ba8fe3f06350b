"""Any masked LM is h, E and e; a checkpoint whose logits mean nothing is named loudly."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn
from transformers import AutoModel, AutoModelForMaskedLM, BertForMaskedLM, ByT5Tokenizer

from splade.errors import ModelError
from splade.models.backbone import (
    Backbone,
    UntrainedHeadWarning,
    load_backbone,
    load_mlm,
)
from tests.tiny import FAMILIES, MAX_LENGTH, TOKENIZER_OF, tiny_backbone, tiny_config, tiny_tokenizer

VOCAB = 140


def tokens(length: int = 9, batch: int = 3) -> tuple[Tensor, Tensor]:
    ids = torch.randint(5, VOCAB, (batch, length))
    mask = torch.ones_like(ids)
    mask[0, length // 2 :] = 0
    return ids, mask


def folder_of(mlm: nn.Module, kind: str, folder: Path) -> Path:
    mlm.save_pretrained(folder)
    tiny_tokenizer(kind).save_pretrained(folder)
    return folder


def assert_decoder_is_rebuilt(backbone: Backbone) -> None:
    ids, mask = tokens()
    h_BLH = backbone(ids, mask)
    assert h_BLH.shape == (*ids.shape, backbone.E_VH.shape[1])
    rebuilt = nn.functional.linear(h_BLH, backbone.E_VH, backbone.e_V)
    torch.testing.assert_close(rebuilt, backbone.logits(ids, mask))
    backbone.check_decoder()


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
def test_what_enters_the_decoder_reproduces_the_logits(family: str, tied: bool) -> None:
    backbone = tiny_backbone(family, VOCAB, tie_word_embeddings=tied)
    embeddings = backbone.mlm.get_input_embeddings().weight
    assert (embeddings.data_ptr() == backbone.E_VH.data_ptr()) == tied
    assert backbone.vocab_size == VOCAB
    assert_decoder_is_rebuilt(backbone)


def test_a_decoder_without_a_bias_works() -> None:
    backbone = tiny_backbone("modernbert", VOCAB, decoder_bias=False)
    assert backbone.e_V is None
    assert_decoder_is_rebuilt(backbone)


@pytest.mark.parametrize("family", ["albert", "electra"])
def test_embeddings_may_be_narrower_than_the_hidden_size(family: str) -> None:
    backbone = tiny_backbone(family, VOCAB)
    assert backbone.E_VH.shape[1] < backbone.mlm.config.hidden_size
    assert_decoder_is_rebuilt(backbone)


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_of_the_vocabulary_are_never_made_on_the_way_to_h(family: str) -> None:
    backbone = tiny_backbone(family, VOCAB)
    seen: list[int] = []
    backbone.decoder.register_forward_hook(lambda _m, _i, out: seen.append(out.numel()))
    backbone(*tokens())
    assert seen == [0]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_longest_input_is_the_longest_that_the_position_table_holds(family: str) -> None:
    backbone = tiny_backbone(family, VOCAB)
    longest = backbone.max_length
    assert backbone(*tokens(longest)).shape[1] == longest >= MAX_LENGTH
    if any(name.endswith("position_embeddings") for name, _ in backbone.mlm.named_modules()):
        with pytest.raises((IndexError, RuntimeError)):
            backbone(*tokens(longest + 1))


def test_the_position_offset_does_not_depend_on_which_id_pads() -> None:
    """BERT with pad id 1 counts from 0, RoBERTa with pad id 0 counts from 1."""
    assert tiny_backbone("bert", VOCAB, pad_token_id=1, max_position_embeddings=40).max_length == 40
    assert tiny_backbone("roberta", VOCAB, pad_token_id=0, max_position_embeddings=40).max_length == 39


@pytest.mark.parametrize("family", FAMILIES)
def test_padding_changes_nothing_before_it(family: str) -> None:
    backbone = tiny_backbone(family, VOCAB)
    ids, mask = tokens()
    mask[:, 5:] = 0
    other = torch.where(mask.bool(), ids, ids.flip(1))
    torch.testing.assert_close(backbone(ids, mask)[:, :5], backbone(other, mask)[:, :5], atol=1e-4, rtol=1e-4)


class Plain(nn.Module):
    """A masked LM whose forward knows nothing but `input_ids`."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.decoder = nn.Embedding(20, 4), nn.Linear(4, 20)

    def get_output_embeddings(self) -> nn.Module:
        return self.decoder

    def forward(self, input_ids: Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=self.decoder(self.table(input_ids)))


def test_arguments_outside_the_signature_are_not_passed() -> None:
    mlm = Plain()
    ids = torch.randint(0, 20, (2, 5))
    torch.testing.assert_close(Backbone(mlm, "plain")(ids, torch.ones_like(ids)), mlm.table(ids))


def test_wrapping_a_masked_lm_twice_is_harmless() -> None:
    mlm = tiny_backbone("bert", VOCAB).mlm
    assert_decoder_is_rebuilt(Backbone(mlm))


def test_h_carries_gradients_to_the_encoder() -> None:
    backbone = tiny_backbone("roberta", VOCAB)
    backbone(*tokens()).sum().backward()
    gradient = backbone.mlm.get_input_embeddings().weight.grad
    assert gradient is not None
    assert gradient.any()


def test_fingerprint_names_the_weights() -> None:
    one, same, other = (tiny_backbone("bert", VOCAB, seed) for seed in (0, 0, 1))
    assert one.fingerprint() == same.fingerprint() != other.fingerprint()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_saved_masked_lm_is_read_back_whole(family: str, tmp_path: Path) -> None:
    backbone = tiny_backbone(family, VOCAB)
    backbone.mlm.save_pretrained(tmp_path)
    again, missing = load_mlm(tmp_path)
    assert not missing
    assert again.eval().fingerprint() == backbone.fingerprint()


def test_the_embedded_backbone_loads_offline_and_speaks_english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("used the network"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        backbone, tokenizer = load_backbone()
    assert backbone.name == "minilm-l6-mlm"
    assert backbone.fluency(tokenizer) > 0.9
    assert next(backbone.parameters()).dtype == torch.float32


def test_a_newly_initialised_head_is_named(tmp_path: Path) -> None:
    encoder = AutoModel.from_config(tiny_config("bert", VOCAB))
    with pytest.warns(UntrainedHeadWarning, match=r"newly initialised weights \(cls\..*adapt"):
        load_backbone(folder_of(encoder, "wordpiece", tmp_path))


@pytest.mark.parametrize("family", ["deberta-v2", "electra"])
def test_a_checkpoint_never_trained_as_a_masked_lm_is_named(family: str, tmp_path: Path) -> None:
    mlm = tiny_backbone(family, VOCAB).mlm
    with pytest.warns(UntrainedHeadWarning, match=r"not trained as a masked LM.*adapt"):
        load_backbone(folder_of(mlm, TOKENIZER_OF[family], tmp_path))


def refusal(path: Path | str) -> str:
    with pytest.raises(ModelError) as caught:
        load_backbone(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_missing_folder_is_refused_in_one_line(tmp_path: Path) -> None:
    assert "give a folder with a masked LM" in refusal(tmp_path / "nowhere")


def test_a_folder_without_a_model_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing here")
    assert "cannot load" in refusal(tmp_path)


def test_damaged_weights_are_refused_in_one_line(tmp_path: Path) -> None:
    folder = folder_of(tiny_backbone("bert", VOCAB).mlm, "wordpiece", tmp_path)
    (folder / "model.safetensors").write_bytes(b"not tensors")
    assert "cannot load" in refusal(folder)


def test_a_slow_tokenizer_is_refused(tmp_path: Path) -> None:
    tiny_backbone("bert", VOCAB).mlm.save_pretrained(tmp_path)
    ByT5Tokenizer().save_pretrained(tmp_path)
    assert "no fast tokenizer" in refusal(tmp_path)


def test_a_tokenizer_larger_than_its_decoder_is_refused(tmp_path: Path) -> None:
    small = len(tiny_tokenizer("wordpiece")) - 1
    mlm = BertForMaskedLM(tiny_config("bert", small))
    assert "resize its token embeddings" in refusal(folder_of(mlm, "wordpiece", tmp_path))


def test_a_model_without_a_decoder_is_refused() -> None:
    with pytest.raises(ModelError, match="no output embeddings"):
        Backbone(AutoModel.from_config(tiny_config("bert", VOCAB)))


def test_logits_that_are_not_decoder_of_h_are_refused() -> None:
    scaled = Plain()
    scaled.forward = lambda input_ids: SimpleNamespace(logits=2 * scaled.decoder(scaled.table(input_ids)))
    transformed = AutoModelForMaskedLM.from_config(tiny_config("deberta-v2", VOCAB, legacy=False))
    for mlm in (scaled, transformed):
        with pytest.raises(ModelError, match=r"logits are not decoder\(h\)"):
            Backbone(mlm, "odd").check_decoder()
