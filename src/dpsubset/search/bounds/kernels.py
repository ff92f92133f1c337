"""Float64 kernels of the search: dual points for modular lower bounds.

For every support S of a region (A forced in, m picked from the free features F) and every point b,
with u = Q b, Q = H - D positive semidefinite, w = c - u:

    f(S) >= yy - b'Qb - extra - sum over j in S of g_j,

The constraint says what g_j and extra are. Of the box g_j is the largest 2 w_j v - d_j v^2 with
|v| <= radius, and extra is 0. The balls have multipliers mu and nu, see `constraints.joint`.

A kernel looks for a b that makes the *envelope* small, i.e. minimises the convex function

    Phi(b) = b'Qb + extra + (1/eta) log e_m(exp(eta g)) + sum over A of g,

whose gradient is 2Q(b - pi v), pi the inclusion probabilities of the envelope and v_j = g'(w_j)/2.
b moves towards pi v, where only the features with the largest pi take part: any b is valid, so a
shortcut costs tightness and nothing else. u and b'Qb are updated along with b.

Columns of G = X'X are rows of an int64 matrix, ``columns[slot[j]]`` (the whole matrix, or a cache).

What is picked are choices, each with one column of the model or several; the sum above is over the
columns. A choice's gain is therefore the sum of its columns' gains, and the envelope is one over
choices. Columns that every model has, the intercept's, are like those of members.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...constraints.base import Constraint, coefficient, extra, gain, settle
from ...kernels.arrays import ROUNDING, Array, Ints, put
from ...kernels.compiled import kernel
from ...kernels.triangles import factor, solve
from ...kernels.values import either

#: Status of a feature in a region: forced out, forced in, free in the first or the second pool.
OUT, IN, FREE = 0, 1, 2
POOLS = 2


#: Places in the array that keeps what there is to know of a dual point b beside u = Qb: b'Qb, or
#: for losses of records what takes its place; the multipliers of the constraint; the l1 norm of b,
#: rounded up; what rounding did to an entry of u, and to b'Qb, at most; and whether there is a
#: point at all, since losses of records have none before the first pass.
CARRIED, MU, NU, LENGTH, U_ERROR, CARRIED_ERROR, STARTED = range(7)
PLACES = 7


class Picks(NamedTuple):
    """A region as kernels see it.

    ``status`` is of the choices, ``cells`` of the model's columns; ``members`` are the columns that
    are forced in; choice j has the columns from starts[j] to starts[j + 1], or column j alone if
    ``starts`` is empty.
    """

    status: NDArray[np.int8]
    cells: NDArray[np.int8]
    members: Ints
    picks: Ints
    starts: Ints

    def __repr__(self) -> str:
        return "Picks(private values hidden)"


class Work(NamedTuple):
    """Working space of an ascent: the leading choices, and what it computes of them.

    ``top`` and ``pi`` are the leading free choices and their inclusion probabilities, ``chosen``
    and ``v`` the columns that b moves towards with their weights, ``w``, ``share`` and ``d`` what
    `constraints.base.settle` takes, ``g`` the gains of all columns and ``whole`` those of choices.
    """

    top: Ints
    pi: Array
    chosen: Ints
    v: Array
    w: Array
    share: Array
    d: Array
    g: Array
    whole: Array


@kernel
def workspace(region: Picks) -> Work:
    """For a region."""
    width, choices = 3 * (region.picks[0] + region.picks[1]) + 16, region.status.shape[0]
    widest = 1
    for j in range(region.starts.shape[0] - 1):
        widest = max(widest, region.starts[j + 1] - region.starts[j])
    most = width * widest + region.members.shape[0]
    g = np.empty(region.cells.shape[0])
    # Where a choice is a column, its gain is the column's: the same memory.
    whole = np.empty(choices) if region.starts.shape[0] else g[:choices]
    return Work(
        np.empty(width, dtype=np.int64), np.zeros(width), np.empty(most, dtype=np.int64),
        np.empty(most), np.empty(most), np.empty(most), np.empty(most), g, whole,
    )  # fmt: skip


@kernel
def span(starts: Ints, choice: int) -> tuple[int, int]:
    """The columns of a choice: from, to."""
    if starts.shape[0]:
        return starts[choice], starts[choice + 1]
    return choice, choice + 1


@kernel
def gather(starts: Ints, g: Array, whole: Array) -> None:
    """The gains of choices from those of columns, where they are not the same."""
    for choice in range(starts.shape[0] - 1):
        total = 0.0
        for j in range(starts[choice], starts[choice + 1]):
            total += g[j]
        whole[choice] = total


@kernel
def gains(
    c: Array, u: Array, cells: NDArray[np.int8], constraint: Constraint, d: Array, mu: float,
    nu: float, g: Array,
) -> None:  # fmt: skip
    """g_j of every column that is not out."""
    for j in range(c.shape[0]):
        g[j] = 0.0 if cells[j] == OUT else gain(constraint, c[j] - u[j], d[j], mu, nu)


@kernel
def largest(g: Array, status: NDArray[np.int8], pool: int, count: int, top: Ints) -> int:
    """The free choices of a pool with the largest g, best first, ties to the lower index."""
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


@kernel
def log_symmetric(
    g: Array, status: NDArray[np.int8], pool: int, eta: float, m: int, top: Ints, pi: Array
) -> float:
    """(1/eta) log of the sum over m picks from a pool, and inclusion probabilities of ``top``.

    The choices in ``top`` enter exactly, the others as if they could be picked repeatedly.
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


