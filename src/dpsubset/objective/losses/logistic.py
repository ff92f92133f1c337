"""Logistic loss: l(y, t) = log(1 + exp(-y t)) for labels y = -1 and 1."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import NamedTuple

import flint
import numpy as np
from scipy.special import expit

from ...base.kernels.arrays import Array, Cells, Ints
from ...base.kernels.compiled import kernel
from ...constraints import Constraint
from .base import ENTROPIES, SLOPES, Loss
from .row_kernels import newton_minimum

#: log 2, rounded down at the 128th bit.
_LOG_2 = Fraction(0xB17217F7D1CF79ABC9E3B39803F2F6AF, 2**128)
#: Beyond this prediction bound the smallest curvature is negligible.
_LARGEST_CURVED_BOUND = 8
#: The largest omega: a little below the largest curvature of the loss, 1/4.
_STEEPEST = 0.2499


class Logistic(NamedTuple):
    """log(1 + exp(-t)), a function of the margin t."""

    labels: bool = True

    def at_zero(self, response: Cells) -> Fraction:
        return len(response) * _LOG_2

    def exact(
        self, o: flint.arb, t: flint.arb, fine: flint.arb
    ) -> tuple[flint.arb, flint.arb, flint.arb]:
        """In terms of exp(-|t|), or of exp(t) where the sign of t is uncertain."""
        if t >= 0:
            small = (-t).exp()
            return small.log1p(), -small / (1 + small), small / (1 + small) ** 2
        large = t.exp()
        return large.log1p() - t, -1 / (1 + large), large / (1 + large) ** 2

    def exact_lower_line(
        self, o: flint.arb, t: flint.arb, fine: flint.arb
    ) -> tuple[flint.arb, flint.arb, flint.arb]:
        """The tangent, without a gap."""
        loss, slope, _ = self.exact(o, t, fine)
        return loss, slope, flint.arb(0)

    def smoothing(self, prediction_bound: Fraction) -> tuple[float, float]:
        return 0.0, 0.0

    def conjugates(self) -> Ints:
        """Entropies."""
        return entropies()

    def largest(self) -> float:
        """At t = 0 no loss and no conjugate of a row exceeds 1."""
        return 1.0

    def parabola(self, prediction_bound: Fraction) -> tuple[float, Ints] | None:
        """For |t| <= B the loss has curvature everywhere."""
        return (
            parabola(math.nextafter(float(prediction_bound), math.inf))
            if prediction_bound <= _LARGEST_CURVED_BOUND
            else None
        )

    @staticmethod
    def is_kinked() -> bool:
        return False

    # -- kernels ---------------------------------------------------------------------------------

    @staticmethod
    @kernel
    def smooth(logistic: Logistic, width: float, o: float, t: float) -> tuple[
        float, float, float
    ]:  # fmt: skip
        """In terms of exp(-|t|)."""
        small = np.exp(-abs(t))
        value = np.log1p(small) + max(-t, 0.0)
        slope = -1.0 / (1.0 + small) if t < 0.0 else -small / (1.0 + small)
        return value, slope, small / (1.0 + small) ** 2

    @staticmethod
    @kernel
    def line(logistic: Logistic, o: float, t: float) -> tuple[float, float, float]:
        """The tangent."""
        beyond = np.expm1(-abs(t))
        value = np.log1p(0.5 * beyond) + max(-t, 0.0)
        return value, -(1.0 if t < 0.0 else 1.0 + beyond) / (2.0 + beyond), 0.0

    @staticmethod
    @kernel
    def steepest(logistic: Logistic) -> float:
        """The limit for t to minus infinity."""
        return 1.0

    @staticmethod
    @kernel
    def slope_error(logistic: Logistic) -> float:
        """A generous bound on the error of expm1."""
        return 16.0

    @staticmethod
    @kernel
    def minimise(
        logistic: Logistic, c: Constraint, z: Array, o: Array, counts: Array, ridge: float,
        target: float, cutoff: float,
    ) -> tuple[float, float]:  # fmt: skip
        return newton_minimum(logistic, c, z, o, counts, ridge, target, (0.0,))

    @staticmethod
    @kernel
    def conjugate(logistic: Logistic, slope: int, y: int, table: Ints) -> tuple[int, int]:
        return table[slope], 0

    @staticmethod
    @kernel
    def conjugate_sum(logistic: Logistic, total: int, square: int, scale: float) -> float:
        return total / ENTROPIES


LOGISTIC = Loss(
    name="logistic",
    # log(1 + e^B) - log(1 + e^-B) = B.
    ranges={"sharp": lambda prediction_bound: prediction_bound},
    rows=lambda prediction_bound: Logistic(),
    best=math.inf,
    # Up to B = 1 the loss is nearly linear, and a joint fit gains little.
    prediction_bound=2.0,
)


@functools.cache
def entropies() -> Ints:
    """-l*: the entropy of q / SLOPES in nats, rounded down."""
    fraction = np.arange(1, SLOPES) / SLOPES
    nats = -fraction * np.log(fraction) - (1 - fraction) * np.log1p(-fraction)
    table = np.zeros(SLOPES + 1, dtype=np.int64)
    # The rounding error of float64 is far below the step subtracted here.
    table[1:-1] = np.maximum(np.floor(nats * ENTROPIES).astype(np.int64) - 1, 0)
    return table


@functools.lru_cache(maxsize=8)
def parabola(prediction_bound: float) -> tuple[float, Ints]:
    """omega, and -psi* at slopes -q / SLOPES rounded down, in multiples of 1 / ENTROPIES.

    psi(t) = l(t) - (omega/2) t^2. omega is chosen so that parabolas of this curvature which touch
    the loss at predictions up to B / 2 stay below it. Any omega would be valid: psi* is the largest
    value over all |t| <= B, whatever the shape of psi. psi is convex where omega is below the
    curvature of the loss and concave beyond that point, so the largest value is attained at a
    stationary point or at an end.
    """
    omega = _STEEPEST
    if prediction_bound > 0.01:  # below that, rounding dominates the differences
        omega = min(
            _secant(0.5 * prediction_bound, prediction_bound),
            _secant(0.5 * prediction_bound, -prediction_bound),
            omega,
        )
    fraction = np.arange(SLOPES + 1) / SLOPES

    def values(t: Array | float) -> Array:
        return np.asarray(np.logaddexp(0.0, -t) - 0.5 * omega * t * t + fraction * t)

    def slope(t: Array) -> Array:
        return np.asarray(-expit(-t) - omega * t + fraction)

    edge = math.sqrt(1.0 - 4.0 * omega)
    edge = min(math.log1p(edge) - math.log1p(-edge), prediction_bound)
    low, high = np.full(len(fraction), -edge), np.full(len(fraction), edge)
    for _ in range(60):
        middles = 0.5 * (low + high)
        below = slope(middles) < 0.0
        low, high = np.where(below, middles, low), np.where(below, high, middles)
    inside = values(low) - 2.0 * edge * np.abs(slope(low))
    least = np.minimum(inside, np.minimum(values(-prediction_bound), values(prediction_bound)))
    # The rounding error of float64 is far below the slack subtracted here.
    slack = 2.0**-40 * (1.0 + prediction_bound) ** 2
    table = np.floor((least - slack) * ENTROPIES).astype(np.int64)
    return omega, table


def _secant(start: float, end: float) -> float:
    """The curvature of a parabola that touches the loss at one point and meets it at another."""
    rise = np.logaddexp(0.0, -end) - np.logaddexp(0.0, -start)
    return float(2.0 * (rise + expit(-start) * (end - start)) / (end - start) ** 2)
