"""Array types, and the few operations on arrays that kernels share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .compiled import kernel

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Quantized cells.
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


@kernel
def largest(values: Array, place: int) -> float:
    """The value at a place, from 0, in descending order, by quickselect.

    With np.partition the code for its errors and its sort takes longer to compile than a search.
    """
    v = np.empty(values.shape[0])
    put(v, values)
    low, high = 0, v.shape[0] - 1
    while low < high:
        pivot = v[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while v[i] > pivot:
                i += 1
            while v[j] < pivot:
                j -= 1
            if i <= j:
                v[i], v[j] = v[j], v[i]
                i += 1
                j -= 1
        if place <= j:
            high = j
        elif place >= i:
            low = i
        else:
            break
    return v[place]
