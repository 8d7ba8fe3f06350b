"""Are probabilities as often right as they say? One temperature makes them so on held-out rows.

1. With β = 1/T the loss is convex in β, and its slope is mean (E_p[z] - z_y): what the model expects of its
   logits less what came true (of each class, Σ (p - y)·z over classes where classes are apart).
2. So the slope changes sign at most once, and bisection on log T finds where.

Legend: N rows, C classes.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from splade.circuits.prediction import probabilities

COLDEST, HOTTEST = 0.1, 10.0  # what no handful of held-out rows should push beyond
_STEPS = 40


@torch.no_grad()
def fit_temperature(logits_NC: Tensor, labels_N: Tensor) -> float:
    """The temperature of least loss on held-out rows; `labels_N` are class ids, or ones and zeros [N, C].

    It stays within 0.1 and 10, and is 1 where the rows say nothing.
    """
    logits_NC, labels_N = logits_NC.double(), labels_N.to(logits_NC.device)
    if not len(logits_NC) or not bool(logits_NC.isfinite().all()) or _slope(logits_NC, labels_N, 1.0) == 0:
        return 1.0
    low, high = math.log(COLDEST), math.log(HOTTEST)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _slope(logits_NC, labels_N, math.exp(middle)) > 0:  # too sure: hotter
            low = middle
        else:
            high = middle
    return math.exp((low + high) / 2)


@torch.no_grad()
def expected_calibration_error(probabilities_NC: Tensor, labels_N: Tensor, bins: int = 15) -> float:
    """Mean gap between probability and frequency, over equally wide bins of probability.

    With class ids it is about the most probable class of each row being right; with ones and zeros [N, C],
    about each class being there. It is 0 without rows.
    """
    labels_N = labels_N.to(probabilities_NC.device)
    if labels_N.ndim == 1:
        said, predicted_N = probabilities_NC.max(-1)
        true = predicted_N == labels_N
    else:
        said, true = probabilities_NC.flatten(), labels_N.flatten()
    bin_M = (said * bins).ceil().long().clamp(1, bins) - 1
    gap = torch.bincount(bin_M, said.double() - true.double(), minlength=bins)
    return float(gap.abs().sum()) / max(len(said), 1)


def _slope(logits_NC: Tensor, labels_N: Tensor, temperature: float) -> float:
    """The derivative of the loss by 1/T, up to a positive factor."""
    several = labels_N.ndim == 2
    expected_NC = probabilities(logits_NC, several, temperature)
    true_NC = labels_N if several else torch.nn.functional.one_hot(labels_N, logits_NC.shape[1])
    return float(((expected_NC - true_NC) * logits_NC).sum() / len(logits_NC))
