"""The minimum of a convex quadratic over C, certified at any precision.

    minimise q(b) = b'Hb - 2c'b + yy   over b in C

Somebody proposes b; exact rational arithmetic then proves the answer: for every b in C, with g the
gradient of q at b,

    q(b) - gap <= min q <= q(b),   gap = g'b + max over v in C of -g'v.

The proposal may be wrong; the proof cannot be. `interior` proposes first, in float64 with exact
gradients: less than a millisecond for small k, seconds for k = 1000. Where that is not enough, a
log-barrier method proposes in as many bits as it takes: slow, and without any assumption. H may be
singular, entries may have any size. The float64 kernels call this where they cannot certify
themselves, and tests call it as their oracle.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import flint

from ...base.errors import TableError
from ...base.rounding import midpoint, nearest
from ...constraints import Constraint
from ...data.moments import is_semidefinite
from .barrier import minimise
from .interior import points
from .quadratic import Quadratic

#: Bits that no table has been seen to need.
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
            pass  # a ball too wide for an operation: narrower with more bits
        else:
            low, high = bracket(q, c, b, bits)
            if high - low <= tolerance:
                return low, high
        bits *= 2
        if bits == _DOUBTFUL and is_semidefinite(q.g) is False:
            # Of no table: moments that somebody tampered with have no minimum to be found here.
            raise TableError("no table has such moments: they were damaged, or made up")


def bracket(
    q: Quadratic, c: Constraint, b: Sequence[Fraction], bits: int = 128
) -> tuple[Fraction, Fraction]:
    """Exact bracket of the minimum from any point, which is first moved into C."""
    b = c.project(b, bits)
    value, g = q.at(b)
    slope = sum((u * x for u, x in zip(g, b, strict=True)), Fraction(0))
    gap = slope + c.support_function([-u for u in g], bits)
    return value - gap, value


def _barrier(q: Quadratic, c: Constraint, tolerance: Fraction, bits: int) -> list[Fraction]:
    """An almost optimal point by the log-barrier method with ``bits`` of working precision."""
    radius = Fraction(c.radius)
    with flint.ctx.workprec(bits):
        # In units of the radius: b = radius * z, |z| <= 1.
        per = radius / q.scale
        h = [[nearest(int(x) * per * radius) for x in row] for row in q.g.table()]
        for j, row in enumerate(h):
            row[j] += nearest(q.ridge * radius**2)
        linear = [nearest(x * per) for x in q.c]
        # The gap is the barrier's parameter, at most 2k + 1 (of the l1 ball), over t.
        goal = nearest(Fraction(8 * (2 * len(linear) + 1)) / tolerance)
        return [midpoint(x) * radius for x in minimise(h, linear, c, goal, bits)]
