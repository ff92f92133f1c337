"""Convert between exact rationals, balls and floats, each rounding to a known side.

A ball (python-flint's ``arb``) is an interval that contains the number it stands for. The result of
a computation with balls contains the true result at any working precision; the precision decides
how narrow the interval is. A guarantee is an end of such an interval, converted back to a rational.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction

import flint

#: Most bits of numerator and denominator that `round_up_to_writable` leaves as they are. Python
#: writes no integer of more than 4,300 digits, and a ledger reads none of more than 4,000: 13,288
#: bits.
_WRITABLE = 12_000

#: Ends of balls are multiples of 2**-_FINEST, finer than exp(-10**6) for the largest epsilon.
_FINEST = 2**22


def ball(x: Fraction) -> flint.arb:
    """A ball that contains x, at the current working precision."""
    return flint.arb(x.numerator) / x.denominator


def nearest(x: Fraction) -> flint.arb:
    """The midpoint of `ball`: a number close to x, without its error."""
    return flint.arb(ball(x).mid())


def midpoint(x: flint.arb) -> Fraction:
    """The midpoint of a ball, as an exact rational."""
    return _value(x.mid())


def lower(x: flint.arb) -> Fraction:
    """A rational not above any number in a ball: its lower end, rounded down."""
    return _grid(x.lower(), up=False)


def upper(x: flint.arb) -> Fraction:
    """A rational not below any number in a ball: its upper end, rounded up."""
    return _grid(x.upper(), up=True)


def round_up_to_writable(x: Fraction) -> Fraction:
    """The smallest number >= x >= 0 that can be written in decimal and read back.

    This is x itself unless x takes many thousands of digits; then it is a multiple of
    2**-_WRITABLE.
    """
    if max(x.numerator.bit_length(), x.denominator.bit_length()) <= _WRITABLE:
        return x
    return Fraction(-(-(x.numerator << _WRITABLE - 1) // x.denominator), 1 << _WRITABLE - 1)


def float_up(x: Fraction) -> float:
    """The smallest float not below x."""
    nearest = float(x)
    return nearest if Fraction(nearest) >= x else math.nextafter(nearest, math.inf)


def sqrt_up(square: Fraction, bits: int = 64) -> Fraction:
    """The square root, rounded up to a multiple of 2**-bits."""
    scaled = square * 4**bits
    whole_part = scaled.numerator // scaled.denominator
    root = math.isqrt(whole_part)
    if Fraction(root) ** 2 < scaled:
        root += 1
    return Fraction(root, 2**bits)


def sqrt_up_relative(square: Fraction) -> Fraction:
    """The square root, rounded up by less than 2**-64 of its size."""
    if not square:
        return square
    large = (square.numerator // square.denominator).bit_length()
    small = (square.denominator // square.numerator).bit_length()
    # At most 2**-bits is added. A root is at least 2**((large - 1) / 2), or 2**(-small / 2).
    return sqrt_up(square, max(0, 128 - large) + max(128, small))


def decimal_up(x: Fraction) -> Decimal:
    """x as a decimal: exact if it has at most 17 digits, or else rounded up."""
    with localcontext(prec=17, rounding=ROUND_CEILING):
        return Decimal(x.numerator) / x.denominator


def exp_up(x: Fraction) -> Fraction:
    """e to the power x, rounded up, for display."""
    return upper(ball(x).exp())


def _grid(x: flint.arb, up: bool) -> Fraction:
    """Convert a ball of radius 0; round a number close to 0 to the grid of 2**-_FINEST."""
    mantissa, exponent = (int(part) for part in x.man_exp())
    if exponent < -_FINEST:
        # exp(-10**9) has a denominator of a billion bits.
        shift = -_FINEST - exponent
        mantissa, exponent = -(-mantissa >> shift) if up else mantissa >> shift, -_FINEST
    return Fraction(mantissa) * Fraction(2) ** exponent


def _value(x: flint.arb) -> Fraction:
    mantissa, exponent = x.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
