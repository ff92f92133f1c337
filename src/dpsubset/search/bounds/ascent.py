"""Dual ascent: a point b at which a region's envelope is small, from columns of X'X.

`kernels` defines the function Phi(b). By duality its minimum is that of

    b'Qb - 2c'b + sum over j of (d_j + mu) b_j^2 / pi_j + 2 nu |b|_1   with |b_j| <= cap pi_j

minus the entropy of the picks over eta, where pi are their inclusion probabilities. So b moves
towards the minimum of this function for the current pi, which coordinate descent finds, and pi is
recomputed.

A move uses a working set: the columns with the largest distance from b_j to pi_j v_j, which
together have most of the total distance. What is left out must be small in sum, not only column by
column: many unlikely columns that are highly correlated are together as good as a likely one, and
without them a move would not be a descent.

Any b is valid, so shortcuts cost tightness only. u and b'Qb are updated along with b. Columns of G
= X'X are rows of an int64 matrix, ``columns[slot[j]]`` (all columns, or a cache of some).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...base.kernels.arrays import ROUNDING, Array, Ints, largest, put
from ...base.kernels.compiled import kernel
from ...base.kernels.values import either
from ...constraints.base import Constraint, coefficient
from .kernels import (
    DRIFT,
    IN,
    MU,
    NU,
    OFFSET,
    OFFSET_ERROR,
    OUT,
    U_ERROR,
    KernelRegion,
    Work,
    envelope,
    initial_multipliers,
    update_multipliers,
    workspace,
)

#: The part of the total distance that the working set should have, if its size allows.
WORKING_SET_SHARE = 0.9
#: The part of that which cached columns must have for the others to be left out.
CACHED_SHARE = 0.7
#: Most sweeps of coordinate descent.
SWEEPS = 8
#: Most values of nu that are tried for one point.
_TRIES = 12


@kernel
def working_set(
    slot: Ints, c: Array, u: Array, region: KernelRegion, constraint: Constraint, d: Array,
    mu: float, nu: float, core: NDArray[np.bool_], most: int, b: Array, work: Work,
    distance: Array, chosen: Ints, wanted: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Choose the working set, at most ``most`` columns.

    Returns the number of columns in ``chosen`` and in ``wanted``. Columns are wanted if they are
    not in the cache and the cached ones have too small a part of the distance; all of the working
    set is then wanted, because a small cache would otherwise drop the columns that it has.
    """
    p = c.shape[0]
    length, longest = 0.0, 0.0
    for j in range(p):
        distance[j] = abs(b[j])
        within = not core.shape[0] or core[j] or region.column_status[j] == IN
        if within and work.column_pi[j] > 0.0:
            v = coefficient(constraint, c[j] - u[j], d[j], mu, nu)
            distance[j] = abs(work.column_pi[j] * v - b[j])
        length += distance[j]
        longest = max(longest, distance[j])
    # Halve the threshold until the columns above it have the required part.
    cut, kept = longest, 0.0
    while kept < WORKING_SET_SHARE * length and cut > 1e-12 * longest:
        cut *= 0.5
        kept = 0.0
        for j in range(p):
            if distance[j] >= cut:
                kept += distance[j]
    if most < p:
        cut = max(cut, largest(distance, most))
    # Equal columns have equal distances: admit those at the threshold only while places are left.
    places = most
    for j in range(p):
        places -= distance[j] > cut
    count, many, kept, near = 0, 0, 0.0, 0.0
    for j in range(p):
        if distance[j] == cut:
            places -= 1
        if distance[j] > 0.0 and (distance[j] > cut or (distance[j] == cut and places >= 0)):
            kept += distance[j]
            wanted[many] = j
            many += 1
            if slot[j] >= 0:
                near += distance[j]
                chosen[count] = j
                count += 1
    return count, many if near < CACHED_SHARE * kept else 0


@kernel
def _minimise(
    columns: Ints, slot: Ints, scale: float, c: Array, u: Array, ridge: float, d: Array, mu: float,
    nu: float, cap: float, column_pi: Array, chosen: Ints, b: Array, v: Array,
) -> None:  # fmt: skip
    """Minimise the function at the head of this module over the chosen columns."""
    m = chosen.shape[0]
    q, w = np.empty((m, m)), np.empty(m)
    for i in range(m):
        at = chosen[i]
        row = columns[slot[at]]
        for j in range(m):
            q[i, j] = row[chosen[j]] / scale
        q[i, i] += ridge - d[at]
        v[i], w[i] = b[at], c[at] - u[at]
    coordinate_descent(q, w, d, mu, nu, cap, column_pi, chosen, v)


