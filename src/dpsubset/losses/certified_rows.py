"""The minimum of a sum of convex losses over a box, a ball or an l1 ball, at any precision.

    minimise F(b) = sum over rows of count * l(o, z'b) + ridge |b|^2   over b in C

Newton's method on a log barrier proposes b and a line below every loss; ball arithmetic then proves
the bracket of `dpsubset.losses.row_kernels`. The proposal may be wrong; the proof cannot be. It is
slow (seconds for thousands of rows) and needs no assumption. The float64 kernels call it
where they cannot certify themselves, and tests call it as their oracle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import flint

from ..public.problem import sqrt_up
from .barrier import arb as _arb
from .barrier import fraction as _fraction
from .barrier import newton as _newton
from .base import HINGE, LOGISTIC

_Vector = list[flint.arb]


@dataclass(frozen=True)
class Sum:
    """F: different rows with how often each occurs, as integers over ``scale``."""

    rows: list[tuple[tuple[int, ...], int, int]] = field(repr=False)  # z, o, count
    k: int
    scale: int
    code: int
    threshold: Fraction
    ridge: Fraction


def minimum(
    total: Sum, constraint: str, radius: float, tolerance: Fraction
) -> tuple[Fraction, Fraction]:
    """Rationals low <= min F <= high with high - low <= tolerance."""
    bound = Fraction(radius)
    bits = 128
    while True:
        saved = flint.ctx.prec
        flint.ctx.prec = bits
        try:
            b, t = _barrier(total, constraint, bound, tolerance, bits)
            low, high = bracket(total, constraint, bound, b, t)
            if high - low <= tolerance:
                return low, high
        except (ArithmeticError, ValueError):
            pass  # a ball too wide for an operation: narrower with more bits, and nobody's business
        finally:
            flint.ctx.prec = saved
        bits *= 2


def bracket(
    total: Sum, constraint: str, radius: Fraction, b: Sequence[Fraction], t: flint.arb
) -> tuple[Fraction, Fraction]:
    """A bracket of the minimum from any point, first shrunk into C, at the working precision.

    ``t`` says how finely the hinge is smoothed to get its slopes.
    """
    size = _norm(b, constraint)
    if size > radius:
        b = [x * radius / size for x in b]
    point = [_ball(x) for x in b]
    value, excess = flint.arb(0), flint.arb(0)
    g = [2 * _ball(total.ridge) * x for x in point]
    for x in point:
        value += _ball(total.ridge) * x * x
    for z, o, count in total.rows:
        margin = _ball(sum((x * c for x, c in zip(b, z, strict=True)), Fraction(0)) / total.scale)
        if total.code == HINGE:
            m = 1 - margin
            loss = m.max(flint.arb(0))
            # Any number from 0 to 1 is the size of a slope of a line below.
            share = flint.arb(_hinge(m, t)[1].mid()).max(flint.arb(0)).min(flint.arb(1))
            slope = -share
            excess += count * (loss - share * m)
        else:
            loss, slope, _ = _smooth(total, _ball(Fraction(o, total.scale)), margin)
        value += count * loss
        for j, c in enumerate(z):
            g[j] += count * slope * c / total.scale
    dual = {"box": "l1", "l1": "box"}.get(constraint, constraint)
    gap = excess + _ball(radius) * _ball_norm(g, dual)
    for x, u in zip(point, g, strict=True):
        gap += x * u
    return _fraction((value - gap).lower()), _fraction(value.upper())


def _smooth(total: Sum, o: flint.arb, t: flint.arb) -> tuple[flint.arb, flint.arb, flint.arb]:
    """A smooth loss, its slope, its curvature, as balls."""
    if total.code == LOGISTIC:
        # In terms of exp(-|t|), or of both where the sign of t is not certain.
        if t >= 0:
            small = (-t).exp()
            return small.log1p(), -small / (1 + small), small / (1 + small) ** 2
        large = t.exp()
        return large.log1p() - t, -1 / (1 + large), large / (1 + large) ** 2
    r, d = o - t, _ball(total.threshold)
    if abs(r) <= d:
        return r * r, -2 * r, flint.arb(2)
    if r > d:
        return d * (2 * r - d), -2 * d, flint.arb(0)
    if r < -d:
        return d * (-2 * r - d), 2 * d, flint.arb(0)
    # At the threshold, as far as the precision can tell: both formulas are near, and their hull
    # holds the truth.
    outer = d * (2 * abs(r) - d)
    clipped = r.max(-d).min(d)
    return (r * r).union(outer), -2 * clipped, flint.arb(1)


def _hinge(m: flint.arb, t: flint.arb) -> tuple[flint.arb, flint.arb, flint.arb]:
    """min over s > max(0, m) of t s - log s - log(s - m), over t; its derivatives in m."""
    x = t * m / 2
    root = (1 + x * x).sqrt()
    rest = 1 / (root + x) if x > 0 else root - x
    share = 1 / (1 + rest)
    s, beyond = (root + 1 + x) / t, (1 + rest) / t
    if x < 0:
        s = (1 + 1 / (root - x)) / t
    value = s - (s.log() + beyond.log()) / t
    return value, share, t / 2 * (rest / root) * share * share


def _barrier(
    total: Sum, constraint: str, radius: Fraction, tolerance: Fraction, bits: int
) -> tuple[list[Fraction], flint.arb]:
    """An almost optimal point by Newton's method on t F + barrier, t increasing."""
    k = total.k
    r = _arb(radius)
    n = sum(count for _, _, count in total.rows)
    size = 2 * k if constraint == "l1" else k
    z = [flint.arb(0)] * k + [flint.arb(1) / (2 * k)] * (size - k)
    fine = Fraction(16 * (2 * n + 2 * size + 1)) / tolerance
    # The first problem is almost the barrier alone, and not the last one, however coarse that is.
    easy = 1 / (1 + (n + total.ridge * radius) * (1 + k * radius))
    t, goal = _arb(min(easy, fine / 8)), _arb(fine)
    while t < goal:
        t = flint.arb((t * 8).mid())
        for _ in range(bits):
            value, gradient, hessian = _derivatives(total, z[:k], r, t)
            h = [[u / 2 for u in line] for line in hessian]
            c = [
                flint.arb((sum((u * x for u, x in zip(line, z[:k], strict=True)), flint.arb(0))
                           - g / 2).mid())
                for line, g in zip(h, gradient, strict=True)
            ]  # fmt: skip
            step, decrement = _newton(h, c, z, t, constraint)
            if step is None:
                break
            before = t * value + _room(z, k, constraint)
            damping = flint.arb(1)
            for _half in range(bits):
                trial = [flint.arb((a + damping * s).mid()) for a, s in zip(z, step, strict=True)]
                room = _room(trial, k, constraint)
                if room.is_finite():
                    reached = t * _derivatives(total, trial[:k], r, t)[0] + room
                    if reached.mid() <= (before - damping * decrement / 8).mid():
                        break
                damping /= 2
            else:
                break  # as good as this precision can make it
            z = trial
            # The last stage is polished: slopes that do not sum to zero cost the radius.
            if decrement < (flint.arb(1) / 64 if t < goal else flint.arb(2) ** (-bits // 2)):
                break
    return [_fraction(x) * radius for x in z[:k]], t


def _derivatives(
    total: Sum, z: _Vector, radius: flint.arb, t: flint.arb
) -> tuple[flint.arb, _Vector, list[_Vector]]:
    """F(radius z), the hinge smoothed, with gradient and Hessian in z; midpoints, no proof."""
    k = total.k
    ridge = _arb(total.ridge) * radius * radius
    value = sum((ridge * x * x for x in z), flint.arb(0))
    g = [2 * ridge * x for x in z]
    h = [[2 * ridge if i == j else flint.arb(0) for j in range(k)] for i in range(k)]
    for cells, o, count in total.rows:
        row = [radius * c / total.scale for c in cells]
        at = flint.arb(sum((x * c for x, c in zip(z, row, strict=True)), flint.arb(0)).mid())
        if total.code == HINGE:
            loss, share, curvature = _hinge(1 - at, t)
            slope = -share
        else:
            loss, slope, curvature = _smooth(total, _arb(Fraction(o, total.scale)), at)
        value += count * loss
        for i in range(k):
            g[i] += count * slope * row[i]
            weight = count * curvature * row[i]
            for j in range(i + 1):
                h[i][j] += weight * row[j]
                h[j][i] = h[i][j]
    middle = [[flint.arb(u.mid()) for u in line] for line in h]
    return flint.arb(value.mid()), [flint.arb(u.mid()) for u in g], middle


def _room(z: _Vector, k: int, constraint: str) -> flint.arb:
    """The barrier of `certified._newton`; not finite outside of C."""
    if constraint == "box":
        rooms = [1 - x * x for x in z]
    elif constraint == "ball":
        rooms = [1 - sum((x * x for x in z), flint.arb(0))]
    else:
        rooms = [1 - sum(z[k:], flint.arb(0))]
        for a, u in zip(z[:k], z[k:], strict=True):
            rooms += [u - a, u + a]
    if not all(room > 0 for room in rooms):
        return flint.arb("nan")
    return -sum((room.log() for room in rooms), flint.arb(0))


def _norm(v: Sequence[Fraction], constraint: str) -> Fraction:
    """The norm whose ball the constraint is, rounded up where it is irrational."""
    if constraint == "box":
        return max((abs(x) for x in v), default=Fraction(0))
    if constraint == "l1":
        return sum((abs(x) for x in v), Fraction(0))
    square = sum((x * x for x in v), Fraction(0))
    small = max(0, square.denominator.bit_length() - square.numerator.bit_length())
    return sqrt_up(square, flint.ctx.prec + small) if square else square


def _ball_norm(v: _Vector, constraint: str) -> flint.arb:
    sizes = [abs(x) for x in v]
    if constraint == "l1":
        return sum(sizes, flint.arb(0))
    if constraint == "box":
        largest = flint.arb(0)
        for x in sizes:
            largest = largest.max(x)
        return largest
    # An upper end: a ball around 0 has no square root, and a gap may only grow.
    return flint.arb(sum((x * x for x in sizes), flint.arb(0)).upper()).sqrt()


def _ball(x: Fraction) -> flint.arb:
    return flint.arb(x.numerator) / x.denominator
