"""Float64 solvers for one convex quadratic near a given point z of the unit ball of a norm.

    minimise g'd + d'Hd   over d with |z + d| <= 1

Where z is, is told by its distances from the bounds: near a bound these keep the digits that count.
Nothing here is proven, nothing needs to be: `certified` judges what comes out. No threads, a fixed
order of operations: the same problem has the same answer. ``h`` is twice H throughout.
"""

from __future__ import annotations

import numpy as np

from ..base.kernels.arrays import Array
from ..base.kernels.compiled import kernel
from ..base.kernels.triangles import factor, solve

#: Added to the diagonal, relative to its largest entry and for every column: more than a
#: factorisation can lose by rounding. It only makes steps shorter, and only in directions in which
#: the quadratic is flat.
_NUDGE = 2.0**-52
#: The share of the way to the nearest bound that a step may take.
_SHARE = 0.99
#: Distances that are so much smaller than those at the start have few digits left.
_BLURRED = 2.0**-40


@kernel
def sphere(h: Array, g: Array, z: Array, room: float, push: float, d: Array) -> float:
    """Over the ball: d in place, and the multiplier that it ends with. room = 1 - |z|^2.

    (h + push) (z + d) = hz - g with push >= 0, the norm at most 1, and 1 if push > 0: Newton on
    1 / norm - 1, which is concave and increasing in push. From the left it never overshoots.
    """
    k = g.shape[0]
    m, w = np.empty((k, k)), np.empty(k)
    nudge, before = _nudge(h), np.inf
    for _ in range(100):
        _copy(h, m)
        for i in range(k):
            m[i, i] += push + nudge
            d[i] = -g[i] - push * z[i]
        if not factor(m, 0.0):
            break
        solve(m, d)
        beyond = -room  # |z + d|^2 - 1
        for i in range(k):
            beyond += d[i] * (2.0 * z[i] + d[i])
            w[i] = z[i] + d[i]
        # At the end rounding has the last word, and nothing gets smaller.
        done = abs(beyond) < 2.0**-40 and abs(beyond) > before / 2
        if done or beyond == 0.0 or (push == 0.0 and beyond < 0.0):
            break
        before = abs(beyond)
        solve(m, w)
        slope = 0.0
        for i in range(k):
            slope += (z[i] + d[i]) * w[i]
        if not slope > 0.0:
            break
        size = np.sqrt(1.0 + beyond)
        push = max(push + beyond / (1.0 + size) * size * size / slope, 0.0)
    return push


@kernel
def descend(
    h: Array, g: Array, z: Array, plus: Array, minus: Array, room: float, up: Array, down: Array,
    over: float, lifted: bool, target: float, d: Array, e: Array,
) -> float:  # fmt: skip
    """Over the box or the l1 ball, by a primal-dual interior-point method.

    With distances plus = u - z and minus = u + z from the bounds, multipliers up and down:

        box   gradient + up - down = 0                              u = 1
        l1    gradient + up - down = 0,   over - up - down = 0      u >= 0, room = 1 - sum u

    and every distance times its multiplier equal to one number, which goes to 0. Ends where the
    duality gap is at most ``target``, or where distances have lost their digits. In place: the
    multipliers, d and the change e of u. Returned: over, the multiplier of the room.
    """
    k = g.shape[0]
    nudge = _nudge(h)
    here, at, tp, tm, s = np.empty(k), z.copy(), plus.copy(), minus.copy(), room
    m = np.empty((k, k))
    work = np.empty((3, k))
    wp, wm = np.empty(k), np.empty(k)
    step, lift, more, less = np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    for _ in range(100):
        least = s / room if lifted else 1.0
        for i in range(k):
            total = g[i]
            for j in range(k):
                total += h[i, j] * d[j]
            here[i] = total
            least = min(least, tp[i] / plus[i], tm[i] / minus[i])
        if least < _BLURRED or _gap(here, at, tp, tm, s, lifted) <= target:
            break
        _copy(h, m)
        product, count = 0.0, 2 * k
        for i in range(k):
            product += tp[i] * up[i] + tm[i] * down[i]
            p, q = up[i] / tp[i], down[i] / tm[i]
            m[i, i] += nudge + (4.0 * p * q / (p + q) if lifted else p + q)
        if lifted:
            product += s * over
            count += 1
        if not factor(m, 0.0):
            break
        # First straight towards products of 0. How far that gets says which product to aim at, and
        # the product of its changes is corrected for.
        wp[:] = 0.0
        wm[:] = 0.0
        change, drop = _direction(m, here, tp, tm, s, up, down, over, wp, wm, 0.0, lifted,
                                  work, step, lift, more, less)  # fmt: skip
        length = _length(tp, tm, s, up, down, over, step, lift, drop, more, less, change,
                         lifted)  # fmt: skip
        aim = product / count * max((1.0 - length) ** 3, 1e-6)
        for i in range(k):
            wp[i] = aim - (lift[i] - step[i]) * more[i]
            wm[i] = aim - (lift[i] + step[i]) * less[i]
        change, drop = _direction(m, here, tp, tm, s, up, down, over, wp, wm, aim - drop * change,
                                  lifted, work, step, lift, more, less)  # fmt: skip
        length = _length(tp, tm, s, up, down, over, step, lift, drop, more, less, change,
                         lifted)  # fmt: skip
        if not length > 1e-12:
            break
        s = room
        for i in range(k):
            d[i] += length * step[i]
            e[i] += length * lift[i]
            s -= e[i]
            at[i] = z[i] + d[i]
            up[i] += length * more[i]
            down[i] += length * less[i]
            tp[i] = plus[i] + (e[i] - d[i])
            tm[i] = minus[i] + (e[i] + d[i])
        over += length * change
    return over


