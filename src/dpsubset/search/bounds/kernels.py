"""Float64 kernels that every dual point needs: gains, inclusion probabilities, multipliers.

For every support S of a region (A forced in, m picked from the free features F) and every point b,
with u = Q b, Q = H - D positive semidefinite, w = c - u:

    f(S) >= yy - b'Qb - extra - sum over j in S of g_j,

The constraint says what g_j and extra are. Of the box g_j is the largest 2 w_j v - d_j v^2 with
|v| <= radius, and extra is 0. The balls have multipliers mu and nu, see `constraints.joint`.

A good point makes the *envelope* small, i.e. minimises the convex function

    Phi(b) = b'Qb + extra + (1/eta) log e_m(exp(eta g)) + sum over A of g,

whose gradient is 2Q(b - pi v), pi the inclusion probabilities of the envelope and v_j = g'(w_j)/2.
`ascent` looks for one where H is at hand, `row_kernels` where there are records.

What is picked are choices, each with one column of the model or several; the sum above is over the
columns. A choice's gain is therefore the sum of its columns' gains, and the envelope is one over
choices. Columns that every model has, the intercept's, are like those of members.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...base.kernels.arrays import Array, Ints
from ...base.kernels.compiled import kernel
from ...base.kernels.values import either
from ...constraints.base import Constraint, extra, gain, settle

#: Status of a feature in a region: forced out, forced in, free in the first or the second pool.
OUT, IN, FREE = 0, 1, 2
POOLS = 2


#: Places in the array that keeps what there is to know of a dual point b beside u = Qb: b'Qb, or
#: for losses of records what takes its place; the multipliers of the constraint; what the floats
#: of b have been rounded by, at most; what rounding did to an entry of u, and to b'Qb, at most;
#: whether there is a point at all, since losses of records have none before the first pass, and the
#: width to which it has kinks rounded off.
CARRIED, MU, NU, DRIFT, U_ERROR, CARRIED_ERROR, STARTED, WIDTH = range(8)
PLACES = 8


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
    """Working space: ``top`` are the leading free choices.

    ``pi`` are the inclusion probabilities of all choices, ``share`` those of the columns. ``g`` are
    the gains of all columns and ``whole`` those of choices, ``w`` is c - u.
    """

    top: Ints
    pi: Array
    share: Array
    g: Array
    whole: Array
    w: Array


@kernel
def workspace(region: Picks) -> Work:
    """For a region."""
    width, choices = 3 * (region.picks[0] + region.picks[1]) + 16, region.status.shape[0]
    columns = region.cells.shape[0]
    g, share = np.empty(columns), np.zeros(columns)
    # Where a choice is a column, what is said of it is said of the column: the same memory.
    grouped = region.starts.shape[0] > 0
    whole = np.empty(choices) if grouped else g[:choices]
    pi = np.zeros(choices) if grouped else share[:choices]
    return Work(np.empty(width, dtype=np.int64), pi, share, g, whole, np.empty(columns))


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
def _softplus(z: float) -> float:
    """log(1 + exp(z))."""
    return max(z, 0.0) + np.log1p(np.exp(-abs(z)))


@kernel
def _tilt(z: Array, rest: float, m: int) -> float:
    """theta with sum of 1 / (1 + exp(-theta - z)) + rest exp(theta) near m: Newton, or halving."""
    low, high, theta = -700.0, 700.0, 0.0
    for _ in range(60):
        more = rest * np.exp(theta)
        total, slope = more, more
        for i in range(z.shape[0]):
            q = 1.0 / (1.0 + np.exp(-theta - z[i]))
            total += q
            slope += q * (1.0 - q)
        if abs(total - m) < 0.1:
            break
        if total > m:
            high = theta
        else:
            low = theta
        guess = theta + (m - total) / max(slope, 1e-300)
        theta = guess if low < guess < high else 0.5 * (low + high)
    return theta


@kernel
def inclusion(
    g: Array, status: NDArray[np.int8], pool: int, eta: float, m: int, top: Ints, pi: Array
) -> float:
    """(1/eta) log of the sum over m picks from a pool, and all their inclusion probabilities.

    Choices in ``top`` enter exactly, the others as if they could be picked repeatedly. With weights
    x_j = exp(eta g_j) and any factor, q = factor x / (1 + factor x) are the chances of independent
    picks, a Poisson number of them for the others, and e_m of the weights is in proportion to the
    chance that there are m: a factor that makes m their mean keeps all numbers near 1.
    """
    found = top.shape[0]
    middle = g[top[m - 1]]
    rest = 0.0
    for j in range(g.shape[0]):
        if status[j] == FREE + pool:
            pi[j] = np.exp(min(eta * (g[j] - middle), 0.0))
            rest += pi[j]
    z, q = np.empty(found), np.empty(found)
    for i in range(found):
        rest -= pi[top[i]]
        z[i] = eta * (g[top[i]] - middle)
    rest = max(rest, 0.0)
    theta = _tilt(z, rest, m)
    rest *= np.exp(theta)
    for i in range(found):
        q[i] = 1.0 / (1.0 + np.exp(-theta - z[i]))
    # table[i, t]: chance of t picks among the first i of top; tail[t]: among what follows.
    table = np.zeros((found + 1, m + 1))
    table[0, 0] = 1.0
    for i in range(found):
        for t in range(m + 1):
            table[i + 1, t] = table[i, t] * (1.0 - q[i])
            if t:
                table[i + 1, t] += q[i] * table[i, t - 1]
    tail = np.empty(m + 1)
    tail[0] = np.exp(-rest)
    for t in range(1, m + 1):
        tail[t] = tail[t - 1] * rest / t
    total, share = 0.0, 0.0
    for t in range(m + 1):
        total += table[found, t] * tail[m - t]
        if t < m:
            share += table[found, t] * tail[m - 1 - t]
    if not total > 0.0:
        # Beyond float64: the m largest are as good as certain.
        value = 0.0
        for j in range(g.shape[0]):
            if status[j] == FREE + pool:
                pi[j] = 0.0
        for i in range(m):
            pi[top[i]] = 1.0
            value += g[top[i]]
        return value
    share *= np.exp(theta) / total
    for j in range(g.shape[0]):
        if status[j] == FREE + pool:
            pi[j] *= share
    value = np.log(total) - m * theta + rest
    for i in range(found - 1, -1, -1):
        part = 0.0
        for t in range(m):
            part += table[i, t] * tail[m - 1 - t]
        pi[top[i]] = q[i] * part / total
        for t in range(m, 0, -1):
            tail[t] = tail[t] * (1.0 - q[i]) + q[i] * tail[t - 1]
        tail[0] *= 1.0 - q[i]
        value += _softplus(theta + z[i])
    return m * middle + value / eta


@kernel
def spread(region: Picks, work: Work) -> None:
    """Inclusion probabilities of columns from those of choices."""
    for choice in range(region.starts.shape[0] - 1):
        for j in range(region.starts[choice], region.starts[choice + 1]):
            work.share[j] = work.pi[choice]
    for j in region.members:
        work.share[j] = 1.0


@kernel
def survey(region: Picks, eta: float, work: Work) -> tuple[int, float]:
    """How many choices lead, the sum of the pools' log envelopes; probabilities into ``work``."""
    gather(region.starts, work.g, work.whole)
    found, total = 0, 0.0
    for pool in range(POOLS):
        m = region.picks[pool]
        if m == 0:
            continue
        count = largest(work.whole, region.status, pool, 3 * m + 8, work.top[found:])
        total += inclusion(
            work.whole, region.status, pool, eta, m, work.top[found : found + count], work.pi
        )
        found += count
    spread(region, work)
    return found, total


