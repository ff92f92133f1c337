"""Cuts of the outer approximation: linear functions of z below f(S), from exact moments.

Prastakos, Behdin and Mazumder 2025 minimise over binary z, with G = X'X,

    c(z) = min over b of |y - Xb|^2 + ridge * sum of b_j^2 / z_j,

which is convex in z and equals f(S) at the indicator of S. The constraint on b is written with z as
well: sum of b_j^2 / z_j <= r^2 for the ball, as in the cones of `cones`, and |b_j| <= r z_j for the
box. Nothing changes at binary z, and c only increases between. By duality, for every b and mu >= 0,
and with w = c - Gb,

    c(z) >= yy - b'Gb - mu r^2 - sum of z_j phi_j,
    ball: phi_j = w_j^2 / (ridge + mu),
    box:  phi_j = max over |v| <= r of 2 w_j v - ridge v^2,   mu = 0,

with equality at z0 if b attains c(z0) and mu is its multiplier; this is then the tangent plane
c(z0) + grad c(z0)'(z - z0). A suboptimal b costs tightness, not validity, so b is computed in
float64, rounded to a grid, and the plane computed from it in integers; its coefficients are rounded
outwards.

Where X'X is positive definite, a part delta of its diagonal is moved to the ridge: nothing changes
at binary z, and c increases between. In the formulas above G is then X'X - delta I, still positive
semidefinite, and the ridge is that of the problem plus delta. With ``shift=False`` the cuts are as
published, without this.

A loss that is summed over records, l(y_i, x_i'b), has a tangent below it at every slope q_i. With w
= -X'q / 2 the same reasoning gives

    c(z) >= - sum of l*(y_i, q_i) - mu r^2 - sum of z_j phi_j,

a tangent plane if q are the slopes at the b that attains c(z0).

Columns of the same choice share its z, and phi_j is the sum of theirs; the intercept's z is 1, so
its phi is part of the base.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ...constraints.base import shrink, solve
from ...data.gram import GramData
from ...data.quantize import STEPS
from ...objective.losses import scorer
from ...objective.losses.cutoff_kernels import half_slope, quantized_slopes
from ...objective.losses.row_kernels import proximal_newton, scaled_rows
from ...objective.losses.rows import FromRecords
from ...objective.problem import Problem
from ..bounds.kernels import FREE
from ..bounds.linear_algebra import smallest_eigenvalue
from ..bounds.row_kernels import gradient
from .certify import power_of_two

Floats = NDArray[np.float64]

#: The b of a cut are multiples of 2**-_BITS.
_BITS = 48
#: Exceeds the relative effect of the five roundings of a gain.
_ROUND_UP = 1.0 + 2.0**-49
#: Entries of z below this count as 0.
_ZERO = 1e-9
#: Solvers treat smaller coefficients as 0; they are rounded up to this.
_MIN_COEFFICIENT = 1e-8
#: The widths to which the hinge is smoothed, one after the other.
_SMOOTHINGS = (0.25, 0.05, 0.01, 2e-3, 4e-4, 8e-5, 1.6e-5)


class Planes(ABC):
    """Tangent planes of c."""

    #: A power of two that no score exceeds.
    scale: float
    _problem: Problem
    _ridge: float

    def at(self, z: Floats) -> tuple[float, Floats]:
        """Base and gains: f(S) >= base - sum over j in S of gains_j, for every S."""
        layout = self._problem.layout
        each = np.repeat(z, layout.sizes) if layout.grouped else z
        if not layout.has_intercept:
            base, gains = self._plane(each)
        else:
            base, gains = self._plane(np.append(each, 1.0))
            base = math.nextafter(base - float(gains[-1]), -math.inf)
        if layout.grouped:
            # Exceeds the rounding of so many additions.
            gains = gains * (1.0 + 2.0**-52 * layout.widest)
        return base, layout.of_choices(gains)

    @abstractmethod
    def _plane(self, z: Floats) -> tuple[float, Floats]:
        """Base and gains by columns."""

    def row(self, z: Floats) -> tuple[float, Floats]:
        """The plane at z as a row for a solver, eta + sum of row_j z_j >= base, in units of scale.

        All coefficients lie between 0 and 1.
        """
        base, gains = self.at(z)
        base = max(base / self.scale, 0.0)
        # With z_j = 1 and a gain larger than the base, the row says only eta >= 0.
        return base, np.clip(gains / self.scale, _MIN_COEFFICIENT, max(base, _MIN_COEFFICIENT))

    def _gains(self, w: Floats, mu: float) -> Floats:
        """phi, rounded up."""
        ridge, r = self._ridge, self._problem.radius
        if self._problem.constraint == "ball":
            gains = w * w / math.nextafter(ridge + mu, 0.0)
        else:
            # The square is never less than the other expression, so the comparison may be rounded.
            gains = 2.0 * r * w - ridge * r * r
            if ridge > 0:
                gains = np.where(w <= ridge * r, w * w / ridge, gains)
        return np.asarray(gains * _ROUND_UP, dtype=np.float64)


class Cuts(Planes):
    """Tangent planes for least squares, from moments."""

    def __init__(self, gram: GramData, problem: Problem, shift: bool = True) -> None:
        self._gram, self._problem = gram, problem
        self.scale = power_of_two(gram.yy / STEPS**2)
        self._c = gram.c.astype(object)
        self._radius = Fraction(problem.radius)
        #: In the units of the Gram matrix.
        self._delta = _least_eigenvalue(gram) if shift else 0
        #: Rounded down.
        self._ridge = problem.ridge + self._delta / STEPS**2
        if self._delta:
            self._ridge = math.nextafter(math.nextafter(self._ridge, 0.0), 0.0)

    def _plane(self, z: Floats) -> tuple[float, Floats]:
        """Base and gains in integers, rounded at the end."""
        features = np.flatnonzero(z > _ZERO)
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

    def _columns(self, features: NDArray[np.int64]) -> NDArray[np.int64]:
        self._gram.fetch(features.tolist())
        return self._gram.product_rows(features)

    def _coefficients(self, features: NDArray[np.int64], z: Floats) -> tuple[Floats, float]:
        """Approximately the b of c(z) on its support, and the ball's multiplier."""
        problem = self._problem
        g = self._columns(features)[:, features] / float(STEPS) ** 2
        g[np.diag_indices_from(g)] -= self._delta / STEPS**2
        c = self._gram.c[features] / float(STEPS) ** 2
        yy = self._gram.yy / STEPS**2
        if problem.constraint == "ball":
            # b = sqrt(z) u: a ridge and a ball on u.
            root = np.sqrt(z)
            h = root[:, None] * g * root + self._ridge * np.eye(len(z))
            u = self._point(h, root * c, 1e-12 * yy)
            length = float(u @ u)
            mu = 0.0
            if length > 0.99 * problem.radius**2:
                mu = max(0.0, float(u @ (root * c - h @ u)) / length)
            return root * u, mu
        # b = z v: a box on v.
        h = z[:, None] * g * z + self._ridge * np.diag(z)
        return z * self._point(h, z * c, 1e-12 * yy), 0.0

    def _point(self, h: Floats, c: Floats, target: float) -> Floats:
        """A point of C near the minimum of b'Hb - 2c'b."""
        b: Floats = solve(self._problem.coefficients, h, c, target)
        shrink(self._problem.coefficients, b)
        return b


