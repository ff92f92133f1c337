"""What the figures share: colours of mechanisms, means of lines, curves with their errors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .experiment import Line, Lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: By name; those that are safe for most eyes, ours first.
COLOURS = {
    "permute-and-flip": "#0072b2", "exponential": "#56b4e9", "top-r": "#d55e00",
    "mistakes": "#e69f00", "metropolis": "#009e73", "sample-aggregate": "#cc79a7",
    "peeling": "#999999", "hard-thresholding": "#a6761d", "frank-wolfe": "#666666",
    "stability": "#332288", "not private": "#000000",
}  # fmt: skip
#: For what is not a mechanism.
CYCLE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")


def where(lines: Lines, **wanted: Any) -> list[Line]:
    """Those lines that have the wanted values."""
    return [line for line in lines if all(line.get(name) == v for name, v in wanted.items())]


def values(lines: Lines, name: str) -> list[Any]:
    """The different values of a column, in order."""
    return sorted({line[name] for line in lines if line.get(name) is not None})


def mean(lines: Lines, name: str, **wanted: Any) -> float:
    """The mean of a column over the lines with the wanted values; NaN if there is none."""
    found = [line[name] for line in where(lines, **wanted) if line.get(name) is not None]
    return float(np.mean(found)) if found else math.nan


def curve(
    panel: Axes, lines: Lines, x: str, y: str, *, label: str | None = None, band: bool = True,
    **style: Any,
) -> None:  # fmt: skip
    """Means of y at each x, and a band of two standard errors."""
    points, heights, errors = [], [], []
    for at in values(lines, x):
        found = [line[y] for line in where(lines, **{x: at}) if line.get(y) is not None]
        if found:
            points.append(at)
            heights.append(float(np.mean(found)))
            errors.append(float(np.std(found, ddof=1) / math.sqrt(len(found))) if found[1:] else 0)
    style = {"marker": "o", "markersize": 3.5, **style}
    (drawn,) = panel.plot(points, heights, label=label, **style)
    if band:
        low = np.array(heights) - 2 * np.array(errors)
        high = np.array(heights) + 2 * np.array(errors)
        panel.fill_between(points, low, high, color=drawn.get_color(), alpha=0.12, linewidth=0)


def finish(panels: Iterable[Axes] | Sequence[Axes], x: str, y: str, *, share: bool = False) -> None:
    """Labels and grid; y from 0 to 1 if it is a share. Numbers of a logarithmic axis in full."""
    for index, panel in enumerate(panels):
        if panel.get_xscale() == "log":
            _in_full(panel)
        panel.set_xlabel(x)
        if index == 0:
            panel.set_ylabel(y)
        panel.grid(alpha=0.3)
        if share:
            panel.set_ylim(-0.03, 1.03)


def _in_full(panel: Axes) -> None:
    """1,000 and 3,000 in place of powers of ten, unless the ticks were chosen already."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

    if isinstance(panel.xaxis.get_major_locator(), FixedLocator):
        return
    low, high = panel.get_xlim()
    panel.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0) if high > 8 * low else (1, 2, 3, 5)))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
