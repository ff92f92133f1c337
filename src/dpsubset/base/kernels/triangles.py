"""Cholesky factorisation and triangular solves.

M = U'U, where U overwrites the upper triangle of m. Entries below the diagonal are not read.
"""

from __future__ import annotations

import numpy as np

from .arrays import Array
from .compiled import kernel


@kernel
def factor(m: Array, least: float) -> bool:
    """Overwrite m with U; a pivot below ``least`` is raised to it. Return False if a pivot is not
    positive.

    Four rows are updated at a time, so that each row above is read once for all four.
    """
    k = m.shape[0]
    for first in range(0, k, 4):
        last = min(first + 4, k)
        if last == first + 4:
            r0, r1, r2, r3 = m[first], m[first + 1], m[first + 2], m[first + 3]
            for j in range(first):
                row = m[j]
                f0, f1, f2, f3 = row[first], row[first + 1], row[first + 2], row[first + 3]
                for t in range(first, k):
                    x = row[t]
                    r0[t] -= f0 * x
                    r1[t] -= f1 * x
                    r2[t] -= f2 * x
                    r3[t] -= f3 * x
        for i in range(first, last):
            here = m[i]
            for j in range(first if last == first + 4 else 0, i):
                row = m[j]
                f = row[i]
                for t in range(i, k):
                    here[t] -= f * row[t]
            pivot = max(here[i], least)
            if not pivot > 0.0:
                return False
            pivot = np.sqrt(pivot)
            here[i] = pivot
            for t in range(i + 1, k):
                here[t] /= pivot
    return True


@kernel
def forward(m: Array, x: Array, first: int) -> None:
    """Overwrite x with U'^-1 x; entries of x before ``first`` are 0."""
    k = m.shape[0]
    for j in range(first, k):
        row = m[j]
        x[j] /= row[j]
        f = x[j]
        for i in range(j + 1, k):
            x[i] -= f * row[i]


@kernel
def backward(m: Array, x: Array) -> None:
    """Overwrite x with U^-1 x."""
    k = m.shape[0]
    for j in range(k - 1, -1, -1):
        row = m[j]
        total = x[j]
        for i in range(j + 1, k):
            total -= row[i] * x[i]
        x[j] = total / row[j]


@kernel
def solve(m: Array, x: Array) -> None:
    """Overwrite x with M^-1 x."""
    forward(m, x, 0)
    backward(m, x)
