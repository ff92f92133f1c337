"""gaussian-ols: least squares coefficients with Gaussian noise on each.

    theta + N(0, s^2),    s = Delta / sqrt(2 rho),    Delta = 2 sqrt(d) R / (n e)

after Cai, Wang and Zhang 2021, Section 4.3, in scaled units: |y| <= 1, |x_j| <= 1. Delta bounds how
far one replaced row moves the coefficients in l2 *if* X'X of the n - 1 rows that both tables share
has no eigenvalue below n e, and least squares on either table leaves no residual above R in its own
rows. A table need not satisfy this: a column that hardly varies is enough to violate it. The paper
shows it with high probability, for well-conditioned random designs and up to constants, which here
are e = 1/8 and R = 2. The guarantee therefore states its assumption, and a fit requires
``allow_unproven``. See `proofs/gaussian-ols.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..base.rounding import sqrt_up_relative
from ..privacy import noise
from ..privacy.accounting import rho_for
from ..privacy.guarantee import Cost, Guarantee
from ..privacy.relations import PUBLIC_N
from .entries import Entries

#: e and R of the module docstring.
MIN_EIGENVALUE, MAX_RESIDUAL = Fraction(1, 8), 2
#: The grid of coefficients before noise is added, in scaled units.
STEP = Fraction(1, 2**40)
#: Bound on the error of a coefficient by rounding and float64.
_SLACK = Fraction(1, 2**30)
#: Largest coefficient in scaled units; larger ones would exceed int64 on the grid.
_LARGEST = 2.0**20

ASSUMED = (
    "no selected column is nearly a combination of the others and no response is far from the "
    "model, which is usually false where columns fill little of their bounds (exactly: whichever "
    "columns are selected, X'X of this table's n rows without any one of them has no "
    "eigenvalue below n/8 in scaled units, and least squares on this table, or on any that differs "
    "from it in one row, leaves no residual in its own rows beyond twice the half-width of the "
    "response's clip)"
)


@dataclass(frozen=True)
class GaussianOls:
    """A fit by noise on the coefficients, and its cost if its assumption holds. Public."""

    #: The budget of the fit under replace-one neighbours, for one row.
    epsilon: Fraction
    delta: Fraction

    name = "gaussian-ols"
    step = STEP

    @property
    def rho(self) -> Fraction:
        """The parameter of zero-concentrated privacy for this budget."""
        return rho_for(self.epsilon, self.delta)

    def guarantee(self, *, seeded: bool = False) -> Guarantee:
        """The cost of releasing the coefficients, if the assumption holds."""
        (relation,) = PUBLIC_N
        cost = Cost.concentrated(self.rho, self.delta)
        return Guarantee(relation, {relation: cost}, seeded, ASSUMED)

    def scale(self, d: int, n: int) -> Fraction:
        """s in steps, rounded up."""
        moved = 2 * MAX_RESIDUAL / (max(n, 1) * MIN_EIGENVALUE) + _SLACK
        return noise.float_scale(sqrt_up_relative(d * moved**2 / (2 * self.rho)) / self.step)

    def draw(self, entries: Entries, sums: Sequence[int], n: int) -> list[int]:
        """Noisy coefficients in steps, the constant last."""
        rounded = np.rint(least_squares(entries, sums, n) / float(self.step))
        return noise.discrete_gaussian([int(v) for v in rounded], self.scale(entries.m + 1, n))

    def deviation(self, d: int, n: int) -> float:
        """The standard deviation of one of d coefficients, in scaled units."""
        return float(self.scale(d, n) * self.step)

    def summary(self) -> str:
        """A phrase for the privacy statement."""
        return "least squares coefficients of the selected columns, with Gaussian noise on each"


def least_squares(entries: Entries, sums: Sequence[int], n: int) -> NDArray[np.float64]:
    """The coefficients of the table in scaled units, the constant last. Private.

    With duplicate columns, the solution of smallest norm.
    """
    gram, c, _ = entries.moments(sums, n)
    theta = np.linalg.pinv(gram, rcond=1e-10, hermitian=True) @ c
    return np.asarray(np.clip(theta, -_LARGEST, _LARGEST))
