"""Float64 kernels for small constrained quadratics that certify their own error.

    minimise q(b) = b'Hb - 2c'b + yy   over b in C,   k unknowns, H positive semidefinite

A solver proposes b; `_certify` bounds everything that can be wrong with it: the duality gap of
:mod:`dpsubset.losses.certified` and the rounding of every operation, entries of H included. The
solvers minimise with a tiny multiple of the identity added to H, so that collinear, constant and
duplicate columns are ordinary input; the certificate is about H itself.

Plain functions over flat arrays, cached; no fast-math, no threads: the order of operations is
fixed.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

_ROUNDING = 2.0**-53
#: Added to the diagonal, relative to its largest entry: keeps every factorisation well posed, and
#: moves the minimum by far less than the certificate allows.
_NUDGE = 2.0**-46

BOX, BALL, L1 = 0, 1, 2


@numba.njit(cache=True)
def put(target: NDArray[Any], source: NDArray[Any]) -> None:
    """target[:] = source, which with numba takes seconds to compile: it has a text for errors."""
    for i in range(target.shape[0]):
        target[i] = source[i]


@numba.njit(cache=True)
def gram_entry(
    columns: Ints, slot: Ints, diagonal: Ints, records: NDArray[np.int16], i: int, j: int
) -> np.int64:
    """X'X at (i, j): from a column at hand, or multiplied out from the records."""
    if i == j:
        return diagonal[i]
    if slot[i] >= 0:
        return columns[slot[i], j]
    if slot[j] >= 0:
        return columns[slot[j], i]
    total = np.int64(0)
    for row in range(records.shape[1]):
        total += np.int64(records[i, row]) * np.int64(records[j, row])
    return total


@numba.njit(cache=True)
def gram_block(
    columns: Ints, slot: Ints, diagonal: Ints, records: NDArray[np.int16], support: Ints
) -> Ints:
    """X'X on the columns of a support."""
    k = support.shape[0]
    block = np.empty((k, k), dtype=np.int64)
    for i in range(k):
        for j in range(i + 1):
            block[i, j] = gram_entry(columns, slot, diagonal, records, support[i], support[j])
            block[j, i] = block[i, j]
    return block


@numba.njit(cache=True)
def score_all(
    columns: Ints,
    slot: Ints,
    diagonal: Ints,
    records: NDArray[np.int16],
    xy: Ints,
    y_square: int,
    supports: Ints,
    constraint: int,
    radius: float,
    ridge: float,
    scale: float,
    unit: float,
    scores: Ints,
) -> NDArray[np.bool_]:
    """Scores of all supports in multiples of ``unit``; False where not certified within it."""
    k = supports.shape[1]
    h = np.empty((k, k))
    c = np.empty(k)
    certified = np.empty(supports.shape[0], dtype=np.bool_)
    for s in range(supports.shape[0]):
        certified[s], scores[s] = score_one(
            columns, slot, diagonal, records, xy, y_square, supports[s], constraint, radius, ridge,
            scale, unit, h, c,
        )  # fmt: skip
    return certified


@numba.njit(cache=True)
def score_one(
    columns: Ints,
    slot: Ints,
    diagonal: Ints,
    records: NDArray[np.int16],
    xy: Ints,
    y_square: int,
    support: Ints,
    constraint: int,
    radius: float,
    ridge: float,
    scale: float,
    unit: float,
    h: Array,
    c: Array,
) -> tuple[bool, np.int64]:
    """Whether the score of a support is certified within ``unit``, and the score, else 0.

    ``h`` and ``c`` are working space.
    """
    k = support.shape[0]
    for i in range(k):
        row = support[i]
        c[i] = xy[row] / scale
        for j in range(i + 1):
            h[i, j] = gram_entry(columns, slot, diagonal, records, row, support[j]) / scale
            h[j, i] = h[i, j]
        h[i, i] += ridge
    _, value, width = minimise(h, c, y_square / scale, constraint, radius, unit / 8)
    # f lies in [value - width, value + width]; rounding to the grid adds half a unit.
    certified = width <= unit / 2
    return certified, np.int64(np.rint(value / unit)) if certified else np.int64(0)


