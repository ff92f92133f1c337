"""Array types, and the few operations on arrays that kernels share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .compiled import kernel

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Quantised cells.
Cells = NDArray[np.int16]

#: The largest relative error of one operation in float64.
ROUNDING = 2.0**-53


@kernel
def put(target: NDArray[Any], source: NDArray[Any]) -> None:
    """Assign target[:] = source. With numba the slice assignment takes seconds to compile."""
    for i in range(target.shape[0]):
        target[i] = source[i]


@kernel
def dot(u: Array, v: Array) -> float:
    """The inner product in a fixed order; that of np.dot (BLAS) may depend on alignment."""
    total = 0.0
    for i in range(u.shape[0]):
        total += u[i] * v[i]
    return total
