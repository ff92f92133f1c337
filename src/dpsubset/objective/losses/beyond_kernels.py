"""Whether a score is above a cutoff: a bound that takes a pass or two over the records.

A search scores many supports only to learn that they are worse than others that it has. Lines below
the losses tell that without a minimum, whatever their slopes are: with const and g as in
:mod:`dpsubset.search.bounds.row_kernels`, any b, and G = g + 2 ridge b, for all v in C

    F(v) >= const - ridge |b|^2 + G'v + ridge |v - b|^2,

where G'v is at least - radius |G|*, and G'(v - b) + ridge |v - b|^2 at least - |G|^2 / (4 ridge).
Slopes are integers, so const and g are exact. Good ones are those of the losses at predictions of a
good b. Columns mostly have the same coefficient in one support as in the next, so b starts from
what was best for each of them when it was last seen; mostly that is enough. If not, a few Newton
steps follow. Where a step turns back, it and those to come are half as long.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...base.kernels.arrays import ROUNDING, Array, Cells, Ints, put
from ...base.kernels.compiled import kernel
from ...constraints.base import Constraint, dual_norm, shrink
from .base import SLOPES, RowLoss, conjugate, conjugate_sum, smooth, steepest
from .quadratic_kernels import newton_point

#: As a float.
_STEEP = float(SLOPES)
#: Passes over the records, at most.
_ROUNDS = 6
#: Second derivatives are summed over no more than about so many records.
_SOME = 1000
#: How exactly a step is computed, in units of the loss: much less than a step can gain.
_NEAR = 0.1
#: So many supports are tried in any case, more only while at least half of them are told.
_TRIED = 16


@kernel
def slopes(
    t: Array, response: Cells, loss: RowLoss, scale: float, width: float, omega: float,
    table: Ints, q: Cells,
) -> float:  # fmt: skip
    """Slopes at predictions t, in place; returns const. A kink is rounded off to this width.

    Of a label's loss less the parabola omega t^2 / 2, which ``table`` must know of.
    """
    total, square = np.int64(0), np.int64(0)
    steps = SLOPES / steepest(loss)
    for i in range(t.shape[0]):
        # In forms that the compiler has vectors for: int32 first, and no branches.
        y = np.int32(response[i])
        sign = -1.0 if loss.labels and y < 0 else 1.0
        margin = sign * t[i]
        _, slope, _ = smooth(loss, width, y / scale, margin)
        slope = omega * margin - slope if loss.labels else slope
        wanted = slope * steps if np.isfinite(slope) else 0.0
        share = np.int32(np.rint(min(max(wanted, 0.0 if loss.labels else -_STEEP), _STEEP)))
        q[i] = -sign * share if loss.labels else share
        first, second = conjugate(loss, np.int64(share), np.int64(y), table)
        total += first
        square += second
    return conjugate_sum(loss, total, square, scale)


@kernel
def half_slope(loss: RowLoss, scale: float) -> float:
    """Half of a slope's unit, per unit of a quantised cell."""
    return 0.5 / (scale * SLOPES) * steepest(loss)


@kernel
def product(q: Cells, column: Cells) -> np.int64:
    """q'x of a column, exact."""
    total = np.int64(0)
    for i in range(q.shape[0]):
        total += np.int64(np.int32(q[i]) * np.int32(column[i]))
    return total


@kernel
def predictions(records: Cells, support: Ints, b: Array, scale: float, t: Array) -> None:
    """X b on a support, into t."""
    t[:] = 0.0
    for j in range(support.shape[0]):
        column, factor = records[support[j]], b[j] / scale
        for i in range(t.shape[0]):
            t[i] += factor * column[i]


