"""Shapes of tiles for the free dictionary's scans on a GPU, each beside the matrix product that it replaces.

Every variant is timed alone (median of repeats with the L2 cache cleared between them) and its pairs are
compared with float64 logits of one document. A variant that does not compile prints its error and the rest
go on; past `--seconds`, what is left is skipped. Nothing here chooses: the figures go into `blocks_for`.

    python benchmarks/tune_kernels.py --output tuning.json
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
import triton.testing
from torch import Tensor

from splade.kernels import Pairs, reference
from splade.kernels.triton.pooled import best_keys, scan_pooled
from splade.kernels.triton.positions import bitmap, expand, scan_positions
from splade.kernels.triton.tiles import Blocks

SHAPES = [
    (32, 512, 768, 50368),
    (64, 128, 768, 50368),
    (8, 2048, 768, 50368),
    (32, 512, 384, 30522),
    (32, 512, 768, 256000),
]
BF16 = {
    "256x128": Blocks(256, 128, 64, warps=8, stages=4),
    "128x256": Blocks(128, 256, 64, warps=8, stages=4),
    "128x256 group 16": Blocks(128, 256, 64, warps=8, stages=4, group=16),
    "128x128 two": Blocks(128, 128, 64, warps=4, stages=3, programs=2),
}
FEWER = ("256x128", "128x256")  # for the other shapes and scan
FP32 = {
    "128x128": Blocks(128, 128, 32, warps=8, stages=3),
    "128x64": Blocks(128, 64, 32, warps=4, stages=3),
}
ACTIVE = (100, 3000)  # words of a document that survive


class Case(NamedTuple):
    """Operands, the first document's float64 logits, and floors under which so many of its words survive."""

    h_BLH: Tensor
    E_WH: Tensor
    e_W: Tensor
    valid_BL: Tensor
    truth_LW: Tensor
    floors: dict[int, float]


def draw(B: int, L: int, H: int, W: int, dtype: torch.dtype) -> Case:
    """Random operands, every position but a document's first and last valid."""
    torch.manual_seed(0)
    h_BLH, E_WH = (torch.randn(shape, device="cuda", dtype=dtype) for shape in ((B, L, H), (W, H)))
    valid_BL = torch.ones(B, L, dtype=torch.bool, device="cuda")
    valid_BL[:, [0, -1]] = False
    z_LW = (h_BLH[0].double() @ E_WH.double().T).masked_fill_(~valid_BL[0][:, None], float("-inf"))
    edges = z_LW.amax(0).topk(max(ACTIVE) + 1).values
    floors = {n: float(edges[n]) for n in ACTIVE}
    return Case(h_BLH, E_WH, torch.zeros(W, device="cuda"), valid_BL, z_LW, floors)


def milliseconds(run: Callable[[], object]) -> float:
    """Median time of a call on the device."""
    return float(triton.testing.do_bench(run, warmup=10, rep=60, return_mode="median"))


def matrix_floor(case: Case) -> float:
    """The library's product of the same operands, its result written out."""
    h_NH = case.h_BLH.flatten(0, 1)
    out_NW = torch.empty(len(h_NH), len(case.E_WH), dtype=h_NH.dtype, device="cuda")
    return milliseconds(lambda: torch.mm(h_NH, case.E_WH.T, out=out_NW))


def faults(found: Pairs, case: Case, floor: float) -> dict[str, float]:
    """Pairs of the first document missed or wrongly there, and by how much a position misses the best."""
    best_W = case.truth_LW.amax(0)
    here_P = found.row_P == 0
    word_P, at_P = found.word_P[here_P], found.position_P[here_P]
    missed_W = best_W > floor + 2e-3
    missed_W[word_P] = False
    slack = 4 * torch.finfo(case.h_BLH.dtype).eps * abs(floor) + 2e-3
    short_P = best_W[word_P] - case.truth_LW[at_P, word_P]
    return {
        "missed": int(missed_W.sum()),
        "extra": int((best_W[word_P] < floor - slack).sum()),
        "off": float(short_P.max()) if len(word_P) else 0.0,
    }


def pooled_row(case: Case, blocks: Blocks) -> dict[str, Any]:
    """The kernel alone and the whole scan, sparse and dense."""
    row: dict[str, Any] = {}
    for active, level in case.floors.items():
        floor_W = torch.full_like(case.e_W, level)
        scan = partial(scan_pooled, case.h_BLH, case.E_WH, case.e_W, case.valid_BL, floor_W, blocks)
        kernel = partial(best_keys, case.h_BLH, case.E_WH, case.e_W, case.valid_BL, floor_W, blocks)
        row |= {f"{fault} {active}": value for fault, value in faults(scan(), case, level).items()}
        row |= {f"kernel {active}": milliseconds(kernel), f"scan {active}": milliseconds(scan)}
    return row


