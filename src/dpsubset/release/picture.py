"""A picture of a model: coefficients and their intervals, on one scale."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError

if TYPE_CHECKING:
    from .model import Model, Term


def coefficients(model: Model, ax: Any = None) -> Any:
    """Draw standardised coefficients with both intervals; returns the axes."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ArgumentError("a picture needs matplotlib: pip install 'dpsubset[plot]'") from None
    if any(term.standardised is None for term in model.terms):
        raise ArgumentError(
            "a picture shows standardised coefficients, which only noisy-moments can tell"
        )
    if ax is None:
        _, ax = plt.subplots(figsize=(6, 0.45 * len(model.terms) + 1.2))
    for place, term in enumerate(reversed(model.terms)):
        assert term.standardised is not None
        per = term.standardised / term.coefficient if term.coefficient else math.nan
        for interval, width in ((term.interval, 1.5), (term.table_interval, 4.0)):
            ends = [per * end for end in interval]
            if all(map(math.isfinite, ends)):
                ax.plot(ends, [place, place], linewidth=width, color="tab:blue")
        ax.plot([term.standardised], [place], "o", color=_colour(term))
    ax.axvline(0.0, color="grey", linewidth=0.8)
    ax.set_yticks(range(len(model.terms)), [term.name for term in reversed(model.terms)])
    ax.set_xlabel(f"deviations of {model.schema.response.name} a deviation of the column")
    return ax


def _colour(term: Term) -> str:
    """Filled where the sign is clear."""
    return "tab:blue" if term.clear else "tab:grey"
