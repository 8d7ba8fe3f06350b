"""Explanations whose parts sum exactly, built from a text and a few contributions."""

import math
import re
from collections.abc import Mapping
from typing import Any


def explanation(
    text: str,
    reads: Mapping[str, tuple[str, float]],
    *,
    bias: float = 0.12,
    classes: tuple[str, str] = ("positive", "negative"),
    faint: int = 0,
    row: str | None = None,
) -> dict[str, Any]:
    """`reads` maps a concept word to the input word it was read at and its contribution; `faint` adds more."""
    spans = [
        {"start": found.start(), "end": found.end(), "text": found.group(), "contribution": 0.0}
        for found in re.finditer(r"\w+|[^\w\s]+", text)
    ]
    words = [_word(name, at, value, spans) for name, (at, value) in reads.items()]
    for index in range(faint):
        at = spans[index * 7 % len(spans)]["text"]
        words.append(_word(f"faint{index}", at, 0.01 * math.cos(index), spans))
    logit = bias + math.fsum(word["contribution"] for word in words)
    probability = 1 / (1 + math.exp(-abs(logit)))
    prediction = classes[0] if logit > 0 else classes[1]
    other = classes[1] if logit > 0 else classes[0]
    return {
        "text": text,
        "truncated": False,
        "row": None if row is None else _find(row, spans),
        "prediction": prediction,
        "probability": probability,
        "probabilities": {prediction: probability, other: 1 - probability},
        "explained": classes[0],
        "method": "dla",
        "logit": logit,
        "bias": bias,
        "residual": 1.1e-8,
        "active_words": len(words),
        "words": sorted(words, key=lambda word: -abs(word["contribution"])),
        "spans": spans,
    }


def _find(text: str, spans: list[dict[str, Any]]) -> dict[str, Any]:
    span = next(span for span in spans if span["text"] == text)
    return {"start": span["start"], "end": span["end"], "text": text}


def _word(name: str, at: str, value: float, spans: list[dict[str, Any]]) -> dict[str, Any]:
    span = next(span for span in spans if span["text"] == at)
    span["contribution"] += value
    read = {"start": span["start"], "end": span["end"], "text": at, "share": 1.0}
    return {"word": name, "id": len(name), "activation": 1.5, "contribution": value, "read_at": [read]}
