"""The default quantiles for suggested bounds, chosen by public facts.

Bounds are centre +- half-width of a `QuantileRule`: two quantiles p and 1 - p, and a multiple of
their distance. More values lie between quantiles farther out, but finding these takes more records:
a quantile has an error of about log(65535) / weight = 44 / epsilon records (two quantiles,
replace-one), which must be smaller than p n.

=====================  =========  ========  =================================
epsilon n of a column  quantiles  factor    of a normal sample lies between
=====================  =========  ========  =================================
4,000 and more         1/40       1         95 %
800 and more           1/10       3/2       95 %
fewer                  1/4        3         96 %
=====================  =========  ========  =================================

The first row is Cai, Wang and Zhang's truncation level (2021, Section 5.1).
"""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from ..schema.schema import Column
from .quantiles import QuantileRule

#: Epsilon times n of one column, from which on these quantiles can be found.
_ENOUGH = 4_000
_SOME = 800

#: Significant digits of bounds: of their distance, or for a logarithm of the bounds themselves.
_DIGITS = 2


def default_bounds_rule(epsilon: Fraction, n: int | None) -> QuantileRule:
    """The rule for one column at this epsilon; n is None if it is private or unknown."""
    known = None if n is None else epsilon * n
    if known is not None and known >= _ENOUGH:
        return _rule(40, Fraction(1))
    if known is None or known >= _SOME:
        return _rule(10, Fraction(3, 2))
    return _rule(4, Fraction(3))


def _rule(parts: int, width_factor: Fraction) -> QuantileRule:
    # At least 1/200 of the half-range, for columns whose values are all equal.
    return QuantileRule(
        (Fraction(1, parts), 1 - Fraction(1, parts)), width_factor, min_half_width=Fraction(164)
    )


def round_outward(low: float, high: float, column: Column) -> tuple[float, float]:
    """Round bounds outward to a few digits, within the bounds of the column."""
    lowest, highest = column.ends
    if column.kind == "date":
        units = [Decimal(1)] * 2
    elif column.transform == "log":
        units = [_last_digit(abs(low)), _last_digit(abs(high))]
    else:
        units = [_last_digit(high - low)] * 2
    down = _rounded_to(low, units[0], ROUND_FLOOR)
    up = _rounded_to(high, units[1], ROUND_CEILING)
    down, up = min(max(down, lowest), highest), min(max(up, lowest), highest)
    # Both may round to one float.
    return (down, up) if down < up else (lowest, highest)


def with_bounds(column: Column, low: float, high: float) -> Column:
    """The column with these bounds. The value for missing cells is clipped to them."""
    missing = column.missing
    if missing is not None and missing.rule == "value":
        assert isinstance(missing.value, (int, float))  # levels have no bounds
        missing = replace(missing, value=min(max(float(missing.value), low), high))
    return replace(column, lo=low, hi=high, missing=missing)


def _last_digit(size: float) -> Decimal:
    """One unit of the last significant digit of a number of this size."""
    return Decimal(10) ** (Decimal(size).adjusted() - _DIGITS + 1 if size else 0)


def _rounded_to(value: float, unit: Decimal, rounding: str) -> float:
    # Enough digits for any two floats.
    context = Context(prec=800, rounding=rounding)
    steps = context.divide(Decimal(value), unit).to_integral_value(rounding=rounding)
    return float(context.multiply(steps, unit))
