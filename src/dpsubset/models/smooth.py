"""Smooth: the losses that objective perturbation can fit, l(o, t), convex in t.

Each has slopes within +-L and a slope that changes by at most c per unit of t, everywhere:

============== =========================================== ====== === ====================
loss           l                                           L      c   t is
============== =========================================== ====== === ====================
least squares  r^2 / 2 for |r| <= L, L |r| - L^2 / 2       1, 3/2 1   x'b, and r = t - y
               beyond
logistic       log(1 + exp(-t))                            1      1/4 the margin y x'b
hinge          0 for t >= 3/2, (3/2 - t)^2 / 2 down to     1      1   the margin y x'b
               t = 1/2, and 1 - t below
============== =========================================== ====== === ====================

A privacy proof of this kind requires a bounded slope and a loss without kinks. Squared residuals
are therefore linear beyond L, as in a Huber loss: L is 1, the half-width of the response's clip,
beyond which few residuals are; for labels, -1 and 1, where a rare label has residuals up to 2, it
is 3/2 (docs/developers.md has the measurements). The hinge is smoothed around its kink.
`proofs/objective-perturbation.md` states the conditions.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np
from numpy.typing import NDArray

from ..base.rounding import ball

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Smooth:
    """A loss of a fit. Public."""

    name: str
    #: Whether t is a margin; then o is 0.
    labels: bool
    #: L and c.
    slope: Fraction
    curvature: Fraction

    @abstractmethod
    def floats(self, o: Floats, t: Floats) -> tuple[Floats, Floats, Floats]:
        """Value, slope and curvature of each row."""

    @abstractmethod
    def balls(self, o: flint.arb, t: flint.arb) -> tuple[flint.arb, flint.arb]:
        """Value and slope of one row, as balls that contain them."""


class _LeastSquares(Smooth):
    def floats(self, o: Floats, t: Floats) -> tuple[Floats, Floats, Floats]:
        r, most = t - o, float(self.slope)
        slope = np.clip(r, -most, most)
        return slope * (r - slope / 2), slope, (np.abs(r) <= most).astype(np.float64)

    def balls(self, o: flint.arb, t: flint.arb) -> tuple[flint.arb, flint.arb]:
        r, most = t - o, ball(self.slope)
        slope = r.max(-most).min(most)
        return slope * (r - slope / 2), slope


class _Logistic(Smooth):
    def floats(self, o: Floats, t: Floats) -> tuple[Floats, Floats, Floats]:
        small = np.exp(-np.abs(t))
        value = np.log1p(small) + np.maximum(-t, 0.0)
        slope = -np.where(t < 0.0, 1.0, small) / (1.0 + small)
        return value, slope, small / (1.0 + small) ** 2

    def balls(self, o: flint.arb, t: flint.arb) -> tuple[flint.arb, flint.arb]:
        if t >= 0:
            small = (-t).exp()
            return small.log1p(), -small / (1 + small)
        large = t.exp()  # also where the sign of t is not certain
        return large.log1p() - t, -1 / (1 + large)


class _Hinge(Smooth):
    def floats(self, o: Floats, t: Floats) -> tuple[Floats, Floats, Floats]:
        below = 1.5 - t
        slope = np.clip(below, 0.0, 1.0)
        inside = ((below >= 0.0) & (below <= 1.0)).astype(np.float64)
        return slope * (below - slope / 2), -slope, inside

    def balls(self, o: flint.arb, t: flint.arb) -> tuple[flint.arb, flint.arb]:
        below = flint.arb(3) / 2 - t
        slope = below.max(flint.arb(0)).min(flint.arb(1))
        return slope * (below - slope / 2), -slope


LEAST_SQUARES: Smooth = _LeastSquares("least-squares", False, Fraction(1), Fraction(1))
LOGISTIC: Smooth = _Logistic("logistic", True, Fraction(1), Fraction(1, 4))
HINGE: Smooth = _Hinge("hinge", True, Fraction(1), Fraction(1))
#: Least squares for labels coded as -1 and 1.
LABEL_SQUARES: Smooth = _LeastSquares("least-squares", False, Fraction(3, 2), Fraction(1))


def smooth(loss: str, labels: bool) -> Smooth:
    """The loss of a fit after a selection by ``loss``, of a response with labels or without.

    After a selection by the Huber loss it is least squares, which is a Huber loss here.
    """
    squares = LABEL_SQUARES if labels else LEAST_SQUARES
    # By name, so that a new loss is not fitted by least squares without a decision.
    return {"least-squares": squares, "huber": squares, "logistic": LOGISTIC, "hinge": HINGE}[loss]
