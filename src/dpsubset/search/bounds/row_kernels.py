"""Dual points for losses that are summed over records.

A tangent below the loss of row i with slope q_i gives for every b, whatever the q_i are,

    sum of l(y_i, x_i'b) >= const + g'b,   const = - sum of l*(y_i, q_i),   g = sum of q_i x_i,

so that with w = -g/2 every support S has f(S) >= const - max over b in C of 2 w_S'b - ridge |b|^2:
the bound of :mod:`dpsubset.search.bounds.kernels` with D = ridge and Q = 0. Slopes are integers
over 2**14, so g and const are exact integers (for the logistic loss, const uses a table of
entropies rounded down): rounding starts only when they become floats.

Good slopes are those of the losses at predictions t = X b, where b moves as for least squares, see
:mod:`dpsubset.search.bounds.ascent`, with the curvature that the losses have at t. A kink has no
curvature, so it is smoothed, less and less as long as that improves the bound.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...base.kernels.arrays import Array, Cells, Ints, put
from ...base.kernels.compiled import kernel
from ...constraints.base import Constraint
from ...objective.losses.base import RowLoss, smooth
from ...objective.losses.cutoff_kernels import half_slope, product, quantized_slopes
from .ascent import coordinate_descent, working_set
from .kernels import (
    MU,
    NU,
    OFFSET,
    OFFSET_ERROR,
    OUT,
    STARTED,
    WIDTH,
    KernelRegion,
    envelope,
    initial_multipliers,
    update_multipliers,
    workspace,
)

#: The factor from one smoothing width to the next.
_NARROWER = 0.25
#: Most products that a Hessian is summed from.
_MOST_PRODUCTS = 1_000_000


@kernel
def predictions(records: Cells, b: Array, scale: float) -> Array:
    """X b, for b with few nonzero entries."""
    t = np.zeros(records.shape[1])
    for j in range(b.shape[0]):
        if b[j] != 0.0:
            column, factor = records[j], b[j] / scale
            for i in range(t.shape[0]):
                t[i] += factor * column[i]
    return t


@kernel
def gradient(
    records: Cells, column_status: NDArray[np.int8], q: Cells, factor: float,
    u: Array,
) -> None:  # fmt: skip
    """u = g / 2 for every column that is not out; ``factor`` is half of a slope's unit."""
    for j in range(records.shape[0]):
        if column_status[j] == OUT:
            u[j] = 0.0
            continue
        u[j] = product(q, records[j]) * factor


@kernel
def _half_curvatures(
    t: Array, response: Cells, loss: RowLoss, scale: float, width: float, curved: Array, rows: Ints
) -> int:
    """Half the curvature of the losses at t where it is not 0; returns the number of such rows."""
    count = 0
    for i in range(t.shape[0]):
        y = response[i] / scale
        at = -t[i] if loss.labels and y < 0.0 else t[i]
        _, _, curvature = smooth(loss, width, y, at)
        if curvature > 0.0:
            curved[count], rows[count] = 0.5 * curvature, i
            count += 1
    return count


