"""Huber loss: l(y, t) = h(y - t), h(r) = r^2 for |r| <= d and 2 d |r| - d^2 beyond.

The threshold d is public, in units of the response's half-range.
"""

from __future__ import annotations

from fractions import Fraction

from .base import HUBER as _CODE
from .base import Loss, Rows

#: A quarter of the half-range: a residual beyond it counts by its size, not by its square.
THRESHOLD = Fraction(1, 4)


def _value(residual: Fraction) -> Fraction:
    if residual <= THRESHOLD:
        return residual**2
    return 2 * THRESHOLD * residual - THRESHOLD**2


def _sharp(reach: Fraction) -> Fraction:
    # At fixed y residuals lie between (|y| - B)_+ and |y| + B. h is convex and increasing, so the
    # range grows with |y|.
    return _value(1 + reach) - _value(max(1 - reach, Fraction(0)))


HUBER = Loss(
    name="huber", ranges={"sharp": _sharp}, rows=Rows(_CODE, labels=False, threshold=THRESHOLD)
)
