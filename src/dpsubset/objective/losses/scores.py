"""What scorers share: from supports to the columns of their models, and from floats to proofs.

Float64 kernels that bound their own error come first; where they cannot certify a score, exact
arithmetic repeats the work in as many bits as it takes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..problem import Problem
from .base import ABOVE

Ints = NDArray[np.int64]


class CertifiedScorer(ABC):
    """Scores of supports on one data set: deterministic, certified, on an integer grid."""

    def __init__(self, problem: Problem, score_step: Fraction, penalty: int = 0) -> None:
        #: Added to the score for every variable of a support, in units.
        self.penalty = penalty
        self._problem = problem
        self._score_step = score_step
        #: A power of two: the conversion is exact.
        self.score_step_float = float(score_step)

    def scores(self, supports: Ints, cutoff: int = ABOVE) -> Ints:
        """f~(S) / score_step for each row of ``supports`` (sorted positions of choices).

        Or `ABOVE` in its place, where it is above the cutoff and that is easier to tell.
        """
        scores = np.empty(len(supports), dtype=np.int64)
        penalty = self.penalty * supports.shape[1]
        bar = cutoff - penalty if cutoff < ABOVE else ABOVE
        for rows, columns in self._problem.layout.batches(supports):
            found = np.empty(len(columns), dtype=np.int64)
            certified = self._score(columns, bar, found)
            for i in np.flatnonzero(~certified):
                found[i] = self._exactly(columns[i])
            scores[rows] = np.where(found == ABOVE, ABOVE, found + penalty)
        return scores

    def exact_score(self, support: Sequence[int] | Ints) -> int:
        """f~(S) / score_step without float64 and without penalty: any conditioning, any n."""
        return self._exactly(self._problem.layout.of_support(support))

    def _exactly(self, columns: Ints) -> int:
        low, high = self._minimum(columns)
        return round((low + high) / (2 * self._score_step))

    @abstractmethod
    def _score(self, columns: Ints, cutoff: int, scores: Ints) -> NDArray[np.bool_]:
        """Scores of models with these columns, one a row, in place; which of them are certified.

        `ABOVE` is one for those that are above the cutoff.
        """

    @abstractmethod
    def _minimum(self, columns: Ints) -> tuple[Fraction, Fraction]:
        """Bounds on f, half a score_step apart at most, whatever the data are."""
