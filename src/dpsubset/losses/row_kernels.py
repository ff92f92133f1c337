"""Float64 kernels for losses that are summed over records; they certify their own error.

    minimise F(b) = sum over rows i of l(o_i, z_i'b) + ridge |b|^2   over b in C

For labels z = y x and l is a function of the margin z'b alone; for the Huber loss z = x, o = y.

A proximal Newton method proposes b: the quadratic model of F is minimised over C by the solvers of
:mod:`dpsubset.losses.kernels`, and a step is taken towards that point. For the hinge
:mod:`dpsubset.losses.hinge_kernels` is tried first. Then it is smoothed, less and less, and by
lines: max(0, m) is the largest a m with a in [0, 1], and with something taken off for a that differ
from the last ones (the method of multipliers) few rounds at a moderate width settle which slopes
the rows at the kink must have. `certify` then bounds everything that can be wrong with b. With
slopes s_i of lines below the losses,
l(o_i, t) >= l(o_i, t_i) - e_i + s_i (t - t_i) for all t,

    F(b) - gap <= min F <= F(b),   gap = sum e_i + G'b + max over v in C of -G'v,

G = sum s_i z_i + 2 ridge b. Smooth losses have e_i = 0. Values are F(b) - F(0), whose errors vanish
with the reach; F(0) does not depend on the support and is known exactly.

No fast-math, no threads: the order of operations is fixed.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from .base import HINGE, HUBER, LOGISTIC
from .hinge_kernels import settle
from .kernels import BALL, BOX, L1, _shrink, duality_gap, newton_point, put, quadratic

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

_ROUNDING = 2.0**-53
#: The hinge smoothed by lines.
_LINES = 3
#: The hinge is smoothed by such a factor less each time, so many times; where lines take over they
#: get a few rounds at each width.
_RATIO = 0.2
_WIDTHS = 9
_ROUNDS = 4
#: The share of a unit by which float64 may be off: less than a half, to leave room for the rest of
#: F(0), which becomes a float.
_SHARE = 0.499


@numba.njit(cache=True)
def row(code: int, threshold: float, width: float, o: float, t: float) -> tuple[
    float, float, float
]:  # fmt: skip
    """The loss (smoothed, for the hinge), its slope and its curvature in t; proves nothing.

    ``width`` is that of the smoothing. For lines ``o`` is the slope that nothing is taken off for,
    with opposite sign, and ``threshold`` says how much curvature rows off the kink are lent.
    """
    if code == LOGISTIC:
        small = np.exp(-abs(t))
        value = np.log1p(small) + max(-t, 0.0)
        slope = -1.0 / (1.0 + small) if t < 0.0 else -small / (1.0 + small)
        return value, slope, small / (1.0 + small) ** 2
    if code == HINGE:
        m = 1.0 - t
        root = np.sqrt(m * m + 4.0 * width * width)
        return 0.5 * (m + root), -0.5 * (1.0 + m / root), 2.0 * width * width / root**3
    if code == _LINES:
        m = 1.0 - t
        wanted = o + m / width
        share = min(max(wanted, 0.0), 1.0)
        curvature = 1.0 / width
        if wanted != share:
            curvature *= threshold / (1.0 + abs(wanted - share)) ** 3
        return share * m - 0.5 * width * (share - o) ** 2, -share, curvature
    r = o - t
    if abs(r) <= threshold:
        return r * r, -2.0 * r, 2.0
    # No curvature here; a share of what the parabola through the same tangent has helps where too
    # few rows have any.
    curvature = 2.0 * width * threshold / abs(r)
    return threshold * (2.0 * abs(r) - threshold), -2.0 * np.copysign(threshold, r), curvature


@numba.njit(cache=True)
def gather(
    records: NDArray[np.int16], response: NDArray[np.int16], support: Ints, labels: bool,
    scale: float, z: Array, o: Array,
) -> None:  # fmt: skip
    """Scaled rows of a support, times the label where there is one."""
    for j in range(support.shape[0]):
        column = records[support[j]]
        for i in range(z.shape[0]):
            x = column[i] / scale
            z[i, j] = -x if labels and response[i] < 0 else x
    for i in range(z.shape[0]):
        o[i] = response[i] / scale


@numba.njit(cache=True)
def score_all(
    records: NDArray[np.int16], response: NDArray[np.int16], supports: Ints, code: int,
    labels: bool, threshold: float, constraint: int, radius: float, ridge: float, scale: float,
    unit: float, zero: int, rest: float, scores: Ints,
) -> NDArray[np.bool_]:  # fmt: skip
    """Scores of all supports in multiples of ``unit``; False where not certified within it.

    In these multiples F(0) is ``zero`` and a ``rest`` of at most a half.
    """
    n, k = response.shape[0], supports.shape[1]
    z = np.empty((n, k))
    o = np.empty(n)
    certified = np.empty(supports.shape[0], dtype=np.bool_)
    for s in range(supports.shape[0]):
        gather(records, response, supports[s], labels, scale, z, o)
        target = _SHARE * unit
        value, width = minimise(z, o, code, threshold, constraint, radius, ridge, target)
        certified[s] = width <= target
        scores[s] = zero + np.int64(np.rint(value / unit + rest)) if certified[s] else 0
    return certified


@numba.njit(cache=True)
def minimise(
    z: Array, o: Array, code: int, threshold: float, constraint: int, radius: float, ridge: float,
    target: float,
) -> tuple[float, float]:  # fmt: skip
    """A value and a width: min F - F(0) lies within ``width`` of ``value``.

    The hinge has no use for ``o``, and keeps there the slopes of its lines.
    """
    k = z.shape[1]
    b = np.zeros(k)
    if code != HINGE:
        value, width = 0.0, np.inf
        for share in (0.0, 1e-3, 0.1, 1.0):
            _descend(z, o, code, threshold, share, constraint, radius, ridge, target, b)
            value, width = certify(z, o, code, threshold, constraint, radius, ridge, b)
            if width <= target or code == LOGISTIC:
                break
        return value, width
    # Where no margin is passed the hinge is linear.
    h = np.zeros((k, k))
    c = np.zeros(k)
    for i in range(z.shape[0]):
        o[i] = 1.0
        for j in range(k):
            c[j] += 0.5 * z[i, j]
    for j in range(k):
        h[j, j] = ridge
    put(b, quadratic(h, c, constraint, radius, target))
    if not np.all(np.isfinite(b)):  # a ridge next to nothing
        b[:] = 0.0
    value, width = certify(z, o, HINGE, threshold, constraint, radius, ridge, b)
    if width <= target:
        return value, width
    first = b.copy()
    if constraint != L1:  # most often in vain there
        settle(z, o, constraint, radius, ridge, target, b)
        value, width = certify(z, o, HINGE, threshold, constraint, radius, ridge, b)
        if width <= target:
            return value, width
        put(b, first)
    for patient in (True, False):
        smoothing, before = 0.25, z.shape[0]
        for stage in range(_WIDTHS):
            at, lines = smoothing, False
            smoothing *= _RATIO
            for turn in range(1 + _ROUNDS):
                # Rows off the kink give lines no curvature: some on loan finds the way where few
                # are at it.
                for part in range(3 if lines else 1):
                    _descend(z, o, _LINES if lines else HINGE, 1.0 if part == 1 else 0.0, at,
                             constraint, radius, ridge, target, b)  # fmt: skip
                near = _slopes(z, o, _LINES if lines else HINGE, at, b)
                if turn == 0:
                    # As long as rows leave the kink when the width shrinks, it shrinks.
                    lines = near > 0.5 * before if patient else stage > 1
                    before = near
                    if lines:
                        at = at if patient else smoothing
                        continue
                value, width = certify(z, o, HINGE, threshold, constraint, radius, ridge, b)
                if width <= target:
                    return value, width
                if not lines:
                    break
    # Lines can lose their way, too; a kink that is all but sharp needs none.
    put(b, first)
    smoothing = 0.25
    for _ in range(2 * _WIDTHS):
        _descend(z, o, HINGE, 0.0, smoothing, constraint, radius, ridge, target, b)
        _slopes(z, o, HINGE, smoothing, b)
        other, wide = certify(z, o, HINGE, threshold, constraint, radius, ridge, b)
        if wide < width:
            value, width = other, wide
        if width <= target:
            break
        smoothing *= 0.4
    return value, width


@numba.njit(cache=True)
def _slopes(z: Array, o: Array, code: int, smoothing: float, b: Array) -> int:
    """Minus the slopes of the smoothed hinge at b, into o; how many rows are at the kink."""
    near = 0
    for i in range(z.shape[0]):
        t = 0.0
        for j in range(b.shape[0]):
            t += z[i, j] * b[j]
        _, slope, _ = row(code, 0.0, smoothing, o[i], t)
        near += abs(1.0 - t) <= 2.0 * smoothing
        o[i] = -slope
    return near


@numba.njit(cache=True)
def _descend(
    z: Array, o: Array, code: int, threshold: float, smoothing: float, constraint: int,
    radius: float, ridge: float, target: float, b: Array,
) -> None:  # fmt: skip
    """Proximal Newton steps from b, in place."""
    k = z.shape[1]
    g, trial_g = np.empty(k), np.empty(k)
    h, trial_h = np.empty((k, k)), np.empty((k, k))
    trial = np.empty(k)
    value = _model(z, o, code, threshold, smoothing, ridge, b, g, h)
    drowned = 1e-14 + 2.0 * _ROUNDING * np.sqrt(z.shape[0])
    for _ in range(60):
        if duality_gap(g, b, constraint, radius) <= target / 8:
            return
        v = newton_point(g, h, b, constraint, radius, target)
        if not _shrink(v, constraint, radius):
            return
        slope = 0.0
        for j in range(k):
            slope += g[j] * (v[j] - b[j])
        if not slope < 0.0:
            return
        step, better = 1.0, False
        for _half in range(40):
            for j in range(k):
                trial[j] = b[j] + step * (v[j] - b[j])
            reached = _model(z, o, code, threshold, smoothing, ridge, trial, trial_g, trial_h)
            # Near the minimum the decrease drowns in the rounding of F.
            if reached <= value + 0.1 * step * slope + drowned * value:
                better = True
                break
            step *= 0.5
        if not better:
            return
        value = reached
        put(b, trial)
        put(g, trial_g)
        put(h.ravel(), trial_h.ravel())


@numba.njit(cache=True)
def _model(
    z: Array, o: Array, code: int, threshold: float, smoothing: float, ridge: float, b: Array,
    g: Array, h: Array,
) -> float:  # fmt: skip
    """F at b as computed; its gradient and half its Hessian in place."""
    n, k = z.shape
    value = 0.0
    g[:] = 0.0
    h[:] = 0.0
    for i in range(n):
        t = 0.0
        for j in range(k):
            t += z[i, j] * b[j]
        loss, slope, curvature = row(code, threshold, smoothing, o[i], t)
        value += loss
        for j in range(k):
            g[j] += slope * z[i, j]
        if curvature > 0.0:
            for j in range(k):
                weight = 0.5 * curvature * z[i, j]
                for other in range(j + 1):
                    h[j, other] += weight * z[i, other]
    for j in range(k):
        value += ridge * b[j] * b[j]
        g[j] += 2.0 * ridge * b[j]
        for other in range(j):
            h[other, j] = h[j, other]
        h[j, j] += ridge
    return value


@numba.njit(cache=True)
def _add(sums: Array, lost: Array, at: int, x: float) -> None:
    """Add x to a sum and keep what rounding took from it."""
    total = sums[at] + x
    part = total - sums[at]
    lost[at] += (sums[at] - (total - part)) + (x - part)
    sums[at] = total


@numba.njit(cache=True)
def line(code: int, threshold: float, o: float, t: float) -> tuple[float, float, float]:
    """l(o, t) - l(o, 0), the slope of a line below the loss, and how far below it is at t.

    The slope is that of the loss; for the hinge it is -o, o clipped to [0, 1]. Everything is in
    terms that vanish with t: small predictions have small errors.
    """
    if code == LOGISTIC:
        beyond = np.expm1(-abs(t))
        value = np.log1p(0.5 * beyond) + max(-t, 0.0)
        return value, -(1.0 if t < 0.0 else 1.0 + beyond) / (2.0 + beyond), 0.0
    if code == HINGE:
        share = min(max(o, 0.0), 1.0)
        m = 1.0 - t
        if m > 0.0:
            return -t, -share, (1.0 - share) * m
        return -1.0, -share, -share * m
    c = min(max(o - t, -threshold), threshold)
    at_zero = min(max(o, -threshold), threshold)
    return (c - at_zero) * (2.0 * o - c - at_zero) - 2.0 * c * t, -2.0 * c, 0.0


@numba.njit(cache=True)
def certify(
    z: Array, o: Array, code: int, threshold: float, constraint: int, radius: float, ridge: float,
    b: Array,
) -> tuple[float, float]:  # fmt: skip
    """F(b) - F(0) as computed, and a bound on its distance from min F - F(0), min over C.

    For the hinge ``o`` are the slopes, with opposite sign. See proofs/losses.md.
    """
    n, k = z.shape
    if not _shrink(b, constraint, radius):
        return 0.0, np.inf
    # sums: F, the sum of e, G; steep: the sum of |s|.
    sums, lost = np.zeros(k + 2), np.zeros(k + 2)
    steep = 0.0
    for i in range(n):
        t = 0.0
        for j in range(k):
            t += z[i, j] * b[j]
        value, slope, excess = line(code, threshold, o[i], t)
        _add(sums, lost, 0, value)
        if code == HINGE:
            _add(sums, lost, 1, excess)
        for j in range(k):
            _add(sums, lost, 2 + j, slope * z[i, j])
        steep += abs(slope)
    size, square, sloped, norm, length = 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(k):
        size += abs(b[j])
        square += b[j] * b[j]
        g = sums[2 + j] + lost[2 + j] + 2.0 * ridge * b[j]
        sloped += g * b[j]
        length += abs(g)
        if constraint == BALL:
            norm += g * g
        else:
            norm = norm + abs(g) if constraint == BOX else max(norm, abs(g))
    if constraint == BALL:
        norm = np.sqrt(norm)
    value = sums[0] + lost[0] + ridge * square
    excess = sums[1] + lost[1]
    gap = excess + sloped + radius * norm
    # What may be wrong with these, in terms of the steepest slope and of |b|_1 and |v|_1, v in C.
    most = 2.0 * threshold if code == HUBER else 1.0
    reach = radius
    if constraint != L1:
        reach *= k if constraint == BOX else np.sqrt(k)
    tail = (2.0 * n * _ROUNDING) ** 2
    slack = n * most * size * ((k + 24) * _ROUNDING + tail)
    slack += steep * (size + reach) * (3.0 * _ROUNDING + tail)
    if code == LOGISTIC:
        slack += n * (size + reach) * 16.0 * _ROUNDING
    slack += excess * (8.0 * _ROUNDING + tail)
    slack += radius * length * (2 * k + 16) * _ROUNDING
    slack += ridge * (8.0 * size * radius + (k + 8) * square) * _ROUNDING
    slack += 4.0 * abs(value) * _ROUNDING + (n + 1) * 2.0**-98
    width = (max(gap, 0.0) + 1.01 * slack) * (1.0 + 8.0 * _ROUNDING)
    if not np.isfinite(value) or not np.isfinite(gap) or not np.isfinite(width):
        return 0.0, np.inf
    return value, width
