"""A budget for integers that are released with noise, or selected by noisy size.

========  ==============================  ==============================  =====================
measure   m values, each moved by c       k picks among scores moved by c  adds up
========  ==============================  ==============================  =====================
pure      discrete Laplace, m c / e       permute-and-flip, 2 k c / e      epsilon
zcdp      discrete Gaussian,              exponential mechanism,           rho
          c sqrt(m / (2 r))               c sqrt(k / (2 r))
========  ==============================  ==============================  =====================

The second and third columns have the scales of the noise; e or r is the part of the budget for it.
All noise is that of `noise.py`: exact, on integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ..base.rounding import sqrt_up_relative
from .accounting import rho_for
from .guarantee import Cost
from .noise import (
    Measure,
    discrete_gaussian,
    discrete_laplace,
    float_scale,
    noisy_top,
    noisy_top_zcdp,
    top_scale,
    top_scale_zcdp,
)
from .relations import RELATIONS, Neighbours

#: Number of records that are added or removed between neighbours: a replacement is one of each.
RECORDS: dict[Neighbours, int] = {"add-remove": 1, "replace-one": 2}


@dataclass(frozen=True)
class Budget:
    """Epsilon under the measure "pure", rho under "zcdp"; rho is reported as epsilon at delta."""

    measure: Measure
    amount: Fraction
    delta: Fraction = Fraction(0)

    @classmethod
    def of(cls, epsilon: Fraction, delta: Fraction, values: int) -> Budget:
        """The measure with less noise for this number of values; without a delta, pure.

        The variance of a value is 2 (m c / e)^2 or m c^2 / (2 r).
        """
        pure = cls("pure", epsilon)
        if not delta:
            return pure
        zcdp = cls("zcdp", rho_for(epsilon, delta), delta)
        return zcdp if 4 * values * zcdp.amount > epsilon**2 else pure

    def part(self, fraction: Fraction) -> Budget:
        return replace(self, amount=fraction * self.amount)

    def value_scale(self, count: int, change: int) -> Fraction:
        """Scale of the noise of ``count`` values that change by ``change`` between neighbours."""
        if self.measure == "pure":
            return float_scale(count * change / self.amount)
        return float_scale(sqrt_up_relative(count * change**2 / (2 * self.amount)))

    def values(self, values: Sequence[int], change: int) -> list[int]:
        """Add noise to values, for the whole budget."""
        scale = self.value_scale(len(values), change)
        noise = discrete_laplace if self.measure == "pure" else discrete_gaussian
        return noise(values, scale)

    def pick_scale(self, count: int, change: int) -> Fraction:
        """Scale of ``count`` picks among scores that change by ``change`` between neighbours."""
        scale = top_scale if self.measure == "pure" else top_scale_zcdp
        return scale(count, self.amount, sensitivity=change)

    def picks(self, scores: Sequence[int], count: int, change: int) -> list[int]:
        """Indices of the noisy largest scores, for the whole budget."""
        pick = noisy_top if self.measure == "pure" else noisy_top_zcdp
        return pick(scores, count, self.amount, sensitivity=change)

    def deviation(self, count: int, change: int) -> float:
        """Standard deviation of the noise of a value, as a float for display."""
        scale = float(self.value_scale(count, change))
        return scale * (2**0.5 if self.measure == "pure" else 1.0)

    def costs(self, neighbours: Neighbours) -> dict[Neighbours, Cost]:
        """Cost under either relation, of noise for sums over records and one of the relations.

        Noise for one record covers two records at twice the privacy loss.
        """
        found = {}
        for relation in RELATIONS:
            ratio = Fraction(RECORDS[relation], RECORDS[neighbours])
            if self.measure == "pure":
                found[relation] = Cost(self.amount * ratio)
            else:
                found[relation] = Cost.concentrated(self.amount * ratio**2, self.delta)
        return found
