"""Any masked language model as a black box: token ids in, decoder inputs h and decoder rows (E, e) out.

1. Load an `AutoModelForMaskedLM` (the embedded one when no name is given).
2. Its decoder is `get_output_embeddings()`. A hook on it takes the tensor that enters it as h and lets the
   decoder run on no positions at all, so [B, L, V] logits are never made and no model type is named.
3. Check once that logits = h Eᵀ + e, and that the logits mean words; warn where they do not.
"""

from __future__ import annotations

import contextlib
import contextvars
import hashlib
import inspect
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from splade.errors import ModelError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

EMBEDDED = "minilm-l6-mlm"
EMBEDDED_PATH = Path(__file__).resolve().parent.parent / "assets" / EMBEDDED

_CAPTURED: contextvars.ContextVar[list[Tensor] | None] = contextvars.ContextVar("captured", default=None)

_FLUENCY_TEXTS = (
    "The train was late again, so we walked home along the river.",
    "She opened the window and the smell of fresh bread filled the room.",
    "Our team won the final game of the season in front of a large crowd.",
)
_FLUENCY_RANK = 10
_FLUENCY_FLOOR = 0.5


class UntrainedHeadWarning(UserWarning):
    """The masked-LM head of a checkpoint is not trained, so its logits do not mean words."""


