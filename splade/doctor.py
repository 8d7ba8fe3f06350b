"""Is this installation sound? What `lexical-sae doctor` finds, as plain values.

1. Versions, device and threads: what a measured figure depends on.
2. The embedded backbone: its file is the one named in NOTICE, and it loads and speaks English.
3. An untrained model on it decides a text: the logit is the sum of its words, twice to the same bit.
4. Which extras are installed, and how to get the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from splade import __version__
from splade.errors import LexicalError, ModelError

EXTRAS = {
    "explainers": ("captum", "lime", "shap"),
    "report": ("matplotlib",),
    "serve": ("fastapi", "uvicorn"),
    "ray": ("ray",),
}
_TEXT = "The film was charming, and the story clever."
_RESIDUAL = 1e-6  # the bound of float32 heads


def examine() -> dict[str, Any]:
    """Everything found; `healthy` if all essential checks hold."""
    from splade.pipelines import environment

    checks = {"backbone file": _backbone_file, "backbone": _backbone, "exact sums": _exact_sums}
    found = {name: _outcome(check) for name, check in checks.items()}
    return {
        "versions": {"lexical-sae": __version__, **environment()},
        "checks": found,
        "extras": {name: _extra(name, modules) for name, modules in EXTRAS.items()},
        "healthy": all(outcome.startswith("ok") for outcome in found.values()),
    }


def _outcome(check: Callable[[], str]) -> str:
    """What a check says, or why it fails; one that breaks does not hide the others."""
    try:
        return f"ok: {check()}"
    except LexicalError as problem:
        return f"failed: {problem}"
    except Exception as problem:
        return f"failed: {type(problem).__name__}: {problem}"


def _backbone_file() -> str:
    from splade.models.backbone import EMBEDDED_PATH

    weights, notice = EMBEDDED_PATH / "model.safetensors", EMBEDDED_PATH.parent / "NOTICE"
    if not weights.is_file():
        raise ModelError("the embedded backbone is not in the package; install lexical-sae again")
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    if digest not in notice.read_text(encoding="utf-8"):
        raise ModelError(f"sha256 {digest} is not the one in NOTICE; install lexical-sae again")
    return f"sha256 {digest[:12]}…, as in NOTICE"


def _backbone() -> str:
    from splade.models.backbone import load_backbone

    backbone, tokenizer = load_backbone()
    share = backbone.fluency(tokenizer)
    return f"{backbone.name} loads; {share:.0%} of the tokens of plain English are among its top guesses"


def _exact_sums() -> str:
    import torch

    from splade.inference import Predictor

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        predictor = Predictor(_untrained())
    first, second = (predictor.explain([_TEXT])[0] for _ in range(2))
    if not first.active_words:
        raise ModelError("no word is active in a plain text; install lexical-sae again")
    if not first.residual <= _RESIDUAL:
        raise ModelError(f"the words do not sum to the logit (residual {first.residual:.1e}); report this")
    if first != second:
        raise ModelError("the same text was explained in two ways; report this")
    return (
        f"{first.active_words} words sum to the logit, residual {first.residual:.1e}, repeats are identical"
    )


def _untrained() -> Any:
    """A fresh two-class model on the embedded backbone, its thresholds set on one text."""
    from splade.config.model import BackboneRecord, LexicalConfig
    from splade.models.backbone import load_backbone
    from splade.models.build import build, calibrate

    backbone, tokenizer = load_backbone(check=False)
    record = BackboneRecord(name=backbone.name, revision=backbone.revision)
    config = LexicalConfig(label_names=["one", "other"], backbone=record)
    model = build(config, backbone, tokenizer)
    batch = tokenizer([_TEXT], return_tensors="pt")
    calibrate(model, [(batch["input_ids"], batch["attention_mask"], None)], 20)
    return model.eval()


def _extra(name: str, modules: tuple[str, ...]) -> str:
    missing = [module for module in modules if find_spec(module) is None]
    if not missing:
        return "installed"
    return f'not installed ({", ".join(missing)}): pip install "lexical-sae[{name}]"'
