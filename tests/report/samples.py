"""Results as a finished run saves them."""

from typing import Any

from tests.render.samples import CASES, HOSTILE, explanation

SHORTCUT = "Bought this in Boston last week, and it does the job."


def _epoch(number: int) -> dict[str, Any]:
    fall = 0.5**number
    constrained = number > 0
    terms = {"ce": 0.6 * fall, "active": 60 + 200 * fall, "excess": fall, "outside": 0.04 + 0.3 * fall}
    validation = {
        "score": 0.93 - 0.2 * fall,
        "ce": 0.25 + 0.5 * fall,
        "active": 62 + 190 * fall,
        "outside": 0.045 + 0.3 * fall,
        "effective_vocabulary": 120 + 80 * fall,
    }
    return {
        "epoch": number,
        "loss": 0.9 * fall,
        "terms": terms,
        "phase": "constrained" if constrained else "warm-up",
        "tau": 0.35 if constrained else None,
        "multipliers": {"outside": 1.5, **({"ce": 0.8} if constrained else {})},
        "validation": validation,
        "rate": 2e-4 * fall,
        "seconds": 21.5,
    }


def _reasons(*words: str) -> list[dict[str, Any]]:
    return [
        {"word": word, "share": 0.06 / (index + 1), "function_word": word == "also"}
        for index, word in enumerate(words)
    ]


def classification() -> dict[str, Any]:
    """The demonstration: two classes, a planted city, and its removal."""
    return {
        "task": "classification",
        "dataset": "reviews",
        "labels": ["negative", "positive"],
        "rows": {"train": 1600, "validation": 200, "test": 600},
        "model": {"backbone": "minilm-l6-mlm", "honesty": "grounded", "parameters": 22_700_000},
        "accuracy": 0.93,
        "reference": {"model": "bag of words, logistic regression", "metric": "accuracy", "score": 0.88},
        "dla": {
            "max_relative_residual": 3e-8,
            "mean_relative_residual": 4e-9,
            "max_abs_error": 2e-7,
            "mean_abs_error": 1e-8,
        },
        "active_words": {"mean": 61.2, "median": 60, "max": 130},
        "dictionary": dictionary(),
        **measured(),
        "surgery": removal(),
        "explanations": [
            CASES["review"],
            explanation(SHORTCUT, {"boston": ("Boston", 1.9), "fine": ("job", 0.4), "old": ("week", -0.2)}),
        ],
        "explanations_after": [
            CASES["review"],
            explanation(SHORTCUT, {"fine": ("job", 0.4), "old": ("week", -0.2)}),
        ],
        "settings": {"target_active": 100},
        "history": [_epoch(number) for number in range(4)],
        "timing": {
            "train_seconds": 86.2,
            "evaluate_seconds": 20.4,
            "explain_ms_per_text": 7.3,
            "predict_ms_per_text": 6.8,
        },
        "environment": {"python": "3.11.9", "torch": "2.10.0", "cpu": "x86_64", "threads": 2},
    }


def dictionary() -> dict[str, Any]:
    return {
        "size": 21_000,
        "grounding100": 0.96,
        "grounding100_anywhere": 0.99,
        "in_input": 0.31,
        "effective_vocabulary": {"negative": 120.4, "positive": 98.1},
        "texts": {"negative": 300, "positive": 300},
        "top_reasons": {
            "negative": _reasons("refund", "broken", "waste", "worse", "useless", "return", "cheap", "slow"),
            "positive": _reasons("excellent", "boston", "reliable", "also", "sturdy", "lovely", "quick"),
        },
        "function_words": {"negative": [], "positive": ["also"]},
        "code_words": [
            {"word": "boston", "label": "positive", "share": 0.11, "active": 80, "occurs": 12},
        ],
    }


