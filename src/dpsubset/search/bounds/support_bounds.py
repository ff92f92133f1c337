"""One bound for each support of a region with few supports, in closed form.

Where columns are highly correlated, a modular bound for the ball is loose down to the last two
picks: a support is credited with the gain of each of its columns. But then few supports are left.
For one multiplier mu each of them has

    f(S) >= yy - mu r^2 - c'(H + mu)^-1 c   on the columns of S,

with equality if mu is optimal for S. Good supports of a region have almost the same mu, so one mu
serves all, and `support_kernels` computes a million such bounds in milliseconds.
"""

from __future__ import annotations

import numpy as np

from ...base.kernels.arrays import ROUNDING, Array, Ints
from ...data.products import Products
from . import support_kernels

#: How far above the gain of a good support other gains may lie at first, in the exponent.
_AHEAD = 4.0
#: The smallest multiplier, relative to the largest entry of H: with 0, H could be singular.
_LEAST_MU = 2.0**-24
#: Weights are not usable where gains, times eta, exceed this.
_STEEP = 2.0**40
#: Most steps of Newton's method for a multiplier, and its relative tolerance for the radius.
_STEPS, _NEAR = 40, 1e-6


class SupportBounds:
    """The gains of the supports of a region with one pool: what the picks add to the members' gain.

    Attributes
    ----------
    free : int array
        The features that can be picked.
    m : int
        How many are picked.
    base : float
        The part of the bound that no pick contributes to: f~(S) * score_step >= base - gain(S).
    top, highest : float
        The gain that weights are relative to, and the largest gain.
    heaviest : int
        The largest weight.
    """

    def __init__(
        self, x: Products, scale: float, ridge: float, c: Array, members: Ints, free: Ints, m: int,
        radius: float, largest: float, incumbent: Ints,
    ) -> None:  # fmt: skip
        self._x, self._scale, self._c = x, scale, c
        self._members, self.free, self.m = members, free, m
        self._radius, self._largest = radius, largest
        self._mu, of_incumbent = self._multiplier(incumbent, ridge)
        self._rows = np.zeros((len(members) + m - 1, len(free)))
        self._left, self._toward = np.empty(len(free)), np.empty(len(free))
        # Several times the rounding error of a factorisation of H + mu.
        k = len(members) + m
        error = 64 * (k + 4) * ROUNDING * k * (largest + self._mu)
        self._gained = float(
            support_kernels.factor_members(x, scale, c, members, free, ridge + self._mu, error,
                                           self._rows, self._left, self._toward)
        )  # fmt: skip
        self._good = max(of_incumbent - self._gained, 0.0)  # the gain of a good support
        self.base, self.top, self.highest, self.heaviest = -np.inf, self._good, 0.0, 0

    def _multiplier(self, support: Ints, ridge: float) -> tuple[float, float]:
        """Nearly the best mu of a support, and c'(H + mu)^-1 c there.

        Any mu is valid, so neither needs to be exact.
        """
        block = self._x.columns[np.ix_(self._x.slot[support], support)] / self._scale
        mu = _LEAST_MU * self._largest
        try:
            values, vectors = np.linalg.eigh(block)
        except np.linalg.LinAlgError:  # an exception would depend on the data
            return mu, 0.0
        values = np.maximum(values, 0.0) + ridge
        square = (vectors.T @ self._c[support]) ** 2
        for _ in range(_STEPS):
            size = float(np.sum(square / (values + mu) ** 2)) ** 0.5
            if size <= self._radius * (1.0 + _NEAR):
                break
            # Newton on 1/|b(mu)| - 1/radius: from the left it never overshoots.
            slope = np.sum(square / (values + mu) ** 3)
            mu += float((size / self._radius - 1.0) * size * size / slope)
        return mu, float(np.sum(square / (values + mu)))

    def weights_by_first_pick(
        self, eta: float, yy: float, penalty: float, score_step: float
    ) -> Ints | None:
        """Sums of the weights of supports by their first pick; also sets the base.

        ``penalty`` is part of every score. Picks are positions in ``free``. Returns None if no
        valid bound or no usable weights exist.
        """
        if not self._gained >= 0.0:
            return None
        self.top = self._good + _AHEAD / eta
        while True:
            sums, self.highest, self.heaviest = self._sums((), eta)
            if not (self.highest >= 0.0 and eta * max(self.highest, self.top) <= _STEEP):
                return None
            if eta * (self.highest - self.top) <= support_kernels.OVER / 2:
                break
            self.top = self.highest
        self.base = self._base(yy, penalty, score_step)
        return sums

    def weights_after(self, picks: tuple[int, ...], eta: float) -> Ints:
        """Sums of the weights of supports that start with these picks, by the next pick."""
        return self._sums(picks, eta)[0]

    def _sums(self, picks: tuple[int, ...], eta: float) -> tuple[Ints, float, int]:
        out = np.empty(len(self.free), dtype=np.int64)
        highest, heaviest = support_kernels.sums(
            self._x, self._scale, self.free, len(self._members), self._rows, self._left,
            self._toward, np.array(picks, dtype=np.int64), self.m, eta, self.top, out,
        )  # fmt: skip
        return out, float(highest), int(heaviest)

    def _base(self, yy: float, penalty: float, score_step: float) -> float:
        """The base, lowered by a bound on all rounding errors: see proofs/bounds.md."""
        k = len(self._members) + self.m
        extra = self._mu * self._radius * self._radius
        gained = self._gained + max(self.highest, self.top)
        each = (k + 8) * ROUNDING * ((self._largest + self._mu) * gained) ** 0.5
        c_error = k * (each + 4 * ROUNDING * float(np.abs(self._c).max()))
        size = 2 * yy + penalty + extra + gained
        margin = 2 * self._radius * c_error + (4 * k + 64) * ROUNDING * size + 2 * score_step
        return float(yy + penalty - extra - self._gained - margin)
