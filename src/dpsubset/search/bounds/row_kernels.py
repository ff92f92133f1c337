"""Dual points for losses that are summed over records.

A line below the loss of row i with slope q_i, whatever the q_i are, gives for every b

    sum of l(y_i, x_i'b) >= const + g'b,   const = - sum of l*(y_i, q_i),   g = sum of q_i x_i,

so that with w = -g/2 every support S has f(S) >= const - max over b in C of 2 w_S'b - ridge |b|^2:
the bound of :mod:`dpsubset.search.bounds.kernels` with D = ridge and nothing left for Q. Slopes are
integers over 2**14, so g and const are exact integers, or, for the logistic loss, a table of
entropies rounded down: rounding comes in only when they become floats.

Good slopes are those of the losses at predictions t = X b, where b moves as it does for least
squares, see :mod:`dpsubset.search.bounds.ascent`, with the curvature that the losses have at t. A
kink has none, so it is rounded off, less and less as long as that helps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...base.kernels.arrays import Array, Cells, Ints, put
from ...base.kernels.compiled import kernel
from ...constraints.base import Constraint
from ...objective.losses.base import RowLoss, smooth
from ...objective.losses.cutoff_kernels import half_slope, product, quantised_slopes
from .ascent import coordinates, movers
from .kernels import (
    CARRIED,
    CARRIED_ERROR,
    MU,
    NU,
    OUT,
    STARTED,
    WIDTH,
    Picks,
    envelope,
    first_multipliers,
    settled,
    workspace,
)

#: The factor from one width of a kink to the next.
_NARROWER = 0.25
#: Most products that second derivatives are summed from.
_MOST_PRODUCTS = 1_000_000


@kernel
def predictions(records: Cells, b: Array, scale: float) -> Array:
    """X b, where b has few entries that are not 0."""
    t = np.zeros(records.shape[1])
    for j in range(b.shape[0]):
        if b[j] != 0.0:
            column, factor = records[j], b[j] / scale
            for i in range(t.shape[0]):
                t[i] += factor * column[i]
    return t


@kernel
def gradient(
    records: Cells, cells: NDArray[np.int8], q: Cells, factor: float,
    u: Array,
) -> None:  # fmt: skip
    """u = g / 2 for every column that is not out; ``factor`` is half of a slope's unit."""
    for j in range(records.shape[0]):
        if cells[j] == OUT:
            u[j] = 0.0
            continue
        u[j] = product(q, records[j]) * factor


@kernel
def _curvatures(
    t: Array, response: Cells, loss: RowLoss, scale: float, width: float, curved: Array, rows: Ints
) -> int:
    """Half the curvature of the losses at t, and the rows that have any; how many."""
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
def _bend(records: Cells, scale: float, curved: Array, rows: Ints, chosen: Ints, q: Array) -> None:
    """Half the second derivatives in the chosen columns; from some of the rows if they are many."""
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
def _ascend(
    records: Cells, response: Cells, loss: RowLoss, scale: float, width: float, table: Ints,
    most: float, region: Picks, constraint: Constraint, cap: float, d: Array, eta: float,
    rounds: int, tolerance: float, movable: int, t: Array, b: Array, u: Array, point: Array,
) -> float:  # fmt: skip
    """Improve the dual point in place for kinks of this width; returns Phi."""
    n, p = t.shape[0], u.shape[0]
    work = workspace(region)
    zero, slot, core = np.zeros(p), np.zeros(p, dtype=np.int64), np.empty(0, dtype=np.bool_)
    q, half = np.empty(n, dtype=np.int16), half_slope(loss, scale)
    if point[STARTED] == 0.0 or point[WIDTH] != width:
        const = quantised_slopes(t, response, loss, scale, width, 0.0, table, q)
        gradient(records, region.cells, q, half, u)
        point[CARRIED], point[CARRIED_ERROR] = most - const, 2.0**-48 * (most + 1.0)
        point[STARTED], point[WIDTH] = 1.0, width
    if point[MU] == 0.0:
        point[MU], point[NU] = first_multipliers(constraint, zero, u, region, d, work)
    _, phi = envelope(zero, u, region, constraint, d, point[MU], point[NU], eta, point[CARRIED],
                      work)  # fmt: skip
    away, v = np.empty(p), np.empty(p)
    chosen, wanted = np.empty(p, dtype=np.int64), np.empty(p, dtype=np.int64)
    curved, rows = np.empty(n), np.empty(n, dtype=np.int64)
    move, trial, new_u = np.empty(n), np.empty(n), np.empty(p)
    step = 0.5
    for _ in range(rounds):
        count, _ = movers(slot, zero, u, region, constraint, d, point[MU], point[NU], core,
                          movable, b, work, away, chosen, wanted)  # fmt: skip
        bend, w = np.empty((count, count)), np.empty(count)
        found = _curvatures(t, response, loss, scale, width, curved, rows)
        _bend(records, scale, curved[:found], rows[:found], chosen[:count], bend)
        for i in range(count):
            v[i], w[i] = b[chosen[i]], -u[chosen[i]]
        coordinates(bend, w, d, point[MU], point[NU], cap, work.share, chosen[:count], v)
        move[:] = 0.0
        for i in range(count):
            # Without any curvature a ball has no end: such columns stay.
            v[i] = v[i] - b[chosen[i]] if np.isfinite(v[i]) else 0.0
            if v[i] != 0.0:
                by, column = v[i] / scale, records[chosen[i]]
                for r in range(n):
                    move[r] += by * column[r]
        step = min(1.0, 2.0 * step)
        better = False
        const, mu, nu, value = 0.0, 0.0, 0.0, phi
        for _half in range(8):
            for r in range(n):
                trial[r] = t[r] + step * move[r]
            const = quantised_slopes(trial, response, loss, scale, width, 0.0, table, q)
            gradient(records, region.cells, q, half, new_u)
            mu, nu = settled(constraint, zero, new_u, d, 0.0, work)
            _, value = envelope(zero, new_u, region, constraint, d, mu, nu, eta, most - const,
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
        point[CARRIED], point[MU], point[NU] = most - const, mu, nu
        if gained < tolerance:
            break
    return phi


@kernel
def improve(
    records: Cells, response: Cells, loss: RowLoss, scale: float, widest: float, narrowest: float,
    table: Ints, most: float, status: NDArray[np.int8], cells: NDArray[np.int8], members: Ints,
    picks: Ints, starts: Ints, constraint: Constraint, cap: float, d: Array, eta: float,
    rounds: int, tolerance: float, movable: int, t: Array, b: Array, u: Array, point: Array,
) -> None:  # fmt: skip
    """Improve the dual point in place, or make a first one where there is none.

    t are the predictions of b, whose ``movable`` columns move at a time, ``cap`` is the largest
    coefficient by itself, and ``most`` - const is what is carried.
    """
    region = Picks(status, cells, members, picks, starts)
    first = point[STARTED] == 0.0
    width = widest if first else point[WIDTH]
    phi = _ascend(records, response, loss, scale, width, table, most, region, constraint, cap, d,
                  eta, rounds, tolerance, movable, t, b, u, point)  # fmt: skip
    # A part of a region takes the width of the whole.
    while first and width > narrowest:
        old_t, old_b, old_u, old = t.copy(), b.copy(), u.copy(), point.copy()
        width = max(_NARROWER * width, narrowest)
        value = _ascend(records, response, loss, scale, width, table, most, region, constraint,
                        cap, d, eta, rounds, tolerance, movable, t, b, u, point)  # fmt: skip
        if not value < phi:
            put(t, old_t)
            put(b, old_b)
            put(u, old_u)
            put(point, old)
            break
        phi = value
