"""The gradient of least squares in integers, and how far a record moves it.

At coefficients b = radius * m / parts, with integers m, the gradient is an integer multiple of a
fixed step:

    (X'y - X'X b - ridge b)_j  =  `Gradient.at`(m, parts)_j / (STEPS^2 * parts * denominator)

where radius = numerator / denominator, up to the rounding of the ridge term, which does not depend
on the data. One record (x, y) contributes x_j (y - x'b), of size at most 1 + radius |m| / parts,
where |m| is `max_inner_product`, a bound on |x'm| over quantized records. j runs over columns,
including the intercept's.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from ...data.gram import GramData
from ...data.quantize import STEPS
from ...schema.layout import Layout

#: Scores keep this many bits below the change by one record: the truncation costs less than a
#: sixteen-millionth of epsilon, and scores of 2^33 records fit in int64.
_BITS = 24


class Gradient:
    """The negative gradient on one table. Contains private data."""

    def __init__(self, gram: GramData, radius: Fraction, ridge: float) -> None:
        self._gram, self._radius, self._ridge = gram, radius, Fraction(ridge)
        self._c: list[int] = gram.c.tolist()

    def at(self, m: Mapping[int, int], parts: int) -> list[int]:
        """The entries at b = radius * m / parts; m by column, zeros left out."""
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
        gram, columns, weights = self._gram, list(m), list(m.values())
        gram.fetch(columns)
        rows = gram.product_rows(columns)
        # int64 where no partial sum can overflow, otherwise Python integers.
        fits = gram.n * STEPS**2 * sum(map(abs, weights)) < 2**63
        kind = np.int64 if fits else object
        sums: list[int] = (np.array(weights, dtype=kind) @ rows.astype(kind)).tolist()
        return sums if columns else [0] * gram.p


def record_change(layout: Layout, radius: Fraction, m: Mapping[int, int], parts: int) -> int:
    """How far one record, added or removed, moves an entry of `Gradient.at`. Public, like m."""
    most = STEPS * parts * radius.denominator + radius.numerator * max_inner_product(layout, m)
    return STEPS * most


def max_inner_product(layout: Layout, m: Mapping[int, int]) -> int:
    """A bound on |x'm| over quantized records, in steps of the quantizer.

    The columns of a choice sum up to at most its width in absolute value, and each is at most 1; so
    at most that many columns, those with the largest weights, can be at their ends. The intercept's
    column is constant.
    """
    of_choice: dict[int, list[int]] = {}
    for column, weight in m.items():
        of_choice.setdefault(choice_of_column(layout, column), []).append(abs(weight))
    fixed = sum(of_choice.pop(layout.choices, []))
    size = 0
    for j, weights in of_choice.items():
        width = layout.widths[j] if layout.widths else 1
        size += sum(sorted(weights, reverse=True)[:width])
    return STEPS * size + layout.constant * fixed


def choice_of_column(layout: Layout, column: int) -> int:
    """The choice that a column belongs to; the number of choices for the intercept."""
    return int(layout.owners[column]) if layout.grouped else column


def divisor_for(moved: int) -> int:
    """The integer by which entries that a record moves by ``moved`` are divided."""
    return max(1, moved >> _BITS)


def divided_change(moved: int) -> int:
    """How far one record moves entries after division, rounded down, by `divisor_for`."""
    return -(-moved // divisor_for(moved))
