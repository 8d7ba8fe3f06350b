"""The ways to a prediction that are compared, and what each is called.

    backbone                 h at every position: what any dense classifier needs
    backbone + decoder       its own logits [B, L, V]: dense prediction, the base of all ratios
    fast                     encode + decide
    fast, explained          the same + the contribution of every active word to the predicted class
    tensors                  model(...) + classify
    tensors, explained       the same + the predicted class's W_eff · s over the whole vocabulary

The loss of a prediction is its cross-entropy, to which an explained one adds its mean |contribution|; the
backbone's is the mean of its output.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from models import Batch
from torch import Tensor

from splade.mechanistic.attribution import compute_attribution_tensor
from splade.models.backbone import Backbone
from splade.models.lexical_sae import LexicalSAE
from splade.models.state import CircuitState

Key = tuple[str, str]  # dictionary, name
Run = Callable[[], Tensor]

BASE = ("any", "backbone + decoder")


def paths(backbone: Backbone, models: dict[str, LexicalSAE], batch: Batch) -> dict[Key, Run]:
    """Every path by (dictionary, name); a run gives a scalar to start a backward pass from."""
    runs: dict[Key, Run] = {
        ("any", "backbone"): lambda: backbone(*batch).mean(),
        BASE: lambda: backbone.logits(*batch).mean(),
    }
    for honesty, model in models.items():
        runs[honesty, "fast"] = partial(_decide, fast, model, batch)
        runs[honesty, "fast, explained"] = partial(_explain_fast, model, batch)
        runs[honesty, "tensors"] = partial(_decide, tensors, model, batch)
        runs[honesty, "tensors, explained"] = partial(_explain_tensors, model, batch)
    return runs


def fast(model: LexicalSAE, batch: Batch) -> CircuitState:
    """Sparse rows, then the decision over them."""
    return model.decide(model.encode(*batch))


def tensors(model: LexicalSAE, batch: Batch) -> CircuitState:
    """Activations [B, L, V], then the decision over them."""
    sparse_BLV, _ = model(*batch)
    return model.classify(sparse_BLV, batch[1])


def _decide(path: Callable[[LexicalSAE, Batch], CircuitState], model: LexicalSAE, batch: Batch) -> Tensor:
    return _loss(path(model, batch))


def _explain_fast(model: LexicalSAE, batch: Batch) -> Tensor:
    state = fast(model, batch)
    return _loss(state) + compute_attribution_tensor(state, state.logits.argmax(-1)).amount.abs().mean()


def _explain_tensors(model: LexicalSAE, batch: Batch) -> Tensor:
    state = tensors(model, batch)
    row_N = torch.arange(len(state.logits))
    amount_NV = state.sparse_vector * state.W_eff[row_N, state.logits.argmax(-1)]
    return _loss(state) + amount_NV.abs().mean()


def _loss(state: CircuitState) -> Tensor:
    classes_N = torch.arange(len(state.logits)) % state.logits.shape[1]
    return F.cross_entropy(state.logits, classes_N)
