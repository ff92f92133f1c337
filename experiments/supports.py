"""How well drawn supports name the true one, and where recovery rises."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import dpsubset as dps
from dpsubset.mechanisms import mechanism

from .experiment import Line, Lines
from .figures import mean, values

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Support = tuple[int, ...]


def judged(drawn: Mapping[Support | None, int], truth: Support) -> Line:
    """Recovery, the share of draws that are the truth, and their mean F1 score.

    F1 = 2 |S and T| / (|S| + |T|); 0 for a draw that released nothing.
    """
    draws = sum(drawn.values())
    score = sum(
        count * 2 * len(set(support) & set(truth)) / (len(support) + len(truth))
        for support, count in drawn.items()
        if support
    )
    return {"draws": draws, "recovery": drawn.get(truth, 0) / draws, "f1": score / draws}


def simulated(
    x: np.ndarray, y: np.ndarray, truth: Support, name: str, options: dict[str, Any], draws: int,
    **asked: Any,
) -> Line:  # fmt: skip
    """What many draws on one table come to; empty cells if a limit of the search was passed."""
    try:
        drawn = dps.simulate(
            x, y=y, k=len(truth), mechanism=mechanism(name, options), draws=draws,
            allow_unproven=True, **asked,
        )  # fmt: skip
    except dps.SearchLimitError:
        return {"draws": draws, "recovery": None, "f1": None}
    return judged(drawn, truth)


def enough(lines: Lines, share: float = 0.5) -> float:
    """The smallest n at which the mean recovery is at least a share; infinite if there is none."""
    rows = (n for n in values(lines, "n") if mean(lines, "recovery", n=n) >= share)
    return next(rows, math.inf)


def largest_fall(lines: Lines, x: str = "n", y: str = "recovery") -> float:
    """How far a mean falls from one x to the next, at most."""
    means = [found for at in values(lines, x) if (found := mean(lines, y, **{x: at})) == found]
    return max((a - b for a, b in itertools.pairwise(means)), default=0.0)


def log_axis(panel: Axes, ticks: Sequence[float]) -> None:
    """A logarithmic x axis with a few plain numbers, those that fall within what is drawn."""
    panel.set_xscale("log")
    low, high = panel.get_xlim()
    shown = [tick for tick in ticks if low <= tick <= high]
    panel.set_xticks(shown, [f"{tick:,.0f}" if tick >= 10 else f"{tick:g}" for tick in shown])
    panel.minorticks_off()


def legend(figure: Figure, panels: Iterable[Axes], columns: int) -> None:
    """One legend below the figure, with the curves of several panels."""
    handles: dict[str, Any] = {}
    for panel in panels:
        found, names = panel.get_legend_handles_labels()
        handles.update(zip(names, found, strict=True))
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=columns, fontsize=8,
                  frameon=False)  # fmt: skip
