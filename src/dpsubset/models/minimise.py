"""The minimum of a sum of smooth losses with a ridge and a linear term, within a certified
distance.

    J(b) = sum of l(o_i, a_i'b) + sum of ridge_j b_j^2 / 2 + linear_term'b,    a_i in [-1, 1]^d

is strongly convex: |b - b*| <= |J'(b)| / min ridge_j for every b, so a bound on the gradient at a
point bounds its distance from the minimum. Newton's method proposes points in float64, and their
gradients are bounded there, rounding included. Where float64 cannot certify a point, balls do, with
as many bits as necessary. There is always a result, and it is always within the requested distance.
It is private until `objective_perturbation` has added noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np
from numpy.typing import NDArray

from ..base.rounding import ball, midpoint, upper
from ..schema.layout import STEPS
from .smooth import LOGISTIC, Smooth

Floats = NDArray[np.float64]
Point = tuple[Fraction, ...]

#: The unit roundoff of float64.
_U = Fraction(1, 2**53)
#: A generous bound on the error of a slope of the logistic loss.
_SLOPE_ERROR = Fraction(1, 2**49)
#: Largest number of Newton steps, and of halvings of a step, in float64; then balls take over.
_STEPS, _HALVINGS = 60, 40
#: Relative resolution of J in float64.
_RESOLUTION = 1e-14
#: Sufficient decrease.
_DECREASE = Fraction(1, 10**4)
#: Bits of a slope, after the point, that are added up exactly, and rows whose sum fits in int64.
_LEADING, _EXACT = 26, 2**20
#: Rows processed at a time in balls.
_BLOCK = 2**14
#: Smallest number of bits of balls.
_BITS = 128


@dataclass(frozen=True)
class Objective:
    """J. Contains records: private."""

    loss: Smooth
    #: S a_i, one a row, S = 32767: integers within +-S.
    rows: NDArray[np.int16]
    #: S o_i.
    response: NDArray[np.int16]
    #: One for each coefficient, all above 0.
    ridge: Point
    linear_term: Point

    def __repr__(self) -> str:
        return "Objective(private values hidden)"

    @property
    def d(self) -> int:
        """The number of coefficients."""
        return len(self.linear_term)

    def minimum(self, distance: Fraction) -> Point:
        """A point within this l2 distance of the minimum."""
        most = distance * min(self.ridge)
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
    """J in float64, with rounding errors bounded where they matter."""

    def __init__(self, of: Objective) -> None:
        self._of = of
        self._rows = of.rows.astype(np.float64)
        self._response = of.response / STEPS
        self._ridge = np.array([float(v) for v in of.ridge])
        self._linear_term = np.array([float(v) for v in of.linear_term])

    def minimum(self) -> Floats:
        """An approximate minimum by Newton's method with step halving."""
        point = np.zeros(self._of.d)
        value, slope = self._value(point)
        for _ in range(_STEPS):
            step = self.solve(point, slope)
            decrease = float(slope @ step)
            if decrease <= _RESOLUTION * (1 + abs(value)):
                return point - step  # the decrease is below the rounding error
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
        total = values.sum() + self._ridge @ point**2 / 2 + self._linear_term @ point
        slope = slopes @ self._rows / STEPS + self._ridge * point + self._linear_term
        return float(total), slope

    def solve(self, point: Floats, slope: Floats) -> Floats:
        """The inverse Hessian (eigenvalues at least the ridge) at a point times the gradient."""
        _, _, curved = self._of.loss.floats(self._response, self._predictions(point))
        matrix = (self._rows * curved[:, None]).T @ self._rows / STEPS**2
        values, vectors = np.linalg.eigh(matrix + np.diag(self._ridge))
        least = float(self._ridge.min())
        return np.asarray(vectors @ ((vectors.T @ slope) / np.maximum(values, least)))

    def slope(self, point: Floats) -> tuple[list[Fraction], Fraction]:
        """J' at a float64 point, and a bound on the error of each entry."""
        of, n = self._of, len(self._rows)
        _, slopes, _ = of.loss.floats(self._response, self._predictions(point))
        # Leading bits of the slopes are added up in integers, exactly; the rest is small.
        leading = np.rint(slopes * 2.0**_LEADING)
        rest = (slopes - leading / 2.0**_LEADING) @ self._rows
        sums = [
            (Fraction(whole, 2**_LEADING) + Fraction(float(left))) / STEPS
            for whole, left in zip(_exact_sums(leading, of.rows), rest, strict=True)
        ]
        exact = [Fraction(float(v)) for v in point]
        size = sum(map(abs, exact), Fraction(1))
        each = (of.d + 8) * _U * size + (_SLOPE_ERROR if of.loss is LOGISTIC else 0)
        each += (n + 4) * _U / 2**_LEADING
        terms = zip(sums, of.ridge, exact, of.linear_term, strict=True)
        whole = [s + ridge * b + p for s, ridge, b, p in terms]
        return whole, n * each


def _exact_sums(leading: Floats, rows: NDArray[np.int16]) -> list[int]:
    """The exact sums of whole numbers of at most _LEADING + 1 bits times the columns of rows."""
    total = [0] * rows.shape[1]
    for start in range(0, len(rows), _EXACT):
        part = slice(start, start + _EXACT)
        found = leading[part].astype(np.int64) @ rows[part].astype(np.int64)
        total = [t + int(v) for t, v in zip(total, found, strict=True)]
    return total


def _norm_within(slope: list[Fraction], error: Fraction, most: Fraction) -> bool:
    return sum((abs(v) + error) ** 2 for v in slope) <= most**2


def _refined(of: Objective, floats: _Floats, point: Point, most: Fraction) -> Point:
    """Newton's method in balls; the number of bits is doubled when no step is certified to decrease
    J.

    It terminates: a step along -H^-1 J', with H from the smallest ridge to the largest + n c d,
    decreases J by a fixed part of |J'|^2 as soon as it is short enough, J is bounded below, and
    balls of enough bits certify this.
    """
    bits = _BITS
    while True:
        with flint.ctx.workprec(bits):
            value, slope = _ball_value(of, point)
            if sum(upper(abs(v)) ** 2 for v in slope) <= most**2:
                return point
            middle = [midpoint(v) for v in slope]
            scale = max(map(abs, middle)) or Fraction(1)
            near = np.array([float(v) for v in point])
            step = floats.solve(near, np.array([float(v / scale) for v in middle]))
            # Points are rounded to a grid, which bounds their number of bits.
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
    """J and J' at a point, as balls that contain them."""
    b = flint.arb_mat(of.d, 1, [ball(v) for v in point])
    ridge, linear_term = ([ball(v) for v in part] for part in (of.ridge, of.linear_term))
    value = sum((v[0] * v[1] for v in zip(linear_term, b.entries(), strict=True)), flint.arb(0))
    pulls = [w * v for w, v in zip(ridge, b.entries(), strict=True)]
    value += sum((w * v for w, v in zip(pulls, b.entries(), strict=True)), flint.arb(0)) / 2
    slope = [p + w for p, w in zip(linear_term, pulls, strict=True)]
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
