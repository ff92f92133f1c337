"""Exact numbers: roundings that are safe, and the way between fractions and balls."""

from __future__ import annotations

import math
from fractions import Fraction

import flint


def sqrt_up(square: Fraction, bits: int = 64) -> Fraction:
    """The square root, rounded up to a multiple of 2**-bits."""
    scaled = square * 4**bits
    whole_part = scaled.numerator // scaled.denominator
    root = math.isqrt(whole_part)
    if Fraction(root) ** 2 < scaled:
        root += 1
    return Fraction(root, 2**bits)


def ball(x: Fraction) -> flint.arb:
    """A ball around x, at the working precision."""
    return flint.arb(x.numerator) / x.denominator


def nearest(x: Fraction) -> flint.arb:
    """The midpoint of `ball`: a number near x, without its error."""
    return flint.arb(ball(x).mid())


def midpoint(x: flint.arb) -> Fraction:
    """The midpoint of a ball, as the number that it is."""
    mantissa, exponent = x.mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
