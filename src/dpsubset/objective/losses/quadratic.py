"""A convex quadratic with exact coefficients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import flint


@dataclass(frozen=True, repr=False)
class Quadratic:
    """q(b) = (b'Gb - 2c'b + yy) / scale + ridge |b|^2, with integers except for the ridge.

    G is positive semidefinite. With integers over one denominator, a product with a matrix of a
    thousand columns takes milliseconds. The ridge has a denominator of its own, which may be long.
    """

    g: flint.fmpz_mat
    c: list[int]
    yy: int
    scale: int
    ridge: Fraction = Fraction(0)

    @classmethod
    def of(cls, h: Sequence[Sequence[Fraction]], c: Sequence[Fraction], yy: Fraction) -> Quadratic:
        """b'Hb - 2c'b + yy with rational coefficients."""
        scale = math.lcm(*(x.denominator for x in (yy, *c, *(x for row in h for x in row))))
        g = flint.fmpz_mat([[int(x * scale) for x in row] for row in h])
        return cls(g, [int(x * scale) for x in c], int(yy * scale), scale)

    def at(self, b: Sequence[Fraction]) -> tuple[Fraction, list[Fraction]]:
        """The value and the gradient at b."""
        common = math.lcm(*(x.denominator for x in b))
        whole = [x.numerator * (common // x.denominator) for x in b]
        product = [int(x) for x in (self.g * flint.fmpz_mat([[x] for x in whole])).entries()]
        value = self.yy * common**2  # over scale * common^2
        slope = []
        for x, gb, c in zip(whole, product, self.c, strict=True):
            value += x * (gb - 2 * c * common)
            slope.append(Fraction(2 * (gb - c * common), self.scale * common))
        total = Fraction(value, self.scale * common**2)
        if self.ridge:
            total += self.ridge * Fraction(sum(x * x for x in whole), common**2)
            slope = [u + 2 * self.ridge * x for u, x in zip(slope, b, strict=True)]
        return total, slope
