"""The minimum of a sum of smooth losses with a ridge and a linear_term, within a certified distance.

    J(b) = sum of l(o_i, a_i'b) + (ridge / 2) |b|^2 + linear_term'b,    a_i in [-1, 1]^d

is strongly convex: |b - b*| <= |J'(b)| / ridge for every b. So whoever bounds the slope at a point
knows how far that is from the minimum. Newton's method proposes points in float64, and
their slopes are bounded there, rounding included. What float64 cannot certify, balls do, at as many
bits as it takes: there is always an answer, and it is always within the distance asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np
from numpy.typing import NDArray

from ..base.rounding import ball, midpoint, upper, working_precision
from ..schema.layout import STEPS
from .smooth import Smooth

Floats = NDArray[np.float64]
Point = tuple[Fraction, ...]

#: The unit roundoff of float64.
_U = Fraction(1, 2**53)
#: How far exp and what follows may put a slope of the logistic loss off, generously.
_SLOPE_ERROR = Fraction(1, 2**49)
#: Newton steps and halvings of one in float64: beyond that balls go on.
_STEPS, _HALVINGS = 60, 40
#: Of J: what sums in float64 cannot tell.
_RESOLUTION = 1e-14
#: Sufficient decrease.
_DECREASE = Fraction(1, 10**4)
#: Rows that balls take at a time.
_BLOCK = 2**14
#: Least bits of balls.
_BITS = 128


@dataclass(frozen=True)
class Objective:
    """J. Holds records: private.

    Attributes
    ----------
    rows : int16 array of shape (n, d)
        S a_i, S = 32767: integers within +-S.
    response : int16 array of shape (n,)
        S o_i.
    ridge : Fraction
    linear_term : tuple of Fraction
    """

    loss: Smooth
    rows: NDArray[np.int16]
    response: NDArray[np.int16]
    ridge: Fraction
    linear_term: Point

    def __repr__(self) -> str:
        return "Objective(private values hidden)"

    @property
    def d(self) -> int:
        """How many coefficients."""
        return len(self.linear_term)

    def minimum(self, distance: Fraction) -> Point:
        """A point whose distance from the minimum, in l2, is at most this."""
        most = distance * self.ridge
        floats = _Floats(self)
        point = floats.minimum()
        for _ in range(3):
            found = tuple(Fraction(float(v)) for v in point)
            slope, error = floats.slope(point)
            if _norm_within(slope, error, most):
                return found
            point = point - floats.solve(point, np.array([float(v) for v in slope]))
        return _refined(self, floats, found, most)


class _Floats:
    """The same in float64, whose roundings are counted where they matter."""

    def __init__(self, of: Objective) -> None:
        self._of = of
        self._rows = of.rows.astype(np.float64)
        self._response = of.response / STEPS
        self._ridge = float(of.ridge)
        self._linear_term = np.array([float(v) for v in of.linear_term])

    def minimum(self) -> Floats:
        """Near enough to the minimum for float64: Newton's method, each step halved if need be."""
        point = np.zeros(self._of.d)
        value, slope = self._value(point)
        for _ in range(_STEPS):
            step = self.solve(point, slope)
            decrease = float(slope @ step)
            if decrease <= _RESOLUTION * (1 + abs(value)):
                return point - step  # what J can fall by drowns in rounding
            for halving in range(_HALVINGS):
                trial = point - step / 2**halving
                other, slope_there = self._value(trial)
                if other <= value - float(_DECREASE) * decrease / 2**halving:
                    break
            else:
                break
            point, value, slope = trial, other, slope_there
        return point

    def _predictions(self, point: Floats) -> Floats:
        return np.asarray(self._rows @ point / STEPS)

    def _value(self, point: Floats) -> tuple[float, Floats]:
        values, slopes, _ = self._of.loss.floats(self._response, self._predictions(point))
        total = values.sum() + self._ridge / 2 * (point @ point) + self._linear_term @ point
        slope = slopes @ self._rows / STEPS + self._ridge * point + self._linear_term
        return float(total), slope

    def solve(self, point: Floats, slope: Floats) -> Floats:
        """The slope over the curvature at a point, which is never below the ridge."""
        _, _, curved = self._of.loss.floats(self._response, self._predictions(point))
        matrix = (self._rows * curved[:, None]).T @ self._rows / STEPS**2
        values, vectors = np.linalg.eigh(matrix)
        return np.asarray(vectors @ ((vectors.T @ slope) / (np.maximum(values, 0) + self._ridge)))

    def slope(self, point: Floats) -> tuple[list[Fraction], Fraction]:
        """J' at a point of float64, and by how much any entry may be off."""
        of, n = self._of, len(self._rows)
        _, slopes, _ = of.loss.floats(self._response, self._predictions(point))
        # fsum rounds once, whatever it adds up.
        sums = [Fraction(math.fsum((slopes * column).tolist())) / STEPS for column in self._rows.T]
        exact = [Fraction(float(v)) for v in point]
        size = sum(map(abs, exact), Fraction(1))
        each = (of.d + 8) * _U * size + _SLOPE_ERROR + 4 * _U * of.loss.slope
        whole = [s + of.ridge * b + p for s, b, p in zip(sums, exact, of.linear_term, strict=True)]
        return whole, n * each


