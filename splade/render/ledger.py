"""One explanation as an account: the words shown, the rest of them, the bias, and the logit they sum to."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, final


@final
@dataclass(frozen=True)
class Ledger:
    """logit = shown + rest + bias + unattributed; the last is zero for an exact decomposition."""

    shown: Sequence[Mapping[str, Any]]
    rest_count: int
    rest: float
    words: float
    bias: float
    logit: float
    places: int

    @property
    def peak(self) -> float:
        """The largest magnitude shown: the length of a full bar."""
        return peak(self.shown)

    @property
    def unattributed(self) -> float:
        """What the words and the bias leave open, or 0 where that is below the printed decimals."""
        left = self.logit - self.bias - self.words
        return left if abs(left) >= 0.5 * 10.0**-self.places else 0.0


def ledger(data: Mapping[str, Any], top: int) -> Ledger:
    """Split the words of an explanation into the `top` largest and the sum of the others."""
    words = data["words"]
    rest = [word["contribution"] for word in words[top:]]
    total = math.fsum(word["contribution"] for word in words)
    return Ledger(
        shown=words[:top],
        rest_count=len(rest),
        rest=math.fsum(rest),
        words=total,
        bias=data["bias"],
        logit=data["logit"],
        places=_places(peak(words)),
    )


def peak(items: Sequence[Mapping[str, Any]]) -> float:
    """The largest finite magnitude of the items' contributions, 0 when there is none."""
    finite = (abs(item["contribution"]) for item in items if math.isfinite(item["contribution"]))
    return max(finite, default=0.0)


def strength(value: float, largest: float) -> float:
    """|value| relative to the largest, in [0, 1]."""
    if largest <= 0 or math.isnan(value):
        return 0.0
    return min(1.0, abs(value) / largest)


def signed(value: float, places: int) -> str:
    """The value with its sign and fixed decimals; a value that rounds to zero is +0."""
    return f"{round(value, places) + 0.0:+.{places}f}"


def equation(account: Ledger) -> str:
    """The sum in one line: logit = bias + words, and what they leave open if anything."""
    terms = [f"bias {signed(account.bias, account.places)}", f"words {signed(account.words, account.places)}"]
    if account.unattributed:
        terms.append(f"unattributed {signed(account.unattributed, account.places)}")
    return f"{signed(account.logit, account.places)} = {' + '.join(terms)}"


def percent(probability: float) -> str:
    """A probability in percent that never rounds an uncertain prediction to certainty."""
    if 0.9995 <= probability < 1:
        return ">99.9%"
    if 0 < probability < 0.0005:
        return "<0.1%"
    return f"{100 * probability:.1f}%"


def number(value: object) -> str:
    """A metric for reading: grouped integers, three decimals, exponents for the very small."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return f"{int(value):,}"
    if not isinstance(value, Real):
        return str(value)
    real = float(value)
    return f"{real:.1e}" if 0 < abs(real) < 0.001 else f"{real:,.3f}"


def is_number(value: object) -> bool:
    """Whether the value belongs in a right-aligned column."""
    return isinstance(value, Real) and not isinstance(value, bool)


def _places(largest: float) -> int:
    """Decimals that give the largest contribution three significant digits, from 2 to 6."""
    if largest <= 0:
        return 2
    return min(6, max(2, 2 - math.floor(math.log10(largest))))