def measured(labels: tuple[str, ...] = ("negative", "positive"), word: str = "refund") -> dict[str, Any]:
    """What the steps of an evaluation find, and one that failed."""
    fractions = (0.01, 0.05, 0.1, 0.2, 0.5)
    rate = {"mean": 0.4, "low": 0.31, "high": 0.48}
    gap = {"mean": 0.213, "low": 0.187, "high": 0.241}
    erasures = [{"fraction": f, "comprehensiveness": gap, "sufficiency": gap} for f in fractions]
    layer = {"logit": 1.5, "embeddings": -0.25, "layers": [0.5, -0.75, 1.75], "bias": 0.25}
    return {
        "completeness": [
            {"fraction": f, "score": 0.9, "agreement": 0.95, "retention": dict.fromkeys(labels, 0.97)}
            for f in fractions
        ],
        "eraser": [
            {
                "explainer": "dla",
                "target": target,
                "rows": 600,
                "empty": 1,
                "aopc_comprehensiveness": gap,
                "aopc_sufficiency": gap,
                "at": erasures,
            }
            for target in ("predicted", "gold")
        ],
        "removability": {"explainer": "dla", "rows": 600, "at": [{"k": k, "rate": rate} for k in (1, 2)]},
        "separation": {
            "mean_cosine": 0.12,
            "max_cosine": 0.34,
            "closest": list(labels[:2]),
            "jaccard": [{"fraction": f, "mean_jaccard": 0.05, "max_jaccard": 0.07} for f in fractions],
            "circuits": [
                {"label": name, "rows": 300, "active": 812, "words": [{"word": word, "mean": 0.4}]}
                for name in labels
            ],
        },
        "layerwise": {
            "rows": 64,
            "max_relative_residual": 2e-7,
            "classes": [{"label": name, **layer, "left_out": [0.1, -0.2, 0.3]} for name in labels],
        },
        "scaling": {
            "hidden": 431,
            "lm_loss": 2.31,
            "lm_loss_gated": 9.87,
            "rows": 128,
            "head_loss": 0.311,
            "head_loss_relu": 0.702,
            "head_kl": 0.404,
            "ablation_sparsity": 7.7,
            "contribution_sparsity": 8.8,
        },
        "sae": [
            {
                "kind": kind,
                "features": 3072,
                "positions": 20_000,
                "rows": 512,
                "explained_variance": 0.812,
                "l0": 31.9,
                "dead": 0.021,
                "accuracy": 0.91,
                "accuracy_change": -0.02,
                "cross_entropy": 0.32,
                "cross_entropy_change": 0.041,
                "agreement": 0.96,
            }
            for kind in ("topk", "jumprelu")
        ],
        "problems": {"probes": "ValueError: one class only"},
    }


def removal() -> dict[str, Any]:
    example = {
        "text": SHORTCUT,
        "before": "positive",
        "probability_before": 0.9,
        "after": "negative",
        "probability_after": 0.6,
    }
    return {
        "removed": ["boston"],
        "ids": [3731],
        "texts": 600,
        "flipped": 7,
        "gap_before": 0.21,
        "gap_after": 0.0,
        "accuracy_before": 0.93,
        "accuracy_after": 0.935,
        "examples": [example],
    }


def tagging() -> dict[str, Any]:
    """A tagger, whose rows are words of a text."""
    kinds = {"PER": 0.91, "LOC": 0.84, "ORG": 0.77}
    found = {
        kind: {"precision": f1 + 0.01, "recall": f1 - 0.01, "f1": f1, "support": 120}
        for kind, f1 in kinds.items()
    }
    left_out = ("accuracy", "surgery", "reference", "explanations_after", "dictionary", "sae", "problems")
    kept = {key: value for key, value in classification().items() if key not in left_out}
    return {
        **kept,
        "task": "tagging",
        "dataset": "city-news",
        "f1": 0.842,
        "token_accuracy": 0.97,
        "entities": found,
        "explanations": [CASES["row"]],
    }


def many_classes() -> dict[str, Any]:
    """Nine classes, more than are drawn."""
    names = [f"intent_{index}" for index in range(9)]
    found = {**dictionary(), "top_reasons": {name: _reasons("card", "lost", name) for name in names}}
    found["effective_vocabulary"] = dict.fromkeys(names, 40.0)
    return {**classification(), **measured(tuple(names)), "labels": names, "dictionary": found}


def hostile() -> dict[str, Any]:
    """Markup, control characters and bidi marks wherever a user's text may stand."""
    bad = HOSTILE["text"] + "</style>\n\n## "
    found = dictionary()
    found["top_reasons"] = {bad: _reasons(bad)}
    found["effective_vocabulary"] = found["texts"] = {bad: 1.0}
    found["function_words"] = {bad: [bad]}
    found["code_words"] = [{"word": bad, "label": bad, "share": 0.2, "active": 1, "occurs": 0}]
    removed = {**removal(), "removed": [bad]}
    removed["examples"] = [{**removed["examples"][0], "text": bad, "before": bad, "after": bad}]
    return {
        **classification(),
        **measured((bad, bad[::-1]), bad),
        "problems": {bad: bad},
        "dataset": bad,
        "labels": [bad],
        "model": {"backbone": bad, "honesty": bad},
        "reference": {"model": bad, "score": 0.5},
        "dictionary": found,
        "surgery": removed,
        "explanations": [HOSTILE],
        "explanations_after": [{**HOSTILE, "prediction": bad, "probabilities": {bad: 1.0}}],
        "entities": {bad: {"f1": 0.1}},
        "environment": {bad: bad},
    }


RUNS = {
    "classification": classification(),
    "tagging": tagging(),
    "many classes": many_classes(),
    "hostile": hostile(),
    "nothing": {},
}
