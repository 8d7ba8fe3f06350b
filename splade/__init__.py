"""Lexical-SAE: text classification and tagging whose every prediction is an exact sum of named words."""

from __future__ import annotations

from importlib import import_module

__version__ = "0.1.0"

_HOMES = {
    "Explanation": "splade.inference.explanation",
    "LexicalClassifier": "splade.estimators",
    "LexicalConfig": "splade.config.model",
    "LexicalError": "splade.errors",
    "LexicalSAE": "splade.models.lexical_sae",
    "LexicalTagger": "splade.estimators",
    "Predictor": "splade.inference.predictor",
    "SuppressedModel": "splade.intervene",
    "compare_removals": "splade.evaluation.removals",
    "compute_attribution_tensor": "splade.mechanistic.attribution",
    "evaluate_bias": "splade.evaluation.bias",
    "explain_model_spans": "splade.inference.predictor",
    "get_clean_vocab_mask": "splade.inference.top_tokens",
    "get_top_tokens": "splade.inference.top_tokens",
    "load_dataset": "splade.data.datasets",
    "suppress_token_globally": "splade.intervene",
}

__all__ = sorted([*_HOMES, "__version__"])


def __getattr__(name: str) -> object:
    """Public names are imported when first used, so that `import splade` loads no torch."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'splade' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
