"""noisy-moments: all entries of a fit with one draw of noise.

No entry moves by more than Delta = 2 S^2 if a record is replaced, or S^2 if one is added or
removed. One vector of noise with P(z) proportional to exp(-eta max |z_i|) on all of them therefore
costs eta Delta, however many they are: pure epsilon. With a delta, the noise is Gaussian where that
is smaller: the l2 distance of neighbouring tables is at most sqrt(d) Delta.

The proof is in `proofs/noisy-moments.md`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ..base.errors import ArgumentError
from ..base.rounding import sqrt_up_relative
from ..privacy import noise, sup_norm
from ..privacy.accounting import rho_for
from ..privacy.guarantee import Cost, Guarantee
from ..privacy.random import Randomness
from ..privacy.relations import PUBLIC_N, RELATIONS, Neighbours
from .entries import LARGEST, most_entries


def distance(neighbours: Neighbours) -> int:
    """Delta: the largest change of an entry by one record."""
    if neighbours not in RELATIONS:
        raise ArgumentError(f"neighbours must be one of {', '.join(RELATIONS)}")
    return 2 * LARGEST if neighbours == "replace-one" else LARGEST


@dataclass(frozen=True)
class NoisyMoments:
    """The noise of a fit, and its cost. Public."""

    #: The budget of the fit under ``neighbours``, for one row.
    epsilon: Fraction
    delta: Fraction
    neighbours: Neighbours
    #: Largest number of columns of a model. It determines the kind of noise, so that the price is
    #: known before the support is.
    most_columns: int

    name = "noisy-moments"

    @property
    def gaussian(self) -> bool:
        """Whether Gaussian noise is smaller for the largest possible model."""
        if not self.delta:
            return False
        d = most_entries(self.most_columns)
        return self._gaussian_scale(d) < sup_norm.deviation(d, self.eta)

    @property
    def eta(self) -> Fraction:
        """The weight of the largest entry of the noise."""
        return self.epsilon / distance(self.neighbours)

    @property
    def rho(self) -> Fraction:
        """The parameter of zero-concentrated privacy for this budget."""
        return rho_for(self.epsilon, self.delta)

    def _gaussian_scale(self, d: int) -> Fraction:
        """sqrt(d) Delta / sqrt(2 rho), rounded up."""
        square = d * Fraction(distance(self.neighbours)) ** 2 / (2 * self.rho)
        return noise.float_scale(sqrt_up_relative(square))

    def guarantee(self, *, seeded: bool = False) -> Guarantee:
        """The cost of releasing the entries, computed from the constants that the draw uses."""
        # A public n is used without noise; nothing is guaranteed for tables with different n.
        covered = PUBLIC_N if self.neighbours == "replace-one" else RELATIONS
        costs = {}
        for relation in covered:
            ratio = Fraction(distance(relation), distance(self.neighbours))
            if self.gaussian:
                costs[relation] = Cost.concentrated(self.rho * ratio**2, self.delta)
            else:
                costs[relation] = Cost(self.eta * distance(relation))
        return Guarantee(self.neighbours, costs, seeded)

    def draw(self, values: Sequence[int], rng: Randomness) -> list[int]:
        """The entries with noise."""
        if self.gaussian:
            return noise.discrete_gaussian(values, self._gaussian_scale(len(values)))
        return sup_norm.add_noise(values, self.eta, rng)

    def deviation(self, d: int) -> float:
        """The standard deviation of one of d entries, in scaled units."""
        if self.gaussian:
            return float(self._gaussian_scale(d)) / LARGEST
        return sup_norm.deviation(d, self.eta) / LARGEST

    def summary(self) -> str:
        """A phrase for the privacy statement."""
        kind = "Gaussian noise on whole numbers" if self.gaussian else "noise"
        return f"sums of products of the selected columns and the response, with {kind}"


def usual_deviation(d: int, epsilon: float, neighbours: Neighbours) -> float:
    """The deviation of pure noise in scaled units, for public rules."""
    return math.sqrt((d + 1) * (d + 2) / 3) * distance(neighbours) / LARGEST / epsilon
