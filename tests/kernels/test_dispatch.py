"""Which implementation a call reaches, and that no package is needed to ask."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from splade import kernels
from splade.kernels import reference

h, E, e, floor = torch.ones(2, 3), torch.ones(4, 3), torch.zeros(4), torch.ones(4)
CALLS = {
    "scan_pooled": (h[None], E, e, torch.ones(1, 2).bool(), floor),
    "scan_positions": (h, E, e, floor),
    "scan_licensed": (h, E, e, torch.tensor([[1], [-1]]), floor),
    "pair_logits": (h, E, None, torch.tensor([1]), torch.tensor([2])),
}


@pytest.mark.parametrize("name", CALLS)
def test_tensors_on_a_cpu_run_in_plain_torch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    plain = getattr(reference, name)
    monkeypatch.setattr(reference, name, lambda *operands: called.append(name) or plain(*operands))
    found, wanted = getattr(kernels, name)(*CALLS[name]), plain(*CALLS[name])
    assert called == [name]
    assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))


@pytest.mark.parametrize("name", CALLS)
def test_tensors_of_other_types_run_in_plain_torch_on_every_device(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "_has_kernels", lambda device: True)
    called = []
    monkeypatch.setattr(reference, name, lambda *operands: called.append(name))
    getattr(kernels, name)(
        *(x.double() if x is not None and x.is_floating_point() else x for x in CALLS[name])
    )
    assert called == [name]


def test_the_package_needs_no_triton() -> None:
    code = "import sys; sys.modules['triton'] = None; import splade.kernels as k; print(sorted(k.__all__)[0])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "Order"
