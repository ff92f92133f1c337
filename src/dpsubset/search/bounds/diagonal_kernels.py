"""Kernels for diagonals d of H such that H - diag(d) is positive semidefinite where it must be.

`positive_inverse` and `raise_diagonal` keep the whole of H - diag(d) positive definite. A bound
needs less: it compares a point b with models whose support S has k features, so H - diag(d) must be
semidefinite on the union of S and the features of b only. `sparse_diagonal` uses that.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...base.kernels.arrays import Array, Ints, put
from ...base.kernels.compiled import kernel
from ...base.kernels.triangles import factor, forward
from ...data.products import Products
from .kernels import OUT


@kernel
def positive_inverse(matrix: Array, out: Array) -> bool:
    """Inverse of a positive definite matrix by Cholesky; False if it is not positive definite.

    For small matrices, without BLAS, whose threads cost more than they gain.
    """
    p = matrix.shape[0]
    triangle = matrix.copy()
    if not factor(triangle, 0.0):
        return False
    # Row j is column j of the inverse of the lower factor: contiguous in the products below.
    up = np.zeros((p, p))
    for j in range(p):
        up[j, j] = 1.0
        forward(triangle, up[j], j)
    for i in range(p):
        for j in range(i + 1):
            total = 0.0
            for t in range(i, p):
                total += up[i, t] * up[j, t]
            out[i, j] = total
            out[j, i] = total
    return True


@kernel
def raise_diagonal(inverse: Array, d: Array, free: NDArray[np.bool_], share: float) -> None:
    """One sweep of coordinate ascent on d, keeping H - diag(d) positive definite.

    ``inverse`` is (H - diag(d))^-1 and is updated with d. d_j may grow by less than 1 / inverse_jj;
    ``share`` is the part of that which is taken.
    """
    p = d.shape[0]
    column = np.empty(p)
    for j in range(p):
        if not free[j] or not inverse[j, j] > 0.0:
            continue
        grown = share / inverse[j, j]
        d[j] += grown
        growth = grown / (1.0 - share)
        put(column, inverse[:, j])
        for a in range(p):
            scaled = growth * column[a]
            for b in range(p):
                inverse[a, b] += scaled * column[b]


@kernel
def nearest_columns(x: Products, p: int, most: int) -> tuple[Ints, Ints]:
    """For every column j the columns l != j with the largest |G_jl|.

    Returns the columns and the values of |G_jl|, largest first.
    """
    near = np.full((p, most), -1, dtype=np.int64)
    size = np.zeros((p, most), dtype=np.int64)
    for j in range(p):
        row, who, how = x.columns[x.slot[j]], near[j], size[j]
        for other in range(p):
            here = abs(row[other])
            if other == j or here <= how[most - 1]:
                continue
            at = most - 1
            while at > 0 and how[at - 1] < here:
                who[at], how[at] = who[at - 1], how[at - 1]
                at -= 1
            who[at], how[at] = other, here
    return near, size


@kernel
def sparse_diagonal(
    x: Products, scale: float, near: Ints, size: Ints, others: int,
    column_status: NDArray[np.int8], core: Ints, error: float, d: Array,
) -> bool:  # fmt: skip
    """A diagonal d such that G - diag(d) is semidefinite on the core and ``others`` more columns.

    On the core d is small and constant. Beyond it the Schur complement is diagonally dominant on
    any ``others`` columns: see proofs/bounds.md. Negative entries show where it is not. Returns
    False if the core itself is too close to singular.
    """
    m, p = core.shape[0], column_status.shape[0]
    least = np.inf
    for j in core:
        least = min(least, x.diagonal[j] / scale)
    # A small diagonal on the core too, if possible: gains are steep where d is 0.
    share = 0.01 * least if m else 0.0
    block = np.empty((m, m))
    for i in range(m):
        row = x.columns[x.slot[core[i]]]
        for j in range(m):
            block[i, j] = row[core[j]] / scale
        block[i, i] -= share + 2.0 * error
    triangle = block.copy()
    if not factor(triangle, 0.0):
        for i in range(m):
            block[i, i] += share
        share = 0.0
        triangle = block
        if not factor(triangle, 0.0):
            return False
    # z_j = U'^-1 G_core,j: |z_j|^2 is the part of column j that the core explains.
    z = np.empty((m, p))
    square = np.zeros(p)
    for i in range(m):
        row = x.columns[x.slot[core[i]]]
        here = z[i]
        for j in range(p):
            here[j] = row[j] / scale
        for t in range(i):
            weight, before = triangle[t, i], z[t]
            for j in range(p):
                here[j] -= weight * before[j]
        for j in range(p):
            here[j] /= triangle[i, i]
            square[j] += here[j] * here[j]
    beyond = np.empty(p, dtype=np.bool_)
    for j in range(p):
        beyond[j] = column_status[j] != OUT
    for j in core:
        beyond[j] = False
    longest = 0.0
    for j in range(p):
        if beyond[j]:
            longest = max(longest, square[j])
    longest = np.sqrt(longest)
    for j in range(p):
        d[j] = 0.0
        if not beyond[j]:
            continue
        neighbours, left = 0.0, max(others - 1, 0)
        for i in range(near.shape[1]):
            if left and near[j, i] >= 0 and beyond[near[j, i]]:
                neighbours += size[j, i]
                left -= 1
        # Columns that are not listed are no larger than the last listed one.
        neighbours += left * size[j, near.shape[1] - 1]
        neighbours = neighbours / scale + max(others - 1, 0) * np.sqrt(square[j]) * longest
        d[j] = (x.diagonal[j] / scale - square[j] - neighbours) * (1.0 - 1e-9) - 4.0 * error
    for j in core:
        d[j] = share
    return True
