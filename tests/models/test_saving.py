"""A model folder is whole or not there, holds no code, and gives back the same predictions to the bit."""

from __future__ import annotations

import errno
import itertools
import json
import warnings
from pathlib import Path

import huggingface_hub
import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from transformers import AutoModelForMaskedLM

from splade.config.model import BackboneRecord, LexicalConfig
from splade.errors import ModelError
from splade.models import saving
from splade.models.backbone import Backbone
from splade.models.build import build
from splade.models.layers.activation import GATES
from splade.models.lexical_sae import LexicalSAE
from splade.models.lexicon import HONESTY_MODES
from tests.tiny import FAMILIES, SENTENCES, tiny_backbone, tiny_batch, tiny_model, tiny_tokenizer

KINDS = list(itertools.product(HONESTY_MODES, sorted(GATES), ["max", "attention"], ["relu_mlp", "bcos"]))


def assert_same_to_the_bit(one: LexicalSAE, other: LexicalSAE) -> None:
    for texts in (SENTENCES, SENTENCES[:1]):
        states = [model.decide(model.encode(*tiny_batch(model, texts))) for model in (one, other)]
        assert states[0].rows.value_P.any()
        assert torch.equal(states[0].rows.dense(), states[1].rows.dense())
        assert torch.equal(states[0].logits, states[1].logits)


def saved(folder: Path, **kind: object) -> tuple[LexicalSAE, Path]:
    model = tiny_model(**kind)
    model.save_pretrained(folder / "model")
    return model, folder / "model"


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("honesty", "gate", "pooling", "head"), KINDS[::5])
def test_a_saved_model_predicts_the_same_to_the_bit(
    honesty: str, gate: str, pooling: str, head: str, tmp_path: Path
) -> None:
    model, folder = saved(tmp_path, honesty=honesty, gate=gate, pooling=pooling, head=head, topk=5)
    again = LexicalSAE.from_pretrained(folder)
    assert not again.training
    assert again.config == model.config
    assert_same_to_the_bit(model, again)