@kernel
def coordinate_descent(
    q: Array, w: Array, d: Array, mu: float, nu: float, cap: float, column_pi: Array, chosen: Ints,
    v: Array,
) -> None:  # fmt: skip
    """Coordinate descent on v, in place.

    -2w is the gradient of the part of the function that has q; w is updated as well.
    """
    m = chosen.shape[0]
    for _ in range(SWEEPS):
        most, largest = 0.0, 0.0
        for i in range(m):
            at = chosen[i]
            new = 0.0
            if column_pi[at] > 0.0:
                stiff = q[i, i] + (d[at] + mu) / column_pi[at]
                gradient_part = w[i] + q[i, i] * v[i]
                size = max(abs(gradient_part) - nu, 0.0)
                # Without curvature the minimum is at an end of the interval.
                limit = cap * column_pi[at]
                size = min(size / stiff, limit) if stiff > 0.0 else limit
                new = np.copysign(size, gradient_part)
            change = new - v[i]
            if change != 0.0:
                row = q[i]
                for j in range(m):
                    w[j] -= change * row[j]
                v[i] = new
                most = max(most, abs(change))
            largest = max(largest, abs(new))
        if most <= 1e-3 * largest:
            break


@kernel
def _phi_best_nu(
    constraint: Constraint, c: Array, u: Array, region: KernelRegion, d: Array, mu: float,
    nu: float, eta: float, offset: float, work: Work,
) -> tuple[float, float, float]:  # fmt: skip
    """Phi with the best nu for this mu.

    At the best nu the l1 norm of pi v is the radius, where pi depends on nu: Newton steps, then
    bisection.
    """
    low, high = 0.0, 0.0
    for j in range(c.shape[0]):
        if region.column_status[j] != OUT:
            high = max(high, abs(c[j] - u[j]))
    nu = min(nu, high)
    best, at = np.inf, nu
    for i in range(_TRIES):
        value = envelope(c, u, region, constraint, d, mu, nu, eta, offset, work)
        if value < best:
            best, at = value, nu
        total, slope = 0.0, 0.0
        for j in range(c.shape[0]):
            over = abs(c[j] - u[j]) - nu
            if over > 0.0 and work.column_pi[j] > 0.0:
                total += work.column_pi[j] * over / (d[j] + mu)
                slope += work.column_pi[j] / (d[j] + mu)
        if abs(total - constraint.radius) < 0.02 * constraint.radius:
            break
        if total > constraint.radius:
            low = nu
        else:
            high = nu
        if not high - low > 1e-9 * high:
            break
        candidate = nu + (total - constraint.radius) / max(slope, 1e-300)
        nu = candidate if low < candidate < high and i < _TRIES // 2 else 0.5 * (low + high)
    if at != nu:
        best = envelope(c, u, region, constraint, d, mu, at, eta, offset, work)
    return mu, at, best


@kernel
def _phi_best_multipliers(
    constraint: Constraint, c: Array, u: Array, region: KernelRegion, d: Array, mu: float,
    nu: float, eta: float, offset: float, work: Work,
) -> tuple[float, float, float]:  # fmt: skip
    """Phi with the best multipliers for the current inclusion probabilities."""
    mu, nu = update_multipliers(constraint, c, u, d, mu, work)
    value = envelope(c, u, region, constraint, d, mu, nu, eta, offset, work)
    return mu, nu, value


#: (C, c, u, region, d, mu, nu, eta, offset, work) -> multipliers for a dual point, and Phi.
_best_phi = either("is_softened", _phi_best_nu, _phi_best_multipliers)


