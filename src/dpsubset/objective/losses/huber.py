"""Huber loss: l(y, t) = h(y - t), h(r) = r^2 for |r| <= d and 2 d |r| - d^2 beyond.

The threshold d is public, in units of the response's half-range.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import flint
import numpy as np

from ...base.kernels.arrays import Array, Cells, Ints
from ...base.kernels.compiled import kernel
from ...base.rounding import ball
from ...constraints import Constraint
from ...data.quantize import STEPS
from ..problem import DEFAULT_THRESHOLD
from .base import SLOPES, Loss
from .row_kernels import newton_minimum

#: The default threshold: larger residuals count linearly.
THRESHOLD = Fraction(DEFAULT_THRESHOLD)
#: Fractions of the curvature of a parabola with the same tangent, added beyond the threshold where
#: too few rows have curvature of their own.
_ADDED_CURVATURE = (0.0, 1e-3, 0.1, 1.0)


class Huber(NamedTuple):
    """h(o - t) with threshold d <= 1, a float64 number."""

    threshold: float
    labels: bool = False

    def at_zero(self, response: Cells) -> Fraction:
        d, sizes = Fraction(self.threshold), np.abs(response.astype(np.int64))
        near = sizes[sizes <= math.floor(d * STEPS)]
        far = int(sizes.sum() - near.sum())
        squares = Fraction(int((near * near).sum()), STEPS**2)
        return squares + 2 * d * Fraction(far, STEPS) - d**2 * (len(sizes) - len(near))

    def exact(
        self, o: flint.arb, t: flint.arb, fine: flint.arb
    ) -> tuple[flint.arb, flint.arb, flint.arb]:
        r, d = o - t, ball(Fraction(self.threshold))
        if abs(r) <= d:
            return r * r, -2 * r, flint.arb(2)
        if r > d:
            return d * (2 * r - d), -2 * d, flint.arb(0)
        if r < -d:
            return d * (-2 * r - d), 2 * d, flint.arb(0)
        # r may be on either side of the threshold: the hull of both formulas contains the loss.
        outer = d * (2 * abs(r) - d)
        clipped = r.max(-d).min(d)
        return (r * r).union(outer), -2 * clipped, flint.arb(1)

    def exact_lower_line(
        self, o: flint.arb, t: flint.arb, fine: flint.arb
    ) -> tuple[flint.arb, flint.arb, flint.arb]:
        """The tangent, without a gap."""
        loss, slope, _ = self.exact(o, t, fine)
        return loss, slope, flint.arb(0)

    def smoothing(self, prediction_bound: Fraction) -> tuple[float, float]:
        return 0.0, 0.0

    def conjugates(self) -> Ints:
        """`conjugate` needs no table."""
        return np.empty(0, dtype=np.int64)

    def largest(self) -> float:
        """At t = 0 no loss and no conjugate of a row exceeds 1."""
        return 1.0

    def parabola(self, prediction_bound: Fraction) -> tuple[float, Ints] | None:
        """None: there is no curvature beyond the threshold."""
        return None

    @staticmethod
    def is_kinked() -> bool:
        return False

    # -- kernels ---------------------------------------------------------------------------------

    @staticmethod
    @kernel
    def smooth(huber: Huber, width: float, o: float, t: float) -> tuple[float, float, float]:
        """Beyond the threshold, ``width`` is the fraction of curvature added."""
        r, d = o - t, huber.threshold
        if abs(r) <= d:
            return r * r, -2.0 * r, 2.0
        return d * (2.0 * abs(r) - d), -2.0 * np.copysign(d, r), 2.0 * width * d / abs(r)

    @staticmethod
    @kernel
    def line(huber: Huber, o: float, t: float) -> tuple[float, float, float]:
        """The tangent."""
        d = huber.threshold
        c = min(max(o - t, -d), d)
        at_zero = min(max(o, -d), d)
        return (c - at_zero) * (2.0 * o - c - at_zero) - 2.0 * c * t, -2.0 * c, 0.0

    @staticmethod
    @kernel
    def steepest(huber: Huber) -> float:
        return 2.0 * huber.threshold

    @staticmethod
    @kernel
    def slope_error(huber: Huber) -> float:
        return 0.0

    @staticmethod
    @kernel
    def minimise(
        huber: Huber, c: Constraint, z: Array, o: Array, counts: Array, ridge: float,
        target: float, cutoff: float,
    ) -> tuple[float, float]:  # fmt: skip
        """Newton's method, with some added curvature if necessary."""
        return newton_minimum(huber, c, z, o, counts, ridge, target, _ADDED_CURVATURE)

    @staticmethod
    @kernel
    def conjugate(huber: Huber, slope: int, y: int, table: Ints) -> tuple[int, int]:
        """h(r) >= a r - a^2 / 4 for |a| <= 2 d, here with a = -2 d slope / SLOPES."""
        return -slope * y, slope * slope

    @staticmethod
    @kernel
    def conjugate_sum(huber: Huber, total: int, square: int, scale: float) -> float:
        step = 2.0 * huber.threshold / SLOPES
        return step * (total / scale) - step * step * (square / 4.0)


def of_threshold(threshold: Fraction) -> Loss:
    """The loss with this threshold d, 0 < d <= 1, which must be a float64 number."""

    def value(residual: Fraction) -> Fraction:
        if residual <= threshold:
            return residual**2
        return 2 * threshold * residual - threshold**2

    def sharp(prediction_bound: Fraction) -> Fraction:
        # At fixed y residuals lie between (|y| - B)_+ and |y| + B. h is convex and increasing, so
        # the range grows with |y|.
        return value(1 + prediction_bound) - value(max(1 - prediction_bound, Fraction(0)))

    return Loss(
        name="huber",
        ranges={"sharp": sharp},
        rows=lambda prediction_bound: Huber(float(threshold)),
        of_threshold=of_threshold,
    )


HUBER = of_threshold(THRESHOLD)
