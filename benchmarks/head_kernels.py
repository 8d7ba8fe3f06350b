"""What does each kernel of the vocabulary head cost beside the matrix product it cannot do without?

1. Random h and E; floors that open about 100 words a text, or 30 a position.
2. The product h Eᵀ alone, in pieces that are thrown away, is the floor of all that read the whole vocabulary.
3. Every kernel, as the package chooses it for the device and as the reference has it, forward, and where it
   has a gradient forward and backward; then the head: scan, exact logits of the pairs, and their gradients.

    python benchmarks/head_kernels.py --device cuda --output docs/results/performance.md

Legend: B documents, L positions, N = B·L, H width of h, V words, P surviving pairs, K licences.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import ModuleType

import torch
from measure import interleaved_seconds, peak_bytes, product, ratio
from table import CPU_SHAPES, QUICK, Section, Shape, attempt, parser, report, with_device, with_shapes
from torch import Tensor

from splade import kernels
from splade.kernels import Pairs, reference

WORDS, POSITION_WORDS, LICENCES = 100, 30, 16
ROUNDS = {"cpu": 5, "cuda": 20}
GPU_SIZES = ((384, 30_522), (768, 50_368), (768, 131_072), (768, 262_144))
CPU_SIZES = ((384, 30_522),)
QUICK_SIZES = ((32, 800),)
COLUMNS = ("H", "V", "texts × tokens", "kernel", "of", "pairs", "ms", "× product", "MiB")

FLOOR = ("product alone", "torch")


@dataclass(frozen=True)
class Inputs:
    """What the kernels are given."""

    h_BLH: Tensor  # in the precision of the scans
    E_VH: Tensor
    exact_NH: Tensor  # the same in float32, as the exact logits read them
    exact_VH: Tensor
    e_V: Tensor
    valid_BL: Tensor
    licence_NK: Tensor
    pooled_floor_V: Tensor
    position_floor_V: Tensor
    licensed_floor_V: Tensor

    @property
    def h_NH(self) -> Tensor:
        """h of all positions."""
        return self.h_BLH.flatten(0, 1)


def main() -> None:
    """Measure, print, and write if asked to."""
    options = with_shapes(
        with_device(parser("The vocabulary head's kernels beside the matrix product."))
    ).parse_args()
    device = options.device
    shapes: Sequence[Shape] = options.shape or (CPU_SHAPES if device.type == "cpu" else (Shape(32, 512),))
    shapes = QUICK if options.quick and not options.shape else shapes
    sizes = QUICK_SIZES if options.quick else GPU_SIZES if device.type == "cuda" else CPU_SIZES
    rows: list[Sequence[object]] = []
    for shape in shapes:
        for H, V in sizes:
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                rows += _measured(shape, H, V, device)
    question = "What does each kernel of the vocabulary head cost beside the matrix product?"
    report(Section(f"head_kernels-{device.type}", question, COLUMNS, rows, _notes(options)), options.output)


def _measured(shape: Shape, H: int, V: int, device: torch.device) -> list[list[object]]:
    given = _inputs(shape, H, V, device)
    modules: dict[str, ModuleType] = {"reference": reference}
    if device.type == "cuda":
        modules = {"dispatched": kernels, **modules}
    runs: dict[tuple[str, str], Callable[[], int]] = {FLOOR: partial(_product, given)}
    for of, module in modules.items():
        runs |= {(name, of): partial(run, module, given) for name, run in KERNELS.items()}
    rows, good = {}, {}
    for key, run in runs.items():
        row = attempt((H, V, str(shape), *key), COLUMNS, partial(_pairs, run))
        rows[key] = row
        if len(row) == len(COLUMNS) - 3:
            good[key] = run
    seconds = interleaved_seconds(good, ROUNDS[device.type], device=device)
    for key, run in good.items():
        ms = 1e3 * statistics.median(seconds[key])
        peak = peak_bytes(run, device) / 2**20
        rows[key] += [f"{ms:,.2f}", f"{ratio(seconds[key], seconds[FLOOR]):.2f}", round(peak)]
    return list(rows.values())


def _pairs(run: Callable[[], int]) -> list[object]:
    return [run()]


def _inputs(shape: Shape, H: int, V: int, device: torch.device) -> Inputs:
    """Random numbers; floors are quantiles of logits of the first text, its best and all of them."""
    torch.manual_seed(0)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    B, L = shape.texts, shape.length
    h_BLH = torch.randn(B, L, H, device=device)
    E_VH, e_V = torch.randn(V, H, device=device) * H**-0.5, torch.randn(V, device=device) * 0.1
    z_LV = h_BLH[0] @ E_VH.T + e_V
    floors = [
        z.flatten().topk(count).values[-1].expand(V).contiguous()
        for z, count in ((z_LV.amax(0), WORDS), (z_LV[:8], 8 * POSITION_WORDS), (z_LV[:, 0], max(1, L // 5)))
    ]
    licence_NK = torch.randint(V, (B * L, LICENCES), device=device)
    valid_BL = torch.ones(B, L, dtype=torch.bool, device=device)
    low = h_BLH.to(dtype), E_VH.to(dtype)
    return Inputs(*low, h_BLH.flatten(0, 1), E_VH, e_V, valid_BL, licence_NK, *floors)


def _product(given: Inputs) -> int:
    product(given.h_NH, given.E_VH)
    return 0


def _scan_pooled(module: ModuleType, given: Inputs) -> Pairs:
    pairs: Pairs = module.scan_pooled(
        given.h_BLH, given.E_VH, given.e_V, given.valid_BL, given.pooled_floor_V
    )
    return pairs


def _scan_positions(module: ModuleType, given: Inputs) -> Pairs:
    pairs: Pairs = module.scan_positions(given.h_NH, given.E_VH, given.e_V, given.position_floor_V)
    return pairs


def _scan_licensed(module: ModuleType, given: Inputs) -> Pairs:
    pairs: Pairs = module.scan_licensed(
        given.h_NH, given.exact_VH, given.e_V, given.licence_NK, given.licensed_floor_V
    )
    return pairs


Scan = Callable[[ModuleType, Inputs], Pairs]


def _count(scan: Scan, module: ModuleType, given: Inputs) -> int:
    return len(scan(module, given).row_P)


def _head(scan: Scan, backward: bool, module: ModuleType, given: Inputs) -> int:
    """The scan and the exact logits of its pairs; with `backward` also a gradient of h, E and e."""
    pairs = scan(module, given)
    leaves = [
        tensor.detach().requires_grad_(backward) for tensor in (given.exact_NH, given.exact_VH, given.e_V)
    ]
    z_P = module.pair_logits(*leaves, pairs.position_P, pairs.word_P)
    if backward:
        torch.autograd.backward(z_P.sum())
    return len(z_P)


KERNELS: dict[str, Callable[[ModuleType, Inputs], int]] = {
    "scan_pooled": partial(_count, _scan_pooled),
    "scan_pooled + pair_logits": partial(_head, _scan_pooled, False),
    "the same, and backward": partial(_head, _scan_pooled, True),
    "scan_positions": partial(_count, _scan_positions),
    "scan_positions + pair_logits": partial(_head, _scan_positions, False),
    "of positions, and backward": partial(_head, _scan_positions, True),
    "scan_licensed": partial(_count, _scan_licensed),
    "scan_licensed + pair_logits": partial(_head, _scan_licensed, False),
    "licensed, and backward": partial(_head, _scan_licensed, True),
}


def _notes(options: argparse.Namespace) -> list[str]:
    kind = options.device.type
    return [
        f"Random inputs, {'bf16' if kind == 'cuda' else 'float32'}, no padding, seed 0; floors of about "
        f"{WORDS} words a text (pooled), {POSITION_WORDS} a position, and a fifth of {LICENCES} licences.",
        f"ms: median of {ROUNDS[kind]} interleaved rounds; × product: median over rounds of the quotient by "
        "h Eᵀ alone. MiB: tensors held at once beyond the inputs; gradients count.",
        "pair_logits is what lies between a scan and the row after it.",
    ]


if __name__ == "__main__":
    main()
