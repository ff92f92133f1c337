"""What constraints share that are balls of a norm: scaling, and multipliers mu and nu.

For every b in C, |b|^2 <= r^2 and |b|_1 <= l, so that for mu, nu >= 0

    2 w'b - b'Db <= 2 w'b - b'(D + mu) b - 2 nu |b|_1 + mu r^2 + 2 nu l,

and the right side falls apart into one term a feature and an extra that none of them carries.
"""

from __future__ import annotations

import math

import numpy as np

from ..base.kernels.arrays import ROUNDING, Array
from ..base.kernels.compiled import kernel


@kernel
def scale_into(b: Array, size: float, radius: float) -> None:
    """Scale b to the radius if its norm, as computed, may be larger: rounding included."""
    slack = 1.0 - (b.shape[0] + 8) * ROUNDING
    if size > radius * slack:
        factor = radius * slack / size * slack
        for j in range(b.shape[0]):
            b[j] *= factor


@kernel
def gain(w: float, d: float, mu: float, nu: float) -> float:
    """The largest 2 w v - (d + mu) v^2 - 2 nu |v|."""
    w = max(abs(w) - nu, 0.0)
    return w * w / (d + mu)


@kernel
def coefficient(w: float, d: float, mu: float, nu: float) -> float:
    """The v of `gain`."""
    return np.copysign(max(abs(w) - nu, 0.0) / (d + mu), w)


def gain_error(k: int, highest: float, error: float, least: float) -> float:
    """How far k gains can be off, if every w is off by ``error`` and no d + mu is below least."""
    if not least > 0:
        return math.inf
    steepest = math.sqrt(highest / least) * (1 + 2.0**-40)
    return k * (2 * steepest * error + error**2 / least)
