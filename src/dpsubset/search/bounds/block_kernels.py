"""Kernels of block bounds: the sum over m picks from blocks, and the inclusion probabilities.

A block of columns has a class for every number of picks: 0, 1, ..., and the last one for all larger
numbers. Picks T from the block have the weight exp(eta (const + sum over T of gain_j)), with the
const and the gains of their class. Columns of no block, the rest, enter one by one, as if they
could be picked repeatedly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...base.kernels.arrays import Array, Ints
from ...base.kernels.compiled import kernel
from ...constraints.base import Constraint, coefficient, gain

#: Sums of products below this count as 0: their inverse would exceed float64.
_TINY = 1e-280


@kernel
def gains_and_coefficients(
    constraint: Constraint, w: Array, d: Array, mu: float, nu: float, g: Array, v: Array
) -> None:
    """The gain of every w, and the coefficient that attains it."""
    for i in range(w.shape[0]):
        g[i] = gain(constraint, w[i], d[i], mu, nu)
        v[i] = coefficient(constraint, w[i], d[i], mu, nu)


@kernel
def _log_sum(first: Array, second: Array, shift: int, size: int) -> float:
    """log of the sum over i < size of exp(first_i + second_(shift - i)); -inf if size is 0."""
    high = -np.inf
    for i in range(size):
        high = max(high, float(first[i] + second[shift - i]))
    if high == -np.inf:
        return high
    total = 0.0
    for i in range(size):
        total += np.exp(first[i] + second[shift - i] - high)
    return float(high + np.log(total))


@kernel
def _weights(gains: Array, free: NDArray[np.bool_], eta: float, x: Array, who: Ints) -> float:
    """exp(eta (gain - highest)) of the free columns, in order; returns the highest gain."""
    high, n = -np.inf, 0
    for i in range(free.shape[0]):
        if free[i]:
            high = max(high, gains[i])
    for i in range(free.shape[0]):
        if free[i]:
            x[n] = np.exp(eta * (gains[i] - high))
            who[n] = i
            n += 1
    return high


@kernel
def _polynomials(x: Array, n: int, most: int, table: Array) -> None:
    """table[i, t]: the elementary symmetric polynomial of degree t of the first i weights."""
    table[0, :] = 0.0
    table[0, 0] = 1.0
    for i in range(n):
        table[i + 1, 0] = 1.0
        for t in range(1, most + 1):
            table[i + 1, t] = table[i, t] + x[i] * table[i, t - 1]


@kernel
def evaluate_blocks(
    gains: Array, consts: Array, free: NDArray[np.bool_], rest: float, eta: float, m: int,
    pi: Array, occupied: Array,
) -> tuple[float, float]:  # fmt: skip
    """log of the sum over m picks, and the mean number of picks from the rest.

    ``rest`` is the log of the sum of the rest's weights. ``pi[c, kind, i]`` is the probability that
    block c is in this class and its column i picked; ``occupied[c, kind]`` that it is in this
    class.
    """
    blocks, classes, width = gains.shape
    x, who = np.empty(width), np.empty(width, dtype=np.int64)
    table = np.empty((width + 1, m + 1))
    # logs[c, q]: log of the sum over q picks from block c; the last row is for the rest.
    logs = np.full((blocks + 1, m + 1), -np.inf)
    most = np.full(blocks + 1, m)
    for c in range(blocks):
        n = int(np.count_nonzero(free[c]))
        most[c] = min(n, m)
        logs[c, 0] = eta * consts[c, 0]
        for kind in range(1, min(classes, min(n, m) + 1)):
            high = _weights(gains[c, kind], free[c], eta, x, who)
            last = min(n, m) if kind == classes - 1 else kind
            _polynomials(x, n, last, table)
            for q in range(kind, last + 1):
                if table[n, q] > _TINY:
                    logs[c, q] = eta * (consts[c, kind] + q * high) + np.log(table[n, q])
    logs[blocks, 0] = 0.0
    orders = 0.0
    for q in range(1, m + 1):
        orders += np.log(q)
        logs[blocks, q] = q * rest - orders
    # before[c, t]: log of the sum over t picks from the blocks before c.
    before = np.full((blocks + 2, m + 1), -np.inf)
    before[0, 0] = 0.0
    for c in range(blocks + 1):
        for t in range(m + 1):
            before[c + 1, t] = _log_sum(logs[c], before[c], t, min(t, most[c]) + 1)
    total = before[blocks + 1, m]
    # after[t]: log of the sum over t picks from the blocks after c.
    after, others = np.full(m + 1, -np.inf), np.empty(m + 1)
    after[0] = 0.0
    chance = np.empty(m + 1)
    from_rest = 0.0
    for c in range(blocks, -1, -1):
        for q in range(m + 1):
            chance[q] = 0.0
            if q <= most[c]:
                others[q] = _log_sum(before[c], after, m - q, m - q + 1)
                chance[q] = np.exp(others[q] + logs[c, q] - total)
        if c == blocks:
            for q in range(m + 1):
                from_rest += q * chance[q]
        else:
            _block_probabilities(
                gains[c], free[c], eta, m, chance, x, who, table, pi[c], occupied[c]
            )
        for q in range(m + 1):
            others[q] = _log_sum(logs[c], after, q, min(q, most[c]) + 1)
        for q in range(m + 1):
            after[q] = others[q]
    return total, from_rest


@kernel
def _block_probabilities(
    gains: Array, free: NDArray[np.bool_], eta: float, m: int, chance: Array, x: Array, who: Ints,
    table: Array, pi: Array, occupied: Array,
) -> None:  # fmt: skip
    """Split the probabilities of a block's numbers of picks among its classes and columns."""
    classes, width = gains.shape
    n = int(np.count_nonzero(free))
    tail = np.zeros(m + 2)
    for kind in range(classes):
        occupied[kind] = 0.0
        for i in range(width):
            pi[kind, i] = 0.0
    occupied[0] = chance[0]
    for kind in range(1, min(classes, min(n, m) + 1)):
        _weights(gains[kind], free, eta, x, who)
        last = min(n, m) if kind == classes - 1 else kind
        _polynomials(x, n, last, table)
        # tail[t]: weight of completing t picks among the columns so far.
        for t in range(m + 2):
            tail[t] = 0.0
        for q in range(kind, last + 1):
            occupied[kind] += chance[q]
            if table[n, q] > _TINY:
                tail[q] = chance[q] / table[n, q]
        for i in range(n - 1, -1, -1):
            part = 0.0
            for t in range(last):
                part += table[i, t] * tail[t + 1]
            pi[kind, who[i]] = x[i] * part
            for t in range(last + 1):
                tail[t] += x[i] * tail[t + 1]
