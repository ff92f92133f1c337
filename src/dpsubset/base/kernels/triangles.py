"""Cholesky factors and triangular solves, the only ones of the package.

M = U'U, U in the place of the upper triangle of m. What is below the diagonal is not looked at.
"""

from __future__ import annotations

import numpy as np

from .arrays import Array
from .compiled import kernel


@kernel
def factor(m: Array, least: float) -> bool:
    """U in place of m; a pivot below ``least`` becomes that. False at one that is not above 0.

    Four rows at a time: a row above is then read once for the four.
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
    """x becomes U'^-1 x, where the entries before the first are 0."""
    k = m.shape[0]
    for j in range(first, k):
        row = m[j]
        x[j] /= row[j]
        f = x[j]
        for i in range(j + 1, k):
            x[i] -= f * row[i]


@kernel
def backward(m: Array, x: Array) -> None:
    """x becomes U^-1 x."""
    k = m.shape[0]
    for j in range(k - 1, -1, -1):
        row = m[j]
        total = x[j]
        for i in range(j + 1, k):
            total -= row[i] * x[i]
        x[j] = total / row[j]


@kernel
def solve(m: Array, x: Array) -> None:
    """x becomes M^-1 x."""
    forward(m, x, 0)
    backward(m, x)
