"""Proposals for the minimum under the hinge loss, by three methods (see `hinge.Hinge.minimise`).

They look for b and for subgradients of the rows at the kink, which may be anything from -1 to 0,
and store the negated subgradients in ``o``, which the hinge does not need otherwise. None of them
certifies anything: `row_kernels.certify` does.

1. `method_of_multipliers`: max(0, m) is the largest a m over a in [0, 1]. Subtracting a penalty on
   the distance of a from its last value turns the kink into a parabola of some width. Rounds of
   decreasing width determine the multipliers a of the rows at the kink, however many they are. Rows
   off the kink are linear, so a Newton step costs little more than the rows within the width; the
   step length is found by a line search along which margins move linearly. After the first round,
   rows far from the kink are fixed.
2. A general Newton method on the same objective, `AugmentedHinge`, with added curvature.
3. The kink smoothed by a hyperbola of decreasing width.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...base.kernels.arrays import Array, put
from ...base.kernels.compiled import kernel
from ...constraints.base import Constraint, shrink, solve
from .base import Smoothed, smooth
from .quadratic_kernels import duality_gap, newton_point

#: First width of `method_of_multipliers`, factor between widths, last width, number of rounds.
_FIRST_WIDTH, _WIDTH_FACTOR, _LAST_WIDTH, _ROUNDS = 0.2, 0.1, 1e-5, 10
#: Newton steps at a width, and trials of a line search.
_STEPS, _TRIALS = 30, 12
#: Margins at least this far from 1 are fixed after the first round; if one changes sides, the
#: rounds are repeated with all rows.
_FAR = 0.15


class AugmentedHinge(NamedTuple):
    """max over a in [0, 1] of a m - width/2 (a - o)^2, m = 1 - t: a is minus the slope.

    Rows off the kink have no curvature; ``extra_curvature`` scales what is added for them.
    """

    extra_curvature: float
    labels: bool = True

    @staticmethod
    @kernel
    def smooth(
        hinge: AugmentedHinge, width: float, o: float, t: float
    ) -> tuple[float, float, float]:
        """The loss, its slope and its curvature."""
        m = 1.0 - t
        wanted = o + m / width
        multiplier = min(max(wanted, 0.0), 1.0)
        curvature = 1.0 / width
        if wanted != multiplier:
            curvature *= hinge.extra_curvature / (1.0 + abs(wanted - multiplier)) ** 3
        return multiplier * m - 0.5 * width * (multiplier - o) ** 2, -multiplier, curvature


@kernel
def linear_minimum(
    c: Constraint, z: Array, o: Array, counts: Array, ridge: float, target: float
) -> Array:
    """The minimum if no margin exceeds 1, where the hinge is linear; slopes of -1."""
    k = z.shape[1]
    h, linear = np.zeros((k, k)), np.zeros(k)
    for i in range(z.shape[0]):
        o[i] = 1.0
        for j in range(k):
            linear[j] += 0.5 * counts[i] * z[i, j]
    for j in range(k):
        h[j, j] = ridge
    b = solve(c, h, linear, target / 16)
    if not np.all(np.isfinite(b)):  # the ridge is almost 0
        b[:] = 0.0
    return b


@kernel
def has_margin_above_one(z: Array, b: Array) -> bool:
    """Whether some margin exceeds 1 by more than rounding."""
    for i in range(z.shape[0]):
        t = 0.0
        for j in range(b.shape[0]):
            t += z[i, j] * b[j]
        if t > 1.0 + 1e-9:
            return True
    return False


@kernel
def smoothed_slopes(loss: Smoothed, z: Array, o: Array, smoothing: float, b: Array) -> int:
    """Write minus the slopes of the smoothed hinge at b into o; count the rows at the kink."""
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
def method_of_multipliers(
    c: Constraint, z: Array, o: Array, counts: Array, ridge: float, target: float, cutoff: float,
    b: Array,
) -> bool:  # fmt: skip
    """Improve b and the negated subgradients in ``o``, in place.

    Return True if they are not final, but certify that the minimum is above the cutoff.
    """
    n, k = z.shape
    m, far = np.empty(n), np.zeros(k)
    o[:] = 0.5
    excess = _newton_at_width(c, z, o, counts, far, _FIRST_WIDTH, ridge, target, cutoff, b, m)
    _update_multipliers(z, b, _FIRST_WIDTH, o, m)
    if excess <= 0.6 * target:
        return excess < 0.0
    near = 0
    for i in range(n):
        near += abs(m[i]) <= _FAR
    if 2 * near <= n:
        some, which = np.empty((near, k)), np.empty(near, dtype=np.int64)
        at, of = np.empty(near), np.empty(near)
        near = 0
        for i in range(n):
            if abs(m[i]) <= _FAR:
                for j in range(k):
                    some[near, j] = z[i, j]
                at[near], of[near], which[near] = o[i], counts[i], i
                near += 1
            elif m[i] > 0.0:
                for j in range(k):
                    far[j] -= counts[i] * z[i, j]
        first = b.copy()
        _multiplier_rounds(c, some, at, of, far, ridge, target, b)
        stayed = True
        for i in range(n):
            here = 1.0
            for j in range(k):
                here -= z[i, j] * b[j]
            if abs(m[i]) > _FAR:
                stayed = stayed and (here > 0.0) == (m[i] > 0.0)
        if stayed:
            for i in range(near):
                o[which[i]] = at[i]
            return False
        put(b, first)
        far[:] = 0.0
    _multiplier_rounds(c, z, o, counts, far, ridge, target, b)
    return False


@kernel
def _multiplier_rounds(
    c: Constraint, z: Array, o: Array, counts: Array, far: Array, ridge: float, target: float,
    b: Array,
) -> None:  # fmt: skip
    """Update the multipliers of the first round for a few rounds, until accurate enough."""
    m = np.empty(z.shape[0])
    width = _FIRST_WIDTH
    for _ in range(_ROUNDS):
        width = max(_WIDTH_FACTOR * width, _LAST_WIDTH)
        excess = _newton_at_width(c, z, o, counts, far, width, ridge, target, np.inf, b, m)
        _update_multipliers(z, b, width, o, m)
        if excess <= 0.6 * target:
            return


@kernel
def _update_multipliers(z: Array, b: Array, width: float, o: Array, m: Array) -> None:
    """Update the multipliers o and the distances m of margins from 1, in place."""
    for i in range(z.shape[0]):
        m[i] = 1.0
        for j in range(b.shape[0]):
            m[i] -= z[i, j] * b[j]
        o[i] = min(max(o[i] + m[i] / width, 0.0), 1.0)


@kernel
def _newton_at_width(
    c: Constraint, z: Array, o: Array, counts: Array, far: Array, width: float, ridge: float,
    target: float, cutoff: float, b: Array, m: Array,
) -> float:  # fmt: skip
    """Take Newton steps from b, in place; return the excess of the lines at the end, infinite on
    failure.

    The excess is negative if lines found on the way are above the cutoff, so that nothing more is
    needed. ``far`` is the slope of the fixed rows, ``m`` working space.
    """
    n, k = z.shape
    g, h, d = np.empty(k), np.empty((k, k)), np.empty(n)
    for _ in range(_STEPS):
        excess, lines = _derivatives(z, o, counts, far, width, ridge, b, g, h, m)
        gap = duality_gap(g, b, c)
        if lines - gap > cutoff:
            return -1.0
        if gap <= max(target / 8.0, 0.03 * excess):
            return excess
        v = newton_point(g, h, b, c, target)
        if not shrink(c, v):
            break
        slope, linear, curvature = 0.0, 0.0, 0.0
        for j in range(k):
            v[j] -= b[j]
            slope += g[j] * v[j]
            linear += (far[j] + 2.0 * ridge * b[j]) * v[j]
            curvature += 2.0 * ridge * v[j] * v[j]
        if not slope < 0.0:
            break
        for i in range(n):
            d[i] = 0.0
            for j in range(k):
                d[i] += z[i, j] * v[j]
        step, end = 1.0, _directional_slope(m, d, o, counts, width, linear, curvature, 1.0)
        if end > 0.0:
            # A root of the slope by the secant method, kept away from both ends.
            low, high, at_low, at_high = 0.0, 1.0, slope, end
            for _trial in range(_TRIALS):
                step = low - at_low * (high - low) / (at_high - at_low)
                step = min(max(step, low + 0.05 * (high - low)), high - 0.05 * (high - low))
                here = _directional_slope(m, d, o, counts, width, linear, curvature, step)
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
def _derivatives(
    z: Array, o: Array, counts: Array, far: Array, width: float, ridge: float, b: Array, g: Array,
    h: Array, m: Array,
) -> tuple[float, float]:  # fmt: skip
    """Write gradient, half the Hessian and distances of margins from 1 in place; return two sums.

    They are the excess of the loss over the lines, and the value of the lines at b with the ridge,
    less the losses at 0, which are 1 a record.
    """
    n, k = z.shape
    put(g, far)
    h[:] = 0.0
    excess, lines = 0.0, 0.0
    for i in range(n):
        here = 1.0
        for j in range(k):
            here -= z[i, j] * b[j]
        m[i] = here
        wanted = o[i] + here / width
        multiplier = min(max(wanted, 0.0), 1.0)
        excess += counts[i] * (max(here, 0.0) - multiplier * here)
        lines += counts[i] * (multiplier * here - 1.0)
        multiplier *= counts[i]
        if multiplier > 0.0:
            for j in range(k):
                g[j] -= multiplier * z[i, j]
        if 0.0 < wanted < 1.0:
            for j in range(k):
                weight = counts[i] * z[i, j]
                for other in range(j + 1):
                    h[j, other] += weight * z[i, other]
    for j in range(k):
        for other in range(j + 1):
            h[j, other] /= 2.0 * width
            h[other, j] = h[j, other]
        g[j] += 2.0 * ridge * b[j]
        h[j, j] += ridge
        lines += ridge * b[j] * b[j]
    return excess, lines


@kernel
def _directional_slope(
    m: Array, d: Array, o: Array, counts: Array, width: float, linear: float, curvature: float,
    step: float,
) -> float:  # fmt: skip
    """The slope of the objective at a point of the search line."""
    total = linear + curvature * step
    for i in range(m.shape[0]):
        multiplier = o[i] + (m[i] - step * d[i]) / width
        total -= counts[i] * min(max(multiplier, 0.0), 1.0) * d[i]
    return total