@kernel
def chances(
    status: NDArray[np.int8], cells: NDArray[np.int8], members: Ints, picks: Ints, starts: Ints,
    g: Array, eta: float,
) -> Array:  # fmt: skip
    """The inclusion probabilities of choices with these gains."""
    work = workspace(Picks(status, cells, members, picks, starts))
    found = 0
    for pool in range(POOLS):
        m = picks[pool]
        if m:
            count = largest(g, status, pool, 3 * m + 8, work.top[found:])
            inclusion(g, status, pool, eta, m, work.top[found : found + count], work.pi)
            found += count
    return work.pi


@kernel
def _settled(
    constraint: Constraint, c: Array, u: Array, d: Array, mu: float, work: Work
) -> tuple[float, float]:
    for j in range(c.shape[0]):
        work.w[j] = c[j] - u[j]
    return settle(constraint, work.w, work.share, d, mu)


@kernel
def _none_settled(
    constraint: Constraint, c: Array, u: Array, d: Array, mu: float, work: Work
) -> tuple[float, float]:
    return 0.0, 0.0


@kernel
def _first(
    constraint: Constraint, c: Array, u: Array, region: Picks, d: Array, work: Work
) -> tuple[float, float]:
    for j in range(c.shape[0]):
        work.g[j] = 0.0 if region.cells[j] == OUT else abs(c[j] - u[j])
    gather(region.starts, work.g, work.whole)
    for pool in range(POOLS):
        m = region.picks[pool]
        if m:
            largest(work.whole, region.status, pool, m, work.top)
            for i in range(m):
                work.pi[work.top[i]] = 1.0
    spread(region, work)
    return _settled(constraint, c, u, d, 0.0, work)


@kernel
def _no_multipliers(
    constraint: Constraint, c: Array, u: Array, region: Picks, d: Array, work: Work
) -> tuple[float, float]:
    return 0.0, 0.0


#: (C, c, u, d, mu, work) -> the mu and nu that are best for the inclusion probabilities; or the
#: best nu for this mu, if it is not 0 and the constraint has both.
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
