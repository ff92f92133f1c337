"""Float64 kernels that every dual point needs: gains, inclusion probabilities, multipliers.

For every support S of a region (A forced in, m picked from the free features F) and every point b,
with u = Q b, Q = H - D positive semidefinite, w = c - u:

    f(S) >= yy - b'Qb - extra - sum over j in S of g_j.

The constraint defines g_j and extra. For the box g_j is the maximum of 2 w_j v - d_j v^2 over |v|
<= radius, and extra is 0. The balls have multipliers mu and nu, see `constraints.joint`.

A good point makes the *envelope* of the region small: it minimises the convex function

    Phi(b) = b'Qb + extra + (1/eta) log e_m(exp(eta g)) + sum over A of g,

whose gradient is 2Q(b - pi v), with pi the inclusion probabilities of the envelope and v_j =
g'(w_j)/2. `ascent` minimises it where H is available, `row_kernels` where there are records.

Supports consist of choices, each with one or more columns of the model; the sum above is over
columns. The gain of a choice is the sum of the gains of its columns, and the envelope is one over
choices. Columns that every model has (the intercept's) are treated like those forced in.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...base.kernels.arrays import Array, Ints
from ...base.kernels.compiled import kernel
from ...base.kernels.values import either
from ...constraints.base import Constraint, best_multipliers, extra, gain

#: Status of a feature in a region: forced out, forced in, free in the first or the second pool.
OUT, IN, FREE = 0, 1, 2
POOLS = 2


#: Places in the array of scalars of a dual point b. OFFSET: b'Qb, or what replaces it for losses of
#: records. MU, NU: the multipliers of the constraint. DRIFT: a bound on the rounding of the entries
#: of b. U_ERROR, OFFSET_ERROR: bounds on the rounding errors of an entry of u and of the offset.
#: STARTED: whether there is a point (losses of records have none before the first pass). WIDTH: the
#: width to which its kinks are smoothed.
OFFSET, MU, NU, DRIFT, U_ERROR, OFFSET_ERROR, STARTED, WIDTH = range(8)
PLACES = 8


class KernelRegion(NamedTuple):
    """A region in the form that kernels take.

    ``status`` is that of the choices, ``column_status`` that of the model's columns; ``members``
    are the columns forced in. Choice j has the columns from starts[j] to starts[j + 1], or column j
    alone if ``starts`` is empty.
    """

    status: NDArray[np.int8]
    column_status: NDArray[np.int8]
    members: Ints
    picks: Ints
    starts: Ints

    def __repr__(self) -> str:
        return "KernelRegion(private values hidden)"


class Work(NamedTuple):
    """Working space of the kernels of one region.

    ``top`` holds the leading free choices; ``pi`` and ``column_pi`` the inclusion probabilities of
    choices and of columns; ``choice_g`` and ``g`` their gains; ``w`` is c - u.
    """

    top: Ints
    pi: Array
    column_pi: Array
    g: Array
    choice_g: Array
    w: Array


@kernel
def workspace(region: KernelRegion) -> Work:
    """Allocate the working space for a region."""
    width, choices = 3 * (region.picks[0] + region.picks[1]) + 16, region.status.shape[0]
    columns = region.column_status.shape[0]
    g, column_pi = np.empty(columns), np.zeros(columns)
    # If choices are single columns, both share the same memory.
    grouped = region.starts.shape[0] > 0
    choice_g = np.empty(choices) if grouped else g[:choices]
    pi = np.zeros(choices) if grouped else column_pi[:choices]
    return Work(np.empty(width, dtype=np.int64), pi, column_pi, g, choice_g, np.empty(columns))


@kernel
def sum_columns(starts: Ints, g: Array, choice_g: Array) -> None:
    """Gains of choices as sums of the gains of their columns, if choices have several."""
    for choice in range(starts.shape[0] - 1):
        total = 0.0
        for j in range(starts[choice], starts[choice + 1]):
            total += g[j]
        choice_g[choice] = total


@kernel
def gains(
    c: Array, u: Array, column_status: NDArray[np.int8], constraint: Constraint, d: Array,
    mu: float, nu: float, g: Array,
) -> None:  # fmt: skip
    """g_j of every column that is not forced out."""
    for j in range(c.shape[0]):
        g[j] = 0.0 if column_status[j] == OUT else gain(constraint, c[j] - u[j], d[j], mu, nu)


@kernel
def top_choices(g: Array, status: NDArray[np.int8], pool: int, count: int, top: Ints) -> int:
    """The free choices of a pool with the largest g, in order; ties go to the lower index."""
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
    """The theta at which the sum of 1 / (1 + exp(-theta - z)) + rest exp(theta) is near m.

    Newton steps, safeguarded by bisection.
    """
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
        candidate = theta + (m - total) / max(slope, 1e-300)
        theta = candidate if low < candidate < high else 0.5 * (low + high)
    return theta


@kernel
def inclusion(
    g: Array, status: NDArray[np.int8], pool: int, eta: float, m: int, top: Ints, pi: Array
) -> float:
    """(1/eta) log of the sum over m picks from a pool, and all inclusion probabilities.

    Choices in ``top`` are treated exactly, the others as if they could be picked repeatedly. With
    weights x_j = exp(eta g_j) and any factor, q = factor x / (1 + factor x) are the probabilities
    of independent picks (a Poisson number of them for the others), and e_m of the weights is
    proportional to the probability that there are m. The factor for which m is their mean keeps all
    numbers near 1.
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
    # table[i, t]: probability of t picks among the first i of top; tail[t]: among the others.
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
    total, column_pi = 0.0, 0.0
    for t in range(m + 1):
        total += table[found, t] * tail[m - t]
        if t < m:
            column_pi += table[found, t] * tail[m - 1 - t]
    if not total > 0.0:
        # Beyond the range of float64: the m largest are certain.
        value = 0.0
        for j in range(g.shape[0]):
            if status[j] == FREE + pool:
                pi[j] = 0.0
        for i in range(m):
            pi[top[i]] = 1.0
            value += g[top[i]]
        return value
    column_pi *= np.exp(theta) / total
    for j in range(g.shape[0]):
        if status[j] == FREE + pool:
            pi[j] *= column_pi
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
def expand_probabilities(region: KernelRegion, work: Work) -> None:
    """Inclusion probabilities of columns from those of choices."""
    for choice in range(region.starts.shape[0] - 1):
        for j in range(region.starts[choice], region.starts[choice + 1]):
            work.column_pi[j] = work.pi[choice]
    for j in region.members:
        work.column_pi[j] = 1.0


