"""Scores under a loss that is summed over records.

    f(S) = min over b in C of the sum over records of l(y, x_S'b) + ridge |b|^2,  in scaled units.

`FromRecords.scores` returns f~(S), an integer multiple of ``score_step``. |f~(S) - f(S)| <=
score_step is certified for every S and every data set, in the last resort by
:func:`dpsubset.objective.losses.certified_rows.minimum`.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...base.errors import ArgumentError
from ...data.gram import GramData
from ...data.moments import Moments
from ...data.quantize import STEPS
from ..problem import Problem
from .base import ABOVE, RowLoss
from .certified_rows import Sum, minimum
from .cutoff_kernels import certainly_above
from .row_kernels import score_all
from .scores import CertifiedScorer


class FromRecords(CertifiedScorer):
    """Scores of supports from quantized records: deterministic, certified, on an integer grid."""

    def __init__(
        self,
        data: Moments | GramData,
        problem: Problem,
        score_step: Fraction,
        row_loss: RowLoss,
        penalty: int = 0,
    ) -> None:
        if isinstance(data, Moments) or len(data.records) != problem.columns:
            raise ArgumentError(
                f"the {problem.loss} loss needs the records: moments are not enough"
            )
        super().__init__(problem, score_step, penalty)
        self.records, self.response = data.records, data.response
        self.row_loss = row_loss
        #: Last good coefficient of each column: the start of `certainly_above`.
        self._guess = np.zeros(problem.columns)

    def _score(
        self, columns: NDArray[np.int64], cutoff: int, scores: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        problem = self._problem
        zero, rest = self._at_zero
        # f~ is above the cutoff where f exceeds it by a step. A second step covers rounding.
        bar = np.inf if cutoff >= ABOVE else (cutoff - zero + 2 - rest) * self.score_step_float
        if np.isfinite(bar):
            # Most scores are far above, which good lines of other supports often prove.
            above = self._above(columns, bar)
            scores[above], left = ABOVE, ~above
        else:
            left = np.ones(len(columns), dtype=np.bool_)
        found, certified = np.empty(np.count_nonzero(left), dtype=np.int64), ~left
        certified[left] = score_all(
            self.records, self.response, columns[left], self.row_loss, problem.coefficients,
            problem.ridge, float(STEPS), self.score_step_float, zero, rest, bar, found,
        )  # fmt: skip
        scores[left] = found
        return certified

    def _above(self, columns: NDArray[np.int64], bar: float) -> NDArray[np.bool_]:
        """Which models have f - F(0) certified above ``bar`` by `certainly_above`."""
        problem, loss = self._problem, self.row_loss
        widest, _ = loss.smoothing(problem.prediction_bound)
        above: NDArray[np.bool_] = certainly_above(
            self.records, self.response, columns, loss, problem.coefficients, problem.ridge,
            float(STEPS), loss.conjugates(), (0.1 * widest, 0.5 * widest),
            len(self.response) * loss.largest(), float(loss.at_zero(self.response)), bar,
            self._guess,
        )  # fmt: skip
        return above

    @cached_property
    def _at_zero(self) -> tuple[int, float]:
        """F(0) in steps: the nearest integer, and the remainder as a float."""
        exact = self.row_loss.at_zero(self.response) / self._score_step
        return round(exact), float(exact - round(exact))

    def _minimum(self, columns: NDArray[np.int64]) -> tuple[Fraction, Fraction]:
        return minimum(self.objective(columns), self._problem.coefficients, self._score_step / 2)

    def objective(self, columns: NDArray[np.int64]) -> Sum:
        """The exact objective on these columns: distinct rows in order, with their counts."""
        cells = np.vstack([self.records[columns], self.response[None]]).astype(np.int64)
        if self.row_loss.labels:
            sign = np.where(cells[-1] < 0, -1, 1)
            cells = np.vstack([cells[:-1] * sign, np.ones_like(sign)])
        counts = Counter(map(tuple, cells.T.tolist()))
        rows = [(row[:-1], row[-1], counts[row]) for row in sorted(counts)]
        return Sum(rows, len(columns), STEPS, self.row_loss, Fraction(self._problem.ridge))
