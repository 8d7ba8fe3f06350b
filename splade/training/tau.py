"""The bound τ on cross-entropy that a user may give: a cross-entropy, or an accuracy in per cent."""

from __future__ import annotations

import math


def bound_of(target: float | str, classes: int) -> float:
    """τ of a setting such as 0.25 or "92%".

    An accuracy p stands for the cross-entropy of a calibrated predictor that is right with probability p and
    otherwise spreads itself over the other classes: -p log p - (1 - p) log((1 - p) / (C - 1)).
    """
    if not isinstance(target, str):
        return float(target)
    p = min(float(target.rstrip("% ")) / 100, 1 - 1e-6)
    return -p * math.log(p) - (1 - p) * math.log((1 - p) / max(classes - 1, 1))
