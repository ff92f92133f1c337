"""Certified modular lower bounds for losses that are summed over records.

Everything but the dual points is as for least squares, with n in the place of y'y: no score is
above it, because no loss at t = 0 is above 1. (More than n, for a loss with larger conjugates.)
"""

from __future__ import annotations

import numpy as np

from ...data.gram import GramData
from ...data.quantize import STEPS
from ...objective.losses.rows import FromRecords
from ...objective.problem import Problem
from ..region import Region
from ..tuning import Tuning
from . import row_kernels
from .base import Bounded, Bounder
from .curved import CurvedBounder

#: Most columns in which a dual point moves at a time.
_MOVERS = 64


class RowBounder(Bounder):
    """Computes bounds for the regions of one problem on the records of a data set."""

    def __init__(
        self, digest: GramData, problem: Problem, scorer: FromRecords, eta: float, tuning: Tuning
    ) -> None:
        # w is all that there is of c - u; it is at most this in size, and so is const.
        most = scorer.records.shape[1] * scorer.row_loss.largest()
        super().__init__(problem, scorer, tuning, c=np.zeros(problem.columns), yy=most,
                         largest=most, eta=min(eta, 250.0 / most) if most else 1.0)  # fmt: skip
        # A score takes a pass or more over the records.
        self.most_closed = min(tuning.last_pick, tuning.last_pick_records)
        bends = scorer.row_loss.parabola(problem.prediction_bound) is not None
        self.most_listed = tuning.listable_records if bends else tuning.listable_straight
        self.hard_after = tuning.hard_after_records
        self._digest, self._from = digest, scorer
        self._curved: CurvedBounder | None = None
        self._table = scorer.row_loss.conjugates()
        #: How far kinks are rounded off, first and last.
        self._widths = scorer.row_loss.smoothing(problem.prediction_bound)
        self._cap = np.inf if self.constraint.is_joint() else self.constraint.radius

    def root(self, region: Region, rounds: int = 40) -> Bounded:
        """A bound from scratch: all predictions are 0."""
        # Predictions and the coefficients behind them.
        size = self._from.records.shape[1] + self.problem.columns
        bound = Bounded.fresh(region, self.c, self.yy, self._d, size)
        return self._or_curved(self._settle(bound, rounds))

    def child(self, parent: Bounded, region: Region, rounds: int = 8) -> Bounded:
        """A bound that starts from the parent's dual point, of whichever kind that is."""
        if self._curved is not None and parent.c is not self.c:
            return self._curved.child(parent, region, rounds)
        return self._or_curved(super().child(parent, region, rounds))

    def _or_curved(self, bound: Bounded) -> Bounded:
        if self._curved is None or bound.fixed is not None:
            return bound
        other = self._curved.root(bound.region)
        return other if other.flat > bound.flat else bound

    def strengthen(self, sweeps: bool) -> None:
        """From here on curvature is made use of, where the loss has some."""
        parabola = self._from.row_loss.parabola(self.problem.prediction_bound)
        if (
            parabola is not None
            and self.problem.columns <= self.tuning.large
            and self._digest.n < 2**28  # sums of the table's entries fit in int64
        ):
            self._curved = CurvedBounder(self._digest, self.problem, self._from, self.eta,
                                         self.tuning, parabola)  # fmt: skip

    def _improve(self, bound: Bounded, rounds: int) -> None:
        source, n = self._from, self._from.records.shape[1]
        row_kernels.improve(
            source.records, source.response, source.row_loss, float(STEPS), *self._widths,
            self._table, self.yy, *self._picks(bound.region), self.constraint, self._cap, bound.d,
            self.eta, rounds, 0.02 / self.eta, _MOVERS, bound.b[:n], bound.b[n:], bound.u,
            bound.point,
        )  # fmt: skip
