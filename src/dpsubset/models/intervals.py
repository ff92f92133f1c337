"""Confidence intervals for coefficients from noisy moments; post-processing of a release.

Let A theta = b be the least squares model of a table, A~ and b~ the same with noise of deviation s
an entry, and theta~ = A~^-1 b~. For a coefficient, or any l'theta, with g = A~^-1 l,

    l'theta~ - l'theta = g'(b~ - A~ theta) = g'W(theta) z

exactly, where z is the noise of the entries and W (`Entries.noise_of`) is linear in theta. A value
t of l'theta is therefore in the interval if

    (l'theta~ - t)^2 <= q^2 (s^2 E |g'W(theta)|^2 + v),

where theta is constrained to l'theta = t through the coefficient, the expectation is over the
unknown others, and v = sigma^2 g'A g is the sampling variance, or 0. This is a quadratic inequality
in t (Fieller's): its solutions are an interval, or unbounded. They are unbounded where noise may
explain all of what distinguishes the column from the others, so that nothing bounds its
coefficient.

*The distribution of theta*: a priori each column explains the same part of the response, 1 / m of
its variance v_y, with beta_a normal of variance v_y / (m G_aa). With g~ = G beta + noise the
posterior is normal. The unshrunk theta~ would be too long a vector here, since noise that is large
relative to G inflates it, and the intervals would be too wide.

*q*: 95 % of |g'W z| lie within q deviations. Entries of the noise are R u_i, with u_i uniform in
[-1, 1] and R gamma-distributed; if one of them dominates, q is well below the 1.96 of a normal
distribution. A sum of uniforms is approximated by a symmetric beta variable of the same kurtosis.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, ndtr, roots_genlaguerre

from .entries import Entries

Floats = NDArray[np.float64]

#: 95 % of a normal distribution lie within this many deviations.
QUANTILE = 1.959964

#: Quadrature nodes for the distribution of R.
_NODES = 40

#: Steps of the bisection for q.
_STEPS = 14


@dataclass(frozen=True)
class Moments:
    """Noisy moments and what was computed from them. Public."""

    entries: Entries
    #: X'X and X'y with the constant last, and y'y.
    gram: Floats
    c: Floats
    yy: float
    #: Standard deviation of the noise of an entry.
    deviation: float

    @property
    def rows(self) -> float:
        return float(self.gram[-1, -1])


@dataclass(frozen=True)
class Posterior:
    """A normal distribution of theta, the constant last."""

    mean: Floats
    covariance: Floats

    @classmethod
    def of(
        cls,
        centred: Floats,
        g: Floats,
        means: Floats,
        mean: float,
        prior: Floats,
        of_g: float,
        of_mean: float,
    ) -> Posterior:
        """The posterior given g = G beta + noise.

        ``prior`` has variances of beta; ``of_g`` and ``of_mean`` are deviations of the noise of g
        and of the mean of the response.
        """
        m = len(g)
        values, vectors = np.linalg.eigh(centred) if m else (np.zeros(0), np.zeros((0, 0)))
        # No table has negative eigenvalues.
        root = vectors * np.maximum(values, 0.0) / of_g
        covariance = np.linalg.inv(root @ root.T + np.diag(1 / prior))
        beta = covariance @ (root @ (vectors.T @ g)) / of_g
        to_all = np.vstack([np.eye(m), -means])
        whole = to_all @ covariance @ to_all.T
        # The noise of the columns' means equals that of the response's, times their coefficients.
        whole[m, m] += of_mean**2 * (1 + beta @ beta + np.trace(covariance))
        return cls(np.append(beta, mean - means @ beta), whole)


def intervals(
    moments: Moments, posterior: Posterior | None, units: Floats
) -> tuple[Floats, Floats, Floats]:
    """Unshrunk ``units @ theta``, and ends of intervals: by noise alone, and with sampling error.

    ``posterior`` is None where there is no noise. Each row of ``units`` is divided by its largest
    entry first, and the ends are multiplied by it afterwards, so that no intermediate value
    overflows. An end beyond float64 is infinite, hence unknown.
    """
    gram, size = moments.gram, moments.entries.m + 1
    if np.linalg.matrix_rank(gram, hermitian=True) < size:
        nothing = np.tile([-np.inf, np.inf], (size, 1))
        return np.zeros(size), nothing, nothing
    inverse = np.linalg.inv(gram)
    theta = inverse @ moments.c
    # A table's A has no negative eigenvalues.
    values, vectors = np.linalg.eigh(gram)
    possible = (vectors * np.maximum(values, 0.0)) @ vectors.T
    sigma2 = _variance(moments, theta)
    step = None if posterior is None else _Noise(moments, posterior)
    plain, table, both = np.empty(size), np.empty((size, 2)), np.empty((size, 2))
    rows, units_of_rows = normalised(units)
    for i, (row, unit) in enumerate(zip(rows, units_of_rows, strict=True)):
        g, point = inverse @ row, float(row @ theta)
        sampling = sigma2 * float(g @ possible @ g)
        if step is None:
            width = float(QUANTILE * np.sqrt(sampling))
            of_table, of_both = (point, point), (point - width, point + width)
        else:
            quadratic = step.quadratic(i, row, g)
            of_table, of_both = (quadratic.ends(point, v) for v in (0.0, sampling))
        plain[i], table[i], both[i] = point * unit, in_unit(of_table, unit), in_unit(of_both, unit)
    return plain, table, both


def normalised(units: Floats) -> tuple[Floats, list[float]]:
    """Rows divided by their largest absolute entry, and these entries.

    An entry below the normal numbers of float64, which has too few digits, is replaced by 0.
    """
    largest = np.abs(units).max(axis=1, initial=0.0)
    known = largest >= np.finfo(np.float64).tiny
    # Rows without a usable unit are computed in a dummy unit and reported as unknown.
    whole = np.where(known[:, None], units, np.eye(len(units)))
    divisors = np.where(known, largest, 1.0)
    return whole / divisors[:, None], np.where(known, largest, 0.0).tolist()


def in_unit(ends: tuple[float, float], unit: float) -> tuple[float, float]:
    """Ends in this unit: infinite on overflow, or where the unit is 0."""
    if not unit:
        return -np.inf, np.inf
    # Python's floats overflow to infinity without a warning, and NaN is replaced by it.
    low, high = (float(end) * unit for end in ends)
    return (-np.inf if np.isnan(low) else low), (np.inf if np.isnan(high) else high)


def _variance(moments: Moments, theta: Floats) -> float:
    """The residual variance of least squares."""
    rows, c = moments.rows, moments.c
    total = max(moments.yy - c[-1] ** 2 / rows, 0.0)
    left = moments.yy - float(theta @ c)
    # With noise, the residual may be negative, or larger than the total.
    left = left if 0 < left <= total else total
    return left / max(rows - len(theta), 1.0)


class _Noise:
    """The effect of noise on l'theta~, for any l."""

    def __init__(self, moments: Moments, posterior: Posterior) -> None:
        self._entries, self._deviation = moments.entries, moments.deviation
        self._posterior = posterior
        self._spread = moments.entries.noise_form(posterior.covariance)

    def quadratic(self, place: int, row: Floats, g: Floats) -> _Quadratic:
        """E |g'W(theta)|^2 as a function of t, where theta at ``place`` makes row'theta = t."""
        entries, mean = self._entries, self._posterior.mean
        own = np.zeros(len(row))
        own[place] = 1.0
        none = entries.noise_of(g, 0 * own)
        moved = entries.noise_of(g, own) - none
        at_mean = entries.noise_of(g, mean)
        slope = moved / row[place]
        base = at_mean - float(row @ mean) * slope
        # The covariance of the others, given that the one at this place is t.
        among = self._posterior.covariance[place]
        with_others = entries.noise_of(g, among) - none
        rest = float(g @ self._spread @ g - 2 * with_others @ moved + among[place] * moved @ moved)
        return _Quadratic(
            float(slope @ slope), float(base @ slope), float(base @ base) + max(rest, 0.0), at_mean,
            self._deviation,
        )  # fmt: skip