@kernel
def least(
    records: Cells, support: Ints, loss: RowLoss, c: Constraint, ridge: float, scale: float,
    const: float, q: Cells, most: float, start: float, b: Array, gradient: Array,
) -> float:  # fmt: skip
    """A lower bound on F - F(0) over C from these lines, and G in place. See proofs/losses.md.

    F(0) is ``start``. No sum of losses at 0 or of conjugates is above ``most`` in size.
    """
    k = support.shape[0]
    unit = 2.0 * half_slope(loss, scale)
    square, along, norm, sizes = 0.0, 0.0, 0.0, 0.0
    for j in range(k):
        g, pulled = product(q, records[support[j]]) * unit, 2.0 * ridge * b[j]
        gradient[j] = g + pulled
        sizes += abs(g) + abs(pulled)
        square += b[j] * b[j]
        along += gradient[j] * b[j]
        norm += gradient[j] * gradient[j]
    lost = -c.radius * dual_norm(c, gradient)
    if ridge > 0.0:
        lost = max(lost, along - norm / (4.0 * ridge))
    size = 3.0 * most + ridge * square + c.radius * sizes
    return const - start - ridge * square + lost - (64 * k + 128) * ROUNDING * size


@kernel
def _bend(
    records: Cells, response: Cells, support: Ints, loss: RowLoss, ridge: float, scale: float,
    width: float, t: Array, h: Array,
) -> None:  # fmt: skip
    """Half the second derivatives, from some of the records if they are many."""
    k, every = support.shape[0], 1 + t.shape[0] // _SOME
    h[:] = 0.0
    row, factor = np.empty(k), 0.5 * every / scale**2
    for i in range(0, t.shape[0], every):
        y = response[i] / scale
        at = -t[i] if loss.labels and y < 0.0 else t[i]
        _, _, curvature = smooth(loss, width, y, at)
        for j in range(k):
            row[j] = records[support[j], i]
        for j in range(k):
            weight = factor * curvature * row[j]
            for other in range(j + 1):
                h[j, other] += weight * row[other]
    for j in range(k):
        for other in range(j):
            h[other, j] = h[j, other]
        h[j, j] += ridge


@kernel
def _told(
    records: Cells, response: Cells, support: Ints, loss: RowLoss, c: Constraint, ridge: float,
    scale: float, table: Ints, widths: tuple[float, float], most: float, start: float,
    cutoff: float, guess: Array, t: Array, q: Cells,
) -> bool:  # fmt: skip
    """Whether the minimum over C less F(0), which is ``start``, is above the cutoff for sure."""
    k = support.shape[0]
    b, best, move, g, h = np.empty(k), np.empty(k), np.zeros(k), np.empty(k), np.empty((k, k))
    for j in range(k):
        b[j] = guess[support[j]]
    put(best, b)
    highest, step, told = -np.inf, 1.0, False
    for _ in range(_ROUNDS):
        predictions(records, support, b, scale, t)
        const = slopes(t, response, loss, scale, widths[0], 0.0, table, q)
        low = least(records, support, loss, c, ridge, scale, const, q, most, start, b, g)
        if low > highest:
            highest = low
            put(best, b)
        told = low > cutoff
        if told:
            break
        _bend(records, response, support, loss, ridge, scale, widths[1], t, h)
        v = newton_point(g, h, b, c, _NEAR)
        if not shrink(c, v):
            break
        turn = 0.0
        for j in range(k):
            v[j] -= b[j]
            turn += v[j] * move[j]
        if turn < 0.0:
            step *= 0.5
        put(move, v)
        for j in range(k):
            b[j] += step * v[j]
    for j in range(k):
        guess[support[j]] = best[j]
    return told


@kernel
def beyond(
    records: Cells, response: Cells, supports: Ints, loss: RowLoss, c: Constraint, ridge: float,
    scale: float, table: Ints, widths: tuple[float, float], most: float, start: float,
    cutoff: float, guess: Array,
) -> NDArray[np.bool_]:  # fmt: skip
    """Which supports have a minimum less F(0) that is above the cutoff, as far as can be told.

    A kink is rounded off to ``widths``, for slopes and for curvature. ``guess`` has a coefficient
    for every column, and gets better ones.
    """
    t, q = np.empty(response.shape[0]), np.empty(response.shape[0], dtype=np.int16)
    above, told = np.zeros(supports.shape[0], dtype=np.bool_), 0
    for s in range(supports.shape[0]):
        if s > _TRIED + 2 * told:
            break
        above[s] = _told(records, response, supports[s], loss, c, ridge, scale, table, widths,
                         most, start, cutoff, guess, t, q)  # fmt: skip
        told += above[s]
    return above
