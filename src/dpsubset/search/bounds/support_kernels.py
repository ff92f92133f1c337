"""Kernels that compute a bound for every support of a region in closed form.

A multiplier mu removes the ball: the score is at least yy - mu r^2 - c'(H + mu)^-1 c on the columns
of the support, and the last term is |t|^2, t = R'^-1 c, with the Cholesky factor R of H + mu. One
more column is one more row of R, so all supports of a region cost a few operations each.

Rows of R are kept for all free columns at once. After the columns T, ``left[j]`` is the Schur
complement of the diagonal entry of column j and ``toward[j]`` the residual of c_j; the gain of
column j is then toward^2 / left.
"""

from __future__ import annotations

import numpy as np

from ...base.kernels.arrays import Array, Ints
from ...base.kernels.compiled import kernel
from ...base.kernels.triangles import factor, forward
from ...data.products import Products

#: Weights of supports are integers of about this many bits.
BITS = 40
#: Most weights that are summed.
MOST = 1_000_000
#: Weights are valid for gains of at most this much above the reference, times eta.
OVER = 0.5


@kernel
def factor_members(
    x: Products, scale: float, c: Array, members: Ints, free: Ints, level: float, error: float,
    rows: Array, left: Array, toward: Array,
) -> float:  # fmt: skip
    """Rows of R of the members, into the first of ``rows``; returns |t|^2, or -1 without a factor.

    ``level`` is what is added to the diagonal of the Gram matrix, ridge + mu.
    """
    many, n = members.shape[0], free.shape[0]
    block, t = np.empty((many, many)), np.empty(many)
    for i in range(many):
        t[i] = c[members[i]]
        from_i = x.columns[x.slot[members[i]]]
        for j in range(many):
            block[i, j] = from_i[members[j]] / scale
        block[i, i] += level - 2.0 * error
    if not factor(block, 0.0):
        return -1.0
    forward(block, t, 0)
    for j in range(n):
        left[j] = x.diagonal[free[j]] / scale + level - 2.0 * error
        toward[j] = c[free[j]]
    gained = 0.0
    for i in range(many):
        from_i, here = x.columns[x.slot[members[i]]], rows[i]
        for j in range(n):
            here[j] = from_i[free[j]] / scale
        for above in range(i):
            weight, before = block[above, i], rows[above]
            for j in range(n):
                here[j] -= weight * before[j]
        for j in range(n):
            here[j] /= block[i, i]
            left[j] -= here[j] * here[j]
            toward[j] -= here[j] * t[i]
        gained += t[i] * t[i]
    return gained


@kernel
def _append_pick(
    x: Products, scale: float, free: Ints, rows: Array, depth: int, i: int, left: Array,
    toward: Array, left_now: Array, toward_now: Array,
) -> float:  # fmt: skip
    """Append the row of R for pick i to the columns after it.

    Returns the gain of the pick, or -1 if rounding leaves no factor.
    """
    n = free.shape[0]
    if not left[i] > 0.0:
        return -1.0
    root = np.sqrt(left[i])
    t = toward[i] / root
    from_i, here = x.columns[x.slot[free[i]]], rows[depth]
    for j in range(i + 1, n):
        here[j] = from_i[free[j]] / scale
    for above in range(depth):
        before = rows[above]
        weight = before[i]
        for j in range(i + 1, n):
            here[j] -= weight * before[j]
    for j in range(i + 1, n):
        here[j] /= root
        left_now[j] = left[j] - here[j] * here[j]
        toward_now[j] = toward[j] - here[j] * t
    return float(t * t)


@kernel
def weight(gain: float, eta: float, top: float) -> np.int64:
    """An integer not below 2**BITS * exp(eta (gain - top)), for gains of at most about top."""
    z = eta * (gain - top) + (2.0**-40 + 2.0**-49 * eta * top)
    # Weights much smaller than 1 are rounded up to 1.
    return np.int64(np.exp(z) * 2.0**BITS) + np.int64(1) if z > -28.0 else np.int64(1)


@kernel
def sums(
    x: Products, scale: float, free: Ints, members: int, rows: Array, left: Array, toward: Array,
    prefix: Ints, m: int, eta: float, top: float, out: Ints,
) -> tuple[float, np.int64]:  # fmt: skip
    """Sum the weights of supports that start with the picks ``prefix``, by their next pick.

    Sums of `weight`s are written to ``out``; they are not usable if a gain is more than OVER / eta
    above ``top``. Returns the largest gain and the largest weight; the gain is -1 where rounding
    leaves no factor R. ``rows`` contains those of the members, and has space for m - 1 more.
    """
    n, given = free.shape[0], prefix.shape[0]
    lefts, towards = np.empty((m, n)), np.empty((m, n))
    lefts[0], towards[0] = left, toward
    gained = np.zeros(m + 1)
    at = np.empty(m, dtype=np.int64)
    depth = 0
    for i in prefix:
        more = _append_pick(x, scale, free, rows, members + depth, i, lefts[depth], towards[depth],
                     lefts[depth + 1], towards[depth + 1])  # fmt: skip
        if more < 0.0:
            return -1.0, np.int64(0)
        gained[depth + 1] = gained[depth] + more
        at[depth] = i
        depth += 1
    for j in range(n):
        out[j] = 0
    highest, heaviest, most = 0.0, np.int64(0), top + OVER / eta
    at[depth] = at[depth - 1] + 1 if depth else 0
    while depth >= given:
        i = at[depth]
        if depth == m - 1:
            lefts_here, towards_here, total = lefts[depth], towards[depth], np.int64(0)
            for j in range(i, n):
                if not lefts_here[j] > 0.0:
                    return -1.0, np.int64(0)
                gain = gained[depth] + towards_here[j] * towards_here[j] / lefts_here[j]
                highest = max(highest, gain)
                here = weight(gain, eta, top) if gain <= most else np.int64(0)
                heaviest = max(heaviest, here)
                total += here
                if depth == given:
                    out[j] = here
            if depth > given:
                out[at[given]] += total
            depth -= 1
            if depth >= given:
                at[depth] += 1
            continue
        if i + m - depth > n:
            depth -= 1
            if depth >= given:
                at[depth] += 1
            continue
        more = _append_pick(x, scale, free, rows, members + depth, i, lefts[depth], towards[depth],
                     lefts[depth + 1], towards[depth + 1])  # fmt: skip
        if more < 0.0:
            return -1.0, np.int64(0)
        gained[depth + 1] = gained[depth] + more
        depth += 1
        at[depth] = i + 1
    return highest, heaviest
