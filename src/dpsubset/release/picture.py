"""Plot a model: coefficients and their intervals, on one scale."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..base.errors import ArgumentError
from .target import scale_of

if TYPE_CHECKING:
    from .model import Model, Term

_POINT, _WIDE, _NARROW = "tab:blue", "tab:blue", "lightsteelblue"


def coefficients(model: Model, ax: Any = None) -> Any:
    """Draw standardised coefficients with both intervals; returns the axes.

    A point is filled if the interval of the population determines the sign. A dotted line stands
    for an interval without ends.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ArgumentError("a picture needs matplotlib: pip install 'dpsubset[plot]'") from None
    if any(term.standardised is None for term in model.terms):
        raise ArgumentError(
            "a picture shows standardised coefficients, which only noisy-moments provides"
        )
    figure = None
    if ax is None:
        size = (7, 0.35 * len(model.terms) + 1.6)
        figure, ax = plt.subplots(figsize=size, layout="constrained")
    for place, term in enumerate(reversed(model.terms)):
        # The narrow interval is drawn on the wide one, as far as they overlap.
        for interval, style in (
            (term.interval, {"color": _WIDE, "linewidth": 1.2, "zorder": 3}),
            (term.table_interval, {"color": _NARROW, "linewidth": 6.0, "zorder": 2}),
        ):
            ends = _standardised_interval(term, interval)
            if ends is not None:
                ax.plot(ends, [place, place], solid_capstyle="butt", **style)
        if _standardised_interval(term, term.interval) is None:
            ax.axhline(place, color=_WIDE, linewidth=1.0, linestyle=":", zorder=1)
        ax.plot([term.standardised], [place], "o", zorder=4, color=_POINT,
                markerfacecolor=_POINT if term.clear else "white")  # fmt: skip
    ax.axvline(0.0, color="grey", linewidth=0.8, zorder=0)
    ax.set_yticks(
        range(len(model.terms)), [_without_formula(term.name) for term in reversed(model.terms)]
    )
    ax.set_ylim(-0.6, len(model.terms) - 0.4)
    response = model.schema.response
    scale = _without_formula(scale_of(response, model.link, model.loss))
    ax.set_xlabel(f"change of {scale} with the column,\nboth in standard deviations")
    heading = _without_formula(f"{model.heading[0].upper()}{model.heading[1:]}")
    r2 = "R2 not known" if model.r2 is None else f"R2 about {model.r2:.2f}"
    ax.set_title(f"{heading}\n{r2}", loc="left", fontsize="small", wrap=True)
    # A very long interval would compress all others, so it is cut at the edge of the plot.
    sizes = [abs(_standardised_size(term)) for term in model.terms]
    far = [
        abs(end)
        for term in model.terms
        for end in _standardised_interval(term, term.interval) or ()
    ]
    most = min(max([*far, *sizes, 0.1]), max(1.25, 1.5 * max(sizes, default=0.0)))
    ax.set_xlim(-1.05 * most, 1.05 * most)
    shown = _legend()
    if figure is None:
        ax.legend(shown.values(), shown.keys(), fontsize="small")
    else:
        figure.legend(shown.values(), shown.keys(), ncols=5, fontsize="small", frameon=False,
                      loc="outside lower center", columnspacing=1.2)  # fmt: skip
    return ax


def _legend() -> dict[str, Any]:
    from matplotlib.lines import Line2D

    def dot(face: str) -> Any:
        return Line2D([], [], color=_POINT, marker="o", linestyle="none", markerfacecolor=face)

    return {
        "95 % interval": Line2D([], [], color=_WIDE, linewidth=1.2),
        "of this table": Line2D([], [], color=_NARROW, linewidth=6.0),
        "not known": Line2D([], [], color=_WIDE, linewidth=1.0, linestyle=":"),
        "sign clear": dot(_POINT),
        "not clear": dot("white"),
    }


def _standardised_interval(term: Term, interval: tuple[float, float]) -> tuple[float, float] | None:
    """Convert an interval to deviations; None if an end is infinite."""
    per = _standardised_size(term) / term.coefficient if term.coefficient else math.nan
    low, high = (per * end for end in interval)
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None


def _standardised_size(term: Term) -> float:
    assert term.standardised is not None  # checked by the caller
    return term.standardised


def _without_formula(name: str) -> str:
    """Keep matplotlib from reading a name as a formula."""
    return name.replace("$", r"\$")