class Backbone(nn.Module):
    """A masked language model up to its decoder; `forward` returns h [B, L, H]."""

    def __init__(self, mlm: PreTrainedModel, name: str = "custom", revision: str = "main") -> None:
        super().__init__()
        self.mlm = mlm
        self.name = name
        self.revision = revision
        decoder = mlm.get_output_embeddings()
        if not isinstance(getattr(decoder, "weight", None), Tensor):
            raise ModelError(f"{name}: no output embeddings found; use a checkpoint with a masked-LM head")
        if _capture not in decoder._forward_pre_hooks.values():
            decoder.register_forward_pre_hook(_capture)
        self._arguments = set(inspect.signature(mlm.forward).parameters)

    @property
    def decoder(self) -> nn.Module:
        decoder: nn.Module = self.mlm.get_output_embeddings()
        return decoder

    @property
    def E_VH(self) -> Tensor:
        weight = self.decoder.weight
        assert isinstance(weight, Tensor)
        return weight

    @property
    def e_V(self) -> Tensor | None:
        bias = getattr(self.decoder, "bias", None)
        return bias if isinstance(bias, Tensor) else None

    @property
    def vocab_size(self) -> int:
        return int(self.E_VH.shape[0])

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """What enters the decoder, [B, L, H]."""
        captured: list[Tensor] = []
        token = _CAPTURED.set(captured)
        try:
            self._run(input_ids, attention_mask)
        finally:
            _CAPTURED.reset(token)
        if len(captured) != 1:
            raise ModelError(f"{self.name}: the decoder ran {len(captured)} times in one pass, expected once")
        return captured[0]

    def logits(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """The model's own logits [B, L, V], made by its own decoder."""
        result: Tensor = self._run(input_ids, attention_mask).logits
        return result

    def _run(self, input_ids: Tensor, attention_mask: Tensor):  # type: ignore[no-untyped-def]
        arguments = {"input_ids": input_ids, "attention_mask": attention_mask, "return_dict": True}
        return self.mlm(**{k: v for k, v in arguments.items() if k in self._arguments})

    @property
    def max_length(self) -> int:
        """Longest input the position embeddings allow, special tokens included."""
        longest = int(getattr(self.mlm.config, "max_position_embeddings", 512))
        for name, table in self.mlm.named_modules():
            if name.endswith("position_embeddings") and isinstance(table, nn.Embedding):
                # a table with a padding row (RoBERTa's kind) counts positions from the row after it
                unused = 0 if table.padding_idx is None else table.padding_idx + 1
                longest = min(longest, table.num_embeddings - unused)
        return longest

    def fingerprint(self) -> str:
        """sha256 over names, shapes and bytes of the weights, in float32."""
        digest = hashlib.sha256()
        for key, tensor in sorted(self.mlm.state_dict().items()):
            digest.update(f"{key}{tuple(tensor.shape)}".encode())
            digest.update(tensor.detach().float().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()

    @torch.no_grad()
    def check_decoder(self) -> None:
        """Raise unless the model's logits are h Eᵀ + e."""
        device = self.E_VH.device
        ids = torch.arange(min(6, self.vocab_size), device=device)[None]
        was_training = self.training
        self.eval()
        own = self.logits(ids, torch.ones_like(ids))
        rebuilt = nn.functional.linear(self(ids, torch.ones_like(ids)), self.E_VH, self.e_V)
        self.train(was_training)
        if own.shape != rebuilt.shape or not torch.allclose(own, rebuilt, rtol=1e-3, atol=1e-3):
            raise ModelError(
                f"{self.name}: its logits are not decoder(h); choose a checkpoint whose output embeddings "
                "are its masked-LM decoder"
            )

    @torch.no_grad()
    def fluency(self, tokenizer: PreTrainedTokenizerBase) -> float:
        """Share of tokens of three plain sentences that the LM ranks in its top 10 where they stand."""
        was_training = self.training
        self.eval()
        hits = total = 0
        for text in _FLUENCY_TEXTS:
            batch = tokenizer(text, return_tensors="pt", return_special_tokens_mask=True)
            ids, ordinary = batch["input_ids"].to(self.E_VH.device), batch["special_tokens_mask"][0] == 0
            top = self.logits(ids, torch.ones_like(ids))[0].topk(min(_FLUENCY_RANK, self.vocab_size)).indices
            found = (top == ids[0][:, None]).any(-1).cpu() & ordinary
            hits, total = hits + int(found.sum()), total + int(ordinary.sum())
        self.train(was_training)
        return hits / max(total, 1)


def _capture(_module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
    captured = _CAPTURED.get()
    if captured is None:
        return None
    captured.append(inputs[0])
    return (inputs[0][..., :0, :],)


def load_backbone(
    name: str | Path = EMBEDDED,
    revision: str = "main",
    trust_remote_code: bool = False,
    check: bool = True,
) -> tuple[Backbone, PreTrainedTokenizerBase]:
    """A masked LM and its tokenizer, from the package, a folder or the hub, in float32."""
    tokenizer = load_tokenizer(name, revision, trust_remote_code)
    backbone, missing = load_mlm(name, revision, trust_remote_code)
    if len(tokenizer) > backbone.vocab_size:
        raise ModelError(
            f"'{name}': its tokenizer has {len(tokenizer)} ids but its decoder {backbone.vocab_size} rows; "
            "resize its token embeddings and save it again"
        )
    if check:
        backbone.check_decoder()
        _warn_if_untrained(backbone, tokenizer, missing)
    return backbone, tokenizer


def load_tokenizer(
    name: str | Path, revision: str = "main", trust_remote_code: bool = False
) -> PreTrainedTokenizerBase:
    """The fast tokenizer of a masked LM."""
    with _one_line_errors(name):
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(
            _path(name), revision=revision, trust_remote_code=trust_remote_code
        )
    if not getattr(tokenizer, "is_fast", False):
        raise ModelError(f"'{name}' has no fast tokenizer, which character offsets need; convert it first")
    return tokenizer


def load_mlm(
    name: str | Path, revision: str = "main", trust_remote_code: bool = False
) -> tuple[Backbone, list[str]]:
    """A masked LM, and the names of weights which its files lack."""
    with _one_line_errors(name), quiet_hub():
        from transformers import AutoModelForMaskedLM

        mlm, info = AutoModelForMaskedLM.from_pretrained(
            _path(name),
            revision=revision,
            trust_remote_code=trust_remote_code,
            dtype=torch.float32,
            output_loading_info=True,
        )
    return Backbone(mlm, str(name), revision), sorted(info["missing_keys"])


def _path(name: str | Path) -> str:
    return str(EMBEDDED_PATH if str(name) == EMBEDDED else name)


@contextlib.contextmanager
def _one_line_errors(name: str | Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, SafetensorError) as problem:
        reason = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
        raise ModelError(
            f"cannot load '{name}': {reason} (give a folder with a masked LM, or '{EMBEDDED}')"
        ) from problem


@contextlib.contextmanager
def quiet_hub() -> Iterator[None]:
    """Silence the hub client's progress bars and reports; what matters of them is said by this package."""
    from transformers.utils import logging as hf_logging

    verbosity, bars = hf_logging.get_verbosity(), hf_logging.is_progress_bar_enabled()
    hf_logging.set_verbosity_error()
    hf_logging.disable_progress_bar()
    try:
        yield
    finally:
        hf_logging.set_verbosity(verbosity)
        if bars:
            hf_logging.enable_progress_bar()


def _warn_if_untrained(backbone: Backbone, tokenizer: PreTrainedTokenizerBase, missing: list[str]) -> None:
    cure = (
        "its logits do not mean words. Train its head on raw text first (adapt), or choose another checkpoint"
    )
    if missing:
        some = ", ".join(missing[:3]) + (" …" if len(missing) > 3 else "")
        warnings.warn(
            f"{backbone.name}: newly initialised weights ({some}): {cure}",
            UntrainedHeadWarning,
            stacklevel=3,
        )
        return
    fluency = backbone.fluency(tokenizer)
    if fluency < _FLUENCY_FLOOR:
        warnings.warn(
            f"{backbone.name}: only {fluency:.0%} of the tokens of plain English are among its own top "
            f"{_FLUENCY_RANK} guesses, so it was not trained as a masked LM of English: {cure}",
            UntrainedHeadWarning,
            stacklevel=3,
        )
