"""Kernels that go through all supports of a region in closed form.

With a multiplier mu the ball is gone: what is left of the score is yy - mu r^2 - c'(H + mu)^-1 c on
the columns of the support, and the last term is |t|^2, t = R'^-1 c, with the Cholesky factor R of
H + mu there. A column more is a row more of R: all supports of a region together cost a few
operations each.

Rows of R are kept for all free columns at once: after the columns T, ``left[j]`` is what is left of
the diagonal entry of column j and ``toward[j]`` of c_j, and toward^2 / left is what it would gain.
"""

from __future__ import annotations

import numpy as np

from ...base.kernels.arrays import Array, Ints
from ...base.kernels.compiled import kernel
from ...base.kernels.triangles import factor, forward
from ...data.products import Products

#: Weights of supports are integers of about this many bits.
BITS = 40
#: No more than so many of them are added up.
MOST = 1_000_000
#: They are good for gains that are no more than this above what they are relative to, times eta.
OVER = 0.5


@kernel
def start(
    x: Products, scale: float, c: Array, members: Ints, free: Ints, level: float, nudge: float,
    rows: Array, left: Array, toward: Array,
) -> float:  # fmt: skip
    """Rows of R of the members, into the first of ``rows``; |t|^2 is returned, or -1 if none is.

    ``level`` is what H + mu has beside the Gram matrix, on its diagonal.
    """
    many, n = members.shape[0], free.shape[0]
    block, t = np.empty((many, many)), np.empty(many)
    for i in range(many):
        t[i] = c[members[i]]
        from_i = x.columns[x.slot[members[i]]]
        for j in range(many):
            block[i, j] = from_i[members[j]] / scale
        block[i, i] += level - 2.0 * nudge
    if not factor(block, 0.0):
        return -1.0
    forward(block, t, 0)
    for j in range(n):
        left[j] = x.diagonal[free[j]] / scale + level - 2.0 * nudge
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
def _pick(
    x: Products, scale: float, free: Ints, rows: Array, depth: int, i: int, left: Array,
    toward: Array, left_now: Array, toward_now: Array,
) -> float:  # fmt: skip
    """Another row of R, for pick i and the columns behind it; what it gains, or -1 if none is."""
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
    """An integer not below 2**BITS * exp(eta (gain - top)), where gain is hardly above top."""
    z = eta * (gain - top) + (2.0**-40 + 2.0**-49 * eta * top)
    # Much smaller than 1 is as good as 1.
    return np.int64(np.exp(z) * 2.0**BITS) + np.int64(1) if z > -28.0 else np.int64(1)


@kernel
def sums(
    x: Products, scale: float, free: Ints, members: int, rows: Array, left: Array, toward: Array,
    prefix: Ints, m: int, eta: float, top: float, out: Ints,
) -> tuple[float, np.int64]:  # fmt: skip
    """Weights of supports with these first picks, by their next one; the largest gain and weight.

    `weight`s are summed up into ``out``; they are of no use if a gain is more than OVER / eta above
    top. The gain is -1 where rounding leaves no factor R. ``rows`` has those of the members, and
    room for m - 1 more.
    """
    n, given = free.shape[0], prefix.shape[0]
    lefts, towards = np.empty((m, n)), np.empty((m, n))
    lefts[0], towards[0] = left, toward
    gained = np.zeros(m + 1)
    at = np.empty(m, dtype=np.int64)
    depth = 0
    for i in prefix:
        more = _pick(x, scale, free, rows, members + depth, i, lefts[depth], towards[depth],
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
        more = _pick(x, scale, free, rows, members + depth, i, lefts[depth], towards[depth],
                     lefts[depth + 1], towards[depth + 1])  # fmt: skip
        if more < 0.0:
            return -1.0, np.int64(0)
        gained[depth + 1] = gained[depth] + more
        depth += 1
        at[depth] = i + 1
    return highest, heaviest