@kernel
def _half_hessian(
    records: Cells, scale: float, curved: Array, rows: Ints, chosen: Ints, q: Array
) -> None:
    """Half the Hessian in the chosen columns.

    Uses every r-th row if all rows would take more than `_MOST_PRODUCTS` products.
    """
    m, every = chosen.shape[0], 1
    while m * m * (rows.shape[0] // every) > _MOST_PRODUCTS:
        every += 1
    x = np.empty((m, (rows.shape[0] + every - 1) // every))
    for i in range(m):
        column = records[chosen[i]]
        for r in range(x.shape[1]):
            x[i, r] = column[rows[r * every]] / scale
    weights = np.empty(x.shape[1])
    for r in range(x.shape[1]):
        weights[r] = curved[r * every] * every
    for i in range(m):
        first = x[i] * weights
        for j in range(i + 1):
            total = 0.0
            for r in range(x.shape[1]):
                total += first[r] * x[j, r]
            q[i, j] = total
            q[j, i] = total


@kernel
def _ascend_at_width(
    records: Cells, response: Cells, loss: RowLoss, scale: float, width: float, table: Ints,
    most: float, region: KernelRegion, constraint: Constraint, cap: float, d: Array, eta: float,
    rounds: int, tolerance: float, max_working_set: int, t: Array, b: Array, u: Array, point: Array,
) -> float:  # fmt: skip
    """Improve the dual point in place for kinks smoothed to this width; returns Phi."""
    n, p = t.shape[0], u.shape[0]
    work = workspace(region)
    zero, slot, core = np.zeros(p), np.zeros(p, dtype=np.int64), np.empty(0, dtype=np.bool_)
    q, half = np.empty(n, dtype=np.int16), half_slope(loss, scale)
    if point[STARTED] == 0.0 or point[WIDTH] != width:
        const = quantized_slopes(t, response, loss, scale, width, 0.0, table, q)
        gradient(records, region.column_status, q, half, u)
        point[OFFSET], point[OFFSET_ERROR] = most - const, 2.0**-48 * (most + 1.0)
        point[STARTED], point[WIDTH] = 1.0, width
    if point[MU] == 0.0:
        point[MU], point[NU] = initial_multipliers(constraint, zero, u, region, d, work)
    phi = envelope(zero, u, region, constraint, d, point[MU], point[NU], eta, point[OFFSET],
                      work)  # fmt: skip
    distance, v = np.empty(p), np.empty(p)
    chosen, wanted = np.empty(p, dtype=np.int64), np.empty(p, dtype=np.int64)
    curved, rows = np.empty(n), np.empty(n, dtype=np.int64)
    move, trial, new_u = np.empty(n), np.empty(n), np.empty(p)
    step = 0.5
    for _ in range(rounds):
        count, _ = working_set(slot, zero, u, region, constraint, d, point[MU], point[NU], core,
                               max_working_set, b, work, distance, chosen, wanted)  # fmt: skip
        hessian, w = np.empty((count, count)), np.empty(count)
        found = _half_curvatures(t, response, loss, scale, width, curved, rows)
        _half_hessian(records, scale, curved[:found], rows[:found], chosen[:count], hessian)
        for i in range(count):
            v[i], w[i] = b[chosen[i]], -u[chosen[i]]
        coordinate_descent(hessian, w, d, point[MU], point[NU], cap, work.column_pi,
                           chosen[:count], v)  # fmt: skip
        move[:] = 0.0
        for i in range(count):
            # Without curvature the minimum over a ball is not bounded here; such columns stay.
            v[i] = v[i] - b[chosen[i]] if np.isfinite(v[i]) else 0.0
            if v[i] != 0.0:
                weight, column = v[i] / scale, records[chosen[i]]
                for r in range(n):
                    move[r] += weight * column[r]
        step = min(1.0, 2.0 * step)
        better = False
        const, mu, nu, value = 0.0, 0.0, 0.0, phi
        for _trial in range(8):
            for r in range(n):
                trial[r] = t[r] + step * move[r]
            const = quantized_slopes(trial, response, loss, scale, width, 0.0, table, q)
            gradient(records, region.column_status, q, half, new_u)
            mu, nu = update_multipliers(constraint, zero, new_u, d, 0.0, work)
            value = envelope(zero, new_u, region, constraint, d, mu, nu, eta, most - const,
                                work)  # fmt: skip
            if value < phi:
                better = True
                break
            step *= 0.4
        if not better:
            break
        gained = phi - value
        phi = value
        put(t, trial)
        put(u, new_u)
        for i in range(count):
            b[chosen[i]] += step * v[i]
        point[OFFSET], point[MU], point[NU] = most - const, mu, nu
        if gained < tolerance:
            break
    return phi


@kernel
def dual_ascent(
    records: Cells, response: Cells, loss: RowLoss, scale: float, widest: float, narrowest: float,
    table: Ints, most: float, status: NDArray[np.int8], column_status: NDArray[np.int8],
    members: Ints, picks: Ints, starts: Ints, constraint: Constraint, cap: float, d: Array,
    eta: float, rounds: int, tolerance: float, max_working_set: int, t: Array, b: Array, u: Array,
    point: Array,
) -> None:  # fmt: skip
    """Improve the dual point in place, or compute a first one.

    t are the predictions of b, which moves in ``max_working_set`` columns at a time. ``cap`` is the
    largest absolute value that the constraint allows a single coefficient; the offset is ``most``
    minus const.
    """
    region = KernelRegion(status, column_status, members, picks, starts)
    first = point[STARTED] == 0.0
    width = widest if first else point[WIDTH]
    phi = _ascend_at_width(
        records, response, loss, scale, width, table, most, region, constraint, cap, d, eta,
        rounds, tolerance, max_working_set, t, b, u, point,
    )  # fmt: skip
    # A child keeps the width of its parent.
    while first and width > narrowest:
        old_t, old_b, old_u, old = t.copy(), b.copy(), u.copy(), point.copy()
        width = max(_NARROWER * width, narrowest)
        value = _ascend_at_width(
            records, response, loss, scale, width, table, most, region, constraint, cap, d, eta,
            rounds, tolerance, max_working_set, t, b, u, point,
        )  # fmt: skip
        if not value < phi:
            put(t, old_t)
            put(b, old_b)
            put(u, old_u)
            put(point, old)
            break
        phi = value
