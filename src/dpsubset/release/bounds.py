"""SuggestedBounds: bounds that were released privately, what they cost, and a file of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..base.rounding import float_up
from ..base.text import escape_for_terminal
from ..ledger.receipt import Receipt
from ..privacy.guarantee import Guarantee, shown_cost, shown_up
from ..schema.bounds_file import dump
from ..schema.dates import day_text
from ..schema.schema import Column
from .scale import ReleasedRange


@dataclass(frozen=True)
class SuggestedBounds:
    """Bounds of some columns, from quantiles that were released privately. Public.

    Attributes
    ----------
    columns : tuple of Column
        The columns, with the bounds that were released.
    scales : tuple of ReleasedRange
        The quantiles that they were made of, with the wide bounds that were declared.
    guarantee : Guarantee
        What all of them cost together; its parts are the columns.
    unit : str
        Whom it protects, in words.
    facts : dict
        The contents of a bounds file: these bounds, what else is known, and what they cost.
    receipt : Receipt, optional
        Its entry in a ledger.
    column_warnings : tuple of str
        Columns whose types go ill with what was declared: much of them may have been missing.
    """

    columns: tuple[Column, ...]
    scales: tuple[ReleasedRange, ...]
    guarantee: Guarantee
    unit: str
    facts: Mapping[str, Any] = field(repr=False)
    receipt: Receipt | None = None
    column_warnings: tuple[str, ...] = ()

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """By name; of a date, days since 1970-01-01."""
        return {c.name: (c.lo, c.hi) for c in self.columns if c.lo is not None and c.hi is not None}

    def write(self, path: str | Path) -> None:
        """Write a bounds file that says what these bounds have cost: JSON if its name ends so."""
        dump(dict(self.facts), Path(path))

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        g = self.guarantee
        return {
            "format": "dpsubset bounds 1",
            "bounds": {name: list(ends) for name, ends in self.bounds.items()},
            "quantiles": {scale.response.name: scale.to_dict() for scale in self.scales},
            "guarantee": {
                "private": g.private,
                "seeded": g.seeded,
                "epsilon": None if g.epsilon is None else float_up(g.epsilon),
                "epsilon_exact": str(g.epsilon),
                "neighbours": g.neighbours,
                "unit": self.unit,
            },
            **({"column_warnings": [*self.column_warnings]} if self.column_warnings else {}),
            **({} if self.receipt is None else {"ledger": self.receipt.to_dict()}),
        }

    def __str__(self) -> str:
        """The bounds and what they cost, in a few lines."""
        flag = ["*** NOT PRIVATE: seeded draw, for tests only ***"] if self.guarantee.seeded else []
        lines = [f"  {c.name}: {_shown(c, c.lo)} to {_shown(c, c.hi)}" for c in self.columns]
        heading = f"Released bounds of {len(lines)} column{'s' * (len(lines) > 1)}:"
        lines += [told(self.guarantee, "Spent"), *(f"Warning: {w}" for w in self.column_warnings)]
        return "\n".join(map(escape_for_terminal, [*flag, heading, *lines]))


def told(guarantee: Guarantee, verb: str) -> str:
    """What bounds cost, in one line: not column by column, for these are all alike."""
    costs = ", ".join(
        f"{shown_cost(cost)} under {relation}" for relation, cost in guarantee.costs.items()
    )
    count = len(guarantee.parts)
    each = ""
    if count > 1 and guarantee.parts[0][1].epsilon is not None:
        each = f" ({count} columns at {shown_up(guarantee.parts[0][1].epsilon)} each)"
    return f"{verb}: {costs}{each}"


def _shown(column: Column, value: float | None) -> str:
    assert value is not None
    return day_text(value) if column.kind == "date" else f"{value:.6g}"
