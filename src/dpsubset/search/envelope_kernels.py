"""Kernels of envelopes: dominating integer weights, and enumeration of the likely supports."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..base.kernels.arrays import Array, Ints
from ..base.kernels.compiled import kernel
from .bounds.kernels import FREE


@kernel
def integer_weights(
    g: Array, status: NDArray[np.int8], pool: int, eta: float, high: float, bits: int, out: Ints
) -> int:
    """Integers not below 2**bits * exp(eta (g_j - high)) for the features of a pool.

    Returns their sum. Every rounding error is covered by a small increase: an envelope may only be
    too large.
    """
    total = 0
    for j in range(g.shape[0]):
        out[j] = 0
        if status[j] == FREE + pool:
            z = eta * (g[j] - high)
            z += 2.0**-40 + 2.0**-50 * eta * (g[j] + high)
            out[j] = np.int64(np.exp(z) * 2.0**bits) + 1
            total += out[j]
    return total


@kernel
def likely_supports(g: Array, m: int, need: float, out: Ints) -> int:
    """All m-subsets of positions of the descending g whose sum is at least ``need``.

    Returns their number, or -1 if there are more than ``out`` has rows. Depth first: at every
    position the best completion is a run of consecutive entries, whose sum is known from the
    partial sums.
    """
    n = g.shape[0]
    sums = np.zeros(n + 1)
    for i in range(n):
        sums[i + 1] = sums[i] + g[i]
    at = np.empty(m, dtype=np.int64)
    total = np.zeros(m + 1)
    depth, found = 0, 0
    at[0] = 0
    while depth >= 0:
        i = at[depth]
        left = m - depth
        # Entries i, ..., i + left - 1 are the best completion from here.
        if i + left > n or total[depth] + sums[i + left] - sums[i] < need:
            depth -= 1
            if depth >= 0:
                at[depth] += 1
            continue
        if left == 1:
            if found == out.shape[0]:
                return -1
            out[found] = at
            found += 1
            at[depth] += 1
        else:
            total[depth + 1] = total[depth] + g[i]
            depth += 1
            at[depth] = i + 1
    return found