@dataclass(frozen=True)
class _Quadratic:
    """square t^2 + 2 mixed t + constant, times the variance of an entry of the noise."""

    square: float
    mixed: float
    constant: float
    weights: Floats
    deviation: float

    def ends(self, point: float, sampling: float) -> tuple[float, float]:
        """Between which t lies; infinite where nothing bounds it."""
        q2 = quantile_of_sum(self.weights * self.deviation, sampling) ** 2
        k = q2 * self.deviation**2
        lead = 1 - k * self.square
        if lead <= 0:
            return -np.inf, np.inf
        middle = point + k * self.mixed
        rest = point**2 - k * self.constant - q2 * sampling
        root = np.sqrt(max(middle**2 - lead * rest, 0.0))
        return (middle - root) / lead, (middle + root) / lead


def quantile_of_sum(weights: Floats, sampling: float) -> float:
    """q such that 95 % of a sum of noise and sampling error lie within q deviations.

    ``weights`` are the deviations that the entries of the noise add, ``sampling`` is a variance.
    """
    of_noise = weights**2
    total = float(of_noise.sum()) + sampling
    if not total > 0:
        return QUANTILE
    d, noise_fraction = len(weights), float(of_noise.sum()) / total
    # The excess kurtosis is -6/5 for a uniform, -6 / (2 a + 3) for a symmetric beta.
    concentration = float(((of_noise / total) ** 2).sum())
    shape = (5 / concentration - 3) / 2 if concentration > 1e-9 else np.inf
    nodes, mass = _gamma_nodes(d)
    spread = np.sqrt(1 - noise_fraction + noise_fraction * nodes**2 / ((d + 1) * (d + 2)))
    low, high = 1.4, 2.6
    for _ in range(_STEPS):
        q = (low + high) / 2
        inside = float(mass @ _within(q / spread, shape))
        low, high = (q, high) if inside < 0.95 else (low, q)
    return (low + high) / 2


def _within(x: Floats, shape: float) -> Floats:
    """P(|B| <= x) for a variable of variance 1: symmetric beta, or normal for a large shape."""
    if shape > 1e4:
        return np.asarray(2 * ndtr(x) - 1)
    # On [-1, 1] it has the variance 1 / (2 a + 1).
    edge = np.minimum(x / np.sqrt(2 * shape + 1), 1.0)
    return np.asarray(2 * betainc(shape, shape, (1 + edge) / 2) - 1)


@lru_cache
def _gamma_nodes(d: int) -> tuple[Floats, Floats]:
    """Quadrature nodes and weights for R, a gamma variable of shape d + 1."""
    if d > 150:
        # Two points with its mean and variance, since the weights would overflow.
        return (d + 1) + np.sqrt(d + 1) * np.array([-1.0, 1.0]), np.array([0.5, 0.5])
    nodes, mass = roots_genlaguerre(_NODES, d)
    return nodes, mass / mass.sum()
