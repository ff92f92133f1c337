"""The ball: the l2 norm of the coefficients is at most the radius."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

import flint
import numpy as np

from ..base.kernels.arrays import Array, dot, put
from ..base.kernels.compiled import kernel
from ..base.kernels.triangles import solve
from ..base.rounding import ball, sqrt_up
from .base import Vector, scale_to_radius
from .interior import Sphere
from .jitter import factor_with_jitter, jitter_of
from .joint import coefficient as joint_coefficient
from .joint import gain as joint_gain
from .joint import gain_error as joint_error
from .joint import scale_into


class Ball(NamedTuple):
    """|b| <= radius; the prediction bound is sqrt(k) * radius."""

    radius: float

    @staticmethod
    def radius_for(prediction_bound: float, width: int, level: Fraction) -> float:
        """Rounded down."""
        bound, square = Fraction(prediction_bound), width + level**2
        radius = math.sqrt(bound**2 / square)
        while Fraction(radius) ** 2 * square > bound**2:
            radius = math.nextafter(radius, 0.0)
        return radius

    def prediction_bound(self, width: int, level: Fraction) -> Fraction:
        """The radius times the largest norm of a row, rounded up.

        Entries do not exceed 1, so the squares of a row sum to at most what their absolute values
        do.
        """
        return sqrt_up(Fraction(self.radius) ** 2 * (width + level**2))

    def project(self, b: Sequence[Fraction], bits: int) -> list[Fraction]:
        """Scale by the norm."""
        return scale_to_radius(b, self.radius, _norm(b, bits))

    def gauge(self, b: Sequence[int]) -> int:
        """The norm, rounded up."""
        square = sum(x * x for x in b)
        return math.isqrt(square - 1) + 1 if square else 0

    def support_function(self, g: Sequence[Fraction], bits: int) -> Fraction:
        """Attained in the direction of g."""
        return Fraction(self.radius) * _norm(g, bits)

    def support_function_ball(self, g: Vector) -> flint.arb:
        """An upper end only: a ball that contains 0 has no square root."""
        square = sum((abs(x) * abs(x) for x in g), flint.arb(0))
        return ball(Fraction(self.radius)) * flint.arb(square.upper()).sqrt()

    def start(self, k: int) -> Vector:
        """The centre."""
        return [flint.arb(0)] * k

    def barrier(self, z: Vector, k: int, gradient: Vector, hessian: list[Vector]) -> None:
        """-log(1 - |z|^2)."""
        slack = 1 - sum((x * x for x in z), flint.arb(0))
        for i in range(k):
            gradient[i] += 2 * z[i] / slack
            hessian[i][i] += 2 / slack
            for j in range(k):
                hessian[i][j] += 4 * z[i] * z[j] / slack**2

    def slacks(self, z: Vector, k: int) -> Vector:
        """1 - |z|^2."""
        return [1 - sum((x * x for x in z), flint.arb(0))]

    def interior(self, h: Array, g: Array) -> Sphere:
        """One multiplier, by Newton's method."""
        return Sphere(h)

    def gain_error(
        self, k: int, highest: float, error: float, stiffness: Callable[[], float]
    ) -> float:
        """No gain is steeper than the largest one."""
        return joint_error(k, highest, error, stiffness())

    @staticmethod
    def is_joint() -> bool:
        """One bound holds for all coefficients."""
        return True

    @staticmethod
    def is_softened() -> bool:
        """The best multiplier follows from the inclusion probabilities."""
        return False

    # -- kernels ---------------------------------------------------------------------------------

    @staticmethod
    @kernel
    def shrink(ball: Ball, b: Array) -> bool:
        """Scale b by its norm."""
        size = 0.0
        for j in range(b.shape[0]):
            if not np.isfinite(b[j]):
                return False
            size += b[j] * b[j]
        scale_into(b, np.sqrt(size), ball.radius)
        return True

    @staticmethod
    @kernel
    def solve(ball: Ball, h: Array, c: Array, target: float) -> Array:
        """(H + mu I) b = c with mu >= 0 such that |b| <= radius.

        Newton on the secular equation.
        """
        k, radius = c.shape[0], ball.radius
        everything = np.arange(k)
        b, w = np.empty(k), np.empty(k)
        mu = jitter_of(h)
        low = mu
        for _ in range(60):
            factor = factor_with_jitter(h, mu, everything)
            put(b, c)
            solve(factor, b)
            size = np.sqrt(dot(b, b))
            if mu == low and size <= radius:
                break
            if abs(size - radius) <= 1e-15 * radius:
                break
            # Newton on 1/|b(mu)| - 1/radius, concave and increasing: from the left it never
            # overshoots.
            put(w, b)
            solve(factor, w)
            slope = dot(b, w)
            if slope <= 0.0:
                break
            change = (size / radius - 1.0) * size * size / slope
            following = max(mu + change, low)
            if abs(following - mu) <= 1e-16 * mu:
                break
            mu = following
        return b

    @staticmethod
    @kernel
    def dual_norm(ball: Ball, g: Array) -> float:
        """The l2 norm."""
        return np.sqrt(dot(g, g))

    @staticmethod
    @kernel
    def max_l1_norm(ball: Ball, k: int) -> float:
        """Attained where all entries are equal."""
        return ball.radius * np.sqrt(k)

    @staticmethod
    @kernel
    def gain(ball: Ball, w: float, d: float, mu: float, nu: float) -> float:
        """See `joint`; nu is 0."""
        return joint_gain(w, d, mu, nu)

    @staticmethod
    @kernel
    def coefficient(ball: Ball, w: float, d: float, mu: float, nu: float) -> float:
        """The v that attains `gain`."""
        return joint_coefficient(w, d, mu, nu)

    @staticmethod
    @kernel
    def extra(ball: Ball, mu: float, nu: float) -> float:
        """See `joint`."""
        return mu * ball.radius * ball.radius

    @staticmethod
    @kernel
    def best_multipliers(
        ball: Ball, w: Array, pi: Array, d: Array, initial_mu: float
    ) -> tuple[float, float]:
        """The bound decreases in mu while sum pi w^2 / (d + mu)^2 > r^2: find the root.

        Newton from the left, since the sum is convex. mu is never 0: with d = 0 gains would be
        undefined.
        """
        mu, radius = 1e-12, ball.radius
        for _ in range(30):
            square, cube = 0.0, 0.0
            for i in range(w.shape[0]):
                if pi[i] > 0.0:
                    part = pi[i] * (w[i] ** 2 / (d[i] + mu) ** 2)
                    square += part
                    cube += part / (d[i] + mu)
            if square <= radius * radius * (1.0 + 1e-6):
                break
            # Newton on 1/sqrt(square) - 1/radius, which is almost linear in mu.
            mu += (np.sqrt(square) / radius - 1.0) * square / cube
        return mu, 0.0


def _norm(v: Sequence[Fraction], bits: int) -> Fraction:
    """The l2 norm, rounded up."""
    square = sum((x * x for x in v), Fraction(0))
    if not square:
        return square
    # Relative precision: at least this many bits after the leading one, however small the norm.
    small = max(0, square.denominator.bit_length() - square.numerator.bit_length())
    return sqrt_up(square, bits + small)
