"""Least squares: l(y, t) = (y - t)^2, scored from exact moments.

    f(S) = min over b in C of |y - X_S b|^2 + ridge |b|^2,   all in scaled units.

`Scorer.scores` returns f~(S), an integer multiple of ``score_step``. |f~(S) - f(S)| <= score_step
is certified for every S and every data set, in the last resort by
`objective.losses.certified.minimum`. f~ is a deterministic function of (moments, S).
"""

from __future__ import annotations

from fractions import Fraction

import flint
import numpy as np
from numpy.typing import NDArray

from ...data.gram import GramData
from ...data.moments import Moments
from ...data.quantize import STEPS
from ..problem import Problem
from .base import Loss
from .certified import minimum
from .quadratic import Quadratic
from .scores import CertifiedScorer


def _sharp(prediction_bound: Fraction) -> Fraction:
    # At fixed y the loss over |t| <= B is largest at t = -sign(y) B, where it is (|y| + B)^2. Its
    # minimum is (|y| - B)^2 for |y| >= B and 0 otherwise: the range is 4 B |y| or (|y| + B)^2,
    # both largest at |y| = 1.
    return 4 * prediction_bound if prediction_bound <= 1 else (1 + prediction_bound) ** 2


LEAST_SQUARES = Loss(
    name="least-squares",
    ranges={
        "sharp": _sharp,
        # (b_y + b_x r sqrt(s))^2 in scaled units: Prastakos, Behdin and Mazumder 2025; Roy, Wang
        # and Tewari 2024.
        "published": lambda prediction_bound: (1 + prediction_bound) ** 2,
        # 2 b_y^2 + 2 b_x^2 r^2 s in scaled units: Lemma 2 of Behdin, Prastakos and Mazumder 2024.
        "lemma-2": lambda prediction_bound: 2 + 2 * prediction_bound**2,
    },
)


class Scorer(CertifiedScorer):
    """Scores of supports for fixed moments: deterministic, certified, on an integer grid."""

    def __init__(
        self, data: Moments | GramData, problem: Problem, score_step: Fraction, penalty: int = 0
    ) -> None:
        super().__init__(problem, score_step, penalty)
        self._gram = GramData.of(data, problem.layout.constant)

    def _score(
        self, columns: NDArray[np.int64], cutoff: int, scores: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        from .quadratic_kernels import score_all

        problem, gram = self._problem, self._gram
        certified: NDArray[np.bool_] = score_all(
            gram.products, gram.c, gram.yy, columns, problem.coefficients, problem.ridge,
            float(STEPS) ** 2, self.score_step_float, scores,
        )  # fmt: skip
        return certified

    def _minimum(self, columns: NDArray[np.int64]) -> tuple[Fraction, Fraction]:
        return minimum(self.objective(columns), self._problem.coefficients, self._score_step / 2)

    def objective(self, columns: NDArray[np.int64]) -> Quadratic:
        """The exact rational objective b'Hb - 2c'b + yy on these columns."""
        gram = self._gram
        return Quadratic(
            flint.fmpz_mat(gram.block(columns).tolist()),
            gram.c[columns].tolist(),
            gram.yy,
            STEPS**2,
            Fraction(self._problem.ridge),
        )
