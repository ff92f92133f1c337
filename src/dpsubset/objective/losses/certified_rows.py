"""Certified minimum of a sum of convex losses over C, at any precision.

    minimise F(b) = sum over rows of count * l(o, z'b) + ridge |b|^2   over b in C

Newton's method on a log barrier proposes b and a supporting line for every loss; ball arithmetic
then proves the bracket of `objective.losses.row_kernels`. The proposal may be wrong; the bracket
cannot be. The method is slow (seconds for thousands of rows) and needs no assumption. The float64
kernels call it where they cannot certify a score, and tests use it as their oracle.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction

import flint

from ...base.rounding import ball, lower, midpoint, nearest, upper
from ...constraints import Constraint
from ...constraints.base import Vector
from .barrier import barrier_value, newton_step
from .base import RowLoss


@dataclass(frozen=True)
class Sum:
    """F: distinct rows with their counts, as integers over ``scale``."""

    rows: list[tuple[tuple[int, ...], int, int]] = field(repr=False)  # z, o, count
    k: int
    scale: int
    loss: RowLoss
    ridge: Fraction


def minimum(total: Sum, c: Constraint, tolerance: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals low <= min F <= high with high - low <= tolerance."""
    bits = 128
    while True:
        # A ball may be too wide for an operation; more bits make it narrower.
        with flint.ctx.workprec(bits), suppress(ArithmeticError, ValueError):
            b, fine = _barrier(total, c, tolerance, bits)
            low, high = bracket(total, c, b, fine)
            if high - low <= tolerance:
                return low, high
        bits *= 2


def bracket(
    total: Sum, c: Constraint, b: Sequence[Fraction], fine: flint.arb
) -> tuple[Fraction, Fraction]:
    """A bracket of the minimum from any point, first projected into C, at the working precision.

    ``fine`` is the precision at which kinks are smoothed to obtain their slopes.
    """
    b = c.project(b, flint.ctx.prec)
    point = [ball(x) for x in b]
    value, excess = flint.arb(0), flint.arb(0)
    g = [2 * ball(total.ridge) * x for x in point]
    for x in point:
        value += ball(total.ridge) * x * x
    for z, o, count in total.rows:
        at = ball(sum((x * cell for x, cell in zip(b, z, strict=True)), Fraction(0)) / total.scale)
        loss, slope, below = total.loss.exact_lower_line(ball(Fraction(o, total.scale)), at, fine)
        value += count * loss
        excess += count * below
        for j, cell in enumerate(z):
            g[j] += count * slope * cell / total.scale
    gap = excess + c.support_function_ball([-u for u in g])
    for x, u in zip(point, g, strict=True):
        gap += x * u
    return lower(value - gap), upper(value)


def _barrier(
    total: Sum, c: Constraint, tolerance: Fraction, bits: int
) -> tuple[list[Fraction], flint.arb]:
    """An almost optimal point by Newton's method on t F + barrier, t increasing."""
    k, radius = total.k, Fraction(c.radius)
    r = nearest(radius)
    n = sum(count for _, _, count in total.rows)
    z = c.start(k)
    fine = Fraction(16 * (2 * n + 2 * len(z) + 1)) / tolerance
    # In the first problem the barrier dominates; it is never the last one, at any tolerance.
    easy = 1 / (1 + (n + total.ridge * radius) * (1 + k * radius))
    t, goal = nearest(min(easy, fine / 8)), nearest(fine)
    while t < goal:
        t = flint.arb((t * 8).mid())
        for _ in range(bits):
            value, gradient, hessian = _derivatives(total, z[:k], r, t)
            h = [[u / 2 for u in line] for line in hessian]
            linear = [
                flint.arb((sum((u * x for u, x in zip(line, z[:k], strict=True)), flint.arb(0))
                           - g / 2).mid())
                for line, g in zip(h, gradient, strict=True)
            ]  # fmt: skip
            step, decrement = newton_step(h, linear, z, t, c)
            if step is None:
                break
            before = t * value + barrier_value(z, k, c)
            damping = flint.arb(1)
            for _half in range(bits):
                trial = [flint.arb((a + damping * s).mid()) for a, s in zip(z, step, strict=True)]
                inside = barrier_value(trial, k, c)
                if inside.is_finite():
                    reached = t * _derivatives(total, trial[:k], r, t)[0] + inside
                    if reached.mid() <= (before - damping * decrement / 8).mid():
                        break
                damping /= 2
            else:
                break  # the limit of this precision
            z = trial
            # The last stage iterates to the limit of the precision: the gap contains the radius
            # times the sum of the slopes.
            if decrement < (flint.arb(1) / 64 if t < goal else flint.arb(2) ** (-bits // 2)):
                break
    return [midpoint(x) * radius for x in z[:k]], t


def _derivatives(
    total: Sum, z: Vector, radius: flint.arb, t: flint.arb
) -> tuple[flint.arb, Vector, list[Vector]]:
    """F(radius z) with smoothed kinks, its gradient and its Hessian in z, as midpoints."""
    k = total.k
    ridge = nearest(total.ridge) * radius * radius
    value = sum((ridge * x * x for x in z), flint.arb(0))
    g = [2 * ridge * x for x in z]
    h = [[2 * ridge if i == j else flint.arb(0) for j in range(k)] for i in range(k)]
    for cells, o, count in total.rows:
        row = [radius * c / total.scale for c in cells]
        at = flint.arb(sum((x * c for x, c in zip(z, row, strict=True)), flint.arb(0)).mid())
        loss, slope, curvature = total.loss.exact(nearest(Fraction(o, total.scale)), at, t)
        value += count * loss
        for i in range(k):
            g[i] += count * slope * row[i]
            weight = count * curvature * row[i]
            for j in range(i + 1):
                h[i][j] += weight * row[j]
                h[j][i] = h[i][j]
    middle = [[flint.arb(u.mid()) for u in line] for line in h]
    return flint.arb(value.mid()), [flint.arb(u.mid()) for u in g], middle
