"""The cone program for the best support, without what depends on the solver. NOT PRIVATE.

Program (8) of Behdin, Prastakos and Mazumder 2024, with a ridge:

    min |y - Xb|^2 + ridge * sum of theta_j   over b, theta >= 0, binary z
    with b_j^2 <= theta_j z_j,  sum of theta_j <= r^2,  sum of z_j = k,

and a no-good cut for every excluded support. For the box there are no cones except those of the
ridge. There is a z for each choice, and a b and a theta for each column; z_j is that of the choice
to which a column belongs, and 1 for the intercept's.

Solvers keep b_j^2 <= theta_j z_j to a tolerance, so every b_j with z_j = 0 can be as large as the
square root of the tolerance: with the cones alone a bound is about 1e-4 too low. The linear rows
|b_j| <= r z_j, which follow from (8), keep b_j within the tolerance itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...data.gram import GramData
from ...data.quantize import STEPS
from ...objective.problem import Problem
from .certify import TOLERANCE_FACTOR, power_of_two

#: Relative error of the eigenvalues of X'X, compared with the largest.
_ROUNDING = 1e-13


class Cones:
    """The coefficients of (8), with its objective in units of a power of two."""

    def __init__(self, gram: GramData, problem: Problem) -> None:
        self._problem = problem
        gram.fetch(range(gram.p))
        g = gram.product_rows() / float(STEPS) ** 2
        c, yy = gram.c / float(STEPS) ** 2, gram.yy / STEPS**2
        self.scale = power_of_two(yy)
        self.g = g / self.scale
        #: b'X'Xb is the sum of the squares of these linear forms.
        values, vectors = np.linalg.eigh(self.g)
        self.forms = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        self.c, self.yy = c / self.scale, yy / self.scale
        self.ridge = problem.ridge / self.scale
        self._norms = float(np.sqrt(np.diagonal(self.g)).sum())

    def on(self, z: Sequence[Any]) -> list[Any]:
        """For every column the z of its choice; 1 for the intercept's."""
        return [z[j] if j < len(z) else 1.0 for j in self._problem.layout.owners.tolist()]

    def slack(self, tolerance: float) -> float:
        """A bound on the reduction of the objective if every constraint is off by the tolerance.

        The terms are, in this order: coefficients off their bounds, with a slope of at most 2 |x_j|
        |y|; the linear forms, of length at most r times the sum of |x_j|; their squares and the
        reduced costs; the cones, in the ridge and in the ball, whose multiplier is at most yy /
        r^2; the rounding of the forms.
        """
        p, r = self._problem.columns, self._problem.radius
        cones = self._problem.most_columns * self.ridge * (1 + r * r)
        ball = (p + 1) * (1 + r * r) / (r * r) if self._problem.constraint == "ball" else 0.0
        forms = 2 * math.sqrt(p) * (1 + r * self._norms)
        parts = 2 * (1 + r) * self._norms + forms + 2 * p + cones + ball
        rounding = _ROUNDING * p * (r * self._norms) ** 2
        return TOLERANCE_FACTOR * (tolerance * parts + rounding)
