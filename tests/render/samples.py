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
    """`reads` maps a concept word to the input word it was read at and its contribution."""
    spans = [
        {"start": found.start(), "end": found.end(), "text": found.group(), "contribution": 0.0}
        for found in re.finditer(r"\w+|[^\w\s]+", text)
    ]
    words = [_word(name, at, value, spans) for name, (at, value) in reads.items()]
    for index in range(faint):
        at = spans[index * 7 % len(spans)]["text"]
        words.append(_word(f"faint{index}", at, 0.01 * math.cos(index), spans))
    logit = bias + math.fsum(word["contribution"] for word in words)
    probability = 1 / (1 + math.exp(-min(abs(logit), 700.0)))
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


REVIEW = explanation(
    "The acting is superb and the script is sharp, but the ending drags and the score is dull.",
    {
        "excellent": ("superb", 1.314),
        "clever": ("sharp", 0.876),
        "boring": ("drags", -0.933),
        "dull": ("dull", -0.7251),
        "actor": ("acting", 0.2244),
        "music": ("score", 0.0717),
        "slow": ("drags", -0.4449),
    },
    faint=40,
)
HOSTILE = explanation(
    "<script>alert(1)</script> & \"quoted\" 'single' [bold red]x[/] \x1b[31m\x00\u202eevil\u202c $\\frac",
    {"<img/src=x onerror=alert(2)>": ("script", 1.25), "[red]$\\frac\x1b[2J": ("evil", -0.5)},
    classes=("</style><b>yes</b>", "no\u202e\x07\nline"),
)
LONG = explanation("filler words without meaning . " * 33_000 + "superb", {"excellent": ("superb", 2.0)})


def attention() -> dict[str, Any]:
    """A word that is read at several places."""
    data = explanation("one two three four five six", {"number": ("one", 1.0), "odd": ("three", -0.25)})
    spans = [{key: span[key] for key in ("start", "end", "text")} for span in data["spans"]]
    data["words"][0]["read_at"] = [
        {**span, "share": share} for span, share in zip(spans, _SHARES, strict=True)
    ]
    return data


def ablation() -> dict[str, Any]:
    """Effects of removing words, which overlap."""
    data = {**REVIEW, "method": "ablation"}
    data["words"] = [{**word, "contribution": 0.7 * word["contribution"]} for word in REVIEW["words"]]
    return data


def many_classes(count: int = 77) -> dict[str, Any]:
    """One prediction among many classes."""
    others = {f"intent_{index}": 0.4 / (count - 1) for index in range(count - 1)}
    return {
        **REVIEW,
        "prediction": "card_arrival",
        "probability": 0.6,
        "probabilities": {"card_arrival": 0.6, **others},
    }


_SHARES = (0.5, 0.2, 0.1, 0.1, 0.06, 0.04)
CASES = {
    "review": REVIEW,
    "hostile": HOSTILE,
    "long": LONG,
    "empty": explanation("", {}),
    "blank": explanation(" \n\t ", {}),
    "emoji": explanation("😀 👩‍👩‍👧 🇫🇷🎉", {"happy": ("😀", 1.0)}),
    "unseen": explanation("a\x00b \u202eabc\u202c\u200b\ufeff \ud800 \x9b31m\tz\r\ny", {"z": ("z", 1.0)}),
    "no words": explanation("nothing fires here", {}),
    "no spans": {**REVIEW, "spans": []},
    "right to left": explanation("هذا الفيلم رائع", {"ممتاز": ("رائع", 1.5)}, classes=("إيجابي", "سلبي")),
    "attention": attention(),
    "ablation": ablation(),
    "77 classes": many_classes(),
    "row": explanation(
        "Angela Merkel visited Paris", {"france": ("Paris", 2.5)}, classes=("B-LOC", "O"), row="Paris"
    ),
    "tiny": explanation("so small", {"small": ("small", 1e-9)}, bias=0.0),
    "huge": explanation("so large", {"large": ("large", 1.25e6)}, bias=-3.5),
    "not a number": explanation("broken weights", {"broken": ("broken", math.nan)}),
    "cut": {**REVIEW, "truncated": True, "residual": 0.5, "logit": REVIEW["logit"] + 0.5},
}
