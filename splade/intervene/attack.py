"""Attempts to raise removed words: a gradient search over input embeddings, and hostile hidden states.

Every attempt is made twice: with the removal, where not one value may differ from 0, and without it, where
it should succeed. An attack that fails on both proves nothing. Every id is attacked, some at a time.

Legend: B attempts (one an id), L positions, V dimensions, H width of h, D width of the input embeddings,
K licensed words.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from splade.errors import ConfigError
from splade.intervene.suppress import masked
from splade.models.lexical_sae import LexicalSAE

_AT_ONCE, _WORDS, _CHECK_EVERY = 32, 6, 10
_STEP = 0.3  # of the standard deviation of an embedding's entries


@dataclass(frozen=True)
class Attempt:
    """One attack: values of removed words looked at, how many were not 0, ids that open without the edit."""

    kind: str
    ids: int
    checked: int
    not_zero: int
    opened_without: int


@dataclass(frozen=True)
class Search:
    """A gradient search: the mean logit of the words, before and after, and what became of s."""

    steps: int
    logit_before: float
    logit_after: float
    attempt: Attempt


@dataclass
class _Probe:
    """The inputs of an attack, and what was counted."""

    model: LexicalSAE
    ids: list[int]
    input_ids_BL: Tensor
    mask_BL: Tensor
    checked: int = 0
    not_zero: int = 0

    def __post_init__(self) -> None:
        self.opened: set[int] = set()

    @torch.no_grad()
    def look(self) -> None:
        """Read s on every way that leads to it, with the edit and without."""
        with masked(self.model, self.ids, keep=False):
            for s_NI in self._activations():
                self.checked += s_NI.numel()
                self.not_zero += int((s_NI != 0).sum())  # NaN is not 0 either
        with masked(self.model, self.ids, keep=True):
            for s_NI in self._activations():
                self.opened |= set((s_NI != 0).any(0).nonzero()[:, 0].tolist())

    def attempt(self, kind: str) -> Attempt:
        return Attempt(kind, len(self.ids), self.checked, self.not_zero, len(self.opened))

    def _activations(self) -> Iterator[Tensor]:
        model, inputs = self.model, (self.input_ids_BL, self.mask_BL)
        licence_BLK = torch.tensor(self.ids, device=self.mask_BL.device).expand(*self.mask_BL.shape, -1)
        for row_mask in (None, self.mask_BL.bool()):
            yield model.encode(*inputs, row_mask, licence_BLK).dense()[:, self.ids]
        yield model(*inputs)[0][..., self.ids].flatten(0, 1)


def search(model: LexicalSAE, ids: Sequence[int], steps: int = 60, seed: int = 0) -> Search:
    """Climb the logits of `ids` by their gradient in the embeddings of the input."""
    found = []
    with _evaluated(model):
        for some in _parts(ids):
            found.append(_climb(_probe(model, some, seed), steps))
    before, after = (
        sum(getattr(part, name) * part.attempt.ids for part in found) / len(ids)
        for name in ("logit_before", "logit_after")
    )
    return Search(steps, before, after, _together([part.attempt for part in found]))


def hostile(model: LexicalSAE, ids: Sequence[int], seed: int = 0) -> list[Attempt]:
    """Put hidden states in front of the decoder that no text would give."""
    found = []
    with _evaluated(model):
        for kind in ("NaN", "+inf", "-inf", "1e30", "one NaN", "along the word"):
            parts = []
            for some in _parts(ids):
                probe = _probe(model, some, seed)
                with _replaced(model.backbone, _hidden(probe, kind)):
                    probe.look()
                parts.append(probe.attempt(kind))
            found.append(_together(parts))
    return found


def _parts(ids: Sequence[int]) -> list[list[int]]:
    """All ids, a bounded number at a time."""
    return [list(ids[start : start + _AT_ONCE]) for start in range(0, len(ids), _AT_ONCE)]


def _together(parts: Sequence[Attempt]) -> Attempt:
    """One attack on several parts of the ids."""
    counts = (
        sum(getattr(part, name) for part in parts)
        for name in ("ids", "checked", "not_zero", "opened_without")
    )
    return Attempt(parts[0].kind, *counts)


def _climb(probe: _Probe, steps: int) -> Search:
    """The search on one part of the ids."""
    table = probe.model.backbone.mlm.get_input_embeddings()
    with torch.no_grad():
        x_BLD = table(probe.input_ids_BL).clone()
    x_BLD.requires_grad_()
    climber = torch.optim.Adam([x_BLD], lr=_STEP * float(x_BLD.detach().std()))
    logits = []
    with _replaced(table, x_BLD):
        for step in range(steps + 1):
            z_B = _logits(probe)
            logits.append(float(z_B.detach().mean()))
            if step % _CHECK_EVERY == 0 or step == steps:
                probe.look()
            (x_BLD.grad,) = torch.autograd.grad(-z_B.sum(), [x_BLD])
            climber.step()
    return Search(steps, logits[0], logits[-1], probe.attempt("gradient search"))


def _probe(model: LexicalSAE, ids: Sequence[int], seed: int) -> _Probe:
    """One input for each of the ids: random words, among them its own if it needs a licence."""
    if model.tokenizer is None:
        raise ConfigError("this model has no tokenizer: set model.tokenizer first")
    chosen = list(ids)
    maker = torch.Generator().manual_seed(seed)
    lexicon, device = model.lexicon, model.backbone.E_VH.device
    word_B1 = lexicon.word_V.cpu()[chosen][:, None]
    words_W = lexicon.words().cpu()
    others_BL = words_W[torch.randint(len(words_W), (len(chosen), _WORDS), generator=maker)]
    ends = (model.tokenizer.cls_token_id, model.tokenizer.sep_token_id)
    first, last = (torch.full_like(word_B1, j) if j is not None else word_B1[:, :0] for j in ends)
    if lexicon.licensed_only:
        others_BL[:, :1] = word_B1
    input_ids_BL = torch.cat([first, others_BL, last], dim=1).to(device)
    return _Probe(model, chosen, input_ids_BL, torch.ones_like(input_ids_BL))


def _logits(probe: _Probe) -> Tensor:
    """The largest logit [B] of each attempt's word over the positions that may speak of it."""
    backbone, lexicon = probe.model.backbone, probe.model.lexicon
    word_B = lexicon.word_V[probe.ids]
    h_BLH = backbone(probe.input_ids_BL, probe.mask_BL)
    z_BL = torch.einsum("blh,bh->bl", h_BLH.float(), backbone.E_VH[word_B].float())
    may_BL = lexicon.valid(probe.input_ids_BL, probe.mask_BL)
    if lexicon.honesty == "licensed-static":
        may_BL &= probe.input_ids_BL == word_B[:, None]
    z_BL = z_BL.masked_fill(~may_BL, float("-inf"))
    bias = backbone.e_V
    return z_BL.amax(-1) if bias is None else z_BL.amax(-1) + bias[word_B].float()


@torch.no_grad()
def _hidden(probe: _Probe, kind: str) -> Tensor:
    E_VH = probe.model.backbone.E_VH
    row_BH = E_VH[probe.model.lexicon.word_V[probe.ids]]
    h_BLH = row_BH[:, None].repeat(1, probe.mask_BL.shape[1], 1)
    if kind == "along the word":
        return h_BLH * 1e6
    if kind == "one NaN":
        h_BLH[:, 1] = float("nan")
        return h_BLH * 1e3
    return torch.full_like(h_BLH, float(kind)) if kind in ("NaN", "1e30") else h_BLH * float(kind)


@contextlib.contextmanager
def _replaced(module: nn.Module, output: Tensor) -> Iterator[None]:
    """The module answers `output` whatever it is given, while the block runs."""
    handle = module.register_forward_hook(lambda *_: output)
    try:
        yield
    finally:
        handle.remove()


@contextlib.contextmanager
def _evaluated(model: LexicalSAE) -> Iterator[None]:
    """The model in evaluation mode while the block runs."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)
