"""Bounds for losses of records with curvature (the logistic loss): a parabola below the loss.

No prediction exceeds the prediction bound B in absolute value, and up to B the loss has curvature:
with

    l(t) = psi(t) + (omega/2) t^2   for |t| <= B,   psi(t) >= q t - psi*(q)

every choice of slopes q_i gives a linear lower bound on the sum of psi, as in
:mod:`dpsubset.search.bounds.row_kernels`; the rest is (omega/2) |Xb|^2. Together this is a
least-squares problem with H = (omega/2) X'X + ridge, c = - sum of q_i x_i / 2 and
yy = - sum of psi*(q_i). Everything in `QuadraticOracle` applies, the diagonals above all. A step of
the dual ascent costs a few columns of X'X instead of a pass over the records; slopes are recomputed
only where the predictions have moved. omega and psi* belong to the loss, see `RowLoss.parabola`.
"""

from __future__ import annotations

import numpy as np

from ...base.kernels.arrays import Array, Ints
from ...data.gram import GramData
from ...data.quantize import STEPS
from ...objective.losses.base import SLOPES, steepest
from ...objective.losses.cutoff_kernels import half_slope, quantized_slopes
from ...objective.losses.rows import FromRecords
from ...objective.problem import Problem
from ..region import Region
from ..tuning import Tuning
from . import row_kernels
from .base import Node
from .diagonals import CoreDiagonal
from .quadratic import QuadraticOracle

#: How often slopes are recomputed in one ascent, at most.
_MAX_LINEARISATIONS = 2


class CurvedOracle(QuadraticOracle):
    """Bounds for a loss of records that has curvature within the prediction bound."""

    def __init__(
        self, gram: GramData, problem: Problem, scorer: FromRecords, eta: float, tuning: Tuning,
        parabola: tuple[float, Ints],
    ) -> None:  # fmt: skip
        self._omega, self._table = parabola
        gram.fetch(range(problem.columns))
        # Rounded up: the computed H must not exceed the exact one.
        scale = float(STEPS) ** 2 * (2.0 / self._omega) * (1.0 + 2.0**-40)
        super().__init__(gram, problem, scorer, tuning, c=np.zeros(problem.columns),
                         yy=float(gram.n), scale=scale, eta=eta)  # fmt: skip
        self.max_last_picks = min(tuning.last_pick, tuning.last_pick_records)
        self._from = scorer
        self._cores = CoreDiagonal(self)
        self.diagonal_rule = self._cores

    def root(self, region: Region, rounds: int = 8) -> Node:
        """A node whose bound starts from predictions that are all 0."""
        c, yy, _ = self._lines(region, np.zeros(self.gram.n))
        node = Node.at_zero(region, c, yy, self.shared_diagonal, self.problem.columns)
        self._cores.restrict_to_core(node)
        return self.evaluate(node, rounds)

    def _ascend_dual(self, node: Node, rounds: int) -> None:
        super()._ascend_dual(node, rounds)
        for _ in range(_MAX_LINEARISATIONS):
            t = row_kernels.predictions(self._from.records, node.b, float(STEPS))
            c, yy, reached = self._lines(node.region, t)
            # What the new lines gain over the present ones at these predictions.
            if reached - (node.yy - 2.0 * float(node.c @ node.b)) < 0.02 / self.eta:
                return
            node.c, node.yy = c, yy
            super()._ascend_dual(node, rounds)

    def _lines(self, region: Region, t: Array) -> tuple[Array, float, float]:
        """c and yy from the slopes at predictions t, and the value of the lines at t."""
        source, q, c = self._from, np.empty(len(t), dtype=np.int16), np.empty(self.problem.columns)
        loss = source.row_loss
        yy = quantized_slopes(
            t, source.response, loss, float(STEPS), 0.0, self._omega, self._table, q
        )
        half = half_slope(loss, float(STEPS))
        row_kernels.gradient(source.records, self.column_status(region), q, -half, c)
        return c, yy, yy + steepest(loss) * float(q @ t) / SLOPES
