"""How the hinge is minimised: three ways, see `hinge.Hinge.minimise`.

They look for b and for the slopes of rows at the kink, which may be anything from -1 to 0, and put
minus the slopes into ``o``, which the hinge has no other use for. None of them proves anything:
`row_kernels.certify` judges what they propose.

1. `method_of_multipliers`, the method of multipliers: max(0, m) is the largest a m with a in [0, 1]. With
   something taken off for a that differ from the last ones the kink is a parabola of some width,
   about the point where the last a belong. Rounds at less and less width settle which slopes the
   rows at the kink must have, however many they are. Rows off it are straight, so that a Newton
   step costs little more than the rows within; how far to go is found on the line itself, where
   margins move evenly. After the first round rows far from the kink are left alone.
2. The same by general means, `AugmentedHinge`, with curvature on smoothed.
3. The kink rounded off by a hyperbola, until it is all but sharp.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...base.kernels.arrays import Array, put
from ...base.kernels.compiled import kernel
from ...constraints.base import Constraint, shrink, solve
from .base import Smoothed, smooth
from .quadratic_kernels import duality_gap, newton_point

#: Of `method_of_multipliers`: the first width, the factor from one to the next, the last, and how many rounds.
_WIDEST, _NARROWER, _NARROWEST, _FEW = 0.2, 0.1, 1e-5, 10
#: Newton steps at a width, and trials of a step's length.
_STEPS, _TRIALS = 30, 12
#: Margins this far from 1 stay on their side of it after the first round, or all is done anew.
_FAR = 0.15


class AugmentedHinge(NamedTuple):
    """max over a in [0, 1] of a m - width/2 (a - o)^2, m = 1 - t: a is minus the slope.

    Rows off the kink have no curvature; ``smoothed`` says how much they are lent.
    """

    extra_curvature: float
    labels: bool = True

    @staticmethod
    @kernel
    def smooth(
        hinge: AugmentedHinge, width: float, o: float, t: float
    ) -> tuple[float, float, float]:
        """The loss, its slope, its curvature."""
        m = 1.0 - t
        wanted = o + m / width
        share = min(max(wanted, 0.0), 1.0)
        curvature = 1.0 / width
        if wanted != share:
            curvature *= hinge.extra_curvature / (1.0 + abs(wanted - share)) ** 3
        return share * m - 0.5 * width * (share - o) ** 2, -share, curvature


@kernel
def linear_minimum(
    c: Constraint, z: Array, o: Array, counts: Array, ridge: float, target: float
) -> Array:
    """The minimum if no margin is passed, where the hinge is linear; slopes of -1."""
    k = z.shape[1]
    h, linear = np.zeros((k, k)), np.zeros(k)
    for i in range(z.shape[0]):
        o[i] = 1.0
        for j in range(k):
            linear[j] += 0.5 * counts[i] * z[i, j]
    for j in range(k):
        h[j, j] = ridge
    b = solve(c, h, linear, target / 16)
    if not np.all(np.isfinite(b)):  # a ridge next to nothing
        b[:] = 0.0
    return b


@kernel
def has_margin_above_one(z: Array, b: Array) -> bool:
    """Whether some margin is above 1, by more than rounding."""
    for i in range(z.shape[0]):
        t = 0.0
        for j in range(b.shape[0]):
            t += z[i, j] * b[j]
        if t > 1.0 + 1e-9:
            return True
    return False


@kernel
def smoothed_slopes(loss: Smoothed, z: Array, o: Array, smoothing: float, b: Array) -> int:
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
def method_of_multipliers(
    c: Constraint, z: Array, o: Array, counts: Array, ridge: float, target: float, cutoff: float,
    b: Array,
) -> bool:  # fmt: skip
    """Better b, in place, and into ``o`` minus the slopes that go with it.

    True if they are not the end, but enough to tell that the minimum is above the cutoff.
    """
    n, k = z.shape
    m, far = np.empty(n), np.zeros(k)
    o[:] = 0.5
    excess = _newton_at_width(c, z, o, counts, far, _WIDEST, ridge, target, cutoff, b, m)
    _update_multipliers(z, b, _WIDEST, o, m)
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
    """From the slopes of the first round to those that will do, as far as a few more get."""
    m = np.empty(z.shape[0])
    width = _WIDEST
    for _ in range(_FEW):
        width = max(_NARROWER * width, _NARROWEST)
        excess = _newton_at_width(c, z, o, counts, far, width, ridge, target, np.inf, b, m)
        _update_multipliers(z, b, width, o, m)
        if excess <= 0.6 * target:
            return


@kernel
def _update_multipliers(z: Array, b: Array, width: float, o: Array, m: Array) -> None:
    """Margins' distances from 1, and the slopes that go with them, in place."""
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
    """Newton steps from b, in place; how far the lines at the end are below, infinite if lost.

    Negative if lines on the way are above the cutoff: there is no need to go on. ``far`` is the
    slope of rows that are left alone, m working space.
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
            # A root of the slope, by the secant, but never next to an end.
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
    """Gradient, half the Hessian and margins' distances from 1, in place; of lines the excess.

    And their sum at b, with the ridge, less that of the losses at 0, of which there is 1 a record.
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
        share = min(max(wanted, 0.0), 1.0)
        excess += counts[i] * (max(here, 0.0) - share * here)
        lines += counts[i] * (share * here - 1.0)
        share *= counts[i]
        if share > 0.0:
            for j in range(k):
                g[j] -= share * z[i, j]
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
    """The slope of the objective at a point of the line."""
    total = linear + curvature * step
    for i in range(m.shape[0]):
        share = o[i] + (m[i] - step * d[i]) / width
        total -= counts[i] * min(max(share, 0.0), 1.0) * d[i]
    return total