@kernel
def survey(region: Picks, eta: float, work: Work) -> tuple[int, float]:
    """Leading choices of both pools with their inclusion probabilities; sum of log envelopes."""
    gather(region.starts, work.g, work.whole)
    g, status, top, pi = work.whole, region.status, work.top, work.pi
    found, total = 0, 0.0
    for pool in range(POOLS):
        m = region.picks[pool]
        if m == 0:
            continue
        count = largest(g, status, pool, 3 * m + 8, top[found:])
        part = slice(found, found + count)
        total += log_symmetric(g, status, pool, eta, m, top[part], pi[part])
        found += count
    return found, total


@kernel
def _settled(
    constraint: Constraint, c: Array, u: Array, region: Picks, found: int, d: Array, work: Work
) -> tuple[float, float]:
    size = 0
    for j in region.members:
        work.share[size], work.w[size], work.d[size] = 1.0, c[j] - u[j], d[j]
        size += 1
    for i in range(found):
        first, last = span(region.starts, work.top[i])
        for j in range(first, last):
            work.share[size], work.w[size], work.d[size] = work.pi[i], c[j] - u[j], d[j]
            size += 1
    return settle(constraint, work.w[:size], work.share[:size], work.d[:size])


@kernel
def _first(
    constraint: Constraint, c: Array, u: Array, region: Picks, d: Array, work: Work
) -> tuple[float, float]:
    g = work.g
    for j in range(c.shape[0]):
        g[j] = abs(c[j] - u[j])
    found, _ = survey(region, 1e300, work)
    return _settled(constraint, c, u, region, found, d, work)


@kernel
def _no_multipliers(
    constraint: Constraint, c: Array, u: Array, region: Picks, d: Array, work: Work
) -> tuple[float, float]:
    return 0.0, 0.0


@kernel
def _none_settled(
    constraint: Constraint, c: Array, u: Array, region: Picks, found: int, d: Array, work: Work
) -> tuple[float, float]:
    return 0.0, 0.0


#: (C, c, u, region, found, d, work) -> the mu and nu that are best for the inclusion probabilities
#: of the leading features.
settled = either("is_joint", _settled, _none_settled)
#: (C, c, u, region, d, work) -> a first guess: the features with the largest |w| are certain.
first_multipliers = either("is_joint", _first, _no_multipliers)


@kernel
def envelope(
    c: Array, u: Array, region: Picks, constraint: Constraint, d: Array, mu: float, nu: float,
    eta: float, carried: float, work: Work,
) -> tuple[int, float]:  # fmt: skip
    """How many choices lead, and Phi at a dual point."""
    g = work.g
    gains(c, u, region.cells, constraint, d, mu, nu, g)
    found, total = survey(region, eta, work)
    total += carried + extra(constraint, mu, nu)
    for j in region.members:
        total += g[j]
    return found, total


@kernel
def likely(region: Picks, found: int, core: NDArray[np.bool_], work: Work) -> int:
    """Columns of members and of likely choices into ``chosen``, inclusion probabilities in ``v``.

    Returned: how many.
    """
    chosen, v, pi = work.chosen, work.v, work.pi
    count = 0
    for j in region.members:
        chosen[count], v[count] = j, 1.0
        count += 1
    for i in range(found):
        if pi[i] > 0.01:
            first, last = span(region.starts, work.top[i])
            for j in range(first, last):
                if not core.shape[0] or core[j]:
                    chosen[count], v[count] = j, pi[i]
                    count += 1
    return count


