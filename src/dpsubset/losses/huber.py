"""Huber loss: l(y, t) = h(y - t), h(r) = r^2 for |r| <= d and 2 d |r| - d^2 beyond.

The threshold d is public, in units of the response's half-range.
"""

from __future__ import annotations

from fractions import Fraction

from ..public.problem import DEFAULT_THRESHOLD
from .base import HUBER as _CODE
from .base import Loss, Rows

#: A quarter of the half-range: a residual beyond it counts by its size, not by its square.
THRESHOLD = Fraction(DEFAULT_THRESHOLD)


def of_threshold(threshold: Fraction) -> Loss:
    """The loss with this threshold d, 0 < d <= 1, which is a float64 number: kernels take it so."""

    def value(residual: Fraction) -> Fraction:
        if residual <= threshold:
            return residual**2
        return 2 * threshold * residual - threshold**2

    def sharp(reach: Fraction) -> Fraction:
        # At fixed y residuals lie between (|y| - B)_+ and |y| + B. h is convex and increasing, so
        # the range grows with |y|.
        return value(1 + reach) - value(max(1 - reach, Fraction(0)))

    rows = Rows(_CODE, labels=False, threshold=threshold)
    return Loss(name="huber", ranges={"sharp": sharp}, rows=rows, of_threshold=of_threshold)


HUBER = of_threshold(THRESHOLD)
