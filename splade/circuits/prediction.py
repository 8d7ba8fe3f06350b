"""The loss of a prediction, and what a class weighs in it: one place for one label a row and for several.

One label a row: cross-entropy of the softmax. Several: binary cross-entropy of each class's sigmoid, its mean
over classes. A class's weight multiplies the loss of the rows that have the class, smoothed or not: were the
smoothed part weighted by each class's own weight, as torch does it, a rare class would be the best guess for
rows of a common one.

Legend: N rows, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from splade.data.encoding import Label

ClassWeights = Literal["none", "balanced"]


def prediction_loss(
    logits_NC: Tensor, labels_N: Tensor, label_smoothing: float = 0.0, class_weights_C: Tensor | None = None
) -> Tensor:
    """Mean loss of the rows; `labels_N` are class ids, or ones and zeros [N, C]. It is 0 without rows.

    Smoothing ε makes targets (1 - ε)·y + ε/C, and (1 - ε)·y + ε/2 where classes are apart.
    """
    if not len(logits_NC):
        return logits_NC.sum()
    if labels_N.ndim == 1:
        if class_weights_C is None:
            return F.cross_entropy(logits_NC, labels_N, label_smoothing=label_smoothing)
        loss_N = F.cross_entropy(logits_NC, labels_N, reduction="none", label_smoothing=label_smoothing)
        weight_N = class_weights_C[labels_N]
        return (weight_N * loss_N).sum() / weight_N.sum()
    label_NC = labels_N.to(logits_NC.dtype)
    target_NC = label_NC * (1 - label_smoothing) + label_smoothing / 2
    weight_NC = None if class_weights_C is None else 1 + label_NC * (class_weights_C - 1)
    return F.binary_cross_entropy_with_logits(logits_NC, target_NC, weight_NC)


def probabilities(logits_NC: Tensor, multi_label: bool, temperature: float = 1.0) -> Tensor:
    """Probabilities [N, C] in float64: of one class among all, or of each class by itself."""
    scaled_NC = logits_NC.double() / temperature
    return scaled_NC.sigmoid() if multi_label else scaled_NC.softmax(-1)


def decided(logits_NC: Tensor, multi_label: bool) -> list[list[int]]:
    """The classes of each row: the most probable one, or each whose probability is at least a half."""
    if not multi_label:
        return [[best] for best in logits_NC.argmax(-1).tolist()]
    return [[c for c, logit in enumerate(row) if logit >= 0] for row in logits_NC.tolist()]


def class_weights(rows: Sequence[Label], classes: int, kind: ClassWeights) -> Tensor | None:
    """Weights [C] by the labels of the training rows; None when all count the same.

    `balanced` gives every class the same say: N / (C·n_c) with one label a row; with several, the rows
    without the class over those with it. A class without rows counts as if it had one.
    """
    if kind == "none":
        return None
    labels_N = torch.tensor(rows)
    if labels_N.ndim == 1:
        count_C = torch.bincount(labels_N, minlength=classes).clamp(min=1)
        return len(labels_N) / (classes * count_C)
    count_C = labels_N.sum(0)
    return (len(labels_N) - count_C).clamp(min=1) / count_C.clamp(min=1)