def _norm_within(slope: list[Fraction], error: Fraction, most: Fraction) -> bool:
    return sum((abs(v) + error) ** 2 for v in slope) <= most**2


def _refined(of: Objective, floats: _Floats, point: Point, most: Fraction) -> Point:
    """Newton's method in balls. Their bits are doubled when they cannot tell that a step is good.

    It ends: a step along -H^-1 J', H from ridge to ridge + n c d, lowers J by some part of |J'|^2
    as soon as it is short enough, J has a least value, and balls of enough bits can tell.
    """
    bits = _BITS
    while True:
        with working_precision(bits):
            value, slope = _ball_value(of, point)
            if sum(upper(abs(v)) ** 2 for v in slope) <= most**2:
                return point
            middle = [midpoint(v) for v in slope]
            scale = max(map(abs, middle)) or Fraction(1)
            near = np.array([float(v) for v in point])
            step = floats.solve(near, np.array([float(v / scale) for v in middle]))
            # On a grid, so that a point stays a number of so many bits.
            whole = [Fraction(float(v)) * scale for v in step]
            decrease = sum(s * v for s, v in zip(slope, map(ball, whole), strict=True))
            for halving in range(bits):
                trial = tuple(
                    Fraction(round((b - s / 2**halving) * 2**bits), 2**bits)
                    for b, s in zip(point, whole, strict=True)
                )
                other, _ = _ball_value(of, trial)
                if other <= value - decrease * ball(_DECREASE / 2**halving):
                    point = trial
                    break
            else:
                bits *= 2


def _ball_value(of: Objective, point: Point) -> tuple[flint.arb, list[flint.arb]]:
    """J and J' at a point, as balls that hold them."""
    b = flint.arb_mat(of.d, 1, [ball(v) for v in point])
    ridge, linear_term = ball(of.ridge), [ball(v) for v in of.linear_term]
    value = sum((v[0] * v[1] for v in zip(linear_term, b.entries(), strict=True)), flint.arb(0))
    value += ridge / 2 * sum((v * v for v in b.entries()), flint.arb(0))
    slope = [p + ridge * v for p, v in zip(linear_term, b.entries(), strict=True)]
    for start in range(0, len(of.rows), _BLOCK):
        rows = of.rows[start : start + _BLOCK].tolist()
        a = flint.arb_mat(rows)
        each = [
            of.loss.balls(flint.arb(o) / STEPS, t / STEPS)
            for o, t in zip(
                of.response[start : start + _BLOCK].tolist(), (a * b).entries(), strict=True
            )
        ]
        value += sum((v for v, _ in each), flint.arb(0))
        slopes = flint.arb_mat(1, len(each), [s for _, s in each])
        slope = [s + g / STEPS for s, g in zip(slope, (slopes * a).entries(), strict=True)]
    return value, slope
