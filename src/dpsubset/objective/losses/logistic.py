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
#: Beyond this reach there is next to no curvature to count on.
_CURVED_REACH = 8
#: The largest omega: a little below the largest curvature of the loss, 1/4.
_STEEPEST = 0.2499


class Logistic(NamedTuple):
    """log(1 + exp(-t)), a function of the margin."""

    labels: bool = True

    def at_zero(self, response: Cells) -> Fraction:
        """log 2 each."""
        return len(response) * _LOG_2

    def exact(
        self, o: flint.arb, t: flint.arb, fine: flint.arb
    ) -> tuple[flint.arb, flint.arb, flint.arb]:
        """In terms of exp(-|t|), or of both where the sign of t is not certain."""
        if t >= 0:
            small = (-t).exp()
            return small.log1p(), -small / (1 + small), small / (1 + small) ** 2
        large = t.exp()
        return large.log1p() - t, -1 / (1 + large), large / (1 + large) ** 2

    def exact_lower_line(
        self, o: flint.arb, t: flint.arb, fine: flint.arb
    ) -> tuple[flint.arb, flint.arb, flint.arb]:
        """The tangent."""
        loss, slope, _ = self.exact(o, t, fine)
        return loss, slope, flint.arb(0)

    def smoothing(self, prediction_bound: Fraction) -> tuple[float, float]:
        """There is no kink."""
        return 0.0, 0.0

    def conjugates(self) -> Ints:
        """Entropies."""
        return entropies()

    def largest(self) -> float:
        """No loss and no conjugate of a row is larger at t = 0."""
        return 1.0

    def parabola(self, prediction_bound: Fraction) -> tuple[float, Ints] | None:
        """Within the reach the loss has curvature."""
        return (
            parabola(math.nextafter(float(prediction_bound), math.inf))
            if prediction_bound <= _CURVED_REACH
            else None
        )

    @staticmethod
    def is_kinked() -> bool:
        """It is smooth."""
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
        """Far to the left."""
        return 1.0

    @staticmethod
    @kernel
    def slope_error(logistic: Logistic) -> float:
        """Of expm1, generously."""
        return 16.0

    @staticmethod
    @kernel
    def minimise(
        logistic: Logistic, c: Constraint, z: Array, o: Array, counts: Array, ridge: float,
        target: float, cutoff: float,
    ) -> tuple[float, float]:  # fmt: skip
        """Newton's method."""
        return newton_minimum(logistic, c, z, o, counts, ridge, target, (0.0,))

    @staticmethod
    @kernel
    def conjugate(logistic: Logistic, share: int, y: int, table: Ints) -> tuple[int, int]:
        """From the table."""
        return table[share], 0

    @staticmethod
    @kernel
    def conjugate_sum(logistic: Logistic, total: int, square: int, scale: float) -> float:
        """The table's unit."""
        return total / ENTROPIES


LOGISTIC = Loss(
    name="logistic",
    # log(1 + e^B) - log(1 + e^-B) = B.
    ranges={"sharp": lambda prediction_bound: prediction_bound},
    rows=lambda prediction_bound: Logistic(),
    best=math.inf,
    # Up to reach 1 it is nearly a line, and blind to what a joint fit gains.
    prediction_bound=2.0,
)


@functools.cache
def entropies() -> Ints:
    """-l*: the entropy of q / SLOPES in nats, rounded down."""
    share = np.arange(1, SLOPES) / SLOPES
    nats = -share * np.log(share) - (1 - share) * np.log1p(-share)
    table = np.zeros(SLOPES + 1, dtype=np.int64)
    # What float64 leaves uncertain is far below the step that is given away here.
    table[1:-1] = np.maximum(np.floor(nats * ENTROPIES).astype(np.int64) - 1, 0)
    return table


@functools.lru_cache(maxsize=8)
def parabola(prediction_bound: float) -> tuple[float, Ints]:
    """omega, and -psi* of slopes -q / SLOPES rounded down, in units of 1 / ENTROPIES.

    psi(t) = l(t) - (omega/2) t^2. omega is a curvature that parabolas at predictions up to half the
    reach have, if they are to stay below the loss. Any would do: psi* is the largest value over all
    |t| <= reach, whatever the shape of psi. Where omega is below the curvature of the loss, psi is
    convex, beyond that point concave, so the largest value is attained at a stationary point or at
    an end.
    """
    omega = _STEEPEST
    if prediction_bound > 0.01:  # below that the differences drown in rounding
        omega = min(
            _secant(0.5 * prediction_bound, prediction_bound),
            _secant(0.5 * prediction_bound, -prediction_bound),
            omega,
        )
    share = np.arange(SLOPES + 1) / SLOPES

    def values(t: Array | float) -> Array:
        return np.asarray(np.logaddexp(0.0, -t) - 0.5 * omega * t * t + share * t)

    def slope(t: Array) -> Array:
        return np.asarray(-expit(-t) - omega * t + share)

    edge = math.sqrt(1.0 - 4.0 * omega)
    edge = min(math.log1p(edge) - math.log1p(-edge), prediction_bound)
    low, high = np.full(len(share), -edge), np.full(len(share), edge)
    for _ in range(60):
        middles = 0.5 * (low + high)
        below = slope(middles) < 0.0
        low, high = np.where(below, middles, low), np.where(below, high, middles)
    inside = values(low) - 2.0 * edge * np.abs(slope(low))
    least = np.minimum(inside, np.minimum(values(-prediction_bound), values(prediction_bound)))
    # What float64 leaves uncertain is far below what is given away here.
    slack = 2.0**-40 * (1.0 + prediction_bound) ** 2
    table = np.floor((least - slack) * ENTROPIES).astype(np.int64)
    return omega, table


def _secant(start: float, end: float) -> float:
    """The curvature of a parabola that touches the loss at one point and meets it at another."""
    rise = np.logaddexp(0.0, -end) - np.logaddexp(0.0, -start)
    return float(2.0 * (rise + expit(-start) * (end - start)) / (end - start) ** 2)
