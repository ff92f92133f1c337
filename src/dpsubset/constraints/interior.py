"""Newton-type steps to the minimum of a quadratic over C: float64 directions, integer points.

Float64 alone stops where a gradient is as small as the rounding error of the sums that form it,
which for 2**30 records is too large. So the point is kept in integers, its gradient and its
distances from the bounds are exact, and float64 solves for the step from there. Every step adds
about as many digits as float64 has; two or three steps are usual.
"""

from __future__ import annotations

import math

import numpy as np

from ..base.kernels.arrays import Array


class Polyhedron:
    """Steps over the box, or over the l1 ball with a bound for each coefficient as a variable."""

    def __init__(self, h: Array, g: Array, *, is_l1: bool) -> None:
        self._h, self._is_l1 = h, is_l1
        self._u: list[int] = []
        # Multipliers that satisfy the linear equations of the method.
        size = float(np.abs(g).max())
        self._over = 2 * size
        if is_l1:
            self._up, self._down = size - g / 2, size + g / 2
        else:
            self._up, self._down = size + np.maximum(-g, 0.0), size + np.maximum(g, 0.0)

    def step(self, g: Array, z: list[int], one: int, target: float) -> list[int]:
        """The next point, from the gradient at z."""
        from .interior_kernels import interior_point

        k = len(z)
        if not self._u:
            self._u = [one // (2 * k) if self._is_l1 else one] * k
        u, d, e = self._u, np.zeros(k), np.zeros(k)
        plus = _quotients([a - x for a, x in zip(u, z, strict=True)], one)
        minus = _quotients([a + x for a, x in zip(u, z, strict=True)], one)
        self._over = interior_point(
            self._h, g, _quotients(z, one), plus, minus, (one - sum(u)) / one, self._up, self._down,
            self._over, self._is_l1, target, d, e,
        )  # fmt: skip
        self._u = _moved(u, e, one)
        return _moved(z, d, one)


class Sphere:
    """Steps over the ball."""

    def __init__(self, h: Array) -> None:
        self._h = h
        self._mu = 0.0

    def step(self, g: Array, z: list[int], one: int, target: float) -> list[int]:
        """The next point, from the gradient at z."""
        from .interior_kernels import ball_step

        d = np.zeros(len(z))
        slack = (one**2 - sum(x * x for x in z)) / one**2
        self._mu = ball_step(self._h, g, _quotients(z, one), slack, self._mu, d)
        return _moved(z, d, one)


def _quotients(numerators: list[int], one: int) -> Array:
    return np.array([x / one for x in numerators])


def _moved(z: list[int], d: Array, one: int) -> list[int]:
    bits = one.bit_length() - 1  # a power of two
    return [x + int(math.ldexp(y, bits)) for x, y in zip(z, d.tolist(), strict=True)]
