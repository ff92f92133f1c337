"""Least squares: l(y, t) = (y - t)^2, scored from exact moments.

    f(S) = min over b in C of |y - X_S b|^2 + ridge |b|^2,   all in scaled units.

`Scorer.scores` returns f~(S), an integer multiple of ``unit``, with |f~(S) - f(S)| <= unit
certified for every S and every data set: float64 kernels that bound their own error come first;
where they cannot certify, :func:`dpsubset.losses.certified.minimum` repeats the work in as many
bits as it takes. f~ is a fixed function of (moments, S).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import flint
import numpy as np
from numpy.typing import NDArray

from ..public.problem import Problem
from ..table.digest import Digest
from ..table.door import STEPS
from ..table.moments import Moments
from .base import Loss
from .certified import minimum
from .quadratic import Quadratic


def _sharp(reach: Fraction) -> Fraction:
    # At fixed y the loss over |t| <= B is largest at t = -sign(y) B, where it is (|y| + B)^2. Its
    # minimum is (|y| - B)^2 for |y| >= B and 0 otherwise: the range is 4 B |y| or (|y| + B)^2,
    # both largest at |y| = 1.
    return 4 * reach if reach <= 1 else (1 + reach) ** 2


LEAST_SQUARES = Loss(
    name="least-squares",
    ranges={
        "sharp": _sharp,
        # (b_y + b_x r sqrt(s))^2 in scaled units: Prastakos, Behdin and Mazumder 2025; Roy, Wang
        # and Tewari 2024.
        "published": lambda reach: (1 + reach) ** 2,
        # 2 b_y^2 + 2 b_x^2 r^2 s in scaled units: Lemma 2 of Behdin, Prastakos and Mazumder 2024.
        "lemma-2": lambda reach: 2 + 2 * reach**2,
    },
)


class Scorer:
    """Scores of supports for fixed moments: deterministic, certified, on an integer grid."""

    def __init__(
        self, data: Moments | Digest, problem: Problem, unit: Fraction, penalty: int = 0
    ) -> None:
        #: Added to the score for every variable of a support, in units.
        self.penalty = penalty
        self._digest = Digest.from_moments(data) if isinstance(data, Moments) else data
        self._problem = problem
        self._unit = unit
        #: A power of two: the conversion is exact.
        self.unit_float = float(unit)

    def scores(self, supports: NDArray[np.int64]) -> NDArray[np.int64]:
        """f~(S) / unit for each row of ``supports`` (sorted column positions)."""
        from .quadratic_kernels import score_all

        problem = self._problem
        scores = np.empty(len(supports), dtype=np.int64)
        digest = self._digest
        certified = score_all(
            digest.products,
            digest.c,
            digest.yy,
            supports,
            problem.coefficients,
            problem.ridge,
            float(STEPS) ** 2,
            self.unit_float,
            scores,
        )
        for i in np.flatnonzero(~certified):
            scores[i] = self.exact_score(supports[i])
        scores += self.penalty * supports.shape[1]
        return scores

    def exact_score(self, support: Sequence[int] | NDArray[np.int64]) -> int:
        """f~(S) / unit without float64 and without penalty: any conditioning, any n."""
        quadratic, c = self.quadratic(support), self._problem.coefficients
        low, high = minimum(quadratic, c, tolerance=self._unit / 2)
        return round((low + high) / (2 * self._unit))

    def quadratic(self, support: Sequence[int] | NDArray[np.int64]) -> Quadratic:
        """The exact rational objective b'Hb - 2c'b + yy on a support."""
        digest, columns = self._digest, np.asarray(support, dtype=np.int64)
        return Quadratic(
            flint.fmpz_mat(digest.block(columns).tolist()),
            digest.c[columns].tolist(),
            digest.yy,
            STEPS**2,
            Fraction(self._problem.ridge),
        )
