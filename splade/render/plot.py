"""The concept words of an explanation as a chart; needs matplotlib, which the extra `report` installs."""

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from splade.render.ledger import ledger
from splade.render.palette import MUTED, RULE, hue
from splade.render.text import label

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def word_bars(data: Mapping[str, Any], top: int = 15, path: str | PathLike[str] | None = None) -> "Axes":
    """Draw the `top` largest contributions as bars about zero, save them if a path is given."""
    account = ledger(data, top)
    values = [word["contribution"] for word in account.shown]
    axes = _axes(rows=len(values), interactive=path is None)
    drawn = axes.barh(range(len(values)), values, height=0.62, color=[hue(value) for value in values])
    figures = [figure.replace("-", "−") for figure in account.figures]
    axes.bar_label(drawn, figures, padding=4, fontsize=9, color=MUTED)
    # A user's word is never mathematics: "$\frac" would stop the drawing.
    axes.set_yticks(range(len(values)), [label(word["word"]) for word in account.shown], parse_math=False)
    measure = f"{account.measure.lower()} {'to' if account.sums else 'on'} the logit of "
    axes.set_xlabel(measure + label(data["explained"]), parse_math=False, color=MUTED)
    _settle(axes)
    if path is not None:
        axes.get_figure(root=True).savefig(path, dpi=200)  # type: ignore[union-attr]
    return axes


def _axes(rows: int, interactive: bool) -> "Axes":
    """Axes of a pyplot figure, which a notebook displays, or of a free one, which nothing keeps alive."""
    size = (7.0, 1.1 + 0.3 * max(rows, 1))
    try:
        if interactive:
            from matplotlib import pyplot

            return pyplot.subplots(figsize=size, layout="constrained")[1]
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('Plots need matplotlib: pip install "lexical-sae[report]"') from error
    return Figure(figsize=size, layout="constrained").subplots()


def _settle(axes: "Axes") -> None:
    """Largest on top, zero drawn, room for the figures, nothing else."""
    axes.invert_yaxis()
    axes.margins(x=0.14, y=0.02)
    axes.axvline(0, color=RULE, linewidth=1, zorder=0)
    axes.tick_params(length=0, labelsize=10)
    axes.tick_params(axis="x", labelsize=9, labelcolor=MUTED)
    axes.spines[:].set_visible(False)
