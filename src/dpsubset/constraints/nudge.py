"""A little on the diagonal: collinear, constant and duplicate columns are ordinary input."""

from __future__ import annotations

import numpy as np

from ..base.kernels.arrays import Array, Ints
from ..base.kernels.compiled import kernel
from ..base.kernels.triangles import factor, solve

#: Relative to the largest entry of the diagonal: keeps every factorisation well posed, and moves
#: the minimum by far less than a certificate allows.
_NUDGE = 2.0**-46
#: Less than this has no inverse in float64.
_LEAST = 1e-290


@kernel
def nudge_of(h: Array) -> float:
    """What is added to the diagonal of H."""
    largest = 0.0
    for j in range(h.shape[0]):
        largest = max(largest, h[j, j])
    # With no data at all H is 0 and any positive number serves; with next to none, likewise: a
    # part of it could be 0.
    nudge = largest * _NUDGE
    return nudge if nudge > _LEAST else 1.0


@kernel
def nudged_factor(h: Array, nudge: float, index: Ints) -> Array:
    """The factor of H + nudge I on the rows and columns ``index``."""
    m = index.shape[0]
    up = np.empty((m, m))
    for i in range(m):
        for j in range(i, m):
            up[i, j] = h[index[j], index[i]]
        up[i, i] += nudge
    # Rounding may eat the nudge of a dependent column: it then gets a pivot of its size, and the
    # certificate judges the result.
    factor(up, nudge / 4)
    return up


@kernel
def nudged_solve(h: Array, nudge: float, index: Ints, x: Array) -> None:
    """x becomes (H + nudge I)^-1 x on the rows and columns ``index``."""
    solve(nudged_factor(h, nudge, index), x)
