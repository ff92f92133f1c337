"""Curves of recovery against epsilon or n, and their figure (extra ``plot``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..base.errors import ArgumentError
from ..base.validation import check_choice, check_progress
from .expectation import Expectation
from .inverse import Unknown
from .power import power
from .simulation import Effort, Progress

#: The points of a curve, and the quotient of its ends and its middle.
_POINTS, _FACTOR = 13, 8.0


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
        return sorted({max(2, round(value * step)) for step in steps})
    return [min(max(float(f"{float(value) * step:.4g}"), 1e-9), 1e6) for step in steps]


def picture(found: list[Expectation], over: Unknown, ax: Any = None) -> Any:
    """Draw probabilities and their intervals on matplotlib axes, and return the axes."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ArgumentError("a figure needs matplotlib: pip install 'dpsubset[plot]'") from None
    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    at = [float(getattr(one, over)) for one in found]
    low, high = zip(*(one.interval for one in found), strict=True)
    ax.fill_between(
        at, low, high, color="tab:blue", alpha=0.2, linewidth=0, label="95 % confidence interval"
    )
    ax.plot(at, [one.probability for one in found], "o-", color="tab:blue", markersize=4)
    ax.set_xscale("log")
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel("epsilon of the release" if over == "epsilon" else "rows")
    ax.set_ylabel("probability of the true support")
    first = found[0]
    held = f"n {first.n:,}" if over == "epsilon" else f"epsilon {float(first.epsilon):g}"
    assumed = first.assumed
    ax.set_title(
        f"Simulated tables: {held}, p {assumed.p:,}, k {assumed.k}, SNR {assumed.snr:g}, "
        f"rho {assumed.rho:g}\n{first.mechanism}, {first.loss}, {first.constraint}",
        loc="left",
        fontsize="medium",
    )
    ax.grid(alpha=0.3)
    ax.legend(loc="lower right", fontsize="small")
    return ax