@kernel
def dual_ascent(
    columns: Ints, slot: Ints, scale: float, c: Array, status: NDArray[np.int8],
    column_status: NDArray[np.int8], members: Ints, picks: Ints, starts: Ints,
    constraint: Constraint, cap: float, ridge: float, d: Array, eta: float, rounds: int,
    tolerance: float, size: float, core: NDArray[np.bool_], most: int, b: Array, u: Array,
    point: Array, wanted: Ints,
) -> tuple[int, float]:  # fmt: skip
    """Improve the dual point in place; returns how many columns are wanted first, and Phi.

    Q = G + ridge I - diag(d) and ``u`` is Q b. The errors in ``point`` are subtracted from the
    bound by `base.BoundOracle`. ``size`` is at least every |Q_ij|; ``cap`` is the largest absolute
    value that the constraint allows a single coefficient. b stays within the core and the members,
    unless the core is empty, and moves in ``most`` columns at a time. If too few of them are in the
    cache, they are listed in ``wanted``.
    """
    p = c.shape[0]
    region = KernelRegion(status, column_status, members, picks, starts)
    work = workspace(region)
    move, trial, chosen = np.empty(p), np.empty(p), np.empty(p, dtype=np.int64)
    v = np.empty(p)
    if point[MU] == 0.0:
        point[MU], point[NU] = initial_multipliers(constraint, c, u, region, d, work)
    phi = envelope(c, u, region, constraint, d, point[MU], point[NU], eta, point[OFFSET], work)
    # Keep the multipliers or recompute them: mu may have been changed by the caller.
    mu, nu, value = _best_phi(constraint, c, u, region, d, point[MU], point[NU], eta,
                              point[OFFSET], work)  # fmt: skip
    if value < phi:
        phi, point[MU], point[NU] = value, mu, nu
    step = 0.5
    for _ in range(rounds):
        count, missing = working_set(slot, c, u, region, constraint, d, point[MU], point[NU], core,
                                     most, b, work, move, chosen, wanted)  # fmt: skip
        if missing:
            return missing, phi
        _minimise(columns, slot, scale, c, u, ridge, d, point[MU], point[NU], cap,
                  work.column_pi, chosen[:count], b, v)  # fmt: skip
        # From here on v is the step.
        length = 0.0
        for i in range(count):
            v[i] -= b[chosen[i]]
            length += abs(v[i])
        move[:] = 0.0
        for i in range(count):
            if v[i] != 0.0:
                row = columns[slot[chosen[i]]]
                weight = v[i] / scale
                for j in range(p):
                    move[j] += weight * row[j]
        curvature, vu = 0.0, 0.0
        for i in range(count):
            move[chosen[i]] += (ridge - d[chosen[i]]) * v[i]
        for i in range(count):
            curvature += v[i] * move[chosen[i]]
            vu += v[i] * u[chosen[i]]
        if not curvature > 0.0:
            break
        # Backtracking: at a full step Phi falls by about the curvature.
        step = min(4.0, 2.0 * step)
        better = False
        value, new_offset, mu, nu = phi, point[OFFSET], point[MU], point[NU]
        for _trial in range(12):
            for j in range(p):
                trial[j] = u[j] + step * move[j]
            new_offset = point[OFFSET] + 2.0 * step * vu + step * step * curvature
            mu, nu, value = _best_phi(constraint, c, trial, region, d, point[MU], nu, eta,
                                      new_offset, work)  # fmt: skip
            if value < phi - 0.1 * min(step, 1.0) * curvature:
                better = True
                break
            step *= 0.5
        if not better:
            break
        gained = phi - value
        phi = value
        put(u, trial)
        norm = 0.0
        for i in range(count):
            b[chosen[i]] += step * v[i]
        for j in range(p):
            norm += abs(b[j])
        point[OFFSET], point[MU], point[NU] = new_offset, mu, nu
        # See proofs/bounds.md, section 2. ``both`` is at least the l1 norms of b and of the step.
        point[DRIFT] += ROUNDING * norm * (1.0 + 2.0**-40)
        both = (norm + 2.0 * step * length) * (1.0 + 2.0**-40) + 2.0 * point[DRIFT]
        point[OFFSET_ERROR] += 2.0 * step * length * (1.0 + 2.0**-40) * point[U_ERROR]
        point[OFFSET_ERROR] += 2.0 * (count + 16) * ROUNDING * size * both * both
        point[U_ERROR] += (count + 16) * ROUNDING * size * both
        if gained < tolerance:
            break
    return 0, phi
