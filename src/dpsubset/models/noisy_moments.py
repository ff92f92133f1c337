"""noisy-moments: all sums of a fit with one draw of noise.

No sum moves by more than Delta = 2 S^2 if a record is replaced, or S^2 if one is added or removed.
So one vector of noise with P(z) proportional to exp(-eta max |z_i|) on all of them costs
eta Delta, however many they are: pure epsilon. With a delta the noise is Gaussian instead where
that is less: the l2 distance of neighbours is at most sqrt(d) Delta.

`proofs/noisy-moments.md` has the proof.
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
    """Delta: how far one record moves a sum, at most."""
    if neighbours not in RELATIONS:
        raise ArgumentError(f"neighbours must be one of {', '.join(RELATIONS)}")
    return 2 * LARGEST if neighbours == "replace-one" else LARGEST


@dataclass(frozen=True)
class NoisyMoments:
    """The noise of a fit, and what it costs. Public.

    Attributes
    ----------
    epsilon, delta : Fraction
        What the fit may cost under ``neighbours``, for one row.
    most_columns : int
        How many columns a model may have, at most: it decides on the kind of noise, so that the
        price is known before there is a support.
    """

    epsilon: Fraction
    delta: Fraction
    neighbours: Neighbours
    most_columns: int

    name = "noisy-moments"

    @property
    def gaussian(self) -> bool:
        """Whether Gaussian noise is less, for the largest model that there may be."""
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
        """What zero-concentrated privacy the budget pays for."""
        return rho_for(self.epsilon, self.delta)

    def _gaussian_scale(self, d: int) -> Fraction:
        """sqrt(d) Delta / sqrt(2 rho), rounded up."""
        square = d * Fraction(distance(self.neighbours)) ** 2 / (2 * self.rho)
        return noise.float_scale(sqrt_up_relative(square))

    def guarantee(self, *, seeded: bool = False) -> Guarantee:
        """What the release of the sums costs, computed from what the draw uses."""
        # Where n is public it is used as it is, and nothing is promised if it differs.
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
        """The sums with noise."""
        if self.gaussian:
            return noise.discrete_gaussian(values, self._gaussian_scale(len(values)))
        return sup_norm.add_noise(values, self.eta, rng)

    def deviation(self, d: int) -> float:
        """Of one of d sums, in scaled units."""
        if self.gaussian:
            return float(self._gaussian_scale(d)) / LARGEST
        return sup_norm.deviation(d, self.eta) / LARGEST

    def summary(self) -> str:
        """For the privacy statement."""
        kind = (
            "Gaussian noise on integers, accounted for by zero-concentrated privacy"
            if self.gaussian
            else "noise whose probability falls with its largest entry, in one draw for all sums"
        )
        return f"sums of products of the selected columns and the response, with {kind}"


def usual_deviation(d: int, epsilon: float, neighbours: Neighbours) -> float:
    """Of pure noise, in scaled units: for public rules."""
    return math.sqrt((d + 1) * (d + 2) / 3) * distance(neighbours) / LARGEST / epsilon
