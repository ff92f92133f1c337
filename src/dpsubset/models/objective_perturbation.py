"""objective-perturbation: the minimum of an objective with a random linear term.

    J(b) = sum of l(o_i, a_i'b) + sum of ridge_j b_j^2 / 2 + linear_term'b

where the probability of the linear term decreases with max |linear_term_j|.

After Chaudhuri, Monteleoni and Sarwate 2011 and Kifer, Smith and Thakurta 2012: one record moves
the gradient of the sum by at most Delta in any entry, and its Hessian by c |a|^2, which is small
relative to the ridge. Their proof is for real numbers and exact minima. This program has neither,
and pays for the difference with at most a five hundredth of epsilon:

- the linear term is drawn exactly on a grid; a change within a cell of the grid moves the minimum
by
  at most half a `step`;
- the minimum is computed within another half step, certified;
- so the minimum is rounded to steps, and noise hides one step of each coefficient.

The proof is in `proofs/objective-perturbation.md`. The losses have bounded slopes (`smooth.py`), so
coefficients need no constraint; the ridge keeps them small.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np
from numpy.typing import NDArray

from ..base.rounding import ball, upper
from ..privacy import sup_norm
from ..privacy.guarantee import Cost, Guarantee
from ..privacy.random import Randomness
from ..privacy.relations import PUBLIC_N, RELATIONS, Neighbours
from .entries import Entries
from .minimise import Objective
from .smooth import Smooth

#: Approximate fraction of epsilon for the change of the Hessian; a smaller one needs a larger
#: ridge.
CURVATURE_FRACTION = Fraction(1, 4)
#: Fraction of epsilon for rounding.
ROUNDING_FRACTION = Fraction(1, 500)
#: The grid of the coefficients, in scaled units.
STEP = Fraction(1, 2**32)
#: Largest weight of the noise that hides a step; draws of much smaller noise would be slow.
_LARGEST_ETA = Fraction(1, 32)
#: The ridge of a slope is at least this times its noise's variance times the number of slopes, over
#: the number of rows: below, noise would be mistaken for signal (docs/developers.md).
_RIDGE = 16
#: Bits of the logarithm in the price.
_BITS = 128

Cells = NDArray[np.int16]


@dataclass(frozen=True)
class ObjectivePerturbation:
    """A fit by objective perturbation, and its cost. Public."""

    #: The budget of the fit under ``neighbours``, for one row.
    epsilon: Fraction
    neighbours: Neighbours
    loss: Smooth
    #: The grid of the coefficients, and the accuracy of the minimum.
    step: Fraction = STEP
    #: The weight of the noise that hides a step; by default a public function of epsilon. Audits by
    #: enumeration use other steps and weights.
    weight: Fraction | None = None
    #: The number of rows, where it is public.
    n: int | None = None

    name = "objective-perturbation"

    @property
    def ridge_each(self) -> Fraction:
        """The ridge of a model of one column; a model of d columns has at least d times this."""
        return self.loss.curvature / (CURVATURE_FRACTION * self.epsilon)

    @property
    def grid(self) -> Fraction:
        """The grid of the linear term: L over a power of two, at most step times ridge_each."""
        grid = self.loss.slope
        while grid > self.step * self.ridge_each:
            grid /= 2
        return grid

    def steps(self, relation: Neighbours) -> int:
        """The largest change of the gradient by one record, in steps of that grid."""
        moved = self.loss.slope * (2 if relation == "replace-one" else 1)
        return int(moved / self.grid)

    @property
    def curvature_cost(self) -> Fraction:
        """log(1 + c d / ridge), rounded up."""
        with flint.ctx.workprec(_BITS):
            return upper(ball(self.loss.curvature / self.ridge_each).log1p())

    @property
    def rounding_eta(self) -> Fraction:
        """The weight of the noise on the coefficients, a step; it is paid for twice."""
        if self.weight is not None:
            return self.weight
        return min(self.epsilon * ROUNDING_FRACTION / 2, _LARGEST_ETA)

    @property
    def eta(self) -> Fraction:
        """The weight of the linear term, a step of its grid, for the rest of epsilon."""
        left = self.epsilon - self.curvature_cost - 2 * self.rounding_eta
        return left / self.steps(self.neighbours)

    def guarantee(self, *, seeded: bool = False) -> Guarantee:
        """The cost of releasing the coefficients, from the constants that the draw uses."""
        # The clip of the response may have been chosen by the number of rows where that is public.
        covered = PUBLIC_N if self.neighbours == "replace-one" else RELATIONS
        same = self.curvature_cost + 2 * self.rounding_eta
        costs = {r: Cost(self.eta * self.steps(r) + same) for r in covered}
        return Guarantee(self.neighbours, costs, seeded)

    def draw(self, rows: Cells, response: Cells, rng: Randomness) -> list[int]:
        """Coefficients of the columns of ``rows``, in steps."""
        d = rows.shape[1]
        linear_term = sup_norm.draw(d, self.eta, rng)
        return sup_norm.add_noise(self.rounded(rows, response, linear_term), self.rounding_eta, rng)

    def rounded(self, rows: Cells, response: Cells, linear_term: list[int]) -> list[int]:
        """The minimum for this linear term in steps, before noise. Private."""
        grid = self.grid
        moved = tuple(grid * z for z in linear_term)
        objective = Objective(self.loss, rows, response, self.ridge(len(linear_term)), moved)
        point = objective.minimum(self.step / 2)
        # Not `round`, which maps 1/2 and 3/2 to 0 and 2: two steps for a distance of one.
        return [math.floor(v / self.step + Fraction(1, 2)) for v in point]

    def ridge(self, d: int) -> tuple[Fraction, ...]:
        """The ridge of each of d columns; the last is the constant.

        What the proof requires. The slopes of least squares have more where the noise is large for
        a public number of rows.
        """
        least = self.ridge_each * d
        if self.n is None or self.loss.labels:
            return (least,) * d
        noise = self.deviation(d) * float(self.loss.slope)
        wanted = Fraction(_RIDGE * noise**2 * (d - 1) / max(self.n, 1))
        return (max(least, wanted),) * (d - 1) + (least,)

    def deviation(self, d: int) -> float:
        """The deviation of an entry of the linear term, in units of a record's largest slope."""
        return sup_norm.deviation(d, self.eta) * float(self.grid / self.loss.slope)

    def summary(self) -> str:
        """A phrase for the privacy statement."""
        loss = {
            "least-squares": "squared errors (beyond "
            f"{float(self.loss.slope):g} times half the width of the response's range, an error "
            "counts linearly)",
            "logistic": "the logistic loss",
            "hinge": "the hinge loss (with its corner smoothed)",
        }[self.loss.name]
        return (
            f"coefficients of the selected columns, which minimise the sum of {loss}, a penalty on "
            "large coefficients (the ridge) and a random multiple of each coefficient"
        )


def margins(entries: Entries, cells: Cells, loss: Smooth) -> tuple[Cells, Cells]:
    """Rows a_i and responses o_i of a fit, from quantized columns with the response last.

    A record that does not count is 0 in all of them.
    """
    kept = cells[[*entries.places, -2]].astype(np.int32)
    for a, column in enumerate(entries.columns):
        if column.kind != "value":  # 0 or S becomes -S or S, and 0 where the constant is 0
            kept[a] = 2 * kept[a] - kept[-1]
    response = cells[-1].astype(np.int32)
    if loss.labels:
        # The sign of the response, and 1 for 0.
        kept = np.where(response < 0, -kept, kept)
        response = np.zeros_like(response)
    return np.ascontiguousarray(kept.T.astype(np.int16)), response.astype(np.int16)
