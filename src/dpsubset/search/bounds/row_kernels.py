"""Dual points for losses that are summed over records.

A line below the loss of row i with slope q_i, whatever the q_i are, gives for every b

    sum of l(y_i, x_i'b) >= const + g'b,   const = - sum of l*(y_i, q_i),   g = sum of q_i x_i,

so that with w = -g/2 every support S has f(S) >= const - max over b in C of 2 w_S'b - ridge |b|^2:
the bound of :mod:`dpsubset.search.bounds.kernels` with D = ridge and nothing left for Q. Slopes are
integers over 2**14, so g and const are exact integers, or, for the logistic loss, a table of
entropies rounded down: rounding comes in only when they become floats.

Good slopes are those of the losses at predictions t = X b, where b moves as it does for least
squares: towards the point that the envelope's inclusion probabilities name.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...constraints.base import Constraint, coefficient
from ...kernels.arrays import Array, Cells, Ints, put
from ...kernels.compiled import kernel
from ...losses.base import SLOPES, RowLoss, conjugate, conjugate_sum, smooth, steepest
from .kernels import (
    CARRIED,
    CARRIED_ERROR,
    MU,
    NU,
    OUT,
    STARTED,
    Picks,
    Work,
    envelope,
    first_multipliers,
    settled,
    span,
    workspace,
)


@kernel
def slopes(
    t: Array, response: Cells, loss: RowLoss, scale: float, width: float, omega: float,
    table: Ints, q: Cells,
) -> float:  # fmt: skip
    """Slopes at predictions t, in place; returns const. A kink is rounded off to this width.

    Of a label's loss less the parabola omega t^2 / 2, which ``table`` must know of.
    """
    total, square = np.int64(0), np.int64(0)
    unit = steepest(loss)
    for i in range(t.shape[0]):
        y = np.int64(response[i])
        if loss.labels:
            margin = -t[i] if y < 0 else t[i]
            _, slope, _ = smooth(loss, width, 0.0, margin)
            slope = omega * margin - slope
            least = 0
        else:
            _, slope, _ = smooth(loss, width, y / scale, t[i])
            least = -SLOPES
        share = np.int64(np.rint(slope / unit * SLOPES)) if np.isfinite(slope) else np.int64(0)
        share = min(max(share, np.int64(least)), np.int64(SLOPES))
        q[i] = -share if loss.labels and y >= 0 else share
        first, second = conjugate(loss, share, y, table)
        total += first
        square += second
    return conjugate_sum(loss, total, square, scale)


@kernel
def half_slope(loss: RowLoss, scale: float) -> float:
    """Half of a slope's unit, per unit of a quantised cell."""
    return 0.5 / (scale * SLOPES) * steepest(loss)


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
        column = records[j]
        total = np.int64(0)
        for i in range(q.shape[0]):
            total += np.int64(np.int32(q[i]) * np.int32(column[i]))
        u[j] = total * factor


@kernel
def _likely(region: Picks, found: int, work: Work, chosen: Ints) -> int:
    """Columns of members and of likely choices, each a pass over the records; how many."""
    count = 0
    for j in region.members:
        chosen[count] = j
        count += 1
    for i in range(found):
        if work.pi[work.top[i]] > 0.01:
            first, last = span(region.starts, work.top[i])
            for j in range(first, last):
                chosen[count] = j
                count += 1
    return count


@kernel
def improve(
    records: Cells, response: Cells, loss: RowLoss, scale: float, smoothing: float, table: Ints,
    most: float, status: NDArray[np.int8], cells: NDArray[np.int8], members: Ints, picks: Ints,
    starts: Ints, constraint: Constraint, d: Array, eta: float, rounds: int, tolerance: float,
    t: Array, u: Array, point: Array,
) -> None:  # fmt: skip
    """Improve the dual point in place, or make a first one where there is none.

    ``point`` is as in `kernels.improve`; ``most`` - const is what is carried.
    """
    n, p = t.shape[0], u.shape[0]
    region = Picks(status, cells, members, picks, starts)
    work = workspace(region)
    zero = np.zeros(p)
    chosen = np.empty(p, dtype=np.int64)
    q = np.empty(n, dtype=np.int16)
    half = half_slope(loss, scale)
    if point[STARTED] == 0.0:
        const = slopes(t, response, loss, scale, smoothing, 0.0, table, q)
        gradient(records, region.cells, q, half, u)
        point[CARRIED], point[CARRIED_ERROR] = most - const, 2.0**-48 * (most + 1.0)
        point[STARTED] = 1.0
    if point[MU] == 0.0:
        point[MU], point[NU] = first_multipliers(constraint, zero, u, region, d, work)
    found, phi = envelope(zero, u, region, constraint, d, point[MU], point[NU], eta, point[CARRIED],
                          work)  # fmt: skip
    move, trial, new_u = np.empty(n), np.empty(n), np.empty(p)
    step = 1.0
    for _ in range(rounds):
        count = _likely(region, found, work, chosen)
        move[:] = 0.0
        for i in range(count):
            j = chosen[i]
            size = coefficient(constraint, -u[j], d[j], point[MU], point[NU])
            by = size * work.share[j] / scale
            column = records[j]
            for r in range(n):
                move[r] += by * column[r]
        step = min(1.0, 4.0 * step)
        better = False
        for _half in range(6):
            for r in range(n):
                trial[r] = t[r] + step * (move[r] - t[r])
            const = slopes(trial, response, loss, scale, smoothing, 0.0, table, q)
            gradient(records, region.cells, q, half, new_u)
            mu, nu = settled(constraint, zero, new_u, d, 0.0, work)
            found, value = envelope(zero, new_u, region, constraint, d, mu, nu, eta, most - const,
                                    work)  # fmt: skip
            if value < phi:
                better = True
                break
            step *= 0.4
        if not better:
            return
        gained = phi - value
        phi = value
        put(t, trial)
        put(u, new_u)
        point[CARRIED], point[MU], point[NU] = most - const, mu, nu
        if gained < tolerance:
            return
