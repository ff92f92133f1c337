"""Curves of recovery against epsilon or n, and their figure (extra ``plot``)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ..base.errors import ArgumentError
from ..base.validation import check_choice, check_progress
from .expectation import Expectation
from .inverse import Unknown
from .power import LARGEST_N, power
from .simulation import Effort, Progress

#: The points of a curve, and the quotient of its ends and its middle.
_POINTS, _FACTOR = 13, 8.0
#: The most ticks of the x axis whose labels have room beside each other.
_MOST_TICKS = 6


def curve(
    over: Unknown, values: Iterable[Any], *, seconds: float = 6.0,
    progress: Progress | None = None, **options: Any,
) -> list[Expectation]:  # fmt: skip
    """Run power analyses that differ only in epsilon or n, with common random numbers.

    Parameters
    ----------
    over : {"n", "epsilon"}
        What differs.
    values : iterable
        The values of n or epsilon.
    seconds : float
        Approximate time limit for all of them.
    progress : callable, optional
        Called with the completed fraction of the simulation.
    **options
        Arguments of :func:`dpsubset.power`.
    """
    check_progress(progress)
    listed = list(values)
    if not listed:
        raise ArgumentError("values must list at least one epsilon or n")
    check_choice(over, ("n", "epsilon"), "over")
    if options.get("seed") is None:
        options["seed"] = Effort().seed
    found = []
    for value in listed:
        found.append(power(**{**options, over: value, "seconds": seconds / len(listed)}))
        if progress is not None:
            progress(len(found) / len(listed))
    return found


def around(over: Unknown, value: Any) -> list[Any]:
    """Values below and above the given one, evenly spaced on a logarithmic scale."""
    steps = [_FACTOR ** (2 * i / (_POINTS - 1) - 1) for i in range(_POINTS)]
    if over == "n":
        return sorted({min(max(2, round(value * step)), LARGEST_N) for step in steps})
    return [min(max(float(f"{float(value) * step:.4g}"), 1e-9), 1e6) for step in steps]


def picture(found: list[Expectation], over: Unknown) -> Any:
    """Draw both numbers of each profile of signals on matplotlib axes, and return the axes."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ArgumentError("a figure needs matplotlib: pip install 'dpsubset[plot]'") from None
    _, ax = plt.subplots(figsize=(6.4, 4.8), layout="constrained")
    at = [float(getattr(one, over)) for one in found]
    for i, (population, _) in enumerate(found[0].cases):
        color = f"C{i}"
        recoveries = [one.cases[i][1] for one in found]
        low, high = zip(*(each.interval for each in recoveries), strict=True)
        ax.fill_between(at, low, high, color=color, alpha=0.2, linewidth=0)
        ax.plot(
            at, [each.probability for each in recoveries], "o-", color=color, markersize=4,
            label=f"whole set: {population.profile}",
        )  # fmt: skip
        ax.plot(
            at, [each.expected_found / population.k for each in recoveries], "--", color=color,
            label="expected fraction of its variables",
        )  # fmt: skip
    _put_ticks(ax, at)
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel("epsilon of the release" if over == "epsilon" else "rows")
    ax.set_ylabel("probability, or expected fraction")
    first = found[0]
    held = f"n {first.n:,}" if over == "epsilon" else f"epsilon {float(first.epsilon):g}"
    assumed = first.assumed
    ax.set_title(
        f"Simulated tables: {held}, p {assumed.p:,}, k {assumed.k}, SNR {assumed.snr:g}, "
        f"rho {assumed.rho:g}\n{first.release}: {first.mechanism}, {first.loss}, "
        f"{first.constraint}; bands: 95 % confidence",
        loc="left",
        fontsize="medium",
    )
    ax.grid(alpha=0.3)
    ax.figure.legend(loc="outside lower center", ncols=2, fontsize="small")
    return ax


def _put_ticks(ax: Any, at: list[float]) -> None:
    """Use a logarithmic axis with few ticks: 1, 2 and 5 of each decade, or decades alone."""
    from matplotlib.ticker import MaxNLocator, NullLocator

    low, high = min(at), max(at)
    ax.set_xscale("log")
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [digit * 10.0**decade for decade in decades for digit in (1, 2, 5)]
    if high == low:
        ticks = [low]
    elif high < 5 * low:
        ticks = [float(tick) for tick in MaxNLocator(5).tick_values(low, high)]
    inside = [tick for tick in ticks if low <= tick * (1 + 1e-9) and tick <= high * (1 + 1e-9)]
    if len(inside) > _MOST_TICKS:
        inside = [tick for tick in inside if f"{tick:e}".startswith("1")]
    inside = inside[:: math.ceil(len(inside) / _MOST_TICKS) or 1] or [low]
    ax.set_xticks(inside, [_label(tick) for tick in inside])
    ax.xaxis.set_minor_locator(NullLocator())


def _label(tick: float) -> str:
    if tick >= 1e6:
        return f"{tick / 1e6:,.6g}M"
    return f"{tick:,.0f}" if tick >= 1000 else f"{tick:.6g}"
