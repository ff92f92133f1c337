"""Float64 kernels of the search: dual points for modular lower bounds.

For every support S of a region (A forced in, m picked from the free features F) and every point b,
with u = Q b, Q = H - D positive semidefinite, w = c - u:

    f(S) >= yy - b'Qb - extra - sum over j in S of g_j,

    box    g_j = phi_j(w_j), extra = 0
    ball   g_j = w_j^2 / (D + mu), extra = mu r^2, any mu >= 0 with D + mu > 0
    l1     g_j = (|w_j| - nu)_+^2 / (D + mu), extra = mu K^2 + 2 nu K, likewise, any nu >= 0

A kernel looks for a b that makes the *envelope* small, i.e. minimises the convex function

    Phi(b) = b'Qb + extra + (1/eta) log e_m(exp(eta g)) + sum over A of g,

whose gradient is 2Q(b - pi v), pi the inclusion probabilities of the envelope and v_j = g'(w_j)/2.
b moves towards pi v, where only the features with the largest pi take part: any b is valid, so a
shortcut costs tightness and nothing else. u and b'Qb are updated along with b.

Columns of G = X'X are rows of an int64 matrix, ``columns[slot[j]]`` (the whole matrix, or a cache).
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from ...losses.kernels import put

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

BOX, BALL, L1 = 0, 1, 2

#: Status of a feature in a region: forced out, forced in, free in the first or the second pool.
OUT, IN, FREE = 0, 1, 2
POOLS = 2


@numba.njit(cache=True)
def gains(
    c: Array, u: Array, status: NDArray[np.int8], constraint: int, radius: float, d: Array,
    mu: float, nu: float, g: Array,
) -> None:  # fmt: skip
    """g_j of every feature that is not out."""
    for j in range(c.shape[0]):
        if status[j] == OUT:
            g[j] = 0.0
            continue
        w = abs(c[j] - u[j])
        if constraint == BOX:
            g[j] = w * w / d[j] if w < d[j] * radius else radius * (2.0 * w - d[j] * radius)
        else:
            w = max(w - nu, 0.0)
            g[j] = w * w / (d[j] + mu)


@numba.njit(cache=True)
def largest(g: Array, status: NDArray[np.int8], pool: int, count: int, top: Ints) -> int:
    """The free features of a pool with the largest g, best first, ties to the lower index."""
    found = 0
    for j in range(g.shape[0]):
        if status[j] != FREE + pool:
            continue
        if found == count:
            if g[j] <= g[top[found - 1]]:
                continue
            at = found - 1
        else:
            at = found
            found += 1
        while at > 0 and g[top[at - 1]] < g[j]:
            top[at] = top[at - 1]
            at -= 1
        top[at] = j
    return found


@numba.njit(cache=True)
def log_symmetric(
    g: Array, status: NDArray[np.int8], pool: int, eta: float, m: int, top: Ints, pi: Array
) -> float:
    """(1/eta) log of the sum over m picks from a pool, and inclusion probabilities of ``top``.

    The features in ``top`` enter exactly, the others as if they could be picked repeatedly.
    """
    found = top.shape[0]
    high = g[top[0]]
    rest = 0.0
    for j in range(g.shape[0]):
        if status[j] == FREE + pool:
            rest += np.exp(eta * (g[j] - high))
    weights = np.empty(found)
    for i in range(found):
        weights[i] = np.exp(eta * (g[top[i]] - high))
        rest -= weights[i]
    rest = max(rest, 0.0)
    # table[i, t]: t picks among the first i of top; tail[t]: t picks among what follows.
    table = np.zeros((found + 1, m + 1))
    table[0, 0] = 1.0
    for i in range(found):
        for t in range(m + 1):
            table[i + 1, t] = table[i, t] + (weights[i] * table[i, t - 1] if t else 0.0)
    tail = np.empty(m + 1)
    tail[0] = 1.0
    for t in range(1, m + 1):
        tail[t] = tail[t - 1] * rest / t
    total = 0.0
    for t in range(m + 1):
        total += table[found, t] * tail[m - t]
    if not total > 0.0:
        # Everything but the leading weight underflows: the m largest are certain.
        for i in range(found):
            pi[i] = 1.0 if i < m else 0.0
        total = 0.0
        for i in range(m):
            total += g[top[i]]
        return total
    for i in range(found - 1, -1, -1):
        share = 0.0
        for t in range(m):
            share += table[i, t] * tail[m - 1 - t]
        pi[i] = weights[i] * share / total
        for t in range(m, 0, -1):
            tail[t] += weights[i] * tail[t - 1]
    return m * high + np.log(total) / eta


@numba.njit(cache=True)
def survey(
    g: Array, status: NDArray[np.int8], picks: Ints, eta: float, top: Ints, pi: Array
) -> tuple[int, float]:
    """Leading features of both pools with their inclusion probabilities; sum of log envelopes."""
    found, total = 0, 0.0
    for pool in range(POOLS):
        m = picks[pool]
        if m == 0:
            continue
        count = largest(g, status, pool, 3 * m + 8, top[found:])
        total += log_symmetric(
            g, status, pool, eta, m, top[found : found + count], pi[found : found + count]
        )
        found += count
    return found, total


@numba.njit(cache=True)
def settle_extra(
    c: Array, u: Array, members: Ints, top: Ints, pi: Array, constraint: int, radius: float,
    d: Array,
) -> tuple[float, float]:  # fmt: skip
    """The mu and nu that are best for given inclusion probabilities."""
    if constraint == BALL:
        # Phi falls in mu while sum pi w^2 / (d + mu)^2 > r^2: a root of a convex function, from
        # the left. Never 0 with d = 0: then g would not be defined.
        mu = 1e-12
        for _ in range(30):
            square, cube = 0.0, 0.0
            for i in range(members.shape[0] + top.shape[0]):
                j, share = _share(members, top, pi, i)
                share *= (c[j] - u[j]) ** 2 / (d[j] + mu) ** 2
                square += share
                cube += share / (d[j] + mu)
            if square <= radius * radius * (1.0 + 1e-6):
                break
            # Newton on 1/sqrt(square) - 1/radius, which is almost linear in mu.
            mu += (np.sqrt(square) / radius - 1.0) * square / cube
        return mu, 0.0
    if constraint == L1:
        # nu does what it can: sum pi (|w| - nu)_+ / (d + mu) falls to the radius. mu only keeps
        # the gains from being too steep where d is small.
        highest, least = 0.0, np.inf
        for i in range(members.shape[0] + top.shape[0]):
            j, _ = _share(members, top, pi, i)
            highest = max(highest, abs(c[j] - u[j]))
            least = min(least, d[j])
        mu = max(0.02 * highest / radius - least, 1e-12)
        nu = 0.0
        for _ in range(50):
            total, slope = 0.0, 0.0
            for i in range(members.shape[0] + top.shape[0]):
                j, share = _share(members, top, pi, i)
                w = abs(c[j] - u[j]) - nu
                if w > 0.0:
                    total += share * w / (d[j] + mu)
                    slope += share / (d[j] + mu)
            if total <= radius * (1.0 + 1e-9) or slope <= 0.0:
                break
            nu += (total - radius) / slope
        return mu, nu
    return 0.0, 0.0


@numba.njit(cache=True)
def _share(members: Ints, top: Ints, pi: Array, i: int) -> tuple[int, float]:
    """The i-th of the members and the leading features, with its inclusion probability."""
    if i < members.shape[0]:
        return members[i], 1.0
    return top[i - members.shape[0]], pi[i - members.shape[0]]


@numba.njit(cache=True)
def extra(constraint: int, radius: float, mu: float, nu: float) -> float:
    """The part of the bound that no feature carries."""
    if constraint == BOX:
        return 0.0
    return mu * radius * radius + 2.0 * nu * radius


@numba.njit(cache=True)
def _phi(
    c: Array, u: Array, status: NDArray[np.int8], members: Ints, picks: Ints, constraint: int,
    radius: float, d: Array, mu: float, nu: float, eta: float, bqb: float, g: Array, top: Ints,
    pi: Array,
) -> tuple[int, float]:  # fmt: skip
    """Leading features and Phi at a dual point."""
    gains(c, u, status, constraint, radius, d, mu, nu, g)
    found, total = survey(g, status, picks, eta, top, pi)
    total += bqb + extra(constraint, radius, mu, nu)
    for j in members:
        total += g[j]
    return found, total


@numba.njit(cache=True)
def improve(
    columns: Ints, slot: Ints, scale: float, c: Array, status: NDArray[np.int8], members: Ints,
    picks: Ints, constraint: int, radius: float, ridge: float, d: Array, eta: float, rounds: int,
    tolerance: float, size: float, core: NDArray[np.bool_], b: Array, u: Array, state: Array,
) -> int:  # fmt: skip
    """Improve the dual point in place; returns a feature whose column is missing, or -1.

    Q = G + ridge I - diag(d). ``b`` may be empty, if nobody asks for it; ``u`` is Q b; ``state`` is
    [b'Qb, mu, l1 norm of b (rounded up), error of u, error of b'Qb, nu]. The
    errors bound what rounding did to u and b'Qb, for `bounds` to subtract; ``size`` is at least
    every |Q_ij|. b stays within the core, unless that is empty.
    """
    p = c.shape[0]
    width = 3 * (picks[0] + picks[1]) + 16
    top = np.empty(width, dtype=np.int64)
    pi = np.zeros(width)
    chosen = np.empty(width + members.shape[0], dtype=np.int64)
    v = np.empty(width + members.shape[0])
    g = np.empty(p)
    move = np.empty(p)
    trial = np.empty(p)
    if constraint != BOX and state[1] == 0.0:
        # A first guess for mu: the features with the largest |w| are certain.
        for j in range(p):
            g[j] = abs(c[j] - u[j])
        found, _ = survey(g, status, picks, 1e300, top, pi)
        state[1], state[5] = settle_extra(c, u, members, top[:found], pi, constraint, radius, d)
    found, phi = _phi(c, u, status, members, picks, constraint, radius, d, state[1], state[5], eta,
                      state[0], g, top, pi)  # fmt: skip
    step = 0.5
    for _ in range(rounds):
        count = _likely(members, top[:found], pi, core, chosen, v)
        for i in range(count):
            if slot[chosen[i]] < 0:
                return chosen[i]
        if constraint == BOX:
            _box_target(c, u, radius, d, chosen[:count], v)
        else:
            count = _ridge_target(
                columns, slot, scale, c, u, ridge, d, state[1], state[5], chosen[:count], v
            )
        move[:] = 0.0
        for i in range(count):
            row = columns[slot[chosen[i]]]
            factor = v[i] / scale
            for j in range(p):
                move[j] += factor * row[j]
        vqv, vu = 0.0, 0.0
        for i in range(count):
            move[chosen[i]] += (ridge - d[chosen[i]]) * v[i]
        for i in range(count):
            vqv += v[i] * move[chosen[i]]
            vu += v[i] * u[chosen[i]]
        curvature = vqv - 2.0 * vu + state[0]
        if not curvature > 0.0:
            break
        # Backtracking along the segment: at a full step Phi falls by about the curvature.
        step = min(1.0, 2.0 * step)
        better = False
        for _half in range(10):
            for j in range(p):
                trial[j] = u[j] + step * (move[j] - u[j])
            bqb = (1.0 - step) ** 2 * state[0] + step * (2.0 * (1.0 - step) * vu + step * vqv)
            mu, nu = settle_extra(c, trial, members, top[:found], pi, constraint, radius, d)
            found, value = _phi(c, trial, status, members, picks, constraint, radius, d, mu, nu,
                                eta, bqb, g, top, pi)  # fmt: skip
            if value < phi - 0.1 * step * curvature:
                better = True
                break
            step *= 0.5
        if not better:
            break
        gained = phi - value
        phi = value
        put(u, trial)
        if b.shape[0]:
            for j in range(p):
                b[j] *= 1.0 - step
            for i in range(count):
                b[chosen[i]] += step * v[i]
        state[0], state[1], state[5] = bqb, mu, nu
        norm = 0.0
        for i in range(count):
            norm += abs(v[i])
        # Each entry of the move has count + 4 roundings a term, the step a few more.
        error = (count + 16) * 2.0**-53 * size * norm
        state[4] += 2.0 * step * norm * (state[3] + error)
        state[4] += (count + 16) * 2.0**-52 * size * (norm + state[2]) ** 2
        state[3] += step * error + 2.0**-50 * size * (norm + state[2])
        state[2] = (1.0 - step) * state[2] + step * norm * (1.0 + 2.0**-40)
        if gained < tolerance:
            break
    return -1


@numba.njit(cache=True)
def _likely(
    members: Ints, top: Ints, pi: Array, core: NDArray[np.bool_], chosen: Ints, v: Array
) -> int:
    """The members and the likely features, with their inclusion probabilities in ``v``."""
    count = 0
    for j in members:
        chosen[count], v[count] = j, 1.0
        count += 1
    for i in range(top.shape[0]):
        if pi[i] > 0.01 and (not core.shape[0] or core[top[i]]):
            chosen[count], v[count] = top[i], pi[i]
            count += 1
    return count


@numba.njit(cache=True)
def _box_target(c: Array, u: Array, radius: float, d: Array, chosen: Ints, v: Array) -> None:
    """The point pi * v to move towards, for the box; ``v`` holds pi."""
    for i in range(chosen.shape[0]):
        j = chosen[i]
        w = c[j] - u[j]
        v[i] *= np.copysign(radius, w) if abs(w) >= d[j] * radius else w / d[j]


@numba.njit(cache=True)
def _ridge_target(
    columns: Ints, slot: Ints, scale: float, c: Array, u: Array, ridge: float, d: Array, mu: float,
    nu: float, chosen: Ints, v: Array,
) -> int:  # fmt: skip
    """The point b = pi * v(b) for fixed pi, mu and nu, on the chosen features with |w| > nu.

    v_j = sign(w_j) (|w_j| - nu) / (d_j + mu) makes it a ridge regression with fixed signs:
    (Q + diag((d + mu) / pi)) b = c - nu sign(w). ``v`` holds pi and takes b; returns how many of
    ``chosen`` are left.
    """
    m = 0
    for i in range(chosen.shape[0]):
        if abs(c[chosen[i]] - u[chosen[i]]) > nu or nu == 0.0:
            chosen[m], v[m] = chosen[i], v[i]
            m += 1
    low = np.empty((m, m))
    for i in range(m):
        row = columns[slot[chosen[i]]]
        for j in range(i + 1):
            total = row[chosen[j]] / scale
            if i == j:
                weight = d[chosen[i]]
                total = total * (1.0 + 1e-12) + ridge - weight + (weight + mu) / v[i]
            for t in range(j):
                total -= low[i, t] * low[j, t]
            if i == j:
                low[i, i] = np.sqrt(max(total, 1e-12))
            else:
                low[i, j] = total / low[j, j]
    for i in range(m):
        w = c[chosen[i]] - u[chosen[i]]
        total = c[chosen[i]] - (np.copysign(nu, w) if nu > 0.0 else 0.0)
        for t in range(i):
            total -= low[i, t] * v[t]
        v[i] = total / low[i, i]
    for i in range(m - 1, -1, -1):
        total = v[i]
        for t in range(i + 1, m):
            total -= low[t, i] * v[t]
        v[i] = total / low[i, i]
    return m


@numba.njit(cache=True)
def integer_weights(
    g: Array, status: NDArray[np.int8], pool: int, eta: float, high: float, bits: int, out: Ints
) -> int:
    """Integers not below 2**bits * exp(eta (g_j - high)) for the features of a pool, and their sum.

    Every rounding is covered by a push upwards: an envelope may only grow.
    """
    total = 0
    for j in range(g.shape[0]):
        out[j] = 0
        if status[j] == FREE + pool:
            z = eta * (g[j] - high)
            z += 2.0**-40 + 2.0**-50 * eta * (g[j] + high)
            out[j] = np.int64(np.exp(z) * 2.0**bits) + 1
            total += out[j]
    return total


@numba.njit(cache=True)
def likely_supports(g: Array, m: int, need: float, out: Ints) -> int:
    """All m-subsets of positions of the descending g whose sum is at least ``need``.

    Returns their number, or -1 if there are more than ``out`` has rows. Depth first: at every
    position the best completion is a run of following entries, whose sum is at hand.
    """
    n = g.shape[0]
    sums = np.zeros(n + 1)
    for i in range(n):
        sums[i + 1] = sums[i] + g[i]
    at = np.empty(m, dtype=np.int64)
    total = np.zeros(m + 1)
    depth, found = 0, 0
    at[0] = 0
    while depth >= 0:
        i = at[depth]
        left = m - depth
        # Entries i, ..., i + left - 1 are the best way to complete from here.
        if i + left > n or total[depth] + sums[i + left] - sums[i] < need:
            depth -= 1
            if depth >= 0:
                at[depth] += 1
            continue
        if left == 1:
            if found == out.shape[0]:
                return -1
            out[found] = at
            found += 1
            at[depth] += 1
        else:
            total[depth + 1] = total[depth] + g[i]
            depth += 1
            at[depth] = i + 1
    return found
