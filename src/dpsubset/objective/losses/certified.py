"""Certified minimum of a convex quadratic over C, at any precision.

    minimise q(b) = b'Hb - 2c'b + yy   over b in C

A heuristic proposes b; exact rational arithmetic then proves a bracket: with g the gradient of q at
b, for every b in C

    q(b) - gap <= min q <= q(b),   gap = g'b + max over v in C of -g'v.

The proposal may be wrong; the bracket cannot be. `interior` proposes first, in float64 with exact
gradients: less than a millisecond for small k, seconds for k = 1000. Where that is not accurate
enough, a log-barrier method proposes in as many bits as necessary: slow, but without assumptions. H
may be singular and entries may have any size. The float64 kernels call this module where they
cannot certify a score, and tests use it as their oracle.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import flint

from ...base.errors import TableError
from ...base.rounding import midpoint, nearest
from ...constraints import Constraint
from ...data.moments import is_semidefinite
from .barrier import barrier_minimum
from .interior import points
from .quadratic import Quadratic

#: Precision beyond which moments are checked; no table is known to need it.
_DOUBTFUL = 2**11


def minimum(q: Quadratic, c: Constraint, tolerance: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals low <= min q <= high with high - low <= tolerance."""
    for b in points(q, c, tolerance):
        low, high = bracket(q, c, b)
        if high - low <= tolerance:
            return low, high
    bits = 128
    while True:
        try:
            b = _barrier(q, c, tolerance, bits)
        except (ArithmeticError, ValueError):
            pass  # a ball was too wide for an operation; more bits make it narrower
        else:
            low, high = bracket(q, c, b, bits)
            if high - low <= tolerance:
                return low, high
        bits *= 2
        if bits == _DOUBTFUL and is_semidefinite(q.g) is False:
            # Not the moments of a table: the minimum may be unbounded below, without a bracket.
            raise TableError("no table has such moments: they were damaged or altered")


def bracket(
    q: Quadratic, c: Constraint, b: Sequence[Fraction], bits: int = 128
) -> tuple[Fraction, Fraction]:
    """An exact bracket of the minimum from any point, which is first projected into C."""
    b = c.project(b, bits)
    value, g = q.at(b)
    slope = sum((u * x for u, x in zip(g, b, strict=True)), Fraction(0))
    gap = slope + c.support_function([-u for u in g], bits)
    return value - gap, value


def _barrier(q: Quadratic, c: Constraint, tolerance: Fraction, bits: int) -> list[Fraction]:
    """An almost optimal point by the log-barrier method with ``bits`` of working precision."""
    radius = Fraction(c.radius)
    with flint.ctx.workprec(bits):
        # b = radius * z, |z| <= 1.
        per = radius / q.scale
        h = [[nearest(int(x) * per * radius) for x in row] for row in q.g.table()]
        for j, row in enumerate(h):
            row[j] += nearest(q.ridge * radius**2)
        linear = [nearest(x * per) for x in q.c]
        # The gap is the barrier's parameter, at most 2k + 1 (of the l1 ball), over t.
        goal = nearest(Fraction(8 * (2 * len(linear) + 1)) / tolerance)
        return [midpoint(x) * radius for x in barrier_minimum(h, linear, c, goal, bits)]
