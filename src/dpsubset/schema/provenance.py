"""Provenance: which bounds of a schema were released privately, and what that has cost. Public.

A bound that was read off the rows is a release. One that `dpsubset bounds suggest` made has been
paid for; a schema that holds it remembers the price, so that whoever uses it can add it up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..base.errors import SchemaError

#: The key of a bounds file.
KEY = "bounds_released"

_KEYS = ("columns", "epsilon", "neighbours", "seeded")
_RELATIONS = ("replace-one", "add-remove")

#: Digits of an epsilon in a file: beyond them it is no number that somebody has paid.
_LONGEST = 2000


@dataclass(frozen=True)
class PaidBounds:
    """Bounds that were released together.

    Attributes
    ----------
    columns : tuple of str
        Whose bounds they are.
    epsilon : Fraction
        What their release has cost, for a unit of the schema.
    neighbours : {"replace-one", "add-remove"}
        Under which relation.
    seeded : bool
        Whether the draw had a seed, and so was not private.
    """

    columns: tuple[str, ...]
    epsilon: Fraction
    neighbours: str
    seeded: bool = False

    def entry(self) -> dict[str, Any]:
        """What a bounds file says of it."""
        return {
            "columns": list(self.columns),
            "epsilon": str(self.epsilon),
            "neighbours": self.neighbours,
            **({"seeded": True} if self.seeded else {}),
        }


def paid_bounds(entries: Any) -> tuple[PaidBounds, ...]:
    """From the contents of a bounds file, or a clear error."""
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        raise SchemaError(f"{KEY} is a list, written by 'dpsubset bounds suggest'")
    return tuple(map(_paid, entries))


def _paid(entry: Any) -> PaidBounds:
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
    # Whoever copies the file by hand may write a plain number.
    text = str(epsilon) if isinstance(epsilon, (str, int, float)) else ""
    cost = None
    if len(text) <= _LONGEST and "e" not in text.lower():
        with suppress(ValueError, ZeroDivisionError):
            cost = Fraction(text)
    if cost is None or cost <= 0 or isinstance(epsilon, bool):
        raise wrong
    return PaidBounds(tuple(columns), cost, neighbours, seeded)
