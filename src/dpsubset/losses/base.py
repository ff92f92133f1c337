"""What a loss must say of itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Loss:
    """A loss l(y, t) with y in [-1, 1] and |t| <= B.

    Attributes
    ----------
    name : str
        As in ``select(loss=...)``.
    ranges : mapping from rule to function of the reach B
        ``"sharp"`` is the largest range of the loss at fixed y; other rules are published bounds,
        looser, kept to reproduce figures.
    """

    name: str
    ranges: Mapping[str, Callable[[Fraction], Fraction]]
