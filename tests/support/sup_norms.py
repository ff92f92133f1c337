"""The law of the largest entry of a noise vector."""

from __future__ import annotations

import math


def log_weights(d: int, eta: float, most: int) -> list[float]:
    """log P(max |z_i| = m) for m = 0, ..., most, up to a constant."""
    shells = [(2 * m + 1) ** d - max(2 * m - 1, 0) ** d for m in range(most + 1)]
    return [math.log(shell) - eta * m for m, shell in enumerate(shells)]
