"""Bounds by a parabola below a loss of records, for losses with curvature: the logistic one.

No prediction passes the reach B, and within it the loss has curvature: with

    l(t) = psi(t) + (omega/2) t^2   for |t| <= B,   psi(t) >= q t - psi*(q)

every choice of slopes q_i gives, as in :mod:`dpsubset.search.bounds.row_kernels`, a linear lower
bound on the sum of psi; the rest is (omega/2) |Xb|^2. Together this is a least-squares problem with
H = (omega/2) X'X + ridge, c = - sum of q_i x_i / 2 and yy = - sum of psi*(q_i), and all that
`QuadraticBounder` knows of those applies, diagonals above all. A step costs a few columns of X'X
instead of a pass over the records; slopes are settled anew only where the predictions have moved
away. omega and psi* are the loss's, see `RowLoss.parabola`.
"""

from __future__ import annotations

import numpy as np

from ...base.kernels.arrays import Array, Ints
from ...data.gram import GramData
from ...data.quantize import STEPS
from ...objective.losses.base import SLOPES, steepest
from ...objective.losses.cutoff_kernels import half_slope, quantised_slopes
from ...objective.losses.rows import FromRecords
from ...objective.problem import Problem
from ..region import Region
from ..tuning import Tuning
from . import row_kernels
from .base import Bounded
from .quadratic import QuadraticBounder

#: How often slopes are settled anew, at most.
_TIMES = 2


class CurvedBounder(QuadraticBounder):
    """Computes bounds for the regions of one problem whose loss has curvature within the reach."""

    def __init__(
        self, digest: GramData, problem: Problem, scorer: FromRecords, eta: float, tuning: Tuning,
        parabola: tuple[float, Ints],
    ) -> None:  # fmt: skip
        self._omega, self._table = parabola
        digest.fetch(range(problem.columns))
        # A little larger than it should be: H must not be above what it stands for.
        scale = float(STEPS) ** 2 * (2.0 / self._omega) * (1.0 + 2.0**-40)
        super().__init__(digest, problem, scorer, tuning, c=np.zeros(problem.columns),
                         yy=float(digest.n), scale=scale, eta=eta)  # fmt: skip
        self.most_closed = min(tuning.last_pick, tuning.last_pick_records)
        self._from = scorer
        self._diagonals = True
        self._crowds = self._find_crowds()

    def root(self, region: Region, rounds: int = 8) -> Bounded:
        """A bound from scratch: all predictions are 0."""
        c, yy, _ = self._lines(region, np.zeros(self._digest.n))
        bound = Bounded.fresh(region, c, yy, self._d, self.problem.columns)
        self._focus(bound)
        return self._settle(bound, rounds)

    def _improve(self, bound: Bounded, rounds: int) -> None:
        super()._improve(bound, rounds)
        for _ in range(_TIMES):
            t = row_kernels.predictions(self._from.records, bound.b, float(STEPS))
            c, yy, reached = self._lines(bound.region, t)
            # The lines so far, at these predictions: what the new ones gain there.
            if reached - (bound.yy - 2.0 * float(bound.c @ bound.b)) < 0.02 / self.eta:
                return
            bound.c, bound.yy = c, yy
            super()._improve(bound, rounds)

    def _lines(self, region: Region, t: Array) -> tuple[Array, float, float]:
        """c and yy from slopes at predictions t, and the sum of the lines there."""
        source, q, c = self._from, np.empty(len(t), dtype=np.int16), np.empty(self.problem.columns)
        yy = quantised_slopes(t, source.response, source.row_loss, float(STEPS), 0.0,
                                self._omega, self._table, q)  # fmt: skip
        loss = source.row_loss
        half = half_slope(loss, float(STEPS))
        row_kernels.gradient(source.records, self._cells(region), q, -half, c)
        return c, yy, yy + steepest(loss) * float(q @ t) / SLOPES
