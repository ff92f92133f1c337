"""X'X in compiled code: entries are stored, or computed from the records."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..base.kernels.arrays import Cells, Ints
from ..base.kernels.compiled import kernel


class Products(NamedTuple):
    """Arrays of a `gram.GramData`, for compiled code. Exact integers."""

    columns: Ints
    slot: Ints
    diagonal: Ints
    records: Cells

    def __repr__(self) -> str:
        return "Products(private values hidden)"


@kernel
def entry(x: Products, i: int, j: int) -> np.int64:
    """X'X at (i, j): from a stored column, or computed from the records."""
    if i == j:
        return x.diagonal[i]
    if x.slot[i] >= 0:
        return x.columns[x.slot[i], j]
    if x.slot[j] >= 0:
        return x.columns[x.slot[j], i]
    total = np.int64(0)
    for row in range(x.records.shape[1]):
        total += np.int64(x.records[i, row]) * np.int64(x.records[j, row])
    return total


@kernel
def block(x: Products, support: Ints) -> Ints:
    """X'X on the columns of a support."""
    k = support.shape[0]
    out = np.empty((k, k), dtype=np.int64)
    for i in range(k):
        for j in range(i + 1):
            out[i, j] = entry(x, support[i], support[j])
            out[j, i] = out[i, j]
    return out
