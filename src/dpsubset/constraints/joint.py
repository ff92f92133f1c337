"""What constraints that are balls of a norm share: scaling, and multipliers mu and nu.

For every b in C, |b|^2 <= r^2 and |b|_1 <= l, so that for mu, nu >= 0

    2 w'b - b'Db <= 2 w'b - b'(D + mu) b - 2 nu |b|_1 + mu r^2 + 2 nu l,

and the right side is a sum of one term for each feature and an extra that depends on none.
"""

from __future__ import annotations

import math

import numpy as np

from ..base.kernels.arrays import ROUNDING, Array
from ..base.kernels.compiled import kernel


@kernel
def scale_into(b: Array, size: float, radius: float) -> None:
    """Scale b to the radius if its computed norm may be larger, allowing for rounding."""
    slack = 1.0 - (b.shape[0] + 8) * ROUNDING
    if size > radius * slack:
        factor = radius * slack / size * slack
        for j in range(b.shape[0]):
            b[j] *= factor


@kernel
def gain(w: float, d: float, mu: float, nu: float) -> float:
    """The maximum of 2 w v - (d + mu) v^2 - 2 nu |v| over v."""
    w = max(abs(w) - nu, 0.0)
    return w * w / (d + mu)


@kernel
def coefficient(w: float, d: float, mu: float, nu: float) -> float:
    """The v that attains `gain`."""
    return np.copysign(max(abs(w) - nu, 0.0) / (d + mu), w)


def gain_error(k: int, highest: float, error: float, least: float) -> float:
    """A bound on the error of k gains if every w is off by ``error``.

    No gain exceeds ``highest`` and no d + mu is below ``least``.
    """
    if not least > 0:
        return math.inf
    steepest = math.sqrt(highest / least) * (1 + 2.0**-40)
    return k * (2 * steepest * error + error**2 / least)