@numba.njit(cache=True)
def minimise(
    h: Array, c: Array, yy: float, constraint: int, radius: float, target: float
) -> tuple[Array, float, float]:
    """A point b of C, a value and a width: the minimum lies within ``width`` of ``value``."""
    if constraint == BOX:
        b = _box(h, c, radius, target)
    elif constraint == BALL:
        b = _ball(h, c, radius)
    else:
        b = _l1(h, c, radius)
    value, width = _certify(h, c, yy, constraint, radius, b)
    return b, value, width


@numba.njit(cache=True)
def _certify(
    h: Array, c: Array, yy: float, constraint: int, radius: float, b: Array
) -> tuple[float, float]:
    """q(b) as computed, and a bound on its distance from the minimum of q over C.

    Every sum below has at most 2k + 8 roundings a term (entries of h and c come with three each),
    so its error is below (2k + 16) * 2**-53 times the sum of absolute values, with a margin that
    covers the rounding of the bound itself.
    """
    k = c.shape[0]
    rounding = (4 * k + 64) * _ROUNDING
    if not _shrink(b, constraint, radius):
        return 0.0, np.inf
    value, size = yy, yy
    slope, slope_size, norm, norm_error = 0.0, 0.0, 0.0, 0.0
    for i in range(k):
        hb, hb_size = 0.0, abs(c[i])
        for j in range(k):
            hb += h[i, j] * b[j]
            hb_size += abs(h[i, j] * b[j])
        value += b[i] * (hb - 2.0 * c[i])
        size += 2.0 * abs(b[i]) * hb_size
        g = 2.0 * (hb - c[i])
        error = 2.0 * rounding * hb_size
        slope += g * b[i]
        slope_size += (abs(g) * rounding + error) * abs(b[i])
        norm_error += error
        if constraint == BOX:
            norm += abs(g)
        elif constraint == BALL:
            norm += g * g
        else:
            norm = max(norm, abs(g))
    if constraint == BALL:
        norm = np.sqrt(norm)
    norm = norm * (1.0 + rounding) + norm_error
    gap = slope + slope_size + radius * norm * (1.0 + 4.0 * _ROUNDING)
    width = max(gap, 0.0) + rounding * size
    if not np.isfinite(value) or not np.isfinite(width):
        return 0.0, np.inf
    return value, width * (1.0 + 8.0 * _ROUNDING)


@numba.njit(cache=True)
def _shrink(b: Array, constraint: int, radius: float) -> bool:
    """Move b into C, rounding included; False if b is no vector of numbers."""
    k = b.shape[0]
    size = 0.0
    for j in range(k):
        if not np.isfinite(b[j]):
            return False
        if constraint == BOX:
            b[j] = min(max(b[j], -radius), radius)
        elif constraint == BALL:
            size += b[j] * b[j]
        else:
            size += abs(b[j])
    if constraint == BOX:
        return True
    if constraint == BALL:
        size = np.sqrt(size)
    slack = 1.0 - (k + 8) * _ROUNDING
    if size > radius * slack:
        factor = radius * slack / size * slack
        for j in range(k):
            b[j] *= factor
    return True


@numba.njit(cache=True)
def _nudge(h: Array) -> float:
    largest = 0.0
    for j in range(h.shape[0]):
        largest = max(largest, h[j, j])
    # With no data at all H is 0 and any positive number serves.
    return largest * _NUDGE if largest > 0.0 else 1.0