@kernel
def _log_envelope(region: KernelRegion, g: Array, eta: float, work: Work) -> float:
    """Sum of the pools' log envelopes for these gains of choices; writes ``work.pi``."""
    found, total = 0, 0.0
    for pool in range(POOLS):
        m = region.picks[pool]
        if m == 0:
            continue
        count = top_choices(g, region.status, pool, 3 * m + 8, work.top[found:])
        top = work.top[found : found + count]
        total += inclusion(g, region.status, pool, eta, m, top, work.pi)
        found += count
    return total


@kernel
def inclusion_probabilities(
    status: NDArray[np.int8], column_status: NDArray[np.int8], members: Ints, picks: Ints,
    starts: Ints, g: Array, eta: float,
) -> Array:  # fmt: skip
    """The inclusion probabilities of choices with these gains."""
    region = KernelRegion(status, column_status, members, picks, starts)
    work = workspace(region)
    _log_envelope(region, g, eta, work)
    return work.pi


@kernel
def _joint_multipliers(
    constraint: Constraint, c: Array, u: Array, d: Array, mu: float, work: Work
) -> tuple[float, float]:
    for j in range(c.shape[0]):
        work.w[j] = c[j] - u[j]
    return best_multipliers(constraint, work.w, work.column_pi, d, mu)


@kernel
def _zero_multipliers(
    constraint: Constraint, c: Array, u: Array, d: Array, mu: float, work: Work
) -> tuple[float, float]:
    return 0.0, 0.0


@kernel
def _initial_joint_multipliers(
    constraint: Constraint, c: Array, u: Array, region: KernelRegion, d: Array, work: Work
) -> tuple[float, float]:
    for j in range(c.shape[0]):
        work.g[j] = 0.0 if region.column_status[j] == OUT else abs(c[j] - u[j])
    sum_columns(region.starts, work.g, work.choice_g)
    for pool in range(POOLS):
        m = region.picks[pool]
        if m:
            top_choices(work.choice_g, region.status, pool, m, work.top)
            for i in range(m):
                work.pi[work.top[i]] = 1.0
    expand_probabilities(region, work)
    return _joint_multipliers(constraint, c, u, d, 0.0, work)


@kernel
def _initial_zero_multipliers(
    constraint: Constraint, c: Array, u: Array, region: KernelRegion, d: Array, work: Work
) -> tuple[float, float]:
    return 0.0, 0.0


#: (C, c, u, d, mu, work) -> the mu and nu that are best for the inclusion probabilities; the best
#: nu for this mu if mu is not 0 and the constraint has both.
update_multipliers = either("is_joint", _joint_multipliers, _zero_multipliers)
#: (C, c, u, region, d, work) -> initial multipliers, for which the features with the largest |w|
#: are certain.
initial_multipliers = either("is_joint", _initial_joint_multipliers, _initial_zero_multipliers)


@kernel
def envelope(
    c: Array, u: Array, region: KernelRegion, constraint: Constraint, d: Array, mu: float,
    nu: float, eta: float, offset: float, work: Work,
) -> float:  # fmt: skip
    """Phi at a dual point; writes gains and inclusion probabilities into ``work``."""
    gains(c, u, region.column_status, constraint, d, mu, nu, work.g)
    sum_columns(region.starts, work.g, work.choice_g)
    total = _log_envelope(region, work.choice_g, eta, work)
    expand_probabilities(region, work)
    total += offset + extra(constraint, mu, nu)
    for j in region.members:
        total += work.g[j]
    return total
