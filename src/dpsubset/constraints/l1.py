"""The l1 ball: the absolute values of the coefficients sum to at most the radius."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

import flint
import numpy as np

from ..base.kernels.arrays import Array
from ..base.kernels.compiled import kernel
from ..base.kernels.triangles import solve
from ..base.rounding import ball
from .base import Vector, scale_to_radius
from .interior import Polyhedron
from .jitter import factor_with_jitter, jitter_of
from .joint import coefficient as joint_coefficient
from .joint import gain as joint_gain
from .joint import gain_error as joint_error
from .joint import scale_into


class L1(NamedTuple):
    """|b|_1 <= radius, which is also the prediction bound."""

    radius: float

    @staticmethod
    def radius_for(prediction_bound: float, width: int, level: Fraction) -> float:
        """The prediction bound is the radius."""
        return prediction_bound

    def prediction_bound(self, width: int, level: Fraction) -> Fraction:
        """The radius: no entry of a row exceeds 1, including the intercept's."""
        return Fraction(self.radius)

    def project(self, b: Sequence[Fraction], bits: int) -> list[Fraction]:
        """Scale by the norm."""
        return scale_to_radius(b, self.radius, sum((abs(x) for x in b), Fraction(0)))

    def gauge(self, b: Sequence[int]) -> int:
        """The norm."""
        return sum(abs(x) for x in b)

    def support_function(self, g: Sequence[Fraction], bits: int) -> Fraction:
        """Attained at the largest entry."""
        return Fraction(self.radius) * max((abs(x) for x in g), default=Fraction(0))

    def support_function_ball(self, g: Vector) -> flint.arb:
        """Attained at the largest entry."""
        largest = flint.arb(0)
        for x in g:
            largest = largest.max(abs(x))
        return ball(Fraction(self.radius)) * largest

    def start(self, k: int) -> Vector:
        """The centre, and variables u_j > |z_j| with positive slacks."""
        return [flint.arb(0)] * k + [flint.arb(1) / (2 * k)] * k

    def barrier(self, z: Vector, k: int, gradient: Vector, hessian: list[Vector]) -> None:
        """-sum log(u^2 - z^2) - log(1 - sum u)."""
        slack = 1 - sum(z[k:], flint.arb(0))
        for i in range(k):
            a, u = z[i], z[k + i]
            w = u * u - a * a
            gradient[i] += 2 * a / w
            gradient[k + i] += -2 * u / w + 1 / slack
            hessian[i][i] += 2 / w + 4 * a * a / w**2
            hessian[k + i][k + i] += -2 / w + 4 * u * u / w**2
            hessian[i][k + i] -= 4 * a * u / w**2
            hessian[k + i][i] -= 4 * a * u / w**2
            for j in range(k):
                hessian[k + i][k + j] += 1 / slack**2

    def slacks(self, z: Vector, k: int) -> Vector:
        """u - z, u + z and 1 - sum u."""
        slacks = [1 - sum(z[k:], flint.arb(0))]
        for a, u in zip(z[:k], z[k:], strict=True):
            slacks += [u - a, u + a]
        return slacks

    def interior(self, h: Array, g: Array) -> Polyhedron:
        """Distances from bounds that are variables, each with a multiplier."""
        return Polyhedron(h, g, is_l1=True)

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
        """Without mu the gains would have a kink at the largest |w|."""
        return True

    # -- kernels ---------------------------------------------------------------------------------

    @staticmethod
    @kernel
    def shrink(l1: L1, b: Array) -> bool:
        """Scale b by its norm."""
        size = 0.0
        for j in range(b.shape[0]):
            if not np.isfinite(b[j]):
                return False
            size += abs(b[j])
        scale_into(b, size, l1.radius)
        return True

    @staticmethod
    @kernel
    def solve(l1: L1, h: Array, c: Array, target: float) -> Array:
        """Active-set descent over the faces of the l1 ball.

        On a face (a set of coordinates with fixed signs) the minimiser is the unconstrained one if
        its norm allows, else it lies on the hyperplane sum s_j b_j = radius. Step towards it and
        drop a coordinate that reaches 0; if none is dropped, add the coordinate with the steepest
        descent.
        """
        k, radius = c.shape[0], l1.radius
        jitter = jitter_of(h)
        b = np.zeros(k)
        sign = np.zeros(k)
        index = np.empty(k, dtype=np.int64)
        solution, signs = np.empty(k), np.empty(k)
        threshold, steepest = 0.0, 0.0
        on_face = True
        for _ in range(20 * k + 20):
            if on_face:
                best, enter = threshold * (1.0 + 1e-14), -1
                for j in range(k):
                    if sign[j] == 0.0:
                        g = c[j]
                        for i in range(k):
                            g -= h[j, i] * b[i]
                        if abs(g) > best:
                            best, enter = abs(g), j
                            steepest = g
                if enter < 0:
                    break
                sign[enter] = np.copysign(1.0, steepest)
            m = 0
            for j in range(k):
                if sign[j] != 0.0:
                    index[m] = j
                    solution[m], signs[m] = c[j], sign[j]
                    m += 1
            factor = factor_with_jitter(h, jitter, index[:m])
            solve(factor, solution[:m])
            size, slope = 0.0, 0.0
            for i in range(m):
                size += sign[index[i]] * solution[i]
            threshold = 0.0
            if size > radius:
                solve(factor, signs[:m])
                for i in range(m):
                    slope += sign[index[i]] * signs[i]
                threshold = (size - radius) / slope
                for i in range(m):
                    solution[i] -= threshold * signs[i]
            step_size, leave = 1.0, -1
            for i in range(m):
                j = index[i]
                if solution[i] * sign[j] < 0.0:
                    fraction = b[j] / (b[j] - solution[i])
                    if fraction < step_size:
                        step_size, leave = fraction, j
            for i in range(m):
                b[index[i]] += step_size * (solution[i] - b[index[i]])
            on_face = leave < 0
            if leave >= 0:
                b[leave] = 0.0
                sign[leave] = 0.0
        return b

    @staticmethod
    @kernel
    def dual_norm(l1: L1, g: Array) -> float:
        """The largest absolute value."""
        largest = 0.0
        for j in range(g.shape[0]):
            largest = max(largest, abs(g[j]))
        return largest

    @staticmethod
    @kernel
    def max_l1_norm(l1: L1, k: int) -> float:
        """The radius, by definition."""
        return l1.radius

    @staticmethod
    @kernel
    def gain(l1: L1, w: float, d: float, mu: float, nu: float) -> float:
        """See `joint`."""
        return joint_gain(w, d, mu, nu)

    @staticmethod
    @kernel
    def coefficient(l1: L1, w: float, d: float, mu: float, nu: float) -> float:
        """The v that attains `gain`."""
        return joint_coefficient(w, d, mu, nu)

    @staticmethod
    @kernel
    def extra(l1: L1, mu: float, nu: float) -> float:
        """See `joint`: |b| <= |b|_1."""
        return mu * l1.radius * l1.radius + 2.0 * nu * l1.radius

    @staticmethod
    @kernel
    def best_multipliers(
        l1: L1, w: Array, pi: Array, d: Array, initial_mu: float
    ) -> tuple[float, float]:
        """nu as large as needed: sum pi (|w| - nu)_+ / (d + mu) falls to the radius.

        mu only limits the slope of the gains where d is small: it is kept if it is not 0, else
        chosen.
        """
        radius, mu = l1.radius, initial_mu
        if mu == 0.0:
            highest, least = 0.0, np.inf
            for i in range(w.shape[0]):
                if pi[i] > 0.01:
                    highest = max(highest, abs(w[i]))
                    least = min(least, d[i])
            mu = max(0.02 * highest / radius - least, 1e-12)
        nu = 0.0
        for _ in range(50):
            total, slope = 0.0, 0.0
            for i in range(w.shape[0]):
                over = abs(w[i]) - nu
                if over > 0.0 and pi[i] > 0.0:
                    total += pi[i] * over / (d[i] + mu)
                    slope += pi[i] / (d[i] + mu)
            if total <= radius * (1.0 + 1e-9) or slope <= 0.0:
                break
            nu += (total - radius) / slope
        return mu, nu