@numba.njit(cache=True)
def _solve(
    h: Array, nudge: float, index: NDArray[np.int64], m: int, rhs: Array, out: Array
) -> None:
    """out[:m] = (H + nudge I)^-1 rhs[:m] on the rows and columns index[:m], by Cholesky."""
    low = np.empty((m, m))
    for i in range(m):
        for j in range(i + 1):
            total = h[index[i], index[j]]
            if i == j:
                total += nudge
            for t in range(j):
                total -= low[i, t] * low[j, t]
            if i == j:
                # Rounding may eat the nudge of a dependent column: it then gets a pivot of its
                # size, and the certificate judges the result.
                low[i, i] = np.sqrt(max(total, nudge / 4))
            else:
                low[i, j] = total / low[j, j]
    for i in range(m):
        total = rhs[i]
        for t in range(i):
            total -= low[i, t] * out[t]
        out[i] = total / low[i, i]
    for i in range(m - 1, -1, -1):
        total = out[i]
        for t in range(i + 1, m):
            total -= low[t, i] * out[t]
        out[i] = total / low[i, i]


@numba.njit(cache=True)
def _box(h: Array, c: Array, radius: float, target: float) -> Array:
    """Coordinate descent, then Newton steps on the coordinates that are off their bounds.

    Both decrease q. Coordinate descent finds which bounds are active; Newton steps end it on
    collinear columns, where coordinate descent alone would crawl.
    """
    k = c.shape[0]
    nudge = _nudge(h)
    b = np.zeros(k)
    free = np.empty(k, dtype=np.int64)
    rhs = np.empty(k)
    step = np.empty(k)
    for sweep in range(100):
        for j in range(k):
            total = c[j]
            for i in range(k):
                if i != j:
                    total -= h[j, i] * b[i]
            b[j] = min(max(total / (h[j, j] + nudge), -radius), radius)
        if sweep % 2 == 0:
            continue
        for _ in range(k):
            m = 0
            for j in range(k):
                if abs(b[j]) < radius:
                    free[m] = j
                    m += 1
            for i in range(m):
                total = c[free[i]]
                for j in range(k):
                    total -= h[free[i], j] * b[j]
                rhs[i] = total
            _solve(h, nudge, free, m, rhs, step)
            length, hit = 1.0, -1
            for i in range(m):
                room = (radius - b[free[i]]) if step[i] > 0 else (radius + b[free[i]])
                if abs(step[i]) * length > room:
                    length = room / abs(step[i])
                    hit = i
            for i in range(m):
                b[free[i]] = min(max(b[free[i]] + length * step[i], -radius), radius)
            if hit < 0:
                break
            b[free[hit]] = np.copysign(radius, step[hit])
        if _gap(h, c, radius, b) <= target:
            break
    return b


@numba.njit(cache=True)
def _gap(h: Array, c: Array, radius: float, b: Array) -> float:
    """Duality gap over the box, as computed: tells the solver when to stop, proves nothing."""
    gap = 0.0
    for i in range(c.shape[0]):
        g = -c[i]
        for j in range(c.shape[0]):
            g += h[i, j] * b[j]
        gap += 2.0 * (g * b[i] + radius * abs(g))
    return gap


@numba.njit(cache=True)
def _dot(u: Array, v: Array) -> float:
    # Not np.dot: that is BLAS, which may order its sums by alignment.
    total = 0.0
    for i in range(u.shape[0]):
        total += u[i] * v[i]
    return total


@numba.njit(cache=True)
def _ball(h: Array, c: Array, radius: float) -> Array:
    """(H + mu I) b = c with mu >= 0 such that |b| <= radius: Newton on the secular equation."""
    k = c.shape[0]
    everything = np.arange(k)
    b = np.empty(k)
    w = np.empty(k)
    mu = _nudge(h)
    low = mu
    for _ in range(60):
        _solve(h, mu, everything, k, c, b)
        size = np.sqrt(_dot(b, b))
        if mu == low and size <= radius:
            break
        if abs(size - radius) <= 1e-15 * radius:
            break
        # Newton on 1/|b(mu)| - 1/radius, concave and increasing: from the left it never overshoots.
        _solve(h, mu, everything, k, b, w)
        slope = _dot(b, w)
        if slope <= 0.0:
            break
        change = (size / radius - 1.0) * size * size / slope
        following = max(mu + change, low)
        if abs(following - mu) <= 1e-16 * mu:
            break
        mu = following
    return b


