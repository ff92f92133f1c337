"""Bounds for losses that are summed over records.

They differ from those for least squares in the dual points only, with n in place of y'y: no score
exceeds it, because no loss at t = 0 exceeds 1. (More than n for a loss with larger conjugates.)
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
from .base import BoundOracle, Node
from .curved import CurvedOracle

#: Most columns in which a dual point moves at a time.
_MAX_WORKING_SET = 64


class RowLossOracle(BoundOracle):
    """Bounds for the regions of one problem on the records of a data set."""

    def __init__(
        self, gram: GramData, problem: Problem, scorer: FromRecords, eta: float, tuning: Tuning
    ) -> None:
        # |w| and the constant are at most this.
        most = scorer.records.shape[1] * scorer.row_loss.largest()
        super().__init__(problem, scorer, tuning, c=np.zeros(problem.columns), yy=most,
                         largest=most, eta=min(eta, 250.0 / most) if most else 1.0)  # fmt: skip
        # A score takes a pass or more over the records.
        self.max_last_picks = min(tuning.last_pick, tuning.last_pick_records)
        curved = scorer.row_loss.parabola(problem.prediction_bound) is not None
        self.max_listed = tuning.listable_records if curved else tuning.listable_straight
        self.hard_after = tuning.hard_after_records
        self._gram, self._from = gram, scorer
        self._curved: CurvedOracle | None = None
        self._table = scorer.row_loss.conjugates()
        #: The first and the last width to which kinks are smoothed.
        self._widths = scorer.row_loss.smoothing(problem.prediction_bound)
        self._cap = np.inf if self.constraint.is_joint() else self.constraint.radius

    def root(self, region: Region, rounds: int = 40) -> Node:
        """A node whose bound starts from predictions that are all 0."""
        # The dual point holds the predictions and the coefficients behind them.
        size = self._from.records.shape[1] + self.problem.columns
        node = Node.at_zero(region, self.c, self.yy, self.shared_diagonal, size)
        return self._or_curved(self.evaluate(node, rounds))

    def child(self, parent: Node, region: Region, rounds: int = 8) -> Node:
        """A node whose bound starts from the parent's dual point, of either kind."""
        if self._curved is not None and parent.c is not self.c:
            return self._curved.child(parent, region, rounds)
        return self._or_curved(super().child(parent, region, rounds))

    def _or_curved(self, node: Node) -> Node:
        """The better of a node and one with a curved bound for the same region."""
        if self._curved is None or node.exact_gains is not None:
            return node
        other = self._curved.root(node.region)
        return other if other.lower_bound > node.lower_bound else node

    def strengthen(self, sweeps: bool) -> None:
        """Try curved bounds in the regions to come, if the loss has curvature."""
        parabola = self._from.row_loss.parabola(self.problem.prediction_bound)
        if (
            parabola is not None
            and self.problem.columns <= self.tuning.large
            and self._gram.n < 2**28  # sums of the table's entries fit in int64
        ):
            self._curved = CurvedOracle(self._gram, self.problem, self._from, self.eta,
                                        self.tuning, parabola)  # fmt: skip

    def _ascend_dual(self, node: Node, rounds: int) -> None:
        source, n = self._from, self._from.records.shape[1]
        row_kernels.dual_ascent(
            source.records, source.response, source.row_loss, float(STEPS), *self._widths,
            self._table, self.yy, *self._kernel_region(node.region), self.constraint, self._cap,
            node.d, self.eta, rounds, 0.02 / self.eta, _MAX_WORKING_SET, node.b[:n], node.b[n:],
            node.u, node.point,
        )  # fmt: skip
