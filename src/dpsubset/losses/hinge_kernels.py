"""A quick solver for the hinge. It proves nothing: `row_kernels.certify` judges what it proposes.

The kink is rounded off by a parabola of some width, less and less. Rows outside of it are straight,
so a Newton step costs little more than the rows within; how far to go is found on the line itself,
where margins move evenly.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from .kernels import _shrink, duality_gap, newton_point

Array = NDArray[np.float64]

#: Widths: the first, the factor from one to the next, and how many.
_WIDEST, _RATIO, _WIDTHS = 0.1, 0.1, 8
#: Newton steps at a width, and trials of a step's length.
_STEPS, _TRIALS = 15, 12


@numba.njit(cache=True)
def settle(
    z: Array, o: Array, constraint: int, radius: float, ridge: float, target: float, b: Array
) -> None:
    """Better b, in place, and into ``o`` minus the slopes that go with it."""
    width = _WIDEST
    for _ in range(_WIDTHS):
        excess = _descend(z, width, constraint, radius, ridge, target, b)
        # Fine enough, or lost: then a narrower kink would not help.
        if not 0.6 * target < excess < np.inf:
            break
        width *= _RATIO
    for i in range(z.shape[0]):
        m = 1.0
        for j in range(b.shape[0]):
            m -= z[i, j] * b[j]
        o[i] = min(max((m + width) / (2.0 * width), 0.0), 1.0)


@numba.njit(cache=True)
def _descend(
    z: Array, width: float, constraint: int, radius: float, ridge: float, target: float, b: Array
) -> float:
    """Newton steps from b, in place; how far the lines at the end are below, infinite if lost."""
    n, k = z.shape
    g, h = np.empty(k), np.empty((k, k))
    m, d = np.empty(n), np.empty(n)
    for _ in range(_STEPS):
        excess = _model(z, width, ridge, b, g, h, m)
        if duality_gap(g, b, constraint, radius) <= max(target / 8.0, 0.03 * excess):
            return excess
        v = newton_point(g, h, b, constraint, radius, target)
        if not _shrink(v, constraint, radius):
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
        step, end = 1.0, _slope(m, d, width, linear, curvature, 1.0)
        if end > 0.0:
            # A root of the slope, by the secant, but never next to an end.
            low, high, at_low, at_high = 0.0, 1.0, slope, end
            for _trial in range(_TRIALS):
                step = low - at_low * (high - low) / (at_high - at_low)
                step = min(max(step, low + 0.05 * (high - low)), high - 0.05 * (high - low))
                here = _slope(m, d, width, linear, curvature, step)
                if abs(here) <= 0.1 * abs(slope):
                    break
                if here > 0.0:
                    high, at_high = step, here
                else:
                    low, at_low = step, here
        for j in range(k):
            b[j] += step * v[j]
    return np.inf


@numba.njit(cache=True)
def _model(z: Array, width: float, ridge: float, b: Array, g: Array, h: Array, m: Array) -> float:
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


@numba.njit(cache=True)
def _slope(m: Array, d: Array, width: float, linear: float, curvature: float, step: float) -> float:
    """The slope of the objective at a point of the line."""
    total = linear + curvature * step
    for i in range(m.shape[0]):
        here = m[i] - step * d[i]
        if here >= width:
            total -= d[i]
        elif here > -width:
            total -= (here + width) / (2.0 * width) * d[i]
    return total
