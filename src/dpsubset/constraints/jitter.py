"""Jitter: a small multiple of I that makes H invertible with collinear or constant columns."""

from __future__ import annotations

import numpy as np

from ..base.kernels.arrays import Array, Ints
from ..base.kernels.compiled import kernel
from ..base.kernels.triangles import factor, solve

#: Relative to the largest entry of the diagonal: makes every factorisation well conditioned, and
#: moves the minimum by far less than a certificate allows.
_JITTER = 2.0**-46
#: Smaller numbers have no inverse in float64.
_MIN_JITTER = 1e-290


@kernel
def jitter_of(h: Array) -> float:
    """The number that is added to the diagonal of H."""
    largest = 0.0
    for j in range(h.shape[0]):
        largest = max(largest, h[j, j])
    # For H = 0, or nearly 0, where the product could underflow, any positive number serves.
    jitter = largest * _JITTER
    return jitter if jitter > _MIN_JITTER else 1.0


@kernel
def factor_with_jitter(h: Array, jitter: float, index: Ints) -> Array:
    """The Cholesky factor of H + jitter I on the rows and columns ``index``."""
    m = index.shape[0]
    up = np.empty((m, m))
    for i in range(m):
        for j in range(i, m):
            up[i, j] = h[index[j], index[i]]
        up[i, i] += jitter
    # Rounding may cancel the jitter of a dependent column: it then gets a pivot of this size, and
    # the certificate decides about the result.
    factor(up, jitter / 4)
    return up


@kernel
def solve_with_jitter(h: Array, jitter: float, index: Ints, x: Array) -> None:
    """x becomes (H + jitter I)^-1 x on the rows and columns ``index``."""
    solve(factor_with_jitter(h, jitter, index), x)
