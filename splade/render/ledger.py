"""One explanation as an account: the words shown, the rest of them, the bias, and the logit they sum to.

1. Logit and bias are rounded to the printed decimals.
2. The words share what lies between them by largest remainder: each figure is its value rounded up or down,
   and the printed figures add up exactly.
3. The effects of removing words one by one (`ablation`) overlap, so that account holds no sum.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, final


@final
@dataclass(frozen=True)
class Ledger:
    """Printed figures: logit = bias + words + unattributed and words = figures + rest, where `sums` holds."""

    shown: Sequence[Mapping[str, Any]]
    figures: Sequence[str]
    rest_count: int
    rest: str
    words: str
    bias: str
    unattributed: str  # empty for an exact decomposition
    logit: str
    places: int
    sums: bool

    @property
    def peak(self) -> float:
        """The largest magnitude shown: the length of a full bar."""
        return peak(self.shown)

    @property
    def more(self) -> str:
        """The words left out, counted; empty when all are shown."""
        return f"{self.rest_count:,} more word{'s' if self.rest_count > 1 else ''}" if self.rest_count else ""

    @property
    def measure(self) -> str:
        """What the figures are."""
        return "Contribution" if self.sums else "Effect of removing"


def ledger(data: Mapping[str, Any], top: int) -> Ledger:
    """Split the words of an explanation into the `top` largest and the sum of the others."""
    shown, others = data["words"][:top], data["words"][top:]
    parts = [word["contribution"] for word in shown]
    if others:
        parts.append(sum(word["contribution"] for word in others))
    places, sums = _places(peak(data["words"])), data["method"] != "ablation"
    exact = data["logit"], data["bias"], data["logit"] - data["bias"] - sum(parts)
    logit, bias, left = (round(value, places) for value in exact)
    left = left if parts else round(logit - bias, places)
    if sums:
        parts = _apportion(parts, logit - bias - left, places)
    figures = [signed(value, places) for value in parts]
    return Ledger(
        shown=shown,
        figures=figures[: len(shown)],
        rest_count=len(others),
        rest=figures[-1] if others and sums else "",
        words=signed(sum(parts), places),
        bias=signed(bias, places),
        unattributed=signed(left, places) if left and sums else "",
        logit=signed(logit, places),
        places=places,
        sums=sums,
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
    """The logit in one line: what it is the sum of, or itself alone where the figures do not sum to it."""
    if not account.sums:
        return account.logit
    terms = [f"bias {account.bias}", f"words {account.words}"]
    if account.unattributed:
        terms.append(f"unattributed {account.unattributed}")
    return f"{account.logit} = {' + '.join(terms)}"


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


def _apportion(values: Sequence[float], total: float, places: int) -> list[float]:
    """Values with so many decimals that add up to the total; those with the largest fractions go up."""
    if not values or not math.isfinite(total):
        return list(values)
    units = [value * 10**places for value in values]
    floors = [math.floor(unit) for unit in units]
    every, some = divmod(round(total * 10**places) - sum(floors), len(units))
    raised = set(sorted(range(len(units)), key=lambda i: floors[i] - units[i])[:some])
    return [(floor + every + (i in raised)) / 10**places for i, floor in enumerate(floors)]
