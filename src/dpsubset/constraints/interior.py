"""Steps towards the minimum of a quadratic over C: float64 finds where to go, integers where it is.

Float64 alone ends where a gradient is as large as the rounding of the sums that make it, which for
2**30 records is too large. So the point is kept in integers, its gradient and its distances from
the bounds are exact, and float64 solves for the way from there. Every step adds as many digits as
float64 has; two or three are usual.
"""

from __future__ import annotations

import math

import numpy as np

from ..base.kernels.arrays import Array


class Polyhedron:
    """Over the box, or with bounds that may be lifted over the l1 ball."""

    def __init__(self, h: Array, g: Array, *, lifted: bool) -> None:
        self._h, self._lifted = h, lifted
        self._u: list[int] = []
        # Multipliers that satisfy the equations of the method, if not yet its products.
        size = float(np.abs(g).max())
        self._over = 2 * size
        if lifted:
            self._up, self._down = size - g / 2, size + g / 2
        else:
            self._up, self._down = size + np.maximum(-g, 0.0), size + np.maximum(g, 0.0)

    def step(self, g: Array, z: list[int], one: int, target: float) -> list[int]:
        """The next point, from the gradient at z."""
        from .interior_kernels import descend

        k = len(z)
        if not self._u:
            self._u = [one // (2 * k) if self._lifted else one] * k
        u, d, e = self._u, np.zeros(k), np.zeros(k)
        plus = _floats([a - x for a, x in zip(u, z, strict=True)], one)
        minus = _floats([a + x for a, x in zip(u, z, strict=True)], one)
        self._over = descend(
            self._h, g, _floats(z, one), plus, minus, (one - sum(u)) / one, self._up, self._down,
            self._over, self._lifted, target, d, e,
        )  # fmt: skip
        self._u = _moved(u, e, one)
        return _moved(z, d, one)


class Sphere:
    """Over the ball."""

    def __init__(self, h: Array) -> None:
        self._h = h
        self._push = 0.0

    def step(self, g: Array, z: list[int], one: int, target: float) -> list[int]:
        """The next point, from the gradient at z."""
        from .interior_kernels import sphere

        d = np.zeros(len(z))
        room = (one**2 - sum(x * x for x in z)) / one**2
        self._push = sphere(self._h, g, _floats(z, one), room, self._push, d)
        return _moved(z, d, one)


def _floats(whole: list[int], one: int) -> Array:
    return np.array([x / one for x in whole])


def _moved(z: list[int], d: Array, one: int) -> list[int]:
    bits = one.bit_length() - 1  # a power of two
    return [x + int(math.ldexp(y, bits)) for x, y in zip(z, d.tolist(), strict=True)]
