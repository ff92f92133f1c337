"""Which quantiles bounds are made of, by what is public.

Bounds are centre +- half-width of a `QuantileRule`: two quantiles p and 1 - p, and a multiple of
their distance. The further out the quantiles, the more of the values lie between them, and the more
records it takes to find them: a quantile is right to about log(65535) / weight = 44 / epsilon
records (two quantiles, replace-one), which must be fewer than p n.

=====================  =========  ========  =================================
epsilon n of a column  quantiles  widening  of a normal sample lies between
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

#: Epsilon times n of one column: from here on these quantiles are found.
_ENOUGH = 4_000
_SOME = 800

#: Digits of bounds that people read: of their distance, or of themselves for a logarithm.
_DIGITS = 2


def usual_rule(epsilon: Fraction, n: int | None) -> QuantileRule:
    """Of one column, which may cost epsilon; n where it is public and known."""
    known = None if n is None else epsilon * n
    if known is not None and known >= _ENOUGH:
        return _quantiles(40, Fraction(1))
    if known is None or known >= _SOME:
        return _quantiles(10, Fraction(3, 2))
    return _quantiles(4, Fraction(3))


def _quantiles(parts: int, widening: Fraction) -> QuantileRule:
    # Half a hundredth of the half-range: a column whose values are all equal has bounds, too.
    return QuantileRule(
        (Fraction(1, parts), 1 - Fraction(1, parts)), widening, min_half_width=Fraction(164)
    )


def readable(low: float, high: float, column: Column) -> tuple[float, float]:
    """Bounds outward to a few digits, within those of the column. Uses nothing else."""
    least, most = column.span
    assert least is not None
    assert most is not None
    if column.kind == "date":
        units = [Decimal(1)] * 2
    elif column.transform == "log":
        units = [_unit(abs(low)), _unit(abs(high))]
    else:
        units = [_unit(high - low)] * 2
    down = _rounded(low, units[0], ROUND_FLOOR)
    up = _rounded(high, units[1], ROUND_CEILING)
    down, up = min(max(down, least), most), min(max(up, least), most)
    # Where floats are coarse nothing may be left between them.
    return (down, up) if down < up else (least, most)


def narrowed(column: Column, low: float, high: float) -> Column:
    """The column with these bounds; what stands for missing cells goes to the nearer of them."""
    missing = column.missing
    if missing is not None and missing.rule == "value":
        assert isinstance(missing.value, (int, float))  # levels have no bounds
        missing = replace(missing, value=min(max(float(missing.value), low), high))
    return replace(column, lo=low, hi=high, missing=missing)


def _unit(size: float) -> Decimal:
    """A unit of the last digit that is kept of a size."""
    return Decimal(10) ** (Decimal(size).adjusted() - _DIGITS + 1 if size else 0)


def _rounded(value: float, unit: Decimal, rounding: str) -> float:
    # Enough digits for any two floats.
    context = Context(prec=800, rounding=rounding)
    steps = context.divide(Decimal(value), unit).to_integral_value(rounding=rounding)
    return float(context.multiply(steps, unit))
