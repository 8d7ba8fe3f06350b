"""The anchor: how far the language model has drifted from its frozen self on sampled positions.

Legend: B documents, L positions, R sampled positions, H hidden size, V vocabulary.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from splade.circuits.losses import anchor
from splade.data.encoding import Batch
from splade.models.backbone import Backbone
from splade.models.frozen import FrozenLM

SHARE = 0.15  # of positions


def drift(backbone: Backbone, frozen: FrozenLM, batch: Batch) -> Tensor:
    """Mean KL(frozen ‖ now) over the vocabulary, at random positions of a batch."""
    mask_BL = batch.attention_mask.bool()
    chosen_BL = mask_BL & (torch.rand(mask_BL.shape, device=mask_BL.device) < SHARE)
    with torch.no_grad():
        before_RV = _logits(frozen.backbone, batch, chosen_BL)
    return anchor(before_RV, _logits(backbone, batch, chosen_BL))


def _logits(backbone: Backbone, batch: Batch, chosen_BL: Tensor) -> Tensor:
    h_RH = backbone(batch.input_ids, batch.attention_mask)[chosen_BL]
    return F.linear(h_RH, backbone.E_VH, backbone.e_V).float()
