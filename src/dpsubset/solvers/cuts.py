"""Cuts of the outer approximation: linear functions of z below f(S), from exact moments.

001 minimises over binary z, with G = X'X,

    c(z) = min over b of |y - Xb|^2 + ridge * sum of b_j^2 / z_j,

which is convex in z and equals f(S) at the indicator of S. The constraint on b is written with z as
well: sum of b_j^2 / z_j <= r^2 for the ball, as the cones of (8) in 000 have it, |b_j| <= r z_j for
the box. Nothing changes at binary z, and c only grows between. By duality, for every b and mu >= 0,
and with w = c - Gb,

    c(z) >= yy - b'Gb - mu r^2 - sum of z_j phi_j,
    ball: phi_j = w_j^2 / (ridge + mu),
    box:  phi_j = max over |v| <= r of 2 w_j v - ridge v^2,   mu = 0,

with equality at z0 if b attains c(z0) and mu is its multiplier: this is then the tangent plane
c(z0) + grad c(z0)'(z - z0). A b that is not quite optimal costs tightness, not validity, so b is
found in float64, rounded to a grid, and the plane computed from it in integers; its coefficients
are rounded outwards.

Where X'X is positive definite, a part delta of its diagonal is counted to the ridge: nothing
changes at binary z, and c grows between again. Above, G is X'X - delta I, still positive
semidefinite, and the ridge is that of the problem plus delta.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..door import STEPS
from ..gram import Gram
from ..losses.kernels import BALL, BOX, minimise
from ..problem import Problem

Floats = NDArray[np.float64]

#: The b of a cut are multiples of 2**-_BITS.
_BITS = 48
#: More than what the five roundings of a gain can take away, relatively.
_UP = 1.0 + 2.0**-49


class Cuts:
    """Tangent planes of c."""

    def __init__(self, gram: Gram, problem: Problem) -> None:
        self._gram, self._problem = gram, problem
        self._c = gram.c.astype(object)
        self._radius = Fraction(problem.radius)
        #: In the units of the Gram matrix.
        self._delta = _least_eigenvalue(gram)
        #: Rounded down.
        self._ridge = problem.ridge + self._delta / STEPS**2
        if self._delta:
            self._ridge = math.nextafter(math.nextafter(self._ridge, 0.0), 0.0)

    def at(self, z: Floats) -> tuple[float, Floats]:
        """Base and gains: f(S) >= base - sum over j in S of gains_j, for every S."""
        features = np.flatnonzero(z > 1e-9)
        b, mu = self._coefficients(features, z[features])
        columns = self._columns(features)
        exact = np.array([round(math.ldexp(x, _BITS)) for x in b.tolist()], dtype=object)
        gb = columns.T.astype(object) @ exact
        gb[features] -= self._delta * exact
        w = (self._c << _BITS) - gb
        unit = STEPS**2 << _BITS
        square = Fraction(int(exact @ gb[features]), unit << _BITS)  # b'Gb
        base = Fraction(self._gram.yy, STEPS**2) - square - Fraction(mu) * self._radius**2
        size = np.array([math.nextafter(abs(int(x)) / unit, math.inf) for x in w])
        return math.nextafter(float(base), -math.inf), self._gains(size, mu)

    def _gains(self, w: Floats, mu: float) -> Floats:
        """phi, rounded up."""
        ridge, r = self._ridge, self._problem.radius
        if self._problem.constraint == "ball":
            gains = w * w / math.nextafter(ridge + mu, 0.0)
        else:
            # The square is never less than the other: what decides between them may be rounded.
            gains = 2.0 * r * w - ridge * r * r
            if ridge > 0:
                gains = np.where(w <= ridge * r, w * w / ridge, gains)
        return np.asarray(gains * _UP, dtype=np.float64)

    def _columns(self, features: NDArray[np.int64]) -> NDArray[np.int64]:
        self._gram.fetch(features.tolist())
        return self._gram.columns[self._gram.slot[features], : self._gram.p]

    def _coefficients(self, features: NDArray[np.int64], z: Floats) -> tuple[Floats, float]:
        """The b of c(z) on its support, nearly, and the ball's multiplier."""
        problem = self._problem
        g = self._columns(features)[:, features] / float(STEPS) ** 2
        g[np.diag_indices_from(g)] -= self._delta / STEPS**2
        c = self._gram.c[features] / float(STEPS) ** 2
        yy = self._gram.yy / STEPS**2
        if problem.constraint == "ball":
            # b = sqrt(z) u: a ridge and a ball on u.
            root = np.sqrt(z)
            h = root[:, None] * g * root + self._ridge * np.eye(len(z))
            u, _, _ = minimise(h, root * c, yy, BALL, problem.radius, 1e-12 * yy)
            length = float(u @ u)
            mu = 0.0
            if length > 0.99 * problem.radius**2:
                mu = max(0.0, float(u @ (root * c - h @ u)) / length)
            return root * u, mu
        # b = z v: a box on v.
        h = z[:, None] * g * z + self._ridge * np.diag(z)
        v, _, _ = minimise(h, z * c, yy, BOX, problem.radius, 1e-12 * yy)
        return z * v, 0.0


def _least_eigenvalue(gram: Gram) -> int:
    """No more than the least eigenvalue of X'X, in units of its entries; 0 if not all is there."""
    if gram.slot.min() < 0:
        return 0
    g = gram.columns[gram.slot, : gram.p].astype(np.float64)
    # What float64 may be off by grows with p and with the size of the matrix.
    margin = 8.0 * gram.p * 2.0**-52 * float(np.linalg.norm(g))
    return max(0, math.floor(float(np.linalg.eigvalsh(g)[0]) - margin))
