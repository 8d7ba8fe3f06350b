"""Settings of a study that takes seconds: a tiny masked LM, and rows of two classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from splade.config.load import parse_config
from splade.config.schema import ExperimentConfig
from tests.tiny import PADDED_ROWS, SENTENCES, tiny_backbone, tiny_tokenizer


def small_config(folder: Path, **changes: Any) -> ExperimentConfig:
    """A config whose model and rows are written to `folder`."""
    tiny_backbone("bert", len(tiny_tokenizer()) + PADDED_ROWS).mlm.save_pretrained(folder / "lm")
    tiny_tokenizer().save_pretrained(folder / "lm")
    (folder / "rows").mkdir(exist_ok=True)
    for split, count in (("train", 6), ("test", 2)):
        lines = [f"{text} {i}\tclass {'ab'[i % 2]}" for i in range(count) for text in SENTENCES]
        (folder / "rows" / f"{split}.tsv").write_text("\n".join(["text\tlabel", *lines]) + "\n")
    settings = {
        "experiment_name": "small",
        "target_active": 8,
        "data": {"path": str(folder / "rows"), "train_samples": 48, "validation_share": 0.2},
        "model": {"name": str(folder / "lm"), "width": 8},
        "training": {"epochs": 1, "batch_size": 8},
        "evaluation": {"seeds": [0]},
    }
    return parse_config({**settings, **changes})
