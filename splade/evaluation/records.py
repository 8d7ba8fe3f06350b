"""What is written beside a measurement: whole files, and what the figures depend on besides the code."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path

import torch


def write_json(path: Path, values: object) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    fresh.replace(path)


def read_json(path: Path) -> object:
    """What the file holds; None where there is none, or it is damaged."""
    try:
        values: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return values


def environment() -> dict[str, object]:
    """Versions and device."""
    import transformers

    return {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "transformers": transformers.__version__,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU",
        "threads": torch.get_num_threads(),
    }
