"""Float64 kernels for small constrained quadratics that certify their own error.

    minimise q(b) = b'Hb - 2c'b + yy   over b in C,   k unknowns, H positive semidefinite

A solver proposes b; `certify` bounds all errors: the duality gap of `objective.losses.certified`
and the rounding of every operation, including the entries of H. The solvers minimise with a tiny
multiple of the identity added to H, so that collinear, constant and duplicate columns need no
special case; the certificate is about H itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...base.kernels.arrays import ROUNDING, Array, Ints
from ...base.kernels.compiled import kernel
from ...constraints.base import Constraint, dual_norm, shrink, solve
from ...data.products import Products, entry


@kernel
def score_all(
    x: Products, xy: Ints, y_square: int, supports: Ints, c: Constraint, ridge: float,
    scale: float, score_step: float, scores: Ints,
) -> NDArray[np.bool_]:  # fmt: skip
    """Scores of all supports in steps of the grid; False where not certified within one step."""
    k = supports.shape[1]
    h, b = np.empty((k, k)), np.empty(k)
    certified = np.empty(supports.shape[0], dtype=np.bool_)
    for s in range(supports.shape[0]):
        certified[s], scores[s] = score_one(
            x, xy, y_square, supports[s], c, ridge, scale, score_step, h, b
        )
    return certified


@kernel
def score_one(
    x: Products, xy: Ints, y_square: int, support: Ints, c: Constraint, ridge: float,
    scale: float, score_step: float, h: Array, linear: Array,
) -> tuple[bool, np.int64]:  # fmt: skip
    """Whether the score of a support is certified within ``score_step``, and the score, else 0.

    ``h`` and ``linear`` are working space.
    """
    for i in range(support.shape[0]):
        row = support[i]
        linear[i] = xy[row] / scale
        for j in range(i + 1):
            h[i, j] = entry(x, row, support[j]) / scale
            h[j, i] = h[i, j]
        h[i, i] += ridge
    b = solve(c, h, linear, score_step / 8)
    value, width = certify(h, linear, y_square / scale, c, b)
    # f lies in [value - width, value + width]; rounding to the grid adds half a step.
    certified = width <= score_step / 2
    return certified, np.int64(np.rint(value / score_step)) if certified else np.int64(0)


@kernel
def certify(h: Array, linear: Array, yy: float, c: Constraint, b: Array) -> tuple[float, float]:
    """q(b) as computed, and a bound on its distance from the minimum of q over C.

    Every sum below has at most 2k + 8 roundings a term (entries of h and ``linear`` have three
    each), so its error is below (2k + 16) * 2**-53 times the sum of absolute values, with a margin
    that covers the rounding of the bound itself.
    """
    k = linear.shape[0]
    rounding = (4 * k + 64) * ROUNDING
    if not shrink(c, b):
        return 0.0, np.inf
    gradient = np.empty(k)
    value, size = yy, yy
    slope, slope_size, norm_error = 0.0, 0.0, 0.0
    for i in range(k):
        hb, hb_size = 0.0, abs(linear[i])
        for j in range(k):
            hb += h[i, j] * b[j]
            hb_size += abs(h[i, j] * b[j])
        value += b[i] * (hb - 2.0 * linear[i])
        size += 2.0 * abs(b[i]) * hb_size
        g = 2.0 * (hb - linear[i])
        error = 2.0 * rounding * hb_size
        slope += g * b[i]
        slope_size += (abs(g) * rounding + error) * abs(b[i])
        # |v_i| <= radius for v in C, which bounds the effect of an error of g_i.
        norm_error += error
        gradient[i] = g
    norm = dual_norm(c, gradient) * (1.0 + rounding) + norm_error
    gap = slope + slope_size + c.radius * norm * (1.0 + 4.0 * ROUNDING)
    width = max(gap, 0.0) + rounding * size
    if not np.isfinite(value) or not np.isfinite(width):
        return 0.0, np.inf
    return value, width * (1.0 + 8.0 * ROUNDING)


@kernel
def newton_point(g: Array, h: Array, b: Array, c: Constraint, target: float) -> Array:
    """An approximate minimum over C of the model with gradient g and half Hessian h at b."""
    linear = np.empty(b.shape[0])
    for i in range(b.shape[0]):
        linear[i] = -0.5 * g[i]
        for j in range(b.shape[0]):
            linear[i] += h[i, j] * b[j]
    return solve(c, h, linear, target / 16)


@kernel
def duality_gap(g: Array, b: Array, c: Constraint) -> float:
    """The duality gap as computed: a stopping criterion for solvers, without certificate."""
    slope = 0.0
    for j in range(b.shape[0]):
        slope += g[j] * b[j]
    return slope + c.radius * dual_norm(c, g)
