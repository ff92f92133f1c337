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

import numba
import numpy as np
from numpy.typing import NDArray

from ...losses.base import HINGE, LOGISTIC
from ...losses.kernels import put
from ...losses.row_kernels import row
from .kernels import BOX, OUT, _likely, _phi, settle_extra, survey

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Slopes are integers over this.
SLOPES = 2**14
#: Entropies are integers over this: n of them fit in int64 for n < 2**33.
ENTROPIES = 2**30


def entropies() -> Ints:
    """-l* of the logistic loss: the entropy of q / SLOPES in nats, rounded down."""
    share = np.arange(1, SLOPES) / SLOPES
    nats = -share * np.log(share) - (1 - share) * np.log1p(-share)
    table = np.zeros(SLOPES + 1, dtype=np.int64)
    # What float64 leaves uncertain is far below the step that is given away here.
    table[1:-1] = np.maximum(np.floor(nats * ENTROPIES).astype(np.int64) - 1, 0)
    return table


@numba.njit(cache=True)
def slopes(
    t: Array, response: NDArray[np.int16], code: int, labels: bool, threshold: float, scale: float,
    width: float, omega: float, table: Ints, q: NDArray[np.int16],
) -> float:  # fmt: skip
    """Slopes at predictions t, in place; returns const. The hinge is smoothed to this width.

    Of a label's loss less the parabola omega t^2 / 2, which ``table`` must know of.
    """
    total, square = np.int64(0), np.int64(0)
    for i in range(t.shape[0]):
        y = response[i]
        if labels:
            margin = -t[i] if y < 0 else t[i]
            _, slope, _ = row(code, threshold, width, 0.0, margin)
            slope -= omega * margin
            share = np.int64(np.rint(-slope * SLOPES)) if np.isfinite(slope) else np.int64(0)
            share = min(max(share, np.int64(0)), np.int64(SLOPES))
            q[i] = share if y < 0 else -share
            total += table[share] if code == LOGISTIC else share
        else:
            _, slope, _ = row(code, threshold, 0.0, y / scale, t[i])
            share = np.int64(0)
            if np.isfinite(slope):
                share = np.int64(np.rint(slope / (2.0 * threshold) * SLOPES))
            share = min(max(share, np.int64(-SLOPES)), np.int64(SLOPES))
            q[i] = share
            total -= share * np.int64(y)
            square += share * share
    if code == LOGISTIC:
        return total / ENTROPIES
    if code == HINGE:
        return total / SLOPES
    # h(r) >= a r - a^2 / 4 for |a| <= 2 d, here with a = -2 d q / SLOPES.
    step = 2.0 * threshold / SLOPES
    return step * (total / scale) - step * step * (square / 4.0)


@numba.njit(cache=True)
def predictions(records: NDArray[np.int16], b: Array, scale: float) -> Array:
    """X b, where b has few entries that are not 0."""
    t = np.zeros(records.shape[1])
    for j in range(b.shape[0]):
        if b[j] != 0.0:
            column, factor = records[j], b[j] / scale
            for i in range(t.shape[0]):
                t[i] += factor * column[i]
    return t


@numba.njit(cache=True)
def gradient(
    records: NDArray[np.int16], status: NDArray[np.int8], q: NDArray[np.int16], factor: float,
    u: Array,
) -> None:  # fmt: skip
    """u = g / 2 for every feature that is not out; ``factor`` is half of a slope's unit."""
    for j in range(records.shape[0]):
        if status[j] == OUT:
            u[j] = 0.0
            continue
        column = records[j]
        total = np.int64(0)
        for i in range(q.shape[0]):
            total += np.int64(np.int32(q[i]) * np.int32(column[i]))
        u[j] = total * factor


@numba.njit(cache=True)
def improve(
    records: NDArray[np.int16], response: NDArray[np.int16], code: int, labels: bool,
    threshold: float, scale: float, smoothing: float, table: Ints, most: float,
    status: NDArray[np.int8], members: Ints, picks: Ints, constraint: int, radius: float, d: Array,
    eta: float, rounds: int, tolerance: float, t: Array, u: Array, state: Array,
) -> None:  # fmt: skip
    """Improve the dual point in place, or make a first one where state[4] is 0.

    ``state`` is as in `kernels.improve`: state[0] is ``most`` - const, state[4] its error.
    """
    n, p = t.shape[0], u.shape[0]
    width = 3 * (picks[0] + picks[1]) + 16
    top = np.empty(width, dtype=np.int64)
    pi = np.zeros(width)
    chosen = np.empty(width + members.shape[0], dtype=np.int64)
    v = np.empty(width + members.shape[0])
    g = np.empty(p)
    zero = np.zeros(p)
    everywhere = np.empty(0, dtype=np.bool_)
    q = np.empty(n, dtype=np.int16)
    factor = 0.5 / (scale * SLOPES) * (1.0 if labels else 2.0 * threshold)
    if state[4] == 0.0:
        const = slopes(t, response, code, labels, threshold, scale, smoothing, 0.0, table, q)
        gradient(records, status, q, factor, u)
        state[0], state[4] = most - const, 2.0**-48 * (most + 1.0)
    if constraint != BOX and state[1] == 0.0:
        for j in range(p):
            g[j] = abs(u[j])
        found, _ = survey(g, status, picks, 1e300, top, pi)
        state[1], state[5] = settle_extra(zero, u, members, top[:found], pi, constraint, radius, d)
    found, phi = _phi(zero, u, status, members, picks, constraint, radius, d, state[1], state[5],
                      eta, state[0], g, top, pi)  # fmt: skip
    move, trial, new_u = np.empty(n), np.empty(n), np.empty(p)
    step = 1.0
    for _ in range(rounds):
        count = _likely(members, top[:found], pi, everywhere, chosen, v)
        move[:] = 0.0
        for i in range(count):
            j = chosen[i]
            w = abs(u[j])
            if constraint == BOX:
                size = w / d[j] if w < d[j] * radius else radius
            else:
                size = max(w - state[5], 0.0) / (d[j] + state[1])
            by = -np.copysign(size, u[j]) * v[i] / scale
            column = records[j]
            for r in range(n):
                move[r] += by * column[r]
        step = min(1.0, 4.0 * step)
        better = False
        for _half in range(6):
            for r in range(n):
                trial[r] = t[r] + step * (move[r] - t[r])
            const = slopes(trial, response, code, labels, threshold, scale, smoothing, 0.0, table,
                           q)  # fmt: skip
            gradient(records, status, q, factor, new_u)
            mu, nu = settle_extra(zero, new_u, members, top[:found], pi, constraint, radius, d)
            found, value = _phi(zero, new_u, status, members, picks, constraint, radius, d, mu, nu,
                                eta, most - const, g, top, pi)  # fmt: skip
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
        state[0], state[1], state[5] = most - const, mu, nu
        if gained < tolerance:
            return
