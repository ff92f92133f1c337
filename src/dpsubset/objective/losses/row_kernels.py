"""Float64 kernels for losses summed over records that certify their own error.

    minimise F(b) = sum over rows i of l(o_i, z_i'b) + ridge |b|^2   over b in C

For labels z = y x, and l is a function of the margin z'b alone. Otherwise z = x and o = y.

Records that agree on a support are merged into one row with a count: with few categories and an
intercept there are few distinct rows.

A proximal Newton method proposes b: the solvers of the constraint minimise the quadratic model of F
over C, and a step is taken towards that point. `certify` then bounds the error of b. Take a
supporting line of the loss of each row, with slope s_i and a gap of e_i to the loss at t_i:

    l(o_i, t) >= l(o_i, t_i) - e_i + s_i (t - t_i)   for all t.

The lines add up to a bracket of the minimum,

    F(b) - gap <= min F <= F(b),   gap = sum e_i + G'b + max over v in C of -G'v,

with G = sum s_i z_i + 2 ridge b. Smooth losses have tangents, and e_i = 0. Values are F(b) - F(0),
whose errors vanish with the prediction bound; F(0) does not depend on the support and is known
exactly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...base.kernels.arrays import ROUNDING, Array, Cells, Ints, put
from ...base.kernels.compiled import kernel
from ...base.kernels.values import either
from ...constraints.base import Constraint, dual_norm, max_l1_norm, shrink
from .base import ABOVE, RowLoss, Smoothed, line, minimise, slope_error, smooth, steepest
from .quadratic_kernels import duality_gap, newton_point

#: Largest error in float64 as a fraction of a step: less than a half, which leaves a margin for the
#: conversion of the rest of F(0) to a float.
_TOLERANCE = 0.499

#: Multiplier of the hash function.
_MIX = 0x9E3779B97F4A7C15


@kernel
def scaled_rows(
    records: Cells, response: Cells, support: Ints, which: Ints, labels: bool, scale: float,
    z: Array, o: Array,
) -> None:  # fmt: skip
    """Write the scaled rows ``which`` of a support, times any label, and their responses."""
    for j in range(support.shape[0]):
        column = records[support[j]]
        for i in range(z.shape[0]):
            x = column[which[i]] / scale
            z[i, j] = -x if labels and response[which[i]] < 0 else x
    for i in range(z.shape[0]):
        o[i] = response[which[i]] / scale


@kernel
def _same_row(
    records: Cells, response: Cells, support: Ints, labels: bool, one: int, other: int
) -> bool:
    """Whether two records have the same cells on a support, each times its label."""
    if not labels and response[one] != response[other]:
        return False
    turned = labels and (response[one] < 0) != (response[other] < 0)
    for j in range(support.shape[0]):
        x, y = np.int64(records[support[j], one]), np.int64(records[support[j], other])
        if x != (-y if turned else y):
            return False
    return True


@kernel
def merge_rows(
    records: Cells, response: Cells, support: Ints, labels: bool, table: Ints, which: Ints,
    counts: Array,
) -> int:  # fmt: skip
    """Find the distinct rows of a support, in order of their first record, and count their records.

    Return the number of distinct rows. If more than half of the records are distinct, or likely to
    be, every record is a row of its own. ``table`` is a hash table used as working space; its
    length is a power of 2 greater than the number of records.
    """
    n = response.shape[0]
    table[:] = -1
    last, found = np.uint64(table.shape[0] - 1), 0
    for i in range(n):
        turned = labels and response[i] < 0
        mixed = np.uint64(0 if labels else np.int64(response[i]) + 2**15)
        for j in range(support.shape[0]):
            x = np.int64(records[support[j], i])
            mixed = (mixed ^ np.uint64((-x if turned else x) + 2**15)) * np.uint64(_MIX)
            mixed ^= mixed >> np.uint64(29)
        at = mixed & last
        while table[at] >= 0 and not _same_row(
            records, response, support, labels, which[table[at]], i
        ):
            at = (at + np.uint64(1)) & last
        if table[at] >= 0:
            counts[table[at]] += 1.0
            continue
        if 2 * found >= n or (i == n // 8 and 20 * found > 19 * i):
            for other in range(n):
                which[other], counts[other] = other, 1.0
            return n
        table[at], which[found], counts[found] = found, i, 1.0
        found += 1
    return found


@kernel
def score_all(
    records: Cells, response: Cells, supports: Ints, loss: RowLoss, c: Constraint, ridge: float,
    scale: float, score_step: float, zero: int, rest: float, cutoff: float, scores: Ints,
) -> NDArray[np.bool_]:  # fmt: skip
    """Scores of all supports in steps of the grid; False where not certified within one step.

    F(0) is ``zero + rest`` steps, ``rest`` at most a half. Where min F - F(0) is certified above
    ``cutoff``, the score is `ABOVE`.
    """
    n, k = response.shape[0], supports.shape[1]
    z = np.empty((n, k))
    o, counts = np.empty(n), np.empty(n)
    size = 1
    while size <= n:
        size *= 2
    table, which = np.empty(size, dtype=np.int64), np.empty(n, dtype=np.int64)
    certified = np.empty(supports.shape[0], dtype=np.bool_)
    for s in range(supports.shape[0]):
        m = merge_rows(records, response, supports[s], loss.labels, table, which, counts)
        scaled_rows(records, response, supports[s], which, loss.labels, scale, z[:m], o[:m])
        target = _TOLERANCE * score_step
        value, width = minimise(loss, c, z[:m], o[:m], counts[:m], ridge, target, cutoff)
        if value - width > cutoff:
            certified[s], scores[s] = True, ABOVE
            continue
        certified[s] = width <= target
        scores[s] = zero + np.int64(np.rint(value / score_step + rest)) if certified[s] else 0
    return certified


@kernel
def newton_minimum(
    loss: RowLoss, c: Constraint, z: Array, o: Array, counts: Array, ridge: float, target: float,
    widths: tuple[float, ...],
) -> tuple[float, float]:  # fmt: skip
    """A value and a width such that min F - F(0) is within ``width`` of ``value``.

    Takes Newton steps on the loss smoothed to each of the ``widths`` until the bracket is narrow
    enough.
    """
    b = np.zeros(z.shape[1])
    value, width = 0.0, np.inf
    for smoothing in widths:
        proximal_newton(loss, c, z, o, counts, smoothing, ridge, target, b)
        value, width = certify(loss, c, z, o, counts, ridge, b)
        if width <= target:
            break
    return value, width


@kernel
def proximal_newton(
    loss: Smoothed, c: Constraint, z: Array, o: Array, counts: Array, smoothing: float,
    ridge: float, target: float, b: Array,
) -> None:  # fmt: skip
    """Take proximal Newton steps from b, in place."""
    k = z.shape[1]
    g, trial_g = np.empty(k), np.empty(k)
    h, trial_h = np.empty((k, k)), np.empty((k, k))
    trial = np.empty(k)
    value = _value_and_derivatives(loss, z, o, counts, smoothing, ridge, b, g, h)
    tolerance = 1e-14 + 2.0 * ROUNDING * np.sqrt(z.shape[0])
    for _ in range(60):
        if duality_gap(g, b, c) <= target / 8:
            return
        v = newton_point(g, h, b, c, target)
        if not shrink(c, v):
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
            reached = _value_and_derivatives(
                loss, z, o, counts, smoothing, ridge, trial, trial_g, trial_h
            )
            # Near the minimum, the rounding of F hides the decrease.
            if reached <= value + 0.1 * step * slope + tolerance * value:
                better = True
                break
            step *= 0.5
        if not better:
            return
        value = reached
        put(b, trial)
        put(g, trial_g)
        put(h.ravel(), trial_h.ravel())


@kernel
def _value_and_derivatives(
    loss: Smoothed, z: Array, o: Array, counts: Array, smoothing: float, ridge: float, b: Array,
    g: Array, h: Array,
) -> float:  # fmt: skip
    """Return F at b as computed; write its gradient and half its Hessian in place."""
    n, k = z.shape
    total = 0.0
    g[:] = 0.0
    h[:] = 0.0
    for i in range(n):
        t = 0.0
        for j in range(k):
            t += z[i, j] * b[j]
        value, slope, curvature = smooth(loss, smoothing, o[i], t)
        total += counts[i] * value
        slope *= counts[i]
        for j in range(k):
            g[j] += slope * z[i, j]
        if curvature > 0.0:
            curvature *= 0.5 * counts[i]
            for j in range(k):
                weight = curvature * z[i, j]
                for other in range(j + 1):
                    h[j, other] += weight * z[i, other]
    for j in range(k):
        total += ridge * b[j] * b[j]
        g[j] += 2.0 * ridge * b[j]
        for other in range(j):
            h[other, j] = h[j, other]
        h[j, j] += ridge
    return total


@kernel
def _add(sums: Array, lost: Array, at: int, x: float) -> None:
    """Add x to a sum and accumulate the rounding error."""
    total = sums[at] + x
    part = total - sums[at]
    lost[at] += (sums[at] - (total - part)) + (x - part)
    sums[at] = total


@kernel
def _excess(loss: RowLoss, sums: Array, lost: Array, x: float) -> None:
    _add(sums, lost, 1, x)


@kernel
def _no_excess(loss: RowLoss, sums: Array, lost: Array, x: float) -> None:
    pass


#: The excess of a tangent is 0.
_add_excess = either("is_kinked", _excess, _no_excess)


@kernel
def certify(
    loss: RowLoss, c: Constraint, z: Array, o: Array, counts: Array, ridge: float, b: Array
) -> tuple[float, float]:
    """F(b) - F(0) as computed, and a bound on its distance from min F - F(0) over C.

    See proofs/losses.md.
    """
    k = z.shape[1]
    if not shrink(c, b):
        return 0.0, np.inf
    # n: number of records, exact. sums: F, the sum of e, G. steep: the sum of |s|.
    sums, lost = np.zeros(k + 2), np.zeros(k + 2)
    n, steep = 0.0, 0.0
    for i in range(z.shape[0]):
        t = 0.0
        for j in range(k):
            t += z[i, j] * b[j]
        value, slope, excess = line(loss, o[i], t)
        _add(sums, lost, 0, counts[i] * value)
        _add_excess(loss, sums, lost, counts[i] * excess)
        slope *= counts[i]
        for j in range(k):
            _add(sums, lost, 2 + j, slope * z[i, j])
        n += counts[i]
        steep += abs(slope)
    gradient = np.empty(k)
    size, square, sloped, absolute = 0.0, 0.0, 0.0, 0.0
    for j in range(k):
        size += abs(b[j])
        square += b[j] * b[j]
        g = sums[2 + j] + lost[2 + j] + 2.0 * ridge * b[j]
        sloped += g * b[j]
        absolute += abs(g)
        gradient[j] = g
    value = sums[0] + lost[0] + ridge * square
    excess = sums[1] + lost[1]
    gap = excess + sloped + c.radius * dual_norm(c, gradient)
    # Rounding error bounds in terms of the steepest slope and of |b|_1 and |v|_1, v in C.
    tail = (2.0 * n * ROUNDING) ** 2
    prediction_bound = size + max_l1_norm(c, k)
    slack = n * steepest(loss) * size * ((k + 25) * ROUNDING + tail)
    slack += steep * prediction_bound * (4.0 * ROUNDING + tail)
    slack += n * prediction_bound * slope_error(loss) * ROUNDING
    slack += excess * (8.0 * ROUNDING + tail)
    slack += c.radius * absolute * (2 * k + 16) * ROUNDING
    slack += ridge * (8.0 * size * c.radius + (k + 8) * square) * ROUNDING
    slack += 4.0 * abs(value) * ROUNDING + (n + 1) * 2.0**-98
    width = (max(gap, 0.0) + 1.01 * slack) * (1.0 + 8.0 * ROUNDING)
    if not np.isfinite(value) or not np.isfinite(gap) or not np.isfinite(width):
        return 0.0, np.inf
    return value, width
