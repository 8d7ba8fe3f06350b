"""A model folder: safetensors and JSON only, written whole or not at all.

config.json         everything but weights (LexicalConfig)
model.safetensors   gate, head, pooling, lexicon with the edits' mask and factors, directions of senses
edits.json          the journal of edits
backbone/           the fine-tuned masked LM as an ordinary Hugging Face folder, with the tokenizer
frozen/             the licensing LM, in licensed-contextual models only
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from splade.config.model import FORMAT_VERSION, LexicalConfig
from splade.errors import ModelError
from splade.models.backbone import Backbone, load_mlm, load_tokenizer, quiet_hub
from splade.models.build import assemble, lexicon_spec
from splade.models.edits import read_edits, write_edits
from splade.models.frozen import FrozenLM
from splade.models.lexicon import Lexicon

if TYPE_CHECKING:
    from splade.models.lexical_sae import LexicalSAE


def save(model: LexicalSAE, folder: Path) -> None:
    """Write `model` to `folder`; an older model there is replaced only once the new one is complete."""
    if model.tokenizer is None:
        raise ModelError("this model has no tokenizer to save with it: set model.tokenizer first")
    require_place(folder)
    with whole_folder(folder) as fresh:
        _save_language_model(model.backbone, fresh / "backbone")
        model.tokenizer.save_pretrained(fresh / "backbone")
        if model.frozen is not None:
            _save_language_model(model.frozen.backbone, fresh / "frozen")
        _save_own(model, fresh)
        (fresh / "config.json").write_text(model.config.model_dump_json(indent=2) + "\n", encoding="utf-8")


def save_edits(model: LexicalSAE, folder: Path) -> None:
    """Write the edits of a model that was loaded from `folder` back to it; all else there stays."""
    if not _may_replace(folder) or not folder.exists():
        raise ModelError(f"{folder} holds no model: give the folder `train` wrote")
    with whole_folder(folder) as fresh:
        shutil.copytree(folder, fresh, dirs_exist_ok=True)
        _save_own(model, fresh)


def load(name: str | Path, revision: str = "main") -> LexicalSAE:
    """Read a model folder, or fetch it from the hub when no such folder exists."""
    folder = Path(name) if Path(name).exists() else _fetch(str(name), revision)
    config = _read_config(folder)
    backbone, tokenizer = _whole_mlm(folder / "backbone"), load_tokenizer(folder / "backbone")
    backbone.name, backbone.revision = config.backbone.name, config.backbone.revision
    _require_words(config, backbone.vocab_size, folder)
    lexicon = Lexicon.from_tokenizer(tokenizer, backbone.vocab_size, lexicon_spec(config))
    model = assemble(config, backbone, lexicon, tokenizer)
    own = _read_tensors(folder / "model.safetensors")
    own.setdefault("lexicon.scale_V", model.lexicon.scale_V)  # absent before words could be scaled
    expected = {k: v for k, v in model.state_dict().items() if not _is_language_model(k)}
    for key in sorted(expected.keys() | own.keys()):
        if key not in own or key not in expected or own[key].shape != expected[key].shape:
            raise ModelError(f"{folder}: weights do not fit config.json ({key}): save the model again")
    model.load_state_dict(own, strict=False, assign=True)
    model.lexicon.edits = read_edits(folder, model.lexicon)
    if config.honesty == "licensed-contextual":
        model.frozen = FrozenLM(_whole_mlm(folder / "frozen"), model.lexicon)
    return model.eval()


def push(model: LexicalSAE, repo_id: str, private: bool = False) -> str:
    """Upload the model folder to a hub repository, made when absent."""
    from huggingface_hub import HfApi

    api = HfApi()
    address = api.create_repo(repo_id, private=private, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        save(model, Path(scratch) / "model")
        api.upload_folder(repo_id=repo_id, folder_path=Path(scratch) / "model")
    return str(address)


@contextlib.contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A fresh folder beside `folder` that takes its place only when the block ends well."""
    folder = folder.absolute()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
    except OSError as problem:
        raise ModelError(
            f"cannot write beside {folder}: {problem.strerror}; choose another --output"
        ) from problem
    try:
        fresh.chmod(0o755)
        yield fresh
        _sync(fresh)
        _take_place(fresh, folder)
    except (OSError, SafetensorError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise ModelError(f"cannot write {folder}: {reason}; what was there is kept") from problem
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _take_place(fresh: Path, folder: Path) -> None:
    if not folder.exists():
        fresh.rename(folder)
        return
    retired = fresh.with_name(fresh.name + "-old")
    folder.rename(retired)
    try:
        fresh.rename(folder)
    except OSError:
        retired.rename(folder)
        raise
    shutil.rmtree(retired, ignore_errors=True)


def require_place(folder: Path) -> None:
    """Refuse a folder that cannot take a model, or whose replacement would lose more than an older model."""
    if folder.exists() and not _may_replace(folder):
        raise ModelError(f"{folder} is not empty and holds no model: choose another folder")
    place = next(parent for parent in folder.absolute().parents if parent.exists())
    if not (place.is_dir() and os.access(place, os.W_OK)):
        raise ModelError(f"cannot write in {place}: choose another folder")


def _may_replace(folder: Path) -> bool:
    """Whether nothing but an older model, or nothing at all, is lost by replacing `folder`."""
    if not folder.is_dir():
        return False
    ours = (folder / "config.json").is_file() and (folder / "backbone").is_dir()
    return ours or not any(folder.iterdir())


def _sync(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


def _is_language_model(key: str) -> bool:
    return key.startswith(("backbone.", "frozen."))


def _save_own(model: LexicalSAE, folder: Path) -> None:
    """All weights that are not a language model's, and the journal that goes with them."""
    own = {k: v.contiguous() for k, v in model.state_dict().items() if not _is_language_model(k)}
    save_file(own, folder / "model.safetensors")
    write_edits(model.lexicon.edits, folder)


def _save_language_model(backbone: Backbone, folder: Path) -> None:
    with quiet_hub():
        backbone.mlm.save_pretrained(folder)


def _whole_mlm(folder: Path) -> Backbone:
    backbone, missing = load_mlm(folder)
    if missing:
        raise ModelError(f"{folder} lacks weights ({missing[0]}): save the model again")
    return backbone


def _read_config(folder: Path) -> LexicalConfig:
    path = folder / "config.json"
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(raw, dict) and _newer(raw.get("format_version")):
            raise ModelError(f"{path} has format {raw['format_version']}: upgrade lexical-sae to read it")
        return LexicalConfig.model_validate(raw)
    except OSError as problem:
        raise ModelError(
            f"{folder} holds no model (no config.json): give the folder `train` wrote"
        ) from problem
    except ValueError as problem:  # not JSON, not UTF-8, or not a config
        reason = " ".join(str(problem).split())[:200]
        raise ModelError(f"{path} is damaged: {reason}; save the model again") from problem


def _require_words(config: LexicalConfig, vocab_size: int, folder: Path) -> None:
    words = config.senses.token_ids if config.senses is not None else []
    if len(set(words)) < len(words) or not set(words) <= set(range(vocab_size)):
        raise ModelError(f"{folder}/config.json is damaged: senses of unknown words; save the model again")


def _newer(version: object) -> bool:
    return isinstance(version, int) and version > FORMAT_VERSION


def _read_tensors(path: Path) -> dict[str, torch.Tensor]:
    try:
        tensors: dict[str, torch.Tensor] = load_file(path)
    except FileNotFoundError as problem:
        raise ModelError(f"{path} is missing: the folder is incomplete, save the model again") from problem
    except SafetensorError as problem:
        raise ModelError(f"{path} is damaged ({problem}): save the model again") from problem
    return tensors


def _fetch(repo_id: str, revision: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    patterns = ["*.json", "*.safetensors", "*.txt", "*.model"]
    try:
        return Path(snapshot_download(repo_id, revision=revision, allow_patterns=patterns))
    except (OSError, HFValidationError) as problem:
        raise ModelError(
            f"no model folder '{repo_id}' here, and the hub did not give it: check the path"
        ) from problem
