"""The box: no coefficient exceeds the radius in absolute value."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

import flint
import numpy as np

from ..base.kernels.arrays import Array
from ..base.kernels.compiled import kernel
from ..base.rounding import ball
from .base import Vector, scale_to_radius
from .interior import Polyhedron
from .jitter import jitter_of, solve_with_jitter


class Box(NamedTuple):
    """abs(b_j) <= radius for all j; the prediction bound is radius * (W + v)."""

    radius: float

    @staticmethod
    def radius_for(prediction_bound: float, width: int, level: Fraction) -> float:
        """Rounded down."""
        bound = Fraction(prediction_bound)
        radius = float(bound / (width + level))
        good = Fraction(radius) * (width + level) <= bound
        return radius if good else math.nextafter(radius, 0.0)

    def prediction_bound(self, width: int, level: Fraction) -> Fraction:
        """Attained with every coefficient at its bound."""
        return Fraction(self.radius) * (width + level)

    def project(self, b: Sequence[Fraction], bits: int) -> list[Fraction]:
        """Scale by the largest entry."""
        return scale_to_radius(b, self.radius, max((abs(x) for x in b), default=Fraction(0)))

    def gauge(self, b: Sequence[int]) -> int:
        """The largest entry."""
        return max((abs(x) for x in b), default=0)

    def support_function(self, g: Sequence[Fraction], bits: int) -> Fraction:
        """Attained at a corner."""
        return Fraction(self.radius) * sum((abs(x) for x in g), Fraction(0))

    def support_function_ball(self, g: Vector) -> flint.arb:
        """Attained at a corner."""
        return ball(Fraction(self.radius)) * sum((abs(x) for x in g), flint.arb(0))

    def start(self, k: int) -> Vector:
        """The centre."""
        return [flint.arb(0)] * k

    def barrier(self, z: Vector, k: int, gradient: Vector, hessian: list[Vector]) -> None:
        """-sum log(1 - z^2)."""
        for i in range(k):
            slack = 1 - z[i] * z[i]
            gradient[i] += 2 * z[i] / slack
            hessian[i][i] += 2 / slack + 4 * z[i] * z[i] / slack**2

    def slacks(self, z: Vector, k: int) -> Vector:
        """1 - z^2."""
        return [1 - x * x for x in z]

    def interior(self, h: Array, g: Array) -> Polyhedron:
        """Distances from the bounds, each with a multiplier."""
        return Polyhedron(h, g, is_l1=False)

    def gain_error(
        self, k: int, highest: float, error: float, stiffness: Callable[[], float]
    ) -> float:
        """No gain is steeper than 2 radius."""
        return 2 * k * self.radius * error

    @staticmethod
    def is_joint() -> bool:
        """Coefficients are bounded one by one."""
        return False

    @staticmethod
    def is_softened() -> bool:
        """Gains have no kink."""
        return False

    # -- kernels ---------------------------------------------------------------------------------

    @staticmethod
    @kernel
    def shrink(box: Box, b: Array) -> bool:
        """Clip the entries of b."""
        for j in range(b.shape[0]):
            if not np.isfinite(b[j]):
                return False
            b[j] = min(max(b[j], -box.radius), box.radius)
        return True

    @staticmethod
    @kernel
    def solve(box: Box, h: Array, c: Array, target: float) -> Array:
        """Coordinate descent, then Newton steps on the coordinates that are not at their bounds.

        Both decrease the objective. Coordinate descent finds the active bounds; Newton steps finish
        on collinear columns, where coordinate descent alone would converge slowly.
        """
        k, radius = c.shape[0], box.radius
        jitter = jitter_of(h)
        b = np.zeros(k)
        free = np.empty(k, dtype=np.int64)
        for sweep in range(100):
            for j in range(k):
                total = c[j]
                for i in range(k):
                    if i != j:
                        total -= h[j, i] * b[i]
                b[j] = min(max(total / (h[j, j] + jitter), -radius), radius)
            if sweep % 2 == 0:
                continue
            for _ in range(k):
                m = 0
                for j in range(k):
                    if abs(b[j]) < radius:
                        free[m] = j
                        m += 1
                step = np.empty(m)
                for i in range(m):
                    total = c[free[i]]
                    for j in range(k):
                        total -= h[free[i], j] * b[j]
                    step[i] = total
                solve_with_jitter(h, jitter, free[:m], step)
                reached, hit = 1.0, -1
                for i in range(m):
                    slack = (radius - b[free[i]]) if step[i] > 0 else (radius + b[free[i]])
                    if abs(step[i]) * reached > slack:
                        reached = slack / abs(step[i])
                        hit = i
                for i in range(m):
                    b[free[i]] = min(max(b[free[i]] + reached * step[i], -radius), radius)
                if hit < 0:
                    break
                b[free[hit]] = np.copysign(radius, step[hit])
            if gap(box, h, c, b) <= target:
                break
        return b

    @staticmethod
    @kernel
    def dual_norm(box: Box, g: Array) -> float:
        """The l1 norm."""
        total = 0.0
        for j in range(g.shape[0]):
            total += abs(g[j])
        return total

    @staticmethod
    @kernel
    def max_l1_norm(box: Box, k: int) -> float:
        """Attained at a corner."""
        return box.radius * k

    @staticmethod
    @kernel
    def gain(box: Box, w: float, d: float, mu: float, nu: float) -> float:
        """The maximum of 2 w v - d v^2 over |v| <= radius."""
        w = abs(w)
        if w < d * box.radius:
            return w * w / d
        return box.radius * (2.0 * w - d * box.radius)

    @staticmethod
    @kernel
    def coefficient(box: Box, w: float, d: float, mu: float, nu: float) -> float:
        """The v that attains `gain`."""
        return w / d if abs(w) < d * box.radius else np.copysign(box.radius, w)

    @staticmethod
    @kernel
    def extra(box: Box, mu: float, nu: float) -> float:
        """Every feature carries its own bound, so nothing is left over."""
        return 0.0


@kernel
def gap(box: Box, h: Array, c: Array, b: Array) -> float:
    """Duality gap as computed: a stopping rule for the solver, not a proof."""
    total = 0.0
    for i in range(c.shape[0]):
        g = -c[i]
        for j in range(c.shape[0]):
            g += h[i, j] * b[j]
        total += 2.0 * (g * b[i] + box.radius * abs(g))
    return total
