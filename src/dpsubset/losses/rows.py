"""Scores under a loss that is summed over records.

    f(S) = min over b in C of the sum over records of l(y, x_S'b) + ridge |b|^2,  in scaled units.

`FromRecords.scores` returns f~(S), an integer multiple of ``unit``, with |f~(S) - f(S)| <= unit
certified for every S and every data set: float64 kernels that bound their own error come first;
where they cannot certify, :func:`dpsubset.losses.certified_rows.minimum` repeats the work in as
many bits as it takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError
from ..public.problem import Problem
from ..table.digest import Digest
from ..table.door import STEPS
from ..table.moments import Moments
from .base import RowLoss
from .certified_rows import Sum, minimum
from .row_kernels import score_all


class FromRecords:
    """Scores of supports from quantised records: deterministic, certified, on an integer grid."""

    def __init__(
        self,
        data: Moments | Digest,
        problem: Problem,
        unit: Fraction,
        row_loss: RowLoss,
        penalty: int = 0,
    ) -> None:
        if isinstance(data, Moments) or len(data.records) != problem.p:
            raise ArgumentError(
                f"the {problem.loss} loss needs the records: moments are not enough"
            )
        #: Added to the score for every variable of a support, in units.
        self.penalty = penalty
        self.records, self.response = data.records, data.response
        self.row_loss = row_loss
        self._problem = problem
        self._unit = unit
        #: A power of two: the conversion is exact.
        self.unit_float = float(unit)

    def scores(self, supports: NDArray[np.int64]) -> NDArray[np.int64]:
        """f~(S) / unit for each row of ``supports`` (sorted column positions)."""
        problem = self._problem
        zero, rest = self._at_zero
        scores = np.empty(len(supports), dtype=np.int64)
        certified = score_all(
            self.records,
            self.response,
            supports,
            self.row_loss,
            problem.coefficients,
            problem.ridge,
            float(STEPS),
            self.unit_float,
            zero,
            rest,
            scores,
        )
        for i in np.flatnonzero(~certified):
            scores[i] = self.exact_score(supports[i])
        scores += self.penalty * supports.shape[1]
        return scores

    @cached_property
    def _at_zero(self) -> tuple[int, float]:
        """F(0) in units: the nearest integer, and what is left as a float."""
        exact = self.row_loss.at_zero(self.response) / self._unit
        return round(exact), float(exact - round(exact))

    def exact_score(self, support: Sequence[int] | NDArray[np.int64]) -> int:
        """f~(S) / unit without float64 and without penalty: any conditioning, any n."""
        c = self._problem.coefficients
        low, high = minimum(self.sum(support), c, tolerance=self._unit / 2)
        return round((low + high) / (2 * self._unit))

    def sum(self, support: Sequence[int] | NDArray[np.int64]) -> Sum:
        """The exact objective on a support: different rows in order, and how often they occur."""
        cells = np.vstack([self.records[list(support)], self.response[None]]).astype(np.int64)
        if self.row_loss.labels:
            sign = np.where(cells[-1] < 0, -1, 1)
            cells = np.vstack([cells[:-1] * sign, np.ones_like(sign)])
        counts = Counter(map(tuple, cells.T.tolist()))
        rows = [(row[:-1], row[-1], counts[row]) for row in sorted(counts)]
        return Sum(rows, len(support), STEPS, self.row_loss, Fraction(self._problem.ridge))