@numba.njit(cache=True)
def _l1(h: Array, c: Array, radius: float) -> Array:
    """Active-set descent over the faces of the l1 ball.

    On a face (a set of coordinates with fixed signs) the minimiser is unconstrained if its norm
    allows, else on the hyperplane sum s_j b_j = radius. Walk towards it; drop a coordinate that
    reaches 0; where nothing is dropped, bring in the coordinate with the steepest descent.
    """
    k = c.shape[0]
    nudge = _nudge(h)
    b = np.zeros(k)
    sign = np.zeros(k)
    index = np.empty(k, dtype=np.int64)
    rhs = np.empty(k)
    plain = np.empty(k)
    lean = np.empty(k)
    threshold = 0.0
    settled = True
    for _ in range(20 * k + 20):
        if settled:
            best, enter = threshold * (1.0 + 1e-14), -1
            for j in range(k):
                if sign[j] == 0.0:
                    g = c[j]
                    for i in range(k):
                        g -= h[j, i] * b[i]
                    if abs(g) > best:
                        best, enter = abs(g), j
                        rhs[0] = g
            if enter < 0:
                break
            sign[enter] = np.copysign(1.0, rhs[0])
        m = 0
        for j in range(k):
            if sign[j] != 0.0:
                index[m] = j
                m += 1
        for i in range(m):
            rhs[i] = c[index[i]]
        _solve(h, nudge, index, m, rhs, plain)
        size, slope = 0.0, 0.0
        for i in range(m):
            size += sign[index[i]] * plain[i]
            rhs[i] = sign[index[i]]
        threshold = 0.0
        if size > radius:
            _solve(h, nudge, index, m, rhs, lean)
            for i in range(m):
                slope += sign[index[i]] * lean[i]
            threshold = (size - radius) / slope
            for i in range(m):
                plain[i] -= threshold * lean[i]
        length, leave = 1.0, -1
        for i in range(m):
            j = index[i]
            if plain[i] * sign[j] < 0.0:
                reach = b[j] / (b[j] - plain[i])
                if reach < length:
                    length, leave = reach, j
        for i in range(m):
            b[index[i]] += length * (plain[i] - b[index[i]])
        settled = leave < 0
        if leave >= 0:
            b[leave] = 0.0
            sign[leave] = 0.0
    return b


@numba.njit(cache=True)
def newton_point(
    g: Array, h: Array, b: Array, constraint: int, radius: float, target: float
) -> Array:
    """Where the model with gradient g and half Hessian h at b is near its least value over C."""
    c = np.empty(b.shape[0])
    for i in range(b.shape[0]):
        c[i] = -0.5 * g[i]
        for j in range(b.shape[0]):
            c[i] += h[i, j] * b[j]
    return quadratic(h, c, constraint, radius, target)


@numba.njit(cache=True)
def quadratic(h: Array, c: Array, constraint: int, radius: float, target: float) -> Array:
    """A point of C where b'Hb - 2 c'b is near its least value."""
    if constraint == BOX:
        return _box(h, c, radius, target / 16)
    if constraint == BALL:
        return _ball(h, c, radius)
    return _l1(h, c, radius)


@numba.njit(cache=True)
def duality_gap(g: Array, b: Array, constraint: int, radius: float) -> float:
    """Duality gap as computed: tells the solver when to stop, proves nothing."""
    slope, norm = 0.0, 0.0
    for j in range(b.shape[0]):
        slope += g[j] * b[j]
        if constraint == BOX:
            norm += abs(g[j])
        elif constraint == BALL:
            norm += g[j] * g[j]
        else:
            norm = max(norm, abs(g[j]))
    return slope + radius * (np.sqrt(norm) if constraint == BALL else norm)
