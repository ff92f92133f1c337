"""Provenance: which bounds of a schema were released privately, and their cost. Public.

A bound that is computed from the rows is a release. `dpsubset bounds suggest` pays for its bounds,
and a schema with such bounds records their cost, which adds to the cost of releases with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..base.errors import SchemaError

#: Key in a bounds file.
KEY = "bounds_released"

_KEYS = ("columns", "epsilon", "neighbours", "seeded")
_RELATIONS = ("replace-one", "add-remove")

#: Largest number of characters of an epsilon in a file.
_LONGEST = 2000


@dataclass(frozen=True)
class PaidBounds:
    """Bounds that were released together."""

    #: Names of the columns.
    columns: tuple[str, ...]
    #: Cost of their release, for a privacy unit of the schema.
    epsilon: Fraction
    #: The relation of neighbours of that cost.
    neighbours: str
    #: Whether the draw was seeded, and hence not private.
    seeded: bool = False

    def entry(self) -> dict[str, Any]:
        """The entry in a bounds file."""
        return {
            "columns": list(self.columns),
            "epsilon": str(self.epsilon),
            "neighbours": self.neighbours,
            **({"seeded": True} if self.seeded else {}),
        }


def paid_bounds(entries: Any) -> tuple[PaidBounds, ...]:
    """Read the entries of a bounds file."""
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        raise SchemaError(f"{KEY} is a list, written by 'dpsubset bounds suggest'")
    return tuple(map(_paid_bounds_of_entry, entries))


def _paid_bounds_of_entry(entry: Any) -> PaidBounds:
    wrong = SchemaError(
        f"{KEY}: an entry has columns, epsilon and neighbours, as 'dpsubset bounds suggest' wrote "
        "it"
    )
    if not isinstance(entry, Mapping) or any(key not in _KEYS for key in entry):
        raise wrong
    columns, neighbours = entry.get("columns"), entry.get("neighbours")
    epsilon, seeded = entry.get("epsilon"), entry.get("seeded", False)
    if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
        raise wrong
    if neighbours not in _RELATIONS or not isinstance(seeded, bool):
        raise wrong
    # A file edited by hand may have a plain number.
    text = str(epsilon) if isinstance(epsilon, (str, int, float)) else ""
    cost = None
    if len(text) <= _LONGEST and "e" not in text.lower():
        with suppress(ValueError, ZeroDivisionError):
            cost = Fraction(text)
    if cost is None or cost <= 0 or isinstance(epsilon, bool):
        raise wrong
    return PaidBounds(tuple(columns), cost, neighbours, seeded)