def positions_row(case: Case, blocks: Blocks) -> dict[str, Any]:
    """The bits alone, their expansion, and the whole scan."""
    level = case.floors[ACTIVE[0]]
    floor_W = torch.full_like(case.e_W, level)
    h_NH = case.h_BLH.flatten(0, 1)
    found = scan_positions(h_NH, case.E_WH, case.e_W, floor_W, blocks)
    z_LW = (case.h_BLH[0].double() @ case.E_WH.double().T).masked_fill_(~case.valid_BL[0][:, None], -1e9)
    here_P = found.row_P < len(z_LW)
    seen_LW = torch.zeros_like(z_LW, dtype=torch.bool)
    seen_LW[found.row_P[here_P], found.word_P[here_P]] = True
    bits_NG = bitmap(h_NH, case.E_WH, case.e_W, floor_W, blocks)
    return {
        "missed": int(((z_LW > level + 2e-3) & ~seen_LW).sum()),
        "pairs": len(found.row_P),
        "kernel": milliseconds(lambda: bitmap(h_NH, case.E_WH, case.e_W, floor_W, blocks)),
        "expand": milliseconds(lambda: expand(bits_NG)),
        "scan": milliseconds(lambda: scan_positions(h_NH, case.E_WH, case.e_W, floor_W, blocks)),
    }


def eager_row(case: Case) -> dict[str, Any]:
    """The reference on the same GPU."""
    level = case.floors[ACTIVE[0]]
    operands = (case.h_BLH, case.E_WH, case.e_W, case.valid_BL, torch.full_like(case.e_W, level))
    row: dict[str, Any] = dict(faults(reference.scan_pooled(*operands), case, level))
    return row | {"scan": milliseconds(lambda: reference.scan_pooled(*operands))}


class Log:
    """Rows as they come, printed and kept, until the time is up."""

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds
        self.rows: list[dict[str, Any]] = []

    def add(self, key: dict[str, Any], run: Callable[[], dict[str, Any]], floor: float) -> None:
        """One variant; an error is a row too."""
        start = time.monotonic()
        if start > self.end:
            row: dict[str, Any] = {"error": "skipped: no time left"}
        else:
            try:
                row = run()
            except Exception as error:  # whatever the compiler says
                row = {"error": f"{type(error).__name__}: {str(error).strip().splitlines()[-1:]}"}
        ratios = {f"{k} ratio": v / floor for k, v in row.items() if k.split()[0] in ("kernel", "scan")}
        self.rows.append({**key, "floor": floor, **row, **ratios, "took": time.monotonic() - start})
        shown = {k: round(v, 3) if isinstance(v, float) else v for k, v in self.rows[-1].items()}
        print(*(f"{k}={v}" for k, v in shown.items()), flush=True)


def measure(log: Log) -> None:
    """Everything, the shape with a bar first."""
    for at, shape in enumerate(SHAPES):
        case = draw(*shape, torch.bfloat16)
        floor = matrix_floor(case)
        key = {"shape": shape, "dtype": "bfloat16"}
        for name, blocks in BF16.items():
            if at == 0 or name in FEWER:
                log.add({**key, "of": "pooled", "variant": name}, partial(pooled_row, case, blocks), floor)
            if at == 0:
                log.add(
                    {**key, "of": "positions", "variant": name}, partial(positions_row, case, blocks), floor
                )
        if at == 0:
            log.add({**key, "of": "pooled", "variant": "eager"}, partial(eager_row, case), floor)
    case = draw(*SHAPES[0], torch.float32)
    floor = matrix_floor(case)
    key = {"shape": SHAPES[0], "dtype": "float32", "of": "pooled"}
    log.add({**key, "variant": "eager"}, partial(eager_row, case), floor)
    for name, blocks in FP32.items():
        log.add({**key, "variant": name}, partial(pooled_row, case, blocks), floor)


def main() -> None:
    """Measure, print, and write what was measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, help="JSON file of the figures")
    parser.add_argument("--seconds", type=float, default=75.0, help="start no variant after so long")
    arguments = parser.parse_args()
    log = Log(arguments.seconds)
    device = torch.cuda.get_device_name()
    print(device, torch.__version__, triton.__version__, flush=True)
    try:
        measure(log)
    finally:
        if arguments.output:
            arguments.output.write_text(
                json.dumps({"device": device, "rows": log.rows}, indent=1), encoding="utf-8"
            )


if __name__ == "__main__":
    main()
