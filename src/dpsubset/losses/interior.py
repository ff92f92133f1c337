"""Proposals for the minimum of a quadratic: float64 finds where to go, integers where it is.

Float64 alone ends where a gradient is as large as the rounding of the sums that make it, which for
2**30 records is too large. So the point is kept in integers, its gradient and its distances from
the bounds are exact, and float64 solves for the way from there. Every round adds as many digits as
float64 has; two or three are usual.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from .quadratic import Quadratic

_ROUNDS = 8
#: Points are multiples of 2**-_BITS of the radius.
_BITS = 192


def points(
    q: Quadratic, constraint: str, radius: Fraction, tolerance: Fraction
) -> Iterator[list[Fraction]]:
    """A few points, in C or nearly so, each nearer to the minimum if all goes well."""
    try:
        for z in _rounds(q, constraint, radius, tolerance):
            yield [Fraction(x, 1 << _BITS) * radius for x in z]
    except (ArithmeticError, ValueError):
        return  # float64 has no such number: somebody else's turn


def _rounds(
    q: Quadratic, constraint: str, radius: Fraction, tolerance: Fraction
) -> Iterator[list[int]]:
    from .interior_kernels import descend, sphere
    from .kernels import BOX, L1

    k, one = len(q.c), 1 << _BITS
    z, u = [0] * k, [one // (2 * k) if constraint == "l1" else one] * k
    g = _gradient(q, z, radius)
    size = float(np.abs(g).max())
    if not size:  # 0 is a minimum
        yield z
        return
    with np.errstate(all="ignore"):  # what overflows is of no use, and nobody's business
        h = np.array(q.g.tolist(), dtype=np.float64) * float(2 * radius**2 / q.scale)
        h[np.diag_indices(k)] += float(2 * radius**2 * q.ridge)
        # Multipliers that satisfy the equations of the method, if not yet its products.
        push, over = 0.0, 2 * size
        up, down = size + np.maximum(-g, 0.0), size + np.maximum(g, 0.0)
        if constraint == "l1":
            up, down = size - g / 2, size + g / 2
    for _ in range(_ROUNDS):
        d, e = np.zeros(k), np.zeros(k)
        if constraint == "ball":
            push = sphere(h, g, _floats(z), (one**2 - sum(x * x for x in z)) / one**2, push, d)
        else:
            plus = _floats([a - x for a, x in zip(u, z, strict=True)])
            minus = _floats([a + x for a, x in zip(u, z, strict=True)])
            over = descend(
                h, g, _floats(z), plus, minus, (one - sum(u)) / one, up, down, over,
                BOX if constraint == "box" else L1, float(tolerance / 4), d, e,
            )  # fmt: skip
        z = [x + int(math.ldexp(y, _BITS)) for x, y in zip(z, d.tolist(), strict=True)]
        u = [x + int(math.ldexp(y, _BITS)) for x, y in zip(u, e.tolist(), strict=True)]
        yield z
        g = _gradient(q, z, radius)


def _gradient(q: Quadratic, z: list[int], radius: Fraction) -> NDArray[np.float64]:
    """In units of the radius: rounded once, however much cancels in it."""
    _, slope = q.at([Fraction(x, 1 << _BITS) * radius for x in z])
    return np.array([float(x * radius) for x in slope])


def _floats(whole: list[int]) -> NDArray[np.float64]:
    return np.array([x / (1 << _BITS) for x in whole])
