"""Hinge loss: l(y, t) = max(0, 1 - y t) for labels y = -1 and 1."""

from __future__ import annotations

from fractions import Fraction

from .base import HINGE as _CODE
from .base import Loss, Rows


def _sharp(reach: Fraction) -> Fraction:
    # From 1 - B, or from 0 where the margin can be passed, to 1 + B.
    return 2 * reach if reach <= 1 else 1 + reach


HINGE = Loss(
    name="hinge",
    ranges={"sharp": _sharp},
    rows=Rows(_CODE, labels=True),
    # Up to reach 1 it is a line: nothing is gained by a joint fit.
    reach=2.0,
)
