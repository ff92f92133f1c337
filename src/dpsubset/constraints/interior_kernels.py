"""Float64 solvers for one convex quadratic near a given point z of the unit ball of a norm.

    minimise g'd + d'Hd   over d with |z + d| <= 1

z is described by its distances from the bounds, which keep their relative precision near a bound.
Nothing here is proven or needs to be: `certified` checks the result. There are no threads and the
order of operations is fixed: the same problem has the same answer. ``h`` is twice H throughout.
"""

from __future__ import annotations

import numpy as np

from ..base.kernels.arrays import Array
from ..base.kernels.compiled import kernel
from ..base.kernels.triangles import factor, solve

#: Added to the diagonal, relative to its largest entry and for every column: exceeds the rounding
#: error of a factorisation. It only shortens steps, and only in directions in which the quadratic
#: is flat.
_JITTER = 2.0**-52
#: The part of the way to the nearest bound that a step may take.
_STEP_FRACTION = 0.99
#: Distances that have shrunk by this factor have few digits left.
_MIN_RELATIVE_DISTANCE = 2.0**-40


@kernel
def ball_step(h: Array, g: Array, z: Array, slack: float, mu: float, d: Array) -> float:
    """Step over the ball: d in place; returns the multiplier at the end. slack = 1 - |z|^2.

    (h + mu) (z + d) = hz - g with mu >= 0, the norm at most 1, and equal to 1 if mu > 0: Newton on
    1 / norm - 1, which is concave and increasing in mu. From the left it never overshoots.
    """
    k = g.shape[0]
    m, w = np.empty((k, k)), np.empty(k)
    jitter, before = _jitter(h), np.inf
    for _ in range(100):
        _copy_upper(h, m)
        for i in range(k):
            m[i, i] += mu + jitter
            d[i] = -g[i] - mu * z[i]
        if not factor(m, 0.0):
            break
        solve(m, d)
        beyond = -slack  # |z + d|^2 - 1
        for i in range(k):
            beyond += d[i] * (2.0 * z[i] + d[i])
            w[i] = z[i] + d[i]
        # At the end rounding dominates, and the norm stops improving.
        done = abs(beyond) < 2.0**-40 and abs(beyond) > before / 2
        if done or beyond == 0.0 or (mu == 0.0 and beyond < 0.0):
            break
        before = abs(beyond)
        solve(m, w)
        slope = 0.0
        for i in range(k):
            slope += (z[i] + d[i]) * w[i]
        if not slope > 0.0:
            break
        size = np.sqrt(1.0 + beyond)
        mu = max(mu + beyond / (1.0 + size) * size * size / slope, 0.0)
    return mu


@kernel
def interior_point(
    h: Array, g: Array, z: Array, plus: Array, minus: Array, slack: float, up: Array, down: Array,
    over: float, is_l1: bool, target: float, d: Array, e: Array,
) -> float:  # fmt: skip
    """Step over the box or the l1 ball, by a primal-dual interior-point method.

    With distances plus = u - z and minus = u + z from the bounds, multipliers up and down:

        box   gradient + up - down = 0                              u = 1
        l1    gradient + up - down = 0,   over - up - down = 0      u >= 0, slack = 1 - sum u

    and every distance times its multiplier equal to one number, which goes to 0. Ends where the
    duality gap is at most ``target``, or where distances have lost their precision. In place: the
    multipliers, d and the change e of u. Returns over, the multiplier of the slack.
    """
    k = g.shape[0]
    jitter = _jitter(h)
    gradient, point, tp, tm, s = np.empty(k), z.copy(), plus.copy(), minus.copy(), slack
    m = np.empty((k, k))
    work = np.empty((3, k))
    product_up, product_down = np.empty(k), np.empty(k)
    z_step, u_step, up_step, down_step = np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    for _ in range(100):
        closest = s / slack if is_l1 else 1.0
        for i in range(k):
            total = g[i]
            for j in range(k):
                total += h[i, j] * d[j]
            gradient[i] = total
            closest = min(closest, tp[i] / plus[i], tm[i] / minus[i])
        if (
            closest < _MIN_RELATIVE_DISTANCE
            or _duality_gap(gradient, point, tp, tm, s, is_l1) <= target
        ):
            break
        _copy_upper(h, m)
        product, count = 0.0, 2 * k
        for i in range(k):
            product += tp[i] * up[i] + tm[i] * down[i]
            p, q = up[i] / tp[i], down[i] / tm[i]
            m[i, i] += jitter + (4.0 * p * q / (p + q) if is_l1 else p + q)
        if is_l1:
            product += s * over
            count += 1
        if not factor(m, 0.0):
            break
        # Predictor step towards products of 0. Its length determines which product to aim at, and
        # the product of its changes is corrected for (Mehrotra).
        product_up[:] = 0.0
        product_down[:] = 0.0
        over_step, slack_step = _newton_direction(
            m, gradient, tp, tm, s, up, down, over, product_up, product_down, 0.0, is_l1, work,
            z_step, u_step, up_step, down_step,
        )  # fmt: skip
        step_size = _step_length(tp, tm, s, up, down, over, z_step, u_step, slack_step, up_step,
                                 down_step, over_step, is_l1)  # fmt: skip
        aim = product / count * max((1.0 - step_size) ** 3, 1e-6)
        for i in range(k):
            product_up[i] = aim - (u_step[i] - z_step[i]) * up_step[i]
            product_down[i] = aim - (u_step[i] + z_step[i]) * down_step[i]
        over_step, slack_step = _newton_direction(
            m, gradient, tp, tm, s, up, down, over, product_up, product_down,
            aim - slack_step * over_step, is_l1, work, z_step, u_step, up_step, down_step,
        )  # fmt: skip
        step_size = _step_length(tp, tm, s, up, down, over, z_step, u_step, slack_step, up_step,
                                 down_step, over_step, is_l1)  # fmt: skip
        if not step_size > 1e-12:
            break
        s = slack
        for i in range(k):
            d[i] += step_size * z_step[i]
            e[i] += step_size * u_step[i]
            s -= e[i]
            point[i] = z[i] + d[i]
            up[i] += step_size * up_step[i]
            down[i] += step_size * down_step[i]
            tp[i] = plus[i] + (e[i] - d[i])
            tm[i] = minus[i] + (e[i] + d[i])
        over += step_size * over_step
    return over