@pytest.mark.parametrize("honesty", ["grounded", "licensed-contextual"])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_survives_the_round_trip(family: str, honesty: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model, folder = saved(tmp_path, family=family, honesty=honesty)
        assert_same_to_the_bit(model, LexicalSAE.from_pretrained(folder))


def test_edits_names_and_lexicon_survive(tmp_path: Path) -> None:
    model = tiny_model(task="tagging", classes=5)
    model.lexicon.keep_V[model.lexicon.ids("film")] = False
    model.config.temperature = 1.7
    model.save_pretrained(tmp_path / "model")
    again = LexicalSAE.from_pretrained(str(tmp_path / "model"))
    assert again.config == model.config
    assert again.lexicon.names == model.lexicon.names
    for (key, before), after in zip(
        model.lexicon.state_dict().items(), again.lexicon.state_dict().values(), strict=True
    ):
        assert torch.equal(before, after), key
    assert not again.lexicon.keep_V.all()


def test_a_head_in_float64_stays_in_float64(tmp_path: Path) -> None:
    model = tiny_model()
    model.head.double()
    model.save_pretrained(tmp_path / "model")
    again = LexicalSAE.from_pretrained(tmp_path / "model")
    assert again.head.W_in.dtype == torch.float64
    assert_same_to_the_bit(model, again)


def test_a_dictionary_from_document_frequencies_is_not_rebuilt_without_them(tmp_path: Path) -> None:
    model = tiny_model()
    model.lexicon.dictionary_V[model.lexicon.ids("clever")] = False
    model.save_pretrained(tmp_path / "model")
    again = LexicalSAE.from_pretrained(tmp_path / "model")
    assert torch.equal(again.lexicon.dictionary_V, model.lexicon.dictionary_V)


def test_tokens_added_to_the_tokenizer_survive_as_words(tmp_path: Path) -> None:
    tiny_tokenizer().save_pretrained(tmp_path / "tokenizer")
    tokenizer = type(tiny_tokenizer()).from_pretrained(tmp_path / "tokenizer")
    tokenizer.add_tokens(["zorbing"])
    tokenizer.add_special_tokens({"additional_special_tokens": ["[ENT]"]})
    mlm = tiny_backbone("bert", len(tiny_tokenizer())).mlm
    mlm.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    config = LexicalConfig(label_names=["a", "b"], backbone=BackboneRecord(name="tiny"), width=8)
    model = build(config, Backbone(mlm), tokenizer).eval()
    model.gate.set_threshold(0.1)
    model.save_pretrained(tmp_path / "model")
    again = LexicalSAE.from_pretrained(tmp_path / "model")
    ids, mask = tiny_batch(again, ["we like zorbing [ENT] in Paris"])
    zorbing, entity = again.lexicon.ids("zorbing"), again.tokenizer.convert_tokens_to_ids("[ENT]")
    assert zorbing[0] in ids
    assert entity in ids
    assert again.lexicon.dictionary_V[zorbing].all()
    assert not again.lexicon.dictionary_V[entity]
    assert not again.lexicon.valid(ids, mask)[ids == entity].any()
    assert_same_to_the_bit(model, again)


@pytest.mark.parametrize("honesty", HONESTY_MODES)
def test_a_model_folder_holds_safetensors_and_json_only(honesty: str, tmp_path: Path) -> None:
    _, folder = saved(tmp_path, honesty=honesty)
    assert {Path(name).suffix for name in content(folder)} == {".json", ".safetensors"}
    assert (folder / "frozen").exists() == (honesty == "licensed-contextual")
    described = json.loads((folder / "config.json").read_text())
    assert described["label_names"] == ["class a", "class b", "class c"]
    assert described["honesty"] == honesty


def test_the_backbone_of_a_model_folder_is_an_ordinary_checkpoint(tmp_path: Path) -> None:
    model, folder = saved(tmp_path)
    mlm = AutoModelForMaskedLM.from_pretrained(folder / "backbone")
    assert torch.equal(mlm.get_output_embeddings().weight, model.backbone.E_VH)


# --- writing -------------------------------------------------------------------------------------------


def test_saving_again_replaces_the_model_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    _, folder = saved(tmp_path, seed=1)
    newer = tiny_model(seed=2)
    newer.save_pretrained(folder)
    assert_same_to_the_bit(newer, LexicalSAE.from_pretrained(folder))
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("problem", [FULL, SafetensorError("I/O error: No space left on device")])
def test_a_failing_save_leaves_the_old_model_intact(
    problem: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, folder = saved(tmp_path)
    before = content(folder)

    def fail(*_: object) -> None:
        raise problem

    monkeypatch.setattr(saving, "save_file", fail)
    with pytest.raises(ModelError, match="No space left on device; what was there is kept"):
        tiny_model(seed=5).save_pretrained(folder)
    assert content(folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_save_that_cannot_take_its_place_puts_the_old_model_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, folder = saved(tmp_path)
    before = content(folder)
    rename = Path.rename

    def only_away(self: Path, target: Path) -> Path:
        if target == folder and not self.name.endswith("-old"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", only_away)
    with pytest.raises(ModelError, match="Permission denied; what was there is kept"):
        tiny_model(seed=5).save_pretrained(folder)
    assert content(folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("foreign", ["notes.txt", "config.json"])
def test_a_folder_of_other_things_is_never_overwritten(foreign: str, tmp_path: Path) -> None:
    (tmp_path / foreign).write_text("{}")
    with pytest.raises(ModelError, match="choose another folder"):
        tiny_model().save_pretrained(tmp_path)
    assert (tmp_path / foreign).read_text() == "{}"


def test_a_file_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("mine")
    for target in (tmp_path / "model", tmp_path / "model" / "below"):
        with pytest.raises(ModelError, match="choose another"):
            tiny_model().save_pretrained(target)
    assert (tmp_path / "model").read_text() == "mine"


def test_an_empty_folder_and_a_missing_parent_are_fine(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for target in (tmp_path / "empty", tmp_path / "new" / "deep"):
        tiny_model().save_pretrained(target)
        assert (target / "config.json").exists()


def test_a_model_without_a_tokenizer_is_not_saved(tmp_path: Path) -> None:
    model = tiny_model()
    model.tokenizer = None
    with pytest.raises(ModelError, match="no tokenizer"):
        model.save_pretrained(tmp_path / "model")


# --- reading damaged folders ---------------------------------------------------------------------------


def refusal(folder: Path) -> str:
    with pytest.raises(ModelError) as caught:
        LexicalSAE.from_pretrained(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{not json", "damaged"),
        ("[]", "damaged"),
        ('{"label_names": ["a"], "colour": 1}', "damaged"),
        ('{"format_version": 99, "shape": "new"}', "upgrade lexical-sae"),
        (b"\xff\xfe\x00", "damaged"),
    ],
)
def test_a_damaged_config_is_named_in_one_line(written: str | bytes, said: str, tmp_path: Path) -> None:
    _, folder = saved(tmp_path)
    (folder / "config.json").write_bytes(written if isinstance(written, bytes) else written.encode())
    assert said in refusal(folder)


@pytest.mark.parametrize(
    "name", ["config.json", "model.safetensors", "backbone", "backbone/model.safetensors", "frozen"]
)
def test_a_missing_part_is_named_in_one_line(name: str, tmp_path: Path) -> None:
    _, folder = saved(tmp_path, honesty="licensed-contextual")
    (folder / name).rename(tmp_path / "gone")
    assert name.split("/")[0] in refusal(folder)


@pytest.mark.parametrize("name", ["model.safetensors", "backbone/model.safetensors", "frozen/config.json"])
def test_a_cut_file_is_named_in_one_line(name: str, tmp_path: Path) -> None:
    _, folder = saved(tmp_path, honesty="licensed-contextual")
    (folder / name).write_bytes((folder / name).read_bytes()[:100])
    assert name.split("/")[0] in refusal(folder)


def test_weights_of_another_shape_are_named_in_one_line(tmp_path: Path) -> None:
    _, folder = saved(tmp_path)
    path = folder / "config.json"
    path.write_text(path.read_text().replace('"width": 16', '"width": 17'))
    assert "do not fit config.json" in refusal(folder)
    path.write_text(path.read_text().replace('"width": 17', '"width": 16').replace("relu_mlp", "bcos"))
    assert "do not fit config.json" in refusal(folder)


def test_a_backbone_that_lacks_a_tensor_is_not_filled_with_noise(tmp_path: Path) -> None:
    _, folder = saved(tmp_path)
    path = folder / "backbone" / "model.safetensors"
    tensors = load_file(path)
    del tensors["bert.encoder.layer.0.attention.self.query.weight"]
    save_file(tensors, path, metadata={"format": "pt"})
    assert "lacks weights" in refusal(folder)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    assert "holds no model" in refusal(tmp_path)
    (tmp_path / "file").write_text("")
    assert "holds no model" in refusal(tmp_path / "file")


# --- the hub -------------------------------------------------------------------------------------------


def test_a_name_that_is_no_folder_is_asked_of_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, folder = saved(tmp_path)
    asked: list[tuple[str, str]] = []

    def download(repo: str, revision: str, allow_patterns: list[str]) -> str:
        asked.append((repo, revision))
        assert not any("bin" in pattern or "py" in pattern for pattern in allow_patterns)
        return str(folder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert_same_to_the_bit(model, LexicalSAE.from_pretrained("someone/some-model", revision="v1"))
    assert asked == [("someone/some-model", "v1")]


def test_what_the_hub_refuses_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise ConnectionError("offline\nwith a long story")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
    assert "check the path" in refusal(Path("someone/some-model"))


def test_pushing_uploads_a_complete_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    uploaded: list[set[str]] = []

    class Hub:
        def create_repo(self, repo_id: str, private: bool, exist_ok: bool) -> str:
            return f"hub:{repo_id}"

        def upload_folder(self, repo_id: str, folder_path: Path) -> None:
            uploaded.append(set(content(folder_path)))

    monkeypatch.setattr(huggingface_hub, "HfApi", Hub)
    assert tiny_model().push_to_hub("someone/some-model") == "hub:someone/some-model"
    assert {"config.json", "model.safetensors", "backbone/config.json"} <= uploaded[0]
