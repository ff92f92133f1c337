"""The common part of scorers: from supports to columns, and from float64 to exact arithmetic.

Float64 kernels that bound their own error come first. Where they cannot certify a score, exact
arithmetic computes it in as many bits as necessary.
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
        #: Added to the score for every variable of a support, in steps.
        self.penalty = penalty
        self._problem = problem
        self._score_step = score_step
        #: Exact: the step is a power of two.
        self.score_step_float = float(score_step)

    def scores(self, supports: Ints, cutoff: int = ABOVE) -> Ints:
        """f~(S) / score_step for each row of ``supports`` (sorted positions of choices).

        A score above ``cutoff`` may be replaced by `ABOVE` where that is cheaper to certify.
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
        """f~(S) / score_step by exact arithmetic, without penalty."""
        return self._exactly(self._problem.layout.of_support(support))

    def _exactly(self, columns: Ints) -> int:
        low, high = self._minimum(columns)
        return round((low + high) / (2 * self._score_step))

    @abstractmethod
    def _score(self, columns: Ints, cutoff: int, scores: Ints) -> NDArray[np.bool_]:
        """Write the scores of models with these columns, one a row; return which are certified.

        `ABOVE` is a certified score for a model above the cutoff.
        """

    @abstractmethod
    def _minimum(self, columns: Ints) -> tuple[Fraction, Fraction]:
        """Bounds on f at most half a step apart, whatever the data are."""
