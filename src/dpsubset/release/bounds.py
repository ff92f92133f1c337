"""SuggestedBounds: bounds that were released privately, what they cost, and a file of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..base.text import escape_for_terminal
from ..ledger.receipt import Receipt
from ..privacy.guarantee import Guarantee, shown_cost, shown_up
from ..schema.bounds_file import dump
from ..schema.schema import Column
from .response_range import ReleasedRange, value_as_text

#: What a file of bounds states of their guarantee.
_STATED = ("private", "seeded", "epsilon", "epsilon_exact", "neighbours", "unit")


@dataclass(frozen=True)
class SuggestedBounds:
    """Bounds of some columns, from quantiles that were released privately. Public.

    Attributes
    ----------
    columns : tuple of Column
        The columns, with the bounds that were released.
    scales : tuple of ReleasedRange
        The quantiles that the bounds were computed from, with the wide bounds that were declared.
    guarantee : Guarantee
        The cost of all of them together; its parts are the columns.
    unit : str
        The unit of privacy, in words.
    facts : dict
        The contents of a bounds file: these bounds, what else is declared, and what they cost.
    receipt : Receipt, optional
        The release's entry in a ledger.
    column_warnings : tuple of str
        Columns whose type does not match the declaration; many of their cells may have counted as
        missing.
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
        """Bounds by name; those of a date are days since 1970-01-01."""
        return {c.name: (c.lo, c.hi) for c in self.columns if c.lo is not None and c.hi is not None}

    def write(self, path: str | Path) -> None:
        """Write a bounds file that states what these bounds have cost, in YAML or JSON."""
        dump(dict(self.facts), Path(path))

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        guarantee = self.guarantee.to_dict(unit=self.unit)
        return {
            "format": "dpsubset bounds 1",
            "bounds": {name: list(ends) for name, ends in self.bounds.items()},
            "quantiles": {scale.response.name: scale.to_dict() for scale in self.scales},
            "guarantee": {key: guarantee[key] for key in _STATED},
            **({"column_warnings": [*self.column_warnings]} if self.column_warnings else {}),
            **({} if self.receipt is None else {"ledger": self.receipt.to_dict()}),
        }

    def __str__(self) -> str:
        """The bounds and what they cost, in a few lines."""
        flag = ["*** NOT PRIVATE: seeded draw, for tests only ***"] if self.guarantee.seeded else []
        lines = []
        for column in self.columns:
            ends = (value_as_text(column, end) for end in self.bounds[column.name])
            lines.append(f"  {column.name}: {' to '.join(ends)}")
        heading = f"Released bounds of {len(lines)} column{'s' * (len(lines) > 1)}:"
        lines += [
            cost_line(self.guarantee, "Spent"),
            *(f"Warning: {w}" for w in self.column_warnings),
            *([f"Ledger: {self.receipt}"] if self.receipt else []),
        ]
        return "\n".join(map(escape_for_terminal, [*flag, heading, *lines]))


def cost_line(guarantee: Guarantee, verb: str) -> str:
    """Write the cost of bounds in one line: all columns cost the same."""
    costs = ", ".join(
        f"{shown_cost(cost)} under {relation}" for relation, cost in guarantee.costs.items()
    )
    count = len(guarantee.parts)
    each = ""
    if count > 1 and guarantee.parts[0][1].epsilon is not None:
        each = f" ({count} columns at {shown_up(guarantee.parts[0][1].epsilon)} each)"
    return f"{verb}: {costs}{each}"
