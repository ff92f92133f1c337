"""Intervals for coefficients of noisy moments. They use what was released and public facts alone.

Let A theta = b be the least squares model of a table, A~ and b~ the same with noise of deviation s
an entry, and theta~ = A~^-1 b~. For a coefficient, or any l'theta, with g = A~^-1 l,

    l'theta~ - l'theta = g'(b~ - A~ theta) = g'W(theta) z,

exactly: z is the noise of the entries, and W (`Entries.noise_of`) is linear in theta. So a value t
of l'theta is to be believed if

    (l'theta~ - t)^2 <= q^2 (s^2 E |g'W(theta)|^2 + v),

where theta has what makes l'theta = t in the place of the coefficient, the mean is over what is not
known of the others, and v = sigma^2 g'A g is what sampling adds, or 0. That is a quadratic
inequality in t (Fieller's): its solutions are an interval, or go to infinity. They do where noise
may have made the whole of what tells the column apart, so that nothing bounds its coefficient.

*What is not known of theta*: a priori each column explains the same part of the response, 1 / m of
its variance v_y, beta_a being normal with variance v_y / (m G_aa). With g~ = G beta + noise that
makes a normal law a posteriori. The unshrunk theta~ would be too long a vector here: noise that is
large beside G makes it so, and intervals too wide.

*q*: 95 % of |g'W z| lie within q deviations. Entries of the noise are R u_i, u_i uniform in [-1, 1]
and R of a gamma law; if one of them dominates, q is well below the 1.96 of a normal law. A sum of
uniforms is taken as a symmetric beta variable of the same kurtosis.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, ndtr, roots_genlaguerre

from .entries import Entries

Floats = NDArray[np.float64]

#: Of the normal distribution: 95 % lie within so many deviations.
QUANTILE = 1.959964

#: Nodes of the mean over R.
_NODES = 40

#: Steps of the bisection for q.
_STEPS = 14


@dataclass(frozen=True)
class Moments:
    """Noisy moments and what else was made of them. Public.

    Attributes
    ----------
    gram, c, yy : arrays and float
        X'X and X'y with the constant last, and y'y.
    deviation : float
        Of the noise of an entry.
    """

    entries: Entries
    gram: Floats
    c: Floats
    yy: float
    deviation: float

    @property
    def rows(self) -> float:
        """How many."""
        return float(self.gram[-1, -1])


@dataclass(frozen=True)
class Posterior:
    """A normal law of theta, the constant last."""

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
        """After g = G beta + noise.

        ``prior`` has variances of beta, ``of_g`` and ``of_mean`` are deviations of the noise of g
        and of the mean of the response.
        """
        m = len(g)
        values, vectors = np.linalg.eigh(centred) if m else (np.zeros(0), np.zeros((0, 0)))
        # No table has others.
        root = vectors * np.maximum(values, 0.0) / of_g
        covariance = np.linalg.inv(root @ root.T + np.diag(1 / prior))
        beta = covariance @ (root @ (vectors.T @ g)) / of_g
        to_all = np.vstack([np.eye(m), -means])
        whole = to_all @ covariance @ to_all.T
        # Means of columns have as much noise as that of the response, times their coefficients.
        whole[m, m] += of_mean**2 * (1 + beta @ beta + np.trace(covariance))
        return cls(np.append(beta, mean - means @ beta), whole)


def intervals(
    moments: Moments, posterior: Posterior | None, units: Floats
) -> tuple[Floats, Floats, Floats]:
    """Unshrunk ``units @ theta``, and ends of intervals: by noise alone, and by both.

    ``posterior`` is None where there is no noise. Each row of ``units`` is divided by its largest
    entry first, and the ends are multiplied by it afterwards, so that no unit overflows on the way.
    An end that is no float64 is infinite, hence not known.
    """
    gram, size = moments.gram, moments.entries.m + 1
    if np.linalg.matrix_rank(gram, hermitian=True) < size:
        nothing = np.tile([-np.inf, np.inf], (size, 1))
        return np.zeros(size), nothing, nothing
    inverse = np.linalg.inv(gram)
    theta = inverse @ moments.c
    # Of A only what a table can have.
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
    """Rows divided by their largest entry in size, and these; 0 in place of one below float64's
    normal numbers, which has too few digits to compute with.
    """
    largest = np.abs(units).max(axis=1, initial=0.0)
    known = largest >= np.finfo(np.float64).tiny
    # A row that is not known is computed in another unit, and nothing is told of it.
    whole = np.where(known[:, None], units, np.eye(len(units)))
    divisors = np.where(known, largest, 1.0)
    return whole / divisors[:, None], np.where(known, largest, 0.0).tolist()


def in_unit(ends: tuple[float, float], unit: float) -> tuple[float, float]:
    """Ends in this unit: infinite where that is no float64, or where the unit is none."""
    if not unit:
        return -np.inf, np.inf
    # Python's floats overflow to infinity without a warning, and NaN is replaced by it.
    low, high = (float(end) * unit for end in ends)
    return (-np.inf if np.isnan(low) else low), (np.inf if np.isnan(high) else high)


def _variance(moments: Moments, theta: Floats) -> float:
    """Of errors, as for least squares."""
    rows, c = moments.rows, moments.c
    total = max(moments.yy - c[-1] ** 2 / rows, 0.0)
    left = moments.yy - float(theta @ c)
    # Noise may leave less than nothing, or more than there is.
    left = left if 0 < left <= total else total
    return left / max(rows - len(theta), 1.0)


class _Noise:
    """What noise does to l'theta~, for any l."""

    def __init__(self, moments: Moments, posterior: Posterior) -> None:
        self._entries, self._deviation = moments.entries, moments.deviation
        self._posterior = posterior
        self._spread = moments.entries.noise_form(posterior.covariance)

    def quadratic(self, place: int, row: Floats, g: Floats) -> _Quadratic:
        """E |g'W(theta)|^2 where theta at a place makes row'theta = t, as a function of t."""
        entries, mean = self._entries, self._posterior.mean
        own = np.zeros(len(row))
        own[place] = 1.0
        none = entries.noise_of(g, 0 * own)
        moved = entries.noise_of(g, own) - none
        at_mean = entries.noise_of(g, mean)
        slope = moved / row[place]
        base = at_mean - float(row @ mean) * slope
        # Of the others: what is known of the one at this place is t.
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
        q2 = quantile(self.weights * self.deviation, sampling) ** 2
        k = q2 * self.deviation**2
        lead = 1 - k * self.square
        if lead <= 0:
            return -np.inf, np.inf
        middle = point + k * self.mixed
        rest = point**2 - k * self.constant - q2 * sampling
        root = np.sqrt(max(middle**2 - lead * rest, 0.0))
        return (middle - root) / lead, (middle + root) / lead


