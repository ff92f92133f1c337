"""How the hinge is minimised: three ways, see `hinge.Hinge.minimise`.

They look for b and for the slopes of rows at the kink, which may be anything from -1 to 0, and put
minus the slopes into ``o``, which the hinge has no other use for. None of them proves anything:
`row_kernels.certify` judges what they propose.

1. `quickly`. The kink is rounded off by a parabola of some width, less and less. Rows outside
   of it are straight, so that a Newton step costs little more than the rows within. How far to go
   is found on the line itself, where margins move evenly.
2. The method of multipliers, `Lines`: max(0, m) is the largest a m with a in [0, 1]. With something
   taken off for a that differ from the last ones, a few rounds at a moderate width settle which
   slopes the rows at the kink must have.
3. The kink rounded off by a hyperbola, until it is all but sharp.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..constraints.base import Constraint, shrink, solve
from ..kernels.arrays import Array
from ..kernels.compiled import kernel
from ..kernels.values import either
from .base import Smoothed, smooth
from .quadratic_kernels import duality_gap, newton_point

#: Of `settle`: the first width, the factor from one to the next, and how many.
_WIDEST, _NARROWER, _FEW = 0.1, 0.1, 8
#: Newton steps at a width, and trials of a step's length.
_STEPS, _TRIALS = 15, 12


class Lines(NamedTuple):
    """max over a in [0, 1] of a m - width/2 (a - o)^2, m = 1 - t: a is minus the slope.

    Rows off the kink have no curvature; ``loan`` says how much they are lent.
    """

    loan: float
    labels: bool = True

    @staticmethod
    @kernel
    def smooth(lines: Lines, width: float, o: float, t: float) -> tuple[float, float, float]:
        """The loss, its slope, its curvature."""
        m = 1.0 - t
        wanted = o + m / width
        share = min(max(wanted, 0.0), 1.0)
        curvature = 1.0 / width
        if wanted != share:
            curvature *= lines.loan / (1.0 + abs(wanted - share)) ** 3
        return share * m - 0.5 * width * (share - o) ** 2, -share, curvature


@kernel
def straight(c: Constraint, z: Array, o: Array, ridge: float, target: float) -> Array:
    """The minimum if no margin is passed, where the hinge is linear; slopes of -1."""
    k = z.shape[1]
    h, linear = np.zeros((k, k)), np.zeros(k)
    for i in range(z.shape[0]):
        o[i] = 1.0
        for j in range(k):
            linear[j] += 0.5 * z[i, j]
    for j in range(k):
        h[j, j] = ridge
    b = solve(c, h, linear, target / 16)
    if not np.all(np.isfinite(b)):  # a ridge next to nothing
        b[:] = 0.0
    return b


@kernel
def slopes_at(loss: Smoothed, z: Array, o: Array, smoothing: float, b: Array) -> int:
    """Minus the slopes of the smoothed hinge at b, into o; how many rows are at the kink."""
    near = 0
    for i in range(z.shape[0]):
        t = 0.0
        for j in range(b.shape[0]):
            t += z[i, j] * b[j]
        _, slope, _ = smooth(loss, smoothing, o[i], t)
        near += abs(1.0 - t) <= 2.0 * smoothing
        o[i] = -slope
    return near


@kernel
def settle(c: Constraint, z: Array, o: Array, ridge: float, target: float, b: Array) -> bool:
    """Better b, in place, and into ``o`` minus the slopes that go with it. It has been tried."""
    width = _WIDEST
    for _ in range(_FEW):
        excess = _round_off(c, z, width, ridge, target, b)
        # Fine enough, or lost: then a narrower kink would not help.
        if not 0.6 * target < excess < np.inf:
            break
        width *= _NARROWER
    for i in range(z.shape[0]):
        m = 1.0
        for j in range(b.shape[0]):
            m -= z[i, j] * b[j]
        o[i] = min(max((m + width) / (2.0 * width), 0.0), 1.0)
    return True


@kernel
def _not_tried(c: Constraint, z: Array, o: Array, ridge: float, target: float, b: Array) -> bool:
    return False


@kernel
def _round_off(
    c: Constraint, z: Array, width: float, ridge: float, target: float, b: Array
) -> float:
    """Newton steps from b, in place; how far the lines at the end are below, infinite if lost."""
    n, k = z.shape
    g, h = np.empty(k), np.empty((k, k))
    m, d = np.empty(n), np.empty(n)
    for _ in range(_STEPS):
        excess = _parabolas(z, width, ridge, b, g, h, m)
        if duality_gap(g, b, c) <= max(target / 8.0, 0.03 * excess):
            return excess
        v = newton_point(g, h, b, c, target)
        if not shrink(c, v):
            break
        slope, linear, curvature = 0.0, 0.0, 0.0
        for j in range(k):
            v[j] -= b[j]
            slope += g[j] * v[j]
            linear += 2.0 * ridge * b[j] * v[j]
            curvature += 2.0 * ridge * v[j] * v[j]
        if not slope < 0.0:
            break
        for i in range(n):
            d[i] = 0.0
            for j in range(k):
                d[i] += z[i, j] * v[j]
        step, end = 1.0, _slope_at(m, d, width, linear, curvature, 1.0)
        if end > 0.0:
            # A root of the slope, by the secant, but never next to an end.
            low, high, at_low, at_high = 0.0, 1.0, slope, end
            for _trial in range(_TRIALS):
                step = low - at_low * (high - low) / (at_high - at_low)
                step = min(max(step, low + 0.05 * (high - low)), high - 0.05 * (high - low))
                here = _slope_at(m, d, width, linear, curvature, step)
                if abs(here) <= 0.1 * abs(slope):
                    break
                if here > 0.0:
                    high, at_high = step, here
                else:
                    low, at_low = step, here
        for j in range(k):
            b[j] += step * v[j]
    return np.inf


@kernel
def _parabolas(
    z: Array, width: float, ridge: float, b: Array, g: Array, h: Array, m: Array
) -> float:
    """Gradient, half the Hessian and margins' distances from 1, in place; the lines' excess."""
    n, k = z.shape
    g[:] = 0.0
    h[:] = 0.0
    excess = 0.0
    for i in range(n):
        here = 1.0
        for j in range(k):
            here -= z[i, j] * b[j]
        m[i] = here
        if here >= width:
            for j in range(k):
                g[j] -= z[i, j]
        elif here > -width:
            share = (here + width) / (2.0 * width)
            excess += max(here, 0.0) - share * here
            for j in range(k):
                g[j] -= share * z[i, j]
                for other in range(j + 1):
                    h[j, other] += z[i, j] * z[i, other]
    for j in range(k):
        for other in range(j + 1):
            h[j, other] /= 4.0 * width
            h[other, j] = h[j, other]
        g[j] += 2.0 * ridge * b[j]
        h[j, j] += ridge
    return excess


@kernel
def _slope_at(
    m: Array, d: Array, width: float, linear: float, curvature: float, step: float
) -> float:
    """The slope of the objective at a point of the line."""
    total = linear + curvature * step
    for i in range(m.shape[0]):
        here = m[i] - step * d[i]
        if here >= width:
            total -= d[i]
        elif here > -width:
            total -= (here + width) / (2.0 * width) * d[i]
    return total


quickly = either("is_quick", settle, _not_tried)
