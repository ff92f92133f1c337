"""Bounds for the logistic loss by a parabola below it.

No prediction passes the reach B, and within it the loss has curvature: with

    l(t) = psi(t) + (omega/2) t^2   for |t| <= B,   psi(t) >= q t - psi*(q)

every choice of slopes q_i gives, as in :mod:`dpsubset.search.bounds.row_kernels`, a linear lower
bound on the sum of psi; the rest is (omega/2) |Xb|^2. Together this is a least-squares problem with
H = (omega/2) X'X + ridge, c = - sum of q_i x_i / 2 and yy = - sum of psi*(q_i), and all that
`Bounder` knows of those applies, diagonals above all. A step costs a few columns of X'X instead of
a pass over the records; slopes are settled anew only where the predictions have moved away.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ...losses.rows import FromRecords
from ...public.problem import Problem
from ...table.door import STEPS
from ...table.gram import Gram
from ..region import Region
from ..tuning import Tuning
from . import row_kernels
from .quadratic import _CODES, Bound, Bounder, Floats
from .row_kernels import ENTROPIES, SLOPES

#: How often slopes are settled anew, at most.
_TIMES = 2
#: The largest omega: a little below the largest curvature of the loss, 1/4.
_STEEPEST = 0.2499


class CurvedBounder(Bounder):
    """Computes bounds for the regions of one problem with the logistic loss."""

    def __init__(
        self, problem: Problem, scorer: FromRecords, gram: Gram, eta: float, tuning: Tuning
    ) -> None:
        self.problem = problem
        self._tuning = tuning
        self.most_closed = min(tuning.last_pick, tuning.last_pick_records)
        self.code = _CODES[problem.constraint]
        self._scorer = self._from = scorer
        self._gram = gram
        gram.fetch(range(problem.p))
        self._omega, self._table = parabola(math.nextafter(float(problem.reach), math.inf))
        # A little larger than it should be: H must not be above what it stands for.
        self._scale = float(STEPS) ** 2 * (2.0 / self._omega) * (1.0 + 2.0**-40)
        self._largest = float(gram.diagonal.max()) / self._scale + problem.ridge
        self._d = np.full(problem.p, problem.ridge)
        self.eta = eta
        self._hard = self._local = False
        self._keeps_b = True
        self._crowds = self._find_crowds()
        self.c, self.yy = np.zeros(problem.p), float(gram.n)

    def root(self, region: Region, rounds: int = 8) -> Bound:
        """A bound from scratch: all predictions are 0."""
        p = self.problem.p
        bound = Bound(region, *self._lines(region, np.zeros(self._gram.n))[:2], self._d,
                      np.zeros(p), np.zeros(p), np.zeros(6))  # fmt: skip
        self._focus(bound)
        return self._settle(bound, rounds)

    def _improve(self, bound: Bound, rounds: int) -> None:
        super()._improve(bound, rounds)
        for _ in range(_TIMES):
            t = row_kernels.predictions(self._from.records, bound.b, float(STEPS))
            c, yy, reached = self._lines(bound.region, t)
            # The lines so far, at these predictions: what the new ones gain there.
            if reached - (bound.yy - 2.0 * float(bound.c @ bound.b)) < 0.02 / self.eta:
                return
            bound.c, bound.yy = c, yy
            super()._improve(bound, rounds)

    def _lines(self, region: Region, t: Floats) -> tuple[Floats, float, float]:
        """c and yy from slopes at predictions t, and the sum of the lines there."""
        rows, n = self._from.rows, len(t)
        q = np.empty(n, dtype=np.int16)
        c = np.empty(self.problem.p)
        yy = row_kernels.slopes(t, self._from.response, rows.code, True, 0.0, float(STEPS), 0.0,
                                self._omega, self._table, q)  # fmt: skip
        row_kernels.gradient(self._from.records, region.status, q, -0.5 / (STEPS * SLOPES), c)
        return c, yy, yy + float(q @ t) / SLOPES


@functools.lru_cache(maxsize=8)
def parabola(reach: float) -> tuple[float, NDArray[np.int64]]:
    """omega, and -psi* of slopes -q / SLOPES rounded down, in units of 1 / ENTROPIES.

    omega is a curvature that parabolas at predictions up to half the reach have, if they are to
    stay below the loss. Any would do: psi* is the largest value over all |t| <= reach, whatever
    the shape of psi. Where omega is below the curvature of the loss, psi is convex, beyond that
    point concave, so the largest value is attained at a stationary point or at an end.
    """
    omega = _STEEPEST
    if reach > 0.01:  # below that the differences drown in rounding
        omega = min(_secant(0.5 * reach, reach), _secant(0.5 * reach, -reach), omega)
    share = np.arange(SLOPES + 1) / SLOPES

    def values(t: Floats | float) -> Floats:
        return np.asarray(np.logaddexp(0.0, -t) - 0.5 * omega * t * t + share * t)

    def slope(t: Floats) -> Floats:
        return np.asarray(-expit(-t) - omega * t + share)

    edge = math.sqrt(1.0 - 4.0 * omega)
    edge = min(math.log1p(edge) - math.log1p(-edge), reach)
    low, high = np.full(len(share), -edge), np.full(len(share), edge)
    for _ in range(60):
        middles = 0.5 * (low + high)
        below = slope(middles) < 0.0
        low, high = np.where(below, middles, low), np.where(below, high, middles)
    inside = values(low) - 2.0 * edge * np.abs(slope(low))
    least = np.minimum(inside, np.minimum(values(-reach), values(reach)))
    # What float64 leaves uncertain is far below what is given away here.
    slack = 2.0**-40 * (1.0 + reach) ** 2
    table = np.floor((least - slack) * ENTROPIES).astype(np.int64)
    return omega, table


def _secant(start: float, end: float) -> float:
    """The curvature of a parabola that touches the loss at one point and meets it at another."""
    rise = np.logaddexp(0.0, -end) - np.logaddexp(0.0, -start)
    return float(2.0 * (rise + expit(-start) * (end - start)) / (end - start) ** 2)
