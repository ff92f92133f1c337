"""AutomaticFit: noisy sums, noisy coefficients, or both with half of the budget each.

Sums give intervals and R2, and coefficients predict better. Which of them a fit releases follows
from public facts alone: the released support, epsilon, the neighbour relation, and the number of
rows where that is public. With r the deviation of a noisy sum over the number of rows, at the
budget of the whole fit, it releases

    sums                  if r <= 1/2000: they predict as well, and intervals are the shortest;
    both                  if r <= 1/70: the model has the coefficients;
    coefficients alone    beyond, where few intervals would have ends.

Where the number of rows is private, it releases both for up to 10 columns, and coefficients beyond.
If intervals are not wanted, it releases coefficients alone in place of both.
The price covers each of these; `proofs/composition.md` says why it may be chosen after the support.
docs/developers.md has the measurements.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from ..privacy.guarantee import Cost, Guarantee
from ..privacy.relations import Neighbours
from .entries import Entries
from .noisy_moments import NoisyMoments, usual_deviation
from .objective_perturbation import ObjectivePerturbation
from .smooth import Smooth

#: The largest noise of a sum, over the number of rows, for sums alone and for sums at all.
_SUMS_ALONE, _SUMS = Fraction(1, 2000), Fraction(1, 70)
#: The most columns of a model with sums where the number of rows is private.
_COLUMNS = 10

#: The sums and the coefficients of a fit; None of what is not released.
Parts = tuple[NoisyMoments | None, ObjectivePerturbation | None]


@dataclass(frozen=True)
class AutomaticFit:
    """A fit that releases sums, coefficients or both, and its cost. Public."""

    #: The budget of the fit under ``neighbours``, for one row.
    epsilon: Fraction
    neighbours: Neighbours
    loss: Smooth
    #: Largest number of columns of a model.
    most_columns: int
    #: Whether intervals are worth half of the budget.
    intervals: bool = True

    name = "noisy-moments, objective-perturbation or both"

    @cached_property
    def choices(self) -> tuple[Parts, Parts, Parts]:
        """Sums alone, both, and coefficients alone."""
        half = self.epsilon / 2
        return (
            (self._sums(self.epsilon), None),
            (self._sums(half), self._coefficients(half)),
            (None, self._coefficients(self.epsilon)),
        )

    def parts(self, entries: Entries, n: int | None) -> Parts:
        """What is released on a support; ``n`` is the number of rows, where that is public."""
        alone, both, coefficients = self.choices
        if not self.intervals:
            both = coefficients
        if n is None:
            return both if entries.m <= _COLUMNS else coefficients
        noise = usual_deviation(entries.d, float(self.epsilon), self.neighbours)
        if noise <= _SUMS_ALONE * n:
            return alone
        return both if noise <= _SUMS * n else coefficients

    def guarantee(self, *, seeded: bool = False) -> Guarantee:
        """The largest cost of the three choices under each relation."""
        found = [
            Guarantee.compose({
                part.name: part.guarantee(seeded=seeded) for part in parts if part is not None
            })
            for parts in self.choices
        ]  # fmt: skip
        costs = {
            relation: Cost(max(each.costs[relation].epsilon for each in found))
            for relation in found[0].costs
        }
        return Guarantee(self.neighbours, costs, seeded)

    def _sums(self, epsilon: Fraction) -> NoisyMoments:
        return NoisyMoments(epsilon, Fraction(0), self.neighbours, self.most_columns)

    def _coefficients(self, epsilon: Fraction) -> ObjectivePerturbation:
        return ObjectivePerturbation(epsilon, self.neighbours, self.loss)
