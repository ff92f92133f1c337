"""Recovery against epsilon or n: plans side by side, and their picture (extra ``plot``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..base.errors import ArgumentError
from ..base.validation import check_choice, check_progress
from .expectation import Expectation
from .planner import plan
from .simulated import Progress
from .smallest import Unknown

#: Points of a curve, and how far it goes on either side.
_POINTS, _FACTOR = 13, 8.0


def curve(
    over: Unknown, values: Iterable[Any], *, seconds: float = 6.0,
    progress: Progress | None = None, **asked: Any,
) -> list[Expectation]:  # fmt: skip
    """Plans that differ in epsilon or n alone; ``asked`` is what :func:`dpsubset.plan` takes."""
    check_progress(progress)
    listed = list(values)
    if not listed:
        raise ArgumentError("values must list at least one epsilon or n")
    check_choice(over, ("n", "epsilon"), "over")
    found = []
    for value in listed:
        found.append(plan(**{**asked, over: value, "seconds": seconds / len(listed)}))
        if progress is not None:
            progress(len(found) / len(listed))
    return found


def around(over: Unknown, value: Any) -> list[Any]:
    """Values on either side of one, evenly on a logarithmic scale."""
    steps = [_FACTOR ** (2 * i / (_POINTS - 1) - 1) for i in range(_POINTS)]
    if over == "n":
        return sorted({max(2, round(value * step)) for step in steps})
    return [min(max(float(f"{float(value) * step:.4g}"), 1e-9), 1e6) for step in steps]


def picture(found: list[Expectation], over: Unknown, ax: Any = None) -> Any:
    """Draw probabilities and their intervals; returns the axes."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ArgumentError("a figure needs matplotlib: pip install 'dpsubset[plot]'") from None
    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    at = [float(getattr(one, over)) for one in found]
    low, high = zip(*(one.interval for one in found), strict=True)
    ax.fill_between(at, low, high, color="tab:blue", alpha=0.2, linewidth=0, label="95 % interval")
    ax.plot(at, [one.probability for one in found], "o-", color="tab:blue", markersize=4)
    ax.set_xscale("log")
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel("epsilon of the release" if over == "epsilon" else "rows")
    ax.set_ylabel("probability of the true support")
    first = found[0]
    held = f"n {first.n:,}" if over == "epsilon" else f"epsilon {float(first.epsilon):g}"
    made_up = first.assumed
    ax.set_title(
        f"Made-up tables: {held}, p {made_up.p:,}, k {made_up.k}, SNR {made_up.snr:g}, "
        f"rho {made_up.rho:g}\n{first.mechanism}, {first.loss}, {first.constraint}",
        loc="left",
        fontsize="medium",
    )
    ax.grid(alpha=0.3)
    ax.legend(loc="lower right", fontsize="small")
    return ax