@kernel
def _newton_direction(
    m: Array, g: Array, tp: Array, tm: Array, s: float, up: Array, down: Array, over: float,
    product_up: Array, product_down: Array, product_slack: float, is_l1: bool, work: Array,
    z_step: Array, u_step: Array, up_step: Array, down_step: Array,
) -> tuple[float, float]:  # fmt: skip
    """The Newton direction towards given products of distances and multipliers.

    In place: the steps of z, u, up and down. Returns those of over and of the slack. The steps of u
    and of the multipliers are eliminated, which adds a diagonal to h; that of over remains a
    scalar.
    """
    k = g.shape[0]
    without_sum, with_sum, tilt = work[0], work[1], work[2]
    for i in range(k):
        without_sum[i] = -g[i] - product_up[i] / tp[i] + product_down[i] / tm[i]
        if is_l1:
            p, q = up[i] / tp[i], down[i] / tm[i]
            tilt[i] = (q - p) / (p + q)
            with_sum[i] = tilt[i]
            without_sum[i] -= tilt[i] * (product_up[i] / tp[i] + product_down[i] / tm[i] - over)
    solve(m, without_sum)
    over_step = slack_step = 0.0
    if is_l1:
        solve(m, with_sum)
        constant, slope = 0.0, 0.0  # the steps of u sum to constant + slope * over_step
        for i in range(k):
            both = up[i] / tp[i] + down[i] / tm[i]
            off = product_up[i] / tp[i] + product_down[i] / tm[i] - over
            constant += off / both - tilt[i] * without_sum[i]
            slope -= 1.0 / both + tilt[i] * with_sum[i]
        over_step = (product_slack / s - over + over / s * constant) / (1.0 - over / s * slope)
        slack_step = -constant - slope * over_step
    for i in range(k):
        p, q = up[i] / tp[i], down[i] / tm[i]
        z_step[i], u_step[i] = without_sum[i], 0.0
        if is_l1:
            z_step[i] += over_step * with_sum[i]
            off = product_up[i] / tp[i] + product_down[i] / tm[i] - over
            u_step[i] = (off - over_step) / (p + q) - tilt[i] * z_step[i]
        up_step[i] = product_up[i] / tp[i] - up[i] - p * (u_step[i] - z_step[i])
        down_step[i] = product_down[i] / tm[i] - down[i] - q * (u_step[i] + z_step[i])
    return over_step, slack_step


@kernel
def _step_length(
    tp: Array, tm: Array, s: float, up: Array, down: Array, over: float, z_step: Array,
    u_step: Array, slack_step: float, up_step: Array, down_step: Array, over_step: float,
    is_l1: bool,
) -> float:  # fmt: skip
    """The part of a step, at most 1, that keeps every distance and multiplier positive."""
    worst = _STEP_FRACTION
    for i in range(z_step.shape[0]):
        worst = max(worst, (z_step[i] - u_step[i]) / tp[i], -(z_step[i] + u_step[i]) / tm[i],
                    -up_step[i] / up[i], -down_step[i] / down[i])  # fmt: skip
    if is_l1:
        worst = max(worst, -over_step / over, -slack_step / s)
    return _STEP_FRACTION / worst


@kernel
def _duality_gap(g: Array, z: Array, tp: Array, tm: Array, s: float, is_l1: bool) -> float:
    """The duality gap as a sum of terms that are not negative."""
    largest, gap = 0.0, 0.0
    for j in range(g.shape[0]):
        largest = max(largest, abs(g[j]))
    for j in range(g.shape[0]):
        if is_l1:
            gap += largest * min(tp[j], tm[j]) + (largest * abs(z[j]) + g[j] * z[j])
        else:
            gap += g[j] * tm[j] if g[j] > 0.0 else -g[j] * tp[j]
    return gap + largest * s if is_l1 else gap


@kernel
def _jitter(h: Array) -> float:
    largest = 0.0
    for j in range(h.shape[0]):
        largest = max(largest, h[j, j])
    return largest * _JITTER * (h.shape[0] + 16)


@kernel
def _copy_upper(h: Array, m: Array) -> None:
    for i in range(h.shape[0]):
        for j in range(i, h.shape[0]):
            m[i, j] = h[i, j]
