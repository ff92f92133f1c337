"""Hinge loss: l(y, t) = max(0, 1 - y t) for labels y = -1 and 1."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import flint
import numpy as np

from ...base.kernels.arrays import Array, Cells, Ints, put
from ...base.kernels.compiled import kernel
from ...constraints import Constraint
from .base import SLOPES, Loss
from .hinge_kernels import (
    AugmentedHinge,
    has_margin_above_one,
    linear_minimum,
    method_of_multipliers,
    smoothed_slopes,
)
from .row_kernels import certify, proximal_newton

#: Factor between smoothing widths, and their number; the augmented hinge gets a few rounds at each.
_RATIO = 0.2
_WIDTHS = 9
_ROUNDS = 4


class Hinge(NamedTuple):
    """max(0, 1 - t), a function of the margin t."""

    labels: bool = True

    def at_zero(self, response: Cells) -> Fraction:
        return Fraction(len(response))

    def exact(
        self, o: flint.arb, t: flint.arb, fine: flint.arb
    ) -> tuple[flint.arb, flint.arb, flint.arb]:
        """A barrier smoothing: min over s > max(0, m) of s - log(s (s - m)) / fine, m = 1 - t."""
        m = 1 - t
        x = fine * m / 2
        root = (1 + x * x).sqrt()
        rest = 1 / (root + x) if x > 0 else root - x
        multiplier = 1 / (1 + rest)
        s, beyond = (root + 1 + x) / fine, (1 + rest) / fine
        if x < 0:
            s = (1 + 1 / (root - x)) / fine
        value = s - (s.log() + beyond.log()) / fine
        return value, -multiplier, fine / 2 * (rest / root) * multiplier * multiplier

    def exact_lower_line(
        self, o: flint.arb, t: flint.arb, fine: flint.arb
    ) -> tuple[flint.arb, flint.arb, flint.arb]:
        """Lines of any slope from -1 to 0 support the hinge; that of `exact` is a good one."""
        m = 1 - t
        loss = m.max(flint.arb(0))
        multiplier = (
            flint.arb((-self.exact(o, t, fine)[1]).mid()).max(flint.arb(0)).min(flint.arb(1))
        )
        return loss, -multiplier, loss - multiplier * m

    def smoothing(self, prediction_bound: Fraction) -> tuple[float, float]:
        """Up to B = 1 no margin exceeds 1: the hinge is a line with the same slope everywhere."""
        return (0.1, 5e-4) if prediction_bound > 1 else (1e-9, 1e-9)

    def conjugates(self) -> Ints:
        """Conjugates equal slopes; no table is needed."""
        return np.empty(0, dtype=np.int64)

    def largest(self) -> float:
        """At t = 0 no loss and no conjugate of a row exceeds 1."""
        return 1.0

    def parabola(self, prediction_bound: Fraction) -> tuple[float, Ints] | None:
        return None

    @staticmethod
    def is_kinked() -> bool:
        return True

    # -- kernels ---------------------------------------------------------------------------------

    @staticmethod
    @kernel
    def smooth(hinge: Hinge, width: float, o: float, t: float) -> tuple[float, float, float]:
        """A hyperbola."""
        m = 1.0 - t
        root = np.sqrt(m * m + 4.0 * width * width)
        return 0.5 * (m + root), -0.5 * (1.0 + m / root), 2.0 * width * width / root**3

    @staticmethod
    @kernel
    def line(hinge: Hinge, o: float, t: float) -> tuple[float, float, float]:
        """The line with slope -o, o clipped to [0, 1]."""
        multiplier = min(max(o, 0.0), 1.0)
        m = 1.0 - t
        if m > 0.0:
            return -t, -multiplier, (1.0 - multiplier) * m
        return -1.0, -multiplier, -multiplier * m

    @staticmethod
    @kernel
    def steepest(hinge: Hinge) -> float:
        return 1.0

    @staticmethod
    @kernel
    def slope_error(hinge: Hinge) -> float:
        """0: slopes are chosen, not computed."""
        return 0.0

    @staticmethod
    @kernel
    def minimise(
        hinge: Hinge, c: Constraint, z: Array, o: Array, counts: Array, ridge: float,
        target: float, cutoff: float,
    ) -> tuple[float, float]:  # fmt: skip
        """Three methods, each tried where the one before does not certify; see `hinge_kernels`."""
        b = linear_minimum(c, z, o, counts, ridge, target)
        if not has_margin_above_one(z, b):
            value, width = certify(hinge, c, z, o, counts, ridge, b)
            if width <= target:
                return value, width
        first = b.copy()
        if method_of_multipliers(c, z, o, counts, ridge, target, cutoff, b):
            value, width = certify(hinge, c, z, o, counts, ridge, b)
            if value - width > cutoff:
                return value, width
            put(b, first)
            method_of_multipliers(c, z, o, counts, ridge, target, np.inf, b)
        value, width = certify(hinge, c, z, o, counts, ridge, b)
        if width <= target:
            return value, width
        put(b, first)
        for patient in (True, False):
            smoothing, before = 0.25, z.shape[0]
            for stage in range(_WIDTHS):
                at, lines = smoothing, False
                smoothing *= _RATIO
                for turn in range(1 + _ROUNDS):
                    if lines:
                        # Added curvature helps where few rows are at the kink.
                        for part in range(3):
                            smoothed = AugmentedHinge(1.0 if part == 1 else 0.0, True)
                            proximal_newton(smoothed, c, z, o, counts, at, ridge, target, b)
                        near = smoothed_slopes(AugmentedHinge(0.0, True), z, o, at, b)
                    else:
                        proximal_newton(hinge, c, z, o, counts, at, ridge, target, b)
                        near = smoothed_slopes(hinge, z, o, at, b)
                    if turn == 0:
                        # Shrink the width as long as this takes rows off the kink.
                        lines = near > 0.5 * before if patient else stage > 1
                        before = near
                        if lines:
                            at = at if patient else smoothing
                            continue
                    value, width = certify(hinge, c, z, o, counts, ridge, b)
                    if width <= target:
                        return value, width
                    if not lines:
                        break
        # The augmented hinge can fail, too; a sharp smoothing needs no multipliers.
        put(b, first)
        smoothing = 0.25
        for _ in range(2 * _WIDTHS):
            proximal_newton(hinge, c, z, o, counts, smoothing, ridge, target, b)
            smoothed_slopes(hinge, z, o, smoothing, b)
            other, wide = certify(hinge, c, z, o, counts, ridge, b)
            if wide < width:
                value, width = other, wide
            if width <= target:
                break
            smoothing *= 0.4
        return value, width

    @staticmethod
    @kernel
    def conjugate(hinge: Hinge, slope: int, y: int, table: Ints) -> tuple[int, int]:
        """max(0, 1 - t) >= a (1 - t) for a in [0, 1]."""
        return slope, 0

    @staticmethod
    @kernel
    def conjugate_sum(hinge: Hinge, total: int, square: int, scale: float) -> float:
        return total / SLOPES


def _sharp(prediction_bound: Fraction) -> Fraction:
    # From 1 - B, or from 0 where margins can exceed 1, to 1 + B.
    return 2 * prediction_bound if prediction_bound <= 1 else 1 + prediction_bound


HINGE = Loss(
    name="hinge",
    ranges={"sharp": _sharp},
    rows=lambda prediction_bound: Hinge(),
    # Up to B = 1 the hinge is a line: a joint fit gains nothing.
    prediction_bound=2.0,
)
