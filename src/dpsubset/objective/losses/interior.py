"""Proposals for the minimum of a quadratic, from float64 steps with exact gradients.

The constraint defines the steps; see :mod:`dpsubset.constraints.interior`.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from ...base.kernels.arrays import Array
from ...constraints import Constraint
from .quadratic import Quadratic

_ROUNDS = 8
#: Points are multiples of radius / _ONE.
_ONE = 1 << 192


def points(q: Quadratic, c: Constraint, tolerance: Fraction) -> Iterator[list[Fraction]]:
    """A few points in or near C, each normally closer to the minimum than the one before."""
    radius = Fraction(c.radius)
    try:
        for z in _rounds(q, c, radius, tolerance):
            yield [Fraction(x, _ONE) * radius for x in z]
    except (ArithmeticError, ValueError):
        return  # float64 failed; the caller falls back to the exact barrier method


def _rounds(
    q: Quadratic, c: Constraint, radius: Fraction, tolerance: Fraction
) -> Iterator[list[int]]:
    z = [0] * len(q.c)
    g = _gradient(q, z, radius)
    if not g.any():  # 0 is a minimum
        yield z
        return
    with np.errstate(all="ignore"):  # overflow is handled below, without a warning
        h = np.array(q.g.tolist(), dtype=np.float64) * float(2 * radius**2 / q.scale)
        h[np.diag_indices(len(z))] += float(2 * radius**2 * q.ridge)
        interior = c.interior(h, g)
    if interior is None:
        return
    for _ in range(_ROUNDS):
        z = interior.step(g, z, _ONE, float(tolerance / 4))
        yield z
        g = _gradient(q, z, radius)


def _gradient(q: Quadratic, z: list[int], radius: Fraction) -> Array:
    """The gradient in units of the radius, rounded once after exact cancellation."""
    _, slope = q.at([Fraction(x, _ONE) * radius for x in z])
    return np.array([float(x * radius) for x in slope])
