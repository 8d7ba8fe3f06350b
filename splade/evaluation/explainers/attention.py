"""The attentions of a model's own backbone, recorded while it runs as ever.

Legend: B documents, L positions, K layers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from splade.evaluation.explainers.questions import UnavailableError
from splade.models.lexical_sae import LexicalSAE

_REFUSED = "this backbone does not return its attentions"


class Recorded:
    """What the last forward pass attended to; each layer [B, L, L] is the mean over its heads."""

    def __init__(self) -> None:
        self._layers: tuple[Tensor, ...] | None = None

    def keep(self, _module: object, _inputs: object, output: Any) -> None:
        """A forward hook of the base model."""
        self._layers = getattr(output, "attentions", None)

    @property
    def layers(self) -> list[Tensor]:
        """First layer first."""
        if not self._layers or any(not isinstance(layer, Tensor) for layer in self._layers):
            raise UnavailableError(_REFUSED)
        return [layer.float().mean(1) for layer in self._layers]

    def received(self, attention_mask: Tensor) -> Tensor:
        """What each position [B, L] gets in the last layer from all positions that are not padding."""
        return torch.einsum("bl,blm->bm", attention_mask.float(), self.layers[-1])

    @property
    def rollout(self) -> Tensor:
        """What each position takes from each input [B, L, L]: Π_k (A_k + 1)/2, last layer on the left."""
        rolled_BLL = torch.eye(self.layers[0].shape[-1], device=self.layers[0].device)
        for layer_BLL in self.layers:
            half_BLL = (layer_BLL + torch.eye(layer_BLL.shape[-1], device=layer_BLL.device)) / 2
            rolled_BLL = half_BLL @ rolled_BLL
        return rolled_BLL


@contextlib.contextmanager
def recording(model: LexicalSAE) -> Iterator[Recorded]:
    """Record attentions inside the block; eager kernels return them, the others are put back at the end."""
    mlm: Any = model.backbone.mlm
    config, recorded = mlm.base_model.config, Recorded()
    before = getattr(config, "_attn_implementation", None), getattr(config, "output_attentions", False)
    handle = mlm.base_model.register_forward_hook(recorded.keep)
    try:
        _switch(mlm, "eager", True)
        yield recorded
    finally:
        handle.remove()
        _switch(mlm, *before)


def _switch(mlm: Any, implementation: str | None, wanted: bool) -> None:
    try:
        if implementation is not None and hasattr(mlm, "set_attn_implementation"):
            mlm.set_attn_implementation(implementation)
        mlm.base_model.config.output_attentions = wanted
    except (ValueError, NotImplementedError, AttributeError) as problem:
        raise UnavailableError(_REFUSED) from problem
