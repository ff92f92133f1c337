"""Peel: the k noisy largest of some integers by size, and their values with noise.

Cai, Wang and Zhang's Algorithms 1 (k = 1, `PrivateMax`) and 2 (`Peeling`), for a vector of integers
v of which neighbours move each by at most ``change``:

    S = noisy top k of |v_j|,    w_j = v_j + z_j for j in S,    0 for all others.

Picks and values have a share of the budget each. Their Laplace noise on all coordinates, anew in
every round, is replaced by picks that cost the same and err less (permute-and-flip, or Gumbel noise
under zCDP), and their composition, epsilon / (2 sqrt(3 k log(1/delta))) a round, by one sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..base.errors import ArgumentError
from ..base.validation import as_decimal_fraction, check_fraction
from ..privacy.budget import Budget


@dataclass(frozen=True)
class Peel:
    """k picks and their values, out of one budget. Public."""

    #: Of all of it.
    budget: Budget
    k: int
    #: Of the budget, for picks.
    share: Fraction = Fraction(1, 2)
    #: How many values are released beside those that were picked.
    more: int = 0

    @classmethod
    def of(
        cls,
        epsilon: Fraction,
        delta: Fraction,
        k: int,
        share: Any = Fraction(1, 2),
        more: int = 0,
    ) -> Peel:
        """Of the measure that needs less noise."""
        found = as_decimal_fraction(share)
        part = check_fraction(share, "share") if found is None else found
        if not Fraction(1, 1000) <= part <= Fraction(999, 1000):
            raise ArgumentError("share must lie between 0.001 and 0.999")
        return cls(Budget.of(epsilon, delta, k + more), k, part, more)

    def draw(
        self, values: Sequence[int], change: int, more: Sequence[int] = ()
    ) -> tuple[list[int], list[int]]:
        """Positions in the order of picks, and noisy values: theirs, then those of ``more``."""
        sizes = [abs(value) for value in values]
        picked = self.budget.part(self.share).picks(sizes, self.k, change)
        wanted = [*(values[j] for j in picked), *more]
        return picked, self.budget.part(1 - self.share).values(wanted, change)

    def deviation(self, change: int) -> float:
        """Standard deviation of the noise of a value."""
        return self.budget.part(1 - self.share).deviation(self.k + self.more, change)