def quantile(weights: Floats, sampling: float) -> float:
    """q: 95 % of a sum of noise and sampling lie within so many of its deviations.

    ``weights`` are deviations that the entries of the noise add, ``sampling`` is a variance.
    """
    of_noise = weights**2
    total = float(of_noise.sum()) + sampling
    if not total > 0:
        return QUANTILE
    d, share = len(weights), float(of_noise.sum()) / total
    # Of uniforms the excess of the kurtosis is -6/5; of a symmetric beta -6 / (2 a + 3).
    concentration = float(((of_noise / total) ** 2).sum())
    shape = (5 / concentration - 3) / 2 if concentration > 1e-9 else np.inf
    nodes, mass = _gamma_nodes(d)
    spread = np.sqrt(1 - share + share * nodes**2 / ((d + 1) * (d + 2)))
    low, high = 1.4, 2.6
    for _ in range(_STEPS):
        q = (low + high) / 2
        inside = float(mass @ _within(q / spread, shape))
        low, high = (q, high) if inside < 0.95 else (low, q)
    return (low + high) / 2


def _within(x: Floats, shape: float) -> Floats:
    """P(|B| <= x) for a variable of variance 1: a symmetric beta, or a normal one."""
    if shape > 1e4:
        return np.asarray(2 * ndtr(x) - 1)
    # On [-1, 1] it has the variance 1 / (2 a + 1).
    edge = np.minimum(x / np.sqrt(2 * shape + 1), 1.0)
    return np.asarray(2 * betainc(shape, shape, (1 + edge) / 2) - 1)


@lru_cache
def _gamma_nodes(d: int) -> tuple[Floats, Floats]:
    """Where R, a gamma variable of shape d + 1, is looked at, and with which probabilities."""
    if d > 150:
        # Two points with its mean and variance: beyond, the weights overflow.
        return (d + 1) + np.sqrt(d + 1) * np.array([-1.0, 1.0]), np.array([0.5, 0.5])
    nodes, mass = roots_genlaguerre(_NODES, d)
    return nodes, mass / mass.sum()