@kernel
def _together(
    constraint: Constraint, columns: Ints, slot: Ints, scale: float, c: Array, u: Array,
    ridge: float, d: Array, mu: float, nu: float, chosen: Ints, v: Array,
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
    up = np.empty((m, m))
    for i in range(m):
        row = columns[slot[chosen[i]]]
        weight = d[chosen[i]]
        for j in range(i, m):
            up[i, j] = row[chosen[j]] / scale
        up[i, i] = up[i, i] * (1.0 + 1e-12) + ridge - weight + (weight + mu) / v[i]
    for i in range(m):
        w = c[chosen[i]] - u[chosen[i]]
        v[i] = c[chosen[i]] - (np.copysign(nu, w) if nu > 0.0 else 0.0)
    factor(up, 1e-12)
    solve(up, v[:m])
    return m


@kernel
def _one_by_one(
    constraint: Constraint, columns: Ints, slot: Ints, scale: float, c: Array, u: Array,
    ridge: float, d: Array, mu: float, nu: float, chosen: Ints, v: Array,
) -> int:  # fmt: skip
    """The point pi * v, each v at its own gain."""
    for i in range(chosen.shape[0]):
        j = chosen[i]
        v[i] *= coefficient(constraint, c[j] - u[j], d[j], mu, nu)
    return chosen.shape[0]


#: Where b moves: ``v`` holds the inclusion probabilities of the chosen features and takes their
#: coefficients; returns how many of them are left.
_toward = either("is_joint", _together, _one_by_one)


@kernel
def improve(
    columns: Ints, slot: Ints, scale: float, c: Array, status: NDArray[np.int8],
    cells: NDArray[np.int8], members: Ints, picks: Ints, starts: Ints, constraint: Constraint,
    ridge: float, d: Array, eta: float, rounds: int, tolerance: float, size: float,
    core: NDArray[np.bool_], b: Array, u: Array, point: Array,
) -> int:  # fmt: skip
    """Improve the dual point in place; returns a column that is not at hand, or -1.

    Q = G + ridge I - diag(d). ``b`` may be empty, if nobody asks for it; ``u`` is Q b. The errors
    in ``point`` are for `base.Bounder` to subtract; ``size`` is at least every |Q_ij|. b stays
    within the core, unless that is empty.
    """
    p = c.shape[0]
    region = Picks(status, cells, members, picks, starts)
    work = workspace(region)
    move, trial = np.empty(p), np.empty(p)
    if point[MU] == 0.0:
        point[MU], point[NU] = first_multipliers(constraint, c, u, region, d, work)
    found, phi = envelope(
        c, u, region, constraint, d, point[MU], point[NU], eta, point[CARRIED], work
    )
    step = 0.5
    for _ in range(rounds):
        count = likely(region, found, core, work)
        for i in range(count):
            if slot[work.chosen[i]] < 0:
                return work.chosen[i]
        count = _toward(constraint, columns, slot, scale, c, u, ridge, d, point[MU], point[NU],
                        work.chosen[:count], work.v)  # fmt: skip
        chosen, v = work.chosen[:count], work.v[:count]
        move[:] = 0.0
        for i in range(count):
            row = columns[slot[chosen[i]]]
            weight = v[i] / scale
            for j in range(p):
                move[j] += weight * row[j]
        vqv, vu = 0.0, 0.0
        for i in range(count):
            move[chosen[i]] += (ridge - d[chosen[i]]) * v[i]
        for i in range(count):
            vqv += v[i] * move[chosen[i]]
            vu += v[i] * u[chosen[i]]
        curvature = vqv - 2.0 * vu + point[CARRIED]
        if not curvature > 0.0:
            break
        # Backtracking along the segment: at a full step Phi falls by about the curvature.
        step = min(1.0, 2.0 * step)
        better = False
        for _half in range(10):
            for j in range(p):
                trial[j] = u[j] + step * (move[j] - u[j])
            bqb = (1.0 - step) ** 2 * point[CARRIED]
            bqb += step * (2.0 * (1.0 - step) * vu + step * vqv)
            mu, nu = settled(constraint, c, trial, region, found, d, work)
            found, value = envelope(c, trial, region, constraint, d, mu, nu, eta, bqb, work)
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
        point[CARRIED], point[MU], point[NU] = bqb, mu, nu
        norm = 0.0
        for i in range(count):
            norm += abs(v[i])
        # Each entry of the move has count + 4 roundings a term, the step a few more.
        error = (count + 16) * ROUNDING * size * norm
        point[CARRIED_ERROR] += 2.0 * step * norm * (point[U_ERROR] + error)
        point[CARRIED_ERROR] += (count + 16) * 2.0 * ROUNDING * size * (norm + point[LENGTH]) ** 2
        point[U_ERROR] += step * error + 2.0**-50 * size * (norm + point[LENGTH])
        point[LENGTH] = (1.0 - step) * point[LENGTH] + step * norm * (1.0 + 2.0**-40)
        if gained < tolerance:
            break
    return -1
