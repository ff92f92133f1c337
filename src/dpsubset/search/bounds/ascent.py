"""The dual ascent: a point b that makes a region's envelope small, from columns of X'X.

`kernels` has the function Phi(b). By duality its least value belongs to the

    least  b'Qb - 2c'b + sum over j of (d_j + mu) b_j^2 / pi_j + 2 nu |b|_1   with |b_j| <= cap pi_j

less the entropy of the picks over eta, where pi are their inclusion probabilities. So b moves
towards the minimum of this for the pi that it has, which coordinate descent finds, and pi follows.

Only the columns take part whose own way from b to pi v is long: together they have most of it.
What is left out must be little, not only unlikely. Where columns are alike, many unlikely ones
together are as good as a likely one, and a move without them is no descent.

Any b is valid, so shortcuts cost tightness and nothing else. u and b'Qb are updated along with b.
Columns of G = X'X are rows of an int64 matrix, ``columns[slot[j]]`` (the whole matrix, or a cache).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...base.kernels.arrays import ROUNDING, Array, Ints, put
from ...base.kernels.compiled import kernel
from ...base.kernels.values import either
from ...constraints.base import Constraint, coefficient
from .kernels import (
    CARRIED,
    CARRIED_ERROR,
    DRIFT,
    IN,
    MU,
    NU,
    OUT,
    U_ERROR,
    Picks,
    Work,
    envelope,
    first_multipliers,
    settled,
    workspace,
)

#: The share of the way that the columns of a move have, at least, unless they are too many.
KEPT = 0.9
#: The share of that which columns at hand must have, for the others to be left where they are.
AT_HAND = 0.7
#: Sweeps of coordinate descent, at most.
SWEEPS = 8
#: Values of nu that are tried for one point, at most.
_TRIES = 12


@kernel
def movers(
    slot: Ints, c: Array, u: Array, region: Picks, constraint: Constraint, d: Array, mu: float,
    nu: float, core: NDArray[np.bool_], most: int, b: Array, work: Work, away: Array, chosen: Ints,
    wanted: Ints,
) -> tuple[int, int]:  # fmt: skip
    """The columns that have most of the way from b to pi v, at most so many.

    Returned: how many are chosen, and how many are wanted first: all of them, while those at hand
    are not enough. Where there is room for few, what is at hand would else be dropped for the rest.
    """
    p = c.shape[0]
    length, longest = 0.0, 0.0
    for j in range(p):
        away[j] = abs(b[j])
        within = not core.shape[0] or core[j] or region.cells[j] == IN
        if within and work.share[j] > 0.0:
            v = coefficient(constraint, c[j] - u[j], d[j], mu, nu)
            away[j] = abs(work.share[j] * v - b[j])
        length += away[j]
        longest = max(longest, away[j])
    # A threshold that keeps the share wanted: halved until it does.
    cut, kept = longest, 0.0
    while kept < KEPT * length and cut > 1e-12 * longest:
        cut *= 0.5
        kept = 0.0
        for j in range(p):
            if away[j] >= cut:
                kept += away[j]
    if most < p:
        cut = max(cut, -np.partition(-away, most)[most])
    # Columns that are the same are all as far: of those at the threshold as many as there is room.
    room = most
    for j in range(p):
        room -= away[j] > cut
    count, many, kept, near = 0, 0, 0.0, 0.0
    for j in range(p):
        if away[j] == cut:
            room -= 1
        if away[j] > 0.0 and (away[j] > cut or (away[j] == cut and room >= 0)):
            kept += away[j]
            wanted[many] = j
            many += 1
            if slot[j] >= 0:
                near += away[j]
                chosen[count] = j
                count += 1
    return count, many if near < AT_HAND * kept else 0


@kernel
def _target(
    columns: Ints, slot: Ints, scale: float, c: Array, u: Array, ridge: float, d: Array, mu: float,
    nu: float, cap: float, share: Array, chosen: Ints, b: Array, v: Array,
) -> None:  # fmt: skip
    """The minimum at the head of this module over the chosen columns, the others as they are."""
    m = chosen.shape[0]
    q, w = np.empty((m, m)), np.empty(m)
    for i in range(m):
        at = chosen[i]
        row = columns[slot[at]]
        for j in range(m):
            q[i, j] = row[chosen[j]] / scale
        q[i, i] += ridge - d[at]
        v[i], w[i] = b[at], c[at] - u[at]
    coordinates(q, w, d, mu, nu, cap, share, chosen, v)


@kernel
def coordinates(
    q: Array, w: Array, d: Array, mu: float, nu: float, cap: float, share: Array, chosen: Ints,
    v: Array,
) -> None:  # fmt: skip
    """Coordinate descent from v, in place, where -2w is the gradient of what has q: both change."""
    m = chosen.shape[0]
    for _ in range(SWEEPS):
        most, largest = 0.0, 0.0
        for i in range(m):
            at = chosen[i]
            new = 0.0
            if share[at] > 0.0:
                stiff = q[i, i] + (d[at] + mu) / share[at]
                pull = w[i] + q[i, i] * v[i]
                size = max(abs(pull) - nu, 0.0)
                # Without any stiffness the end of the box is best.
                size = min(size / stiff, cap * share[at]) if stiff > 0.0 else cap * share[at]
                new = np.copysign(size, pull)
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
def _softened_phi(
    constraint: Constraint, c: Array, u: Array, region: Picks, d: Array, mu: float, nu: float,
    eta: float, carried: float, work: Work,
) -> tuple[float, float, float]:  # fmt: skip
    """The best nu for this mu: where pi, which follows it, makes the l1 norm of pi v the radius."""
    low, high = 0.0, 0.0
    for j in range(c.shape[0]):
        if region.cells[j] != OUT:
            high = max(high, abs(c[j] - u[j]))
    nu = min(nu, high)
    best, at = np.inf, nu
    for i in range(_TRIES):
        _, value = envelope(c, u, region, constraint, d, mu, nu, eta, carried, work)
        if value < best:
            best, at = value, nu
        total, slope = 0.0, 0.0
        for j in range(c.shape[0]):
            over = abs(c[j] - u[j]) - nu
            if over > 0.0 and work.share[j] > 0.0:
                total += work.share[j] * over / (d[j] + mu)
                slope += work.share[j] / (d[j] + mu)
        if abs(total - constraint.radius) < 0.02 * constraint.radius:
            break
        if total > constraint.radius:
            low = nu
        else:
            high = nu
        if not high - low > 1e-9 * high:
            break
        guess = nu + (total - constraint.radius) / max(slope, 1e-300)
        nu = guess if low < guess < high and i < _TRIES // 2 else 0.5 * (low + high)
    if at != nu:
        _, best = envelope(c, u, region, constraint, d, mu, at, eta, carried, work)
    return mu, at, best


@kernel
def _plain_phi(
    constraint: Constraint, c: Array, u: Array, region: Picks, d: Array, mu: float, nu: float,
    eta: float, carried: float, work: Work,
) -> tuple[float, float, float]:  # fmt: skip
    """Multipliers for the inclusion probabilities so far."""
    mu, nu = settled(constraint, c, u, d, mu, work)
    _, value = envelope(c, u, region, constraint, d, mu, nu, eta, carried, work)
    return mu, nu, value


#: (C, c, u, region, d, mu, nu, eta, carried, work) -> multipliers for a dual point, and Phi.
_settled_phi = either("is_softened", _softened_phi, _plain_phi)


@kernel
def improve(
    columns: Ints, slot: Ints, scale: float, c: Array, status: NDArray[np.int8],
    cells: NDArray[np.int8], members: Ints, picks: Ints, starts: Ints, constraint: Constraint,
    cap: float, ridge: float, d: Array, eta: float, rounds: int, tolerance: float, size: float,
    core: NDArray[np.bool_], most: int, b: Array, u: Array, point: Array, wanted: Ints,
) -> tuple[int, float]:  # fmt: skip
    """Improve the dual point in place; returns how many columns are wanted first, and Phi.

    Q = G + ridge I - diag(d), ``u`` is Q b. The errors in ``point`` are for `base.Bounder` to
    subtract. ``size`` is at least every |Q_ij|, ``cap`` is the largest coefficient by itself. b
    stays within the core and the members, unless the core is empty, and moves in ``most`` columns
    at a time. They are listed in ``wanted`` where too few of them are at hand.
    """
    p = c.shape[0]
    region = Picks(status, cells, members, picks, starts)
    work = workspace(region)
    move, trial, chosen = np.empty(p), np.empty(p), np.empty(p, dtype=np.int64)
    v = np.empty(p)
    if point[MU] == 0.0:
        point[MU], point[NU] = first_multipliers(constraint, c, u, region, d, work)
    _, phi = envelope(c, u, region, constraint, d, point[MU], point[NU], eta, point[CARRIED], work)
    # As they are, or anew: a softening may have changed.
    mu, nu, value = _settled_phi(constraint, c, u, region, d, point[MU], point[NU], eta,
                                 point[CARRIED], work)  # fmt: skip
    if value < phi:
        phi, point[MU], point[NU] = value, mu, nu
    step = 0.5
    for _ in range(rounds):
        count, missing = movers(slot, c, u, region, constraint, d, point[MU], point[NU], core,
                                most, b, work, move, chosen, wanted)  # fmt: skip
        if missing:
            return missing, phi
        _target(columns, slot, scale, c, u, ridge, d, point[MU], point[NU], cap, work.share,
                chosen[:count], b, v)  # fmt: skip
        # v becomes the move itself.
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
        value, bqb, mu, nu = phi, point[CARRIED], point[MU], point[NU]
        for _half in range(12):
            for j in range(p):
                trial[j] = u[j] + step * move[j]
            bqb = point[CARRIED] + 2.0 * step * vu + step * step * curvature
            mu, nu, value = _settled_phi(constraint, c, trial, region, d, point[MU], nu, eta, bqb,
                                         work)  # fmt: skip
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
        point[CARRIED], point[MU], point[NU] = bqb, mu, nu
        # proofs/bounds.md, section 2. ``both`` is at least the l1 norms of b and of the step.
        point[DRIFT] += ROUNDING * norm * (1.0 + 2.0**-40)
        both = (norm + 2.0 * step * length) * (1.0 + 2.0**-40) + 2.0 * point[DRIFT]
        point[CARRIED_ERROR] += 2.0 * step * length * (1.0 + 2.0**-40) * point[U_ERROR]
        point[CARRIED_ERROR] += 2.0 * (count + 16) * ROUNDING * size * both * both
        point[U_ERROR] += (count + 16) * ROUNDING * size * both
        if gained < tolerance:
            break
    return 0, phi
