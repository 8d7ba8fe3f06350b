"""The vocabulary head's kernels, one public function each; every implementation agrees with `reference`."""

from splade.kernels.reference import (
    Pairs,
    pair_logits,
    pool_max,
    scan_licensed,
    scan_pooled,
    scan_positions,
)

__all__ = ["Pairs", "pair_logits", "pool_max", "scan_licensed", "scan_pooled", "scan_positions"]
