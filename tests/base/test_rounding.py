"""Roundings go to the side that they name, and no further than they say."""

from __future__ import annotations

import math
from fractions import Fraction

import flint
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsubset.base.rounding import (
    ball,
    float_up,
    lower,
    midpoint,
    nearest,
    sqrt_up,
    sqrt_up_relative,
    upper,
)

WIDE = st.fractions(-(10**30), 10**30)
#: Of any size: 2**-600 to 2**600.
SIZES = st.builds(
    lambda mantissa, exponent: mantissa * Fraction(2) ** exponent,
    st.fractions(1, 2),
    st.integers(-600, 600),
)


@given(WIDE, st.sampled_from([53, 128, 300]))
def test_a_ball_holds_its_number(x: Fraction, precision: int) -> None:
    with flint.ctx.workprec(precision):
        around = ball(x)
        assert lower(around) <= x <= upper(around)
        assert lower(around) <= midpoint(around) <= upper(around)
        assert lower(nearest(x)) == midpoint(around) == upper(nearest(x))
        assert upper(around) - lower(around) <= abs(x) / 2 ** (precision - 3)


@given(st.integers(-(2**50), 2**50), st.integers(-400, 400))
def test_what_fits_is_kept_as_it_is(mantissa: int, exponent: int) -> None:
    x = mantissa * Fraction(2) ** exponent
    assert lower(ball(x)) == midpoint(ball(x)) == upper(ball(x)) == x


@pytest.mark.parametrize("precision", [53, 128])
def test_ends_hold_what_is_computed(precision: int) -> None:
    """The same with more bits lies between the ends."""
    with flint.ctx.workprec(precision):
        found = ball(Fraction(1, 3)).exp()
        low, high = lower(found), upper(found)
    with flint.ctx.workprec(1000):
        sharp = ball(Fraction(1, 3)).exp()
        assert low < lower(sharp) <= upper(sharp) < high


@given(st.fractions(Fraction(1, 10**9), 10**9))
def test_floats_are_rounded_up(x: Fraction) -> None:
    shown = float_up(x)
    assert Fraction(shown) >= x
    assert Fraction(math.nextafter(shown, 0)) < x


@given(st.fractions(0, 10**6), st.integers(1, 200))
def test_square_roots_are_rounded_up_to_bits(square: Fraction, bits: int) -> None:
    root = sqrt_up(square, bits)
    assert root**2 >= square
    assert root == 0 or (root - Fraction(1, 2**bits)) ** 2 < square


@given(SIZES)
def test_square_roots_are_rounded_up_by_little_of_any_size(square: Fraction) -> None:
    assert sqrt_up_relative(Fraction(0)) == 0
    root = sqrt_up_relative(square)
    assert square <= root**2 < square * (1 + Fraction(1, 2**64)) ** 2


def test_ends_next_to_nothing_stay_on_their_side_and_short() -> None:
    """exp(-10**6) is a number of its own; exp(-10**9), of a billion bits, is rounded outwards."""
    with flint.ctx.workprec(64):
        small, tiny = flint.arb(-(10**6)).exp(), flint.arb(-(10**9)).exp()
        assert 0 < lower(small) < upper(small) < 2 * lower(small)
        assert lower(tiny) == 0 < upper(tiny)
        assert lower(-tiny) < 0 == upper(-tiny)
        assert upper(tiny).denominator.bit_length() < 2**23