class RowCuts(Planes):
    """Tangent planes for a loss that is summed over records."""

    def __init__(self, problem: Problem, scorer: FromRecords) -> None:
        self._problem, self._from = problem, scorer
        self._ridge = problem.ridge
        # No loss at t = 0 exceeds 1.
        self._n = scorer.records.shape[1]
        self.scale = power_of_two(self._n)
        self._table = scorer.row_loss.conjugates()

    def _plane(self, z: Floats) -> tuple[float, Floats]:
        """Base and gains from slopes that are integers, so that their sums are exact."""
        source, n, scale = self._from, self._n, float(STEPS)
        q, half = np.empty(n, dtype=np.int16), np.empty(self._problem.columns)
        const = quantized_slopes(self._predictions(z), source.response, source.row_loss, scale,
                       _SMOOTHINGS[-1], 0.0, self._table, q)  # fmt: skip
        status = np.full(self._problem.columns, FREE, dtype=np.int8)
        gradient(source.records, status, q, half_slope(source.row_loss, scale), half)
        # Covers four roundings after the integer sums.
        w = np.abs(half) * (1.0 + 2.0**-50)
        r, mu = self._problem.radius, 0.0
        if self._problem.constraint == "ball":
            # The mu for which the plane is highest at z.
            mu = max(0.0, math.sqrt(float(z @ (w * w))) / r - self._ridge)
        # A bound on the error of the constant, see `search.bounds.row_kernels.dual_ascent`.
        most = n * source.row_loss.largest()
        base = const - 2.0**-48 * (most + 1.0) - mu * r * r * _ROUND_UP
        return base - 2.0**-50 * abs(base), self._gains(w, mu)

    def _predictions(self, z: Floats) -> Floats:
        """Approximately X b for the b of c(z)."""
        source, loss, problem = self._from, self._from.row_loss, self._problem
        features = np.flatnonzero(z > _ZERO)
        x, y = np.empty((self._n, len(features))), np.empty(self._n)
        every = np.arange(self._n)
        scaled_rows(
            source.records, source.response, features, every, loss.labels, float(STEPS), x, y
        )
        # b = sqrt(z) u for the ball, as above. For the box b = z v; its ridge, z_j each, is
        # replaced by their mean, which is exact at binary z.
        share = z[features]
        ball = problem.constraint == "ball"
        x *= np.sqrt(share) if ball else share
        ridge = self._ridge if ball else self._ridge * float(share.mean())
        u, ones = np.zeros(len(features)), np.ones(self._n)
        # Where few rows of the Huber loss have curvature, a little smoothing helps.
        for smoothing in _SMOOTHINGS if loss.is_kinked() else (1e-3,):
            proximal_newton(
                loss, problem.coefficients, x, y, ones, smoothing, ridge, 1e-9 * self._n, u
            )
        t: Floats = x @ u
        return np.where(source.response < 0, -t, t) if loss.labels else t


def planes(gram: GramData, problem: Problem) -> Planes:
    """Tangent planes for the problem's loss."""
    source = scorer(gram, problem, Fraction(1))  # used for its type and records only
    return RowCuts(problem, source) if isinstance(source, FromRecords) else Cuts(gram, problem)


def _least_eigenvalue(gram: GramData) -> int:
    """A lower bound on the smallest eigenvalue of X'X, in units of its entries.

    0 if not all columns are available.
    """
    if not gram.whole:
        return 0
    g = gram.product_rows().astype(np.float64)
    # The error of float64 grows with p and with the size of the matrix.
    margin = 8.0 * gram.p * 2.0**-52 * float(np.linalg.norm(g))
    return max(0, math.floor(smallest_eigenvalue(g) - margin))
