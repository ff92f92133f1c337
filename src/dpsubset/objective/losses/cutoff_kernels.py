"""Decide whether scores are above a cutoff, with one or a few passes over the records.

A search scores many supports only to learn that they are worse than others it already has.
Supporting lines of the losses show that without a minimum, whatever their slopes are. With const
and g as in :mod:`dpsubset.search.bounds.row_kernels`, any b, and G = g + 2 ridge b, for all v in C

    F(v) >= const - ridge |b|^2 + G'v + ridge |v - b|^2,

where G'v is at least - radius |G|*, and G'(v - b) + ridge |v - b|^2 at least - |G|^2 / (4 ridge).
Slopes are integers, so const and g are exact. Good slopes are those of the losses at the
predictions of a good b. The coefficient of a column is similar in most supports, so b starts from
the best coefficients that its columns had before; this is usually enough. If not, a few Newton
steps follow. If a step points back, that step and those that follow are halved.
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
#: Largest number of passes over the records.
_PASSES = 6
#: Second derivatives are summed over about this many records at most.
_SAMPLE = 1000
#: Tolerance of a Newton step in units of the loss: much less than a step can gain.
_STEP_TOLERANCE = 0.1
#: This many supports are tried in any case; more only while at least half of them were decided.
_MIN_TRIES = 16


@kernel
def quantized_slopes(
    t: Array, response: Cells, loss: RowLoss, scale: float, width: float, omega: float,
    table: Ints, q: Cells,
) -> float:  # fmt: skip
    """Overwrite predictions t with slopes; return const. Kinks are smoothed to ``width``.

    For labels, omega t^2 / 2 is subtracted from the loss; ``table`` must match it.
    """
    total, square = np.int64(0), np.int64(0)
    steps = SLOPES / steepest(loss)
    for i in range(t.shape[0]):
        # Written for vectorisation: int32 first, and no branches.
        y = np.int32(response[i])
        sign = -1.0 if loss.labels and y < 0 else 1.0
        margin = sign * t[i]
        _, slope, _ = smooth(loss, width, y / scale, margin)
        slope = omega * margin - slope if loss.labels else slope
        wanted = slope * steps if np.isfinite(slope) else 0.0
        quantized = np.int32(np.rint(min(max(wanted, 0.0 if loss.labels else -_STEEP), _STEEP)))
        q[i] = -sign * quantized if loss.labels else quantized
        first, second = conjugate(loss, np.int64(quantized), np.int64(y), table)
        total += first
        square += second
    return conjugate_sum(loss, total, square, scale)


@kernel
def half_slope(loss: RowLoss, scale: float) -> float:
    """Half of the step of a slope, per step of a quantized cell."""
    return 0.5 / (scale * SLOPES) * steepest(loss)


@kernel
def product(q: Cells, column: Cells) -> np.int64:
    """q'x of a column, exactly."""
    total = np.int64(0)
    for i in range(q.shape[0]):
        total += np.int64(np.int32(q[i]) * np.int32(column[i]))
    return total


@kernel
def predictions(records: Cells, support: Ints, b: Array, scale: float, t: Array) -> None:
    """Write X b on a support into t."""
    t[:] = 0.0
    for j in range(support.shape[0]):
        column, factor = records[support[j]], b[j] / scale
        for i in range(t.shape[0]):
            t[i] += factor * column[i]


@kernel
def lower_bound(
    records: Cells, support: Ints, loss: RowLoss, c: Constraint, ridge: float, scale: float,
    const: float, q: Cells, most: float, start: float, b: Array, gradient: Array,
) -> float:  # fmt: skip
    """Return a lower bound on F - F(0) over C from these lines; write G into ``gradient``.

    F(0) is ``start``. No sum of losses at 0 or of conjugates exceeds ``most`` in size. See
    proofs/losses.md.
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
def _half_hessian(
    records: Cells, response: Cells, support: Ints, loss: RowLoss, ridge: float, scale: float,
    width: float, t: Array, h: Array,
) -> None:  # fmt: skip
    """Half the Hessian, estimated from a sample of the records if they are many."""
    k, every = support.shape[0], 1 + t.shape[0] // _SAMPLE
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
def _is_above(
    records: Cells, response: Cells, support: Ints, loss: RowLoss, c: Constraint, ridge: float,
    scale: float, table: Ints, widths: tuple[float, float], most: float, start: float,
    cutoff: float, guess: Array, t: Array, q: Cells,
) -> bool:  # fmt: skip
    """Whether the minimum over C less F(0), which is ``start``, is certified above the cutoff."""
    k = support.shape[0]
    b, best, move, g, h = np.empty(k), np.empty(k), np.zeros(k), np.empty(k), np.empty((k, k))
    for j in range(k):
        b[j] = guess[support[j]]
    put(best, b)
    highest, step, decided = -np.inf, 1.0, False
    for _ in range(_PASSES):
        predictions(records, support, b, scale, t)
        const = quantized_slopes(t, response, loss, scale, widths[0], 0.0, table, q)
        low = lower_bound(records, support, loss, c, ridge, scale, const, q, most, start, b, g)
        if low > highest:
            highest = low
            put(best, b)
        decided = low > cutoff
        if decided:
            break
        _half_hessian(records, response, support, loss, ridge, scale, widths[1], t, h)
        v = newton_point(g, h, b, c, _STEP_TOLERANCE)
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
    return decided


@kernel
def certainly_above(
    records: Cells, response: Cells, supports: Ints, loss: RowLoss, c: Constraint, ridge: float,
    scale: float, table: Ints, widths: tuple[float, float], most: float, start: float,
    cutoff: float, guess: Array,
) -> NDArray[np.bool_]:  # fmt: skip
    """Which supports have a minimum less F(0) that is certified above the cutoff.

    False where a few steps do not decide. Kinks are smoothed to ``widths``, for slopes and for
    curvature. ``guess`` has a coefficient for every column and is updated.
    """
    t, q = np.empty(response.shape[0]), np.empty(response.shape[0], dtype=np.int16)
    above, decided = np.zeros(supports.shape[0], dtype=np.bool_), 0
    for s in range(supports.shape[0]):
        if s > _MIN_TRIES + 2 * decided:
            break
        above[s] = _is_above(records, response, supports[s], loss, c, ridge, scale, table, widths,
                         most, start, cutoff, guess, t, q)  # fmt: skip
        decided += above[s]
    return above
