"""Certified modular lower bounds for losses that are summed over records.

Everything but the dual points is as for least squares, with n in the place of y'y: no score is
above it, because no loss at t = 0 is above 1.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from ...losses import Scorer
from ...losses.base import LOGISTIC
from ...losses.rows import FromRecords
from ...public.problem import Problem
from ...table.door import STEPS
from ...table.gram import Gram
from ..region import Region
from ..tuning import Tuning
from . import row_kernels
from .curved import CurvedBounder
from .quadratic import _CODES, Bound, Bounder

#: Beyond this reach the logistic loss has next to no curvature to count on.
_CURVED_REACH = 8


class RowBounder(Bounder):
    """Computes bounds for the regions of one problem on the records of a data set."""

    def __init__(
        self, gram: Gram, problem: Problem, scorer: FromRecords, eta: float, tuning: Tuning
    ) -> None:
        p, n = problem.p, scorer.records.shape[1]
        self._tuning = tuning
        self.most_closed = min(tuning.last_pick, tuning.last_pick_records)
        self.most_listed = tuning.listable_records
        self.hard_after = tuning.hard_after_records
        self.problem = problem
        self.code = _CODES[problem.constraint]
        self._gram = gram
        self._scorer = self._from = scorer
        self._curved: CurvedBounder | None = None
        # w is all that there is of c - u; it is at most n in size.
        self.c = np.zeros(p)
        self.yy = self._largest = float(n)
        self.eta = min(eta, 250.0 / self.yy) if n else 1.0
        self._d = np.full(p, problem.ridge)
        self._hard = self._local = self._keeps_b = False
        self._crowds = None
        self._table = _entropies()
        # Up to reach 1 no margin is passed: the hinge is a line, and its slope the same everywhere.
        self._smoothing = 0.02 if problem.reach > 1 else 1e-9

    def root(self, region: Region, rounds: int = 40) -> Bound:
        """A bound from scratch: all predictions are 0."""
        p, n = self._from.records.shape
        bound = Bound(region, self.c, self.yy, self._d, np.zeros(n), np.zeros(p), np.zeros(6))
        return self._or_curved(self._settle(bound, rounds))

    def child(self, parent: Bound, region: Region, rounds: int = 8) -> Bound:
        """A bound that starts from the parent's dual point, of whichever kind that is."""
        if self._curved is not None and parent.c is not self.c:
            return self._curved.child(parent, region, rounds)
        return self._or_curved(super().child(parent, region, rounds))

    def _or_curved(self, bound: Bound) -> Bound:
        if self._curved is None or bound.fixed is not None:
            return bound
        other = self._curved.root(bound.region)
        return other if other.flat > bound.flat else bound

    def strengthen(self, sweeps: bool) -> None:
        """From here on curvature is made use of, where the loss has some."""
        if (
            self._from.rows.code == LOGISTIC
            and self.problem.p <= self._tuning.large
            and self.problem.reach <= _CURVED_REACH
            and self._gram.n < 2**28  # sums of the table's entries fit in int64
        ):
            self._curved = CurvedBounder(
                self.problem, self._from, self._gram, self.eta, self._tuning
            )

    def _improve(self, bound: Bound, rounds: int) -> None:
        region, problem, rows = bound.region, self.problem, self._from.rows
        row_kernels.improve(
            self._from.records, self._from.response, rows.code, rows.labels, float(rows.threshold),
            float(STEPS), self._smoothing, self._table, self.yy, region.status, region.members,
            np.array(region.picks), self.code, problem.radius, bound.d, self.eta, rounds,
            0.02 / self.eta, bound.b, bound.u, bound.state,
        )  # fmt: skip


def bounder(gram: Gram, problem: Problem, scorer: Scorer, eta: float, tuning: Tuning) -> Bounder:
    """What bounds the scores of a problem on a data set."""
    if isinstance(scorer, FromRecords):
        return RowBounder(gram, problem, scorer, eta, tuning)
    return Bounder(gram, problem, scorer, eta, tuning)


@functools.cache
def _entropies() -> NDArray[np.int64]:
    return row_kernels.entropies()
