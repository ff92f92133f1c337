"""The minimum of a convex quadratic over a box, a ball or an l1 ball, certified at any precision.

    minimise q(b) = b'Hb - 2c'b + yy   over b in C

A log-barrier method in as many bits as it takes proposes b; exact rational arithmetic then proves
the answer: for every b in C, with g the gradient of q at b,

    q(b) - gap <= min q <= q(b),   gap = g'b + max over v in C of -g'v.

The proposal may be wrong; the proof cannot be. It is slow (milliseconds) and needs no assumption:
H may be singular, entries may have any size. The float64 kernels call it where they cannot certify
themselves, and tests call it as their oracle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import flint

from ..problem import sqrt_up


@dataclass(frozen=True)
class Quadratic:
    """q(b) = b'Hb - 2c'b + yy with rational coefficients, H positive semidefinite."""

    h: list[list[Fraction]]
    c: list[Fraction]
    yy: Fraction


def minimum(
    q: Quadratic, constraint: str, radius: float, tolerance: Fraction
) -> tuple[Fraction, Fraction]:
    """Rationals low <= min q <= high with high - low <= tolerance."""
    bound = Fraction(radius)
    bits = 128
    while True:
        try:
            b = _barrier(q, constraint, bound, tolerance, bits)
        except (ArithmeticError, ValueError):
            b = None  # a ball too wide for an operation: narrower with more bits
        if b is not None:
            low, high = bracket(q, constraint, bound, b, bits)
            if high - low <= tolerance:
                return low, high
        bits *= 2


def bracket(
    q: Quadratic, constraint: str, radius: Fraction, b: Sequence[Fraction], bits: int = 128
) -> tuple[Fraction, Fraction]:
    """Exact bracket of the minimum from any point, which is first shrunk into C."""
    size = _norm(b, constraint, bits)
    if size > radius:
        b = [x * radius / size for x in b]
    hb = [sum((h * x for h, x in zip(row, b, strict=True)), Fraction(0)) for row in q.h]
    g = [2 * (u - c) for u, c in zip(hb, q.c, strict=True)]
    value = q.yy + sum(((u - 2 * c) * x for u, c, x in zip(hb, q.c, b, strict=True)), Fraction(0))
    slope = sum((u * x for u, x in zip(g, b, strict=True)), Fraction(0))
    gap = slope + radius * _norm(g, {"box": "l1", "l1": "box"}.get(constraint, constraint), bits)
    return value - gap, value


def _norm(v: Sequence[Fraction], constraint: str, bits: int) -> Fraction:
    """The norm whose ball the constraint is, rounded up where it is irrational."""
    if constraint == "box":
        return max((abs(x) for x in v), default=Fraction(0))
    if constraint == "l1":
        return sum((abs(x) for x in v), Fraction(0))
    square = sum((x * x for x in v), Fraction(0))
    if not square:
        return square
    # Relative precision: at least this many bits beyond the leading one, however small the norm.
    small = max(0, square.denominator.bit_length() - square.numerator.bit_length())
    return sqrt_up(square, bits + small)


def _barrier(
    q: Quadratic, constraint: str, radius: Fraction, tolerance: Fraction, bits: int
) -> list[Fraction] | None:
    """An almost optimal point by the log-barrier method with ``bits`` of working precision."""
    k = len(q.c)
    saved = flint.ctx.prec
    flint.ctx.prec = bits
    try:
        # In units of the radius: b = radius * z, |z| <= 1. The l1 ball has slacks u >= |z|.
        r = _arb(radius)
        h = [[_arb(entry) * r * r for entry in row] for row in q.h]
        c = [_arb(entry) * r for entry in q.c]
        n = 2 * k if constraint == "l1" else k
        z = [flint.arb(0)] * k + [flint.arb(1) / (2 * k)] * (n - k)
        # The first problem is almost the barrier alone, whose minimum z = 0 is known.
        size = sum((abs(x) for x in (*c, *(e for row in h for e in row))), flint.arb(1))
        t = flint.arb((1 / size).mid())
        # A self-concordant barrier with parameter nu leaves a gap of about nu / t.
        goal = _arb(Fraction(8 * (2 * n + 1)) / tolerance)
        while t < goal:
            t = t * 8
            for _ in range(60):
                step, decrement = _newton(h, c, z, t, constraint)
                if step is None:
                    return None
                damping = 1 if decrement < flint.arb(1) / 16 else 1 / (1 + decrement.sqrt())
                z = [flint.arb((a + damping * s).mid()) for a, s in zip(z, step, strict=True)]
                if decrement < flint.arb(1) / 64:
                    break
        return [_fraction(x) * radius for x in z[:k]]
    finally:
        flint.ctx.prec = saved


def _newton(
    h: list[list[flint.arb]],
    c: list[flint.arb],
    z: list[flint.arb],
    t: flint.arb,
    constraint: str,
) -> tuple[list[flint.arb] | None, flint.arb]:
    """Newton step of t q + barrier at z, and the square of its decrement."""
    k, n = len(c), len(z)
    gradient = [flint.arb(0)] * n
    hessian = [[flint.arb(0)] * n for _ in range(n)]
    for i in range(k):
        hz = sum((h[i][j] * z[j] for j in range(k)), flint.arb(0))
        gradient[i] = 2 * t * (hz - c[i])
        for j in range(k):
            hessian[i][j] = 2 * t * h[i][j]
    if constraint == "box":  # -sum log(1 - z^2)
        for i in range(n):
            room = 1 - z[i] * z[i]
            gradient[i] += 2 * z[i] / room
            hessian[i][i] += 2 / room + 4 * z[i] * z[i] / room**2
    elif constraint == "ball":  # -log(1 - |z|^2)
        room = 1 - sum((x * x for x in z), flint.arb(0))
        for i in range(n):
            gradient[i] += 2 * z[i] / room
            hessian[i][i] += 2 / room
            for j in range(n):
                hessian[i][j] += 4 * z[i] * z[j] / room**2
    else:  # -sum log(u^2 - z^2) - log(1 - sum u)
        room = 1 - sum(z[k:], flint.arb(0))
        for i in range(k):
            a, u = z[i], z[k + i]
            w = u * u - a * a
            gradient[i] += 2 * a / w
            gradient[k + i] += -2 * u / w + 1 / room
            hessian[i][i] += 2 / w + 4 * a * a / w**2
            hessian[k + i][k + i] += -2 / w + 4 * u * u / w**2
            hessian[i][k + i] -= 4 * a * u / w**2
            hessian[k + i][i] -= 4 * a * u / w**2
            for j in range(k):
                hessian[k + i][k + j] += 1 / room**2
    try:
        solved = flint.arb_mat(hessian).solve(flint.arb_mat([[-g] for g in gradient]))
    except ZeroDivisionError:  # singular at this precision
        return None, flint.arb(0)
    step = [solved[i, 0].mid() for i in range(n)]
    decrement = -sum((g * s for g, s in zip(gradient, step, strict=True)), flint.arb(0))
    decrement = flint.arb(decrement.mid())
    if not (decrement.is_finite() and decrement >= 0):
        return None, flint.arb(0)
    return step, decrement


def _arb(x: Fraction) -> flint.arb:
    return flint.arb((flint.arb(x.numerator) / x.denominator).mid())


def _fraction(x: flint.arb) -> Fraction:
    mantissa, exponent = x.mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
