"""The gradient of least squares in whole numbers, and how far a record moves it.

At coefficients b = radius * m / parts, with whole m, the gradient falls in steps of a fixed size:

    (X'y - X'X b - ridge b)_j  =  `Gradient.at`(m, parts)_j / (STEPS^2 * parts * denominator)

where radius = numerator / denominator, up to the rounding of the ridge term, which does not depend
on the data. One record (x, y) contributes x_j (y - x'b): at most 1 + radius |m|_1 / parts in size.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from ...table.digest import Digest
from ...table.door import STEPS

#: Scores keep this many bits below the change that one record makes: what is cut off then costs
#: less than a sixteen-millionth of epsilon, and scores of 2^33 records fit in int64.
_BITS = 24


class Gradient:
    """The negative gradient on one table. Private data inside.

    Parameters
    ----------
    digest : Digest
        The moments.
    radius : Fraction
        The size of coefficients: b = radius * m / parts.
    ridge : float
        Of the problem.
    """

    def __init__(self, digest: Digest, radius: Fraction, ridge: float) -> None:
        self._digest, self._radius, self._ridge = digest, radius, Fraction(ridge)
        self._c: list[int] = digest.c.tolist()

    def at(self, m: Mapping[int, int], parts: int) -> list[int]:
        """Its entries at b = radius * m / parts; m by column, zeros left out."""
        radius = self._radius
        times = parts * radius.denominator
        products = self._products(m)
        result = [
            times * c - radius.numerator * product
            for c, product in zip(self._c, products, strict=True)
        ]
        for column, weight in m.items():
            result[column] -= round(self._ridge * STEPS**2 * radius.numerator * weight)
        return result

    def _products(self, m: Mapping[int, int]) -> list[int]:
        """X'X m."""
        digest, columns, weights = self._digest, list(m), list(m.values())
        digest.fetch(columns)
        rows = digest.product_rows(columns)
        # Where no partial sum can pass int64 it is quick; otherwise Python's integers do it.
        fits = digest.n * STEPS**2 * sum(map(abs, weights)) < 2**63
        kind = np.int64 if fits else object
        sums: list[int] = (np.array(weights, dtype=kind) @ rows.astype(kind)).tolist()
        return sums if columns else [0] * digest.p


def change(radius: Fraction, m: Mapping[int, int], parts: int) -> int:
    """How far one record, added or removed, moves an entry of `Gradient.at`: public, like m."""
    size = sum(abs(weight) for weight in m.values())
    return STEPS**2 * (parts * radius.denominator + radius.numerator * size)


def coarseness(moved: int) -> int:
    """The whole number by which entries that a record moves by ``moved`` are divided."""
    return max(1, moved >> _BITS)


def coarse_change(moved: int) -> int:
    """How far one record moves entries after division, rounded down, by `coarseness`."""
    return -(-moved // coarseness(moved))
