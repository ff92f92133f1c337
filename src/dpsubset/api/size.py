"""The number of variables: k as given, or chosen privately among all numbers up to max_k. Public.

``k="auto"`` stands for a mechanism that draws the number with the variables, with k = max_k.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from ..base.errors import ArgumentError
from ..base.validation import check_int
from ..mechanisms import MECHANISMS, Mechanism
from ..mechanisms import mechanism as find_mechanism

#: The value of k that has the number chosen.
AUTO: Literal["auto"] = "auto"

#: The types of k in public functions; None stands for "auto" with a max_k.
Size: TypeAlias = int | Literal["auto"] | None

#: The mechanism of k="auto", and the default of max_k. docs/developers.md has the measurements.
CHOOSES, MOST = "penalised", 5


def is_chosen(k: Any, max_k: Any) -> bool:
    """Return whether the number of variables is to be chosen privately; refuse contradictions."""
    if k is None and max_k is None:
        raise ArgumentError(
            "give k, the number of variables to select. If it is not known, k='auto' has it chosen "
            "privately, up to max_k"
        )
    chosen = k is None or (isinstance(k, str) and k == AUTO)
    if not chosen and isinstance(k, str):
        raise ArgumentError("k must be a whole number, or 'auto' to have it chosen privately")
    if not chosen and max_k is not None:
        raise ArgumentError(
            "max_k is the largest number of variables with k='auto': leave out max_k to select "
            "exactly k, or give k='auto'"
        )
    return chosen


def mechanism_of(
    k: Any, max_k: Any, mechanism: str | Mechanism | None, options: Mapping[str, Any] | None
) -> Mechanism:
    """Return the mechanism, which must choose the number of variables if that is not given."""
    chosen = is_chosen(k, max_k)
    if mechanism is None and chosen:
        mechanism = CHOOSES
    found = find_mechanism(mechanism, options)
    if chosen and not found.chooses_size:
        able = " or ".join(name for name, cls in MECHANISMS.items() if cls.chooses_size)
        raise ArgumentError(
            f"{found.name} cannot choose the number of variables: with k='auto' leave mechanism "
            f"out, or take {able}. To use {found.name}, give k as a number"
        )
    return found


def largest_size(max_k: Any, p: int) -> int:
    """Return the largest number of variables that may be chosen among p."""
    if max_k is None:
        return min(MOST, p)
    most = check_int(max_k, "max_k")
    if not 1 <= most <= p:
        raise ArgumentError(
            f"max_k must lie between 1 and {p}, the number of variables to choose from (a group "
            "counts once, and so does a column with levels)"
        )
    return most