@kernel
def _direction(
    m: Array, g: Array, tp: Array, tm: Array, s: float, up: Array, down: Array, over: float,
    wp: Array, wm: Array, ws: float, lifted: bool, work: Array, step: Array, lift: Array,
    more: Array, less: Array,
) -> tuple[float, float]:  # fmt: skip
    """The Newton step to where products of distances and multipliers are wp, wm and ws.

    In place: the steps of z, u, up and down. Returned: those of over and of the room. Steps of u
    and of the multipliers are eliminated, which adds a diagonal to h; that of over stays a number.
    """
    k = g.shape[0]
    base, lean, tilt = work[0], work[1], work[2]
    for i in range(k):
        base[i] = -g[i] - wp[i] / tp[i] + wm[i] / tm[i]
        if lifted:
            p, q = up[i] / tp[i], down[i] / tm[i]
            tilt[i] = (q - p) / (p + q)
            lean[i] = tilt[i]
            base[i] -= tilt[i] * (wp[i] / tp[i] + wm[i] / tm[i] - over)
    solve(m, base)
    change = drop = 0.0
    if lifted:
        solve(m, lean)
        fixed, share = 0.0, 0.0  # the sum of the steps of u is fixed + share * change
        for i in range(k):
            both = up[i] / tp[i] + down[i] / tm[i]
            off = wp[i] / tp[i] + wm[i] / tm[i] - over
            fixed += off / both - tilt[i] * base[i]
            share -= 1.0 / both + tilt[i] * lean[i]
        change = (ws / s - over + over / s * fixed) / (1.0 - over / s * share)
        drop = -fixed - share * change
    for i in range(k):
        p, q = up[i] / tp[i], down[i] / tm[i]
        step[i], lift[i] = base[i], 0.0
        if lifted:
            step[i] += change * lean[i]
            off = wp[i] / tp[i] + wm[i] / tm[i] - over
            lift[i] = (off - change) / (p + q) - tilt[i] * step[i]
        more[i] = wp[i] / tp[i] - up[i] - p * (lift[i] - step[i])
        less[i] = wm[i] / tm[i] - down[i] - q * (lift[i] + step[i])
    return change, drop


@kernel
def _length(
    tp: Array, tm: Array, s: float, up: Array, down: Array, over: float, step: Array, lift: Array,
    drop: float, more: Array, less: Array, change: float, lifted: bool,
) -> float:  # fmt: skip
    """The share of a step that keeps every distance and multiplier above 0, at most 1."""
    worst = _SHARE
    for i in range(step.shape[0]):
        worst = max(worst, (step[i] - lift[i]) / tp[i], -(step[i] + lift[i]) / tm[i],
                    -more[i] / up[i], -less[i] / down[i])  # fmt: skip
    if lifted:
        worst = max(worst, -change / over, -drop / s)
    return _SHARE / worst


@kernel
def _gap(g: Array, z: Array, tp: Array, tm: Array, s: float, lifted: bool) -> float:
    """The duality gap as a sum of terms that are not negative."""
    largest, gap = 0.0, 0.0
    for j in range(g.shape[0]):
        largest = max(largest, abs(g[j]))
    for j in range(g.shape[0]):
        if lifted:
            gap += largest * min(tp[j], tm[j]) + (largest * abs(z[j]) + g[j] * z[j])
        else:
            gap += g[j] * tm[j] if g[j] > 0.0 else -g[j] * tp[j]
    return gap + largest * s if lifted else gap


@kernel
def _nudge(h: Array) -> float:
    largest = 0.0
    for j in range(h.shape[0]):
        largest = max(largest, h[j, j])
    return largest * _NUDGE * (h.shape[0] + 16)


@kernel
def _copy(h: Array, m: Array) -> None:
    for i in range(h.shape[0]):
        for j in range(i, h.shape[0]):
            m[i, j] = h[i, j]
