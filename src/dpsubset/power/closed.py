"""The probability that the best support T is drawn, in closed form.

*Equal gaps.* Where every swap of a true variable for another one costs the same, a support of j
swaps is a j behind the best in units of 1 / eta, and there are N_j = C(k, j) C(p - k, j) of them:

    exponential        1 / sum over j >= 0 of N_j exp(-a j)
    permute-and-flip   integral over u in (0, 1) of prod over j >= 1 of (1 - u exp(-a j))^N_j

*Any gains.* Where a score is a sum over variables of -g_v, the sum over supports S that are j swaps
from T is a product of two elementary symmetric polynomials, and none of them is listed:

    sum over S of exp(m (g(S) - g(T))) = e_j(exp(-m g_t), t in T) e_j(exp(m g_v), v not in T)

m = 1 is what the exponential mechanism needs. The logarithm of permute-and-flip's product is a
power series in u whose coefficients are these sums for m = 1, 2, ... All of it is computed for many
tables at once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from ..base.errors import ArgumentError

Floats = NDArray[np.float64]

#: Terms of the series in u. What is left out matters for u and odds within 1 / m of 1 alone, so
#: that the probability of a table errs by about 1 / m^2, and by less unless two supports tie.
TERMS = 24
_AT_ONCE, _ENOUGH = 3, 2e-4

#: What gaps may be off by, in either direction: what a formula of gaps leaves out.
GAP_ERROR = 0.05

#: What float64 can hold, and the logarithm of that.
_TINY, _HUGE = 1e-300, 700.0

#: u = exp(-t): supports without number make the product fall at a u that is tiny.
_PANELS, _NODES, _FARTHEST = 8, 12, 48.0


def log_counts(p: int, k: int) -> Floats:
    """log N_j for j = 0, ..., min(k, p - k): how many supports are j swaps from one of them."""
    if not 0 < k <= p:
        raise ArgumentError("k must lie between 1 and p")
    j = np.arange(min(k, p - k) + 1)
    return np.asarray(_log_binomial(k, j) + _log_binomial(p - k, j))


def exponential(p: int, k: int, a: float) -> float:
    """1 / sum of N_j exp(-a j): equal gaps, the exponential mechanism."""
    counts = log_counts(p, k)
    return float(1.0 / np.exp(counts - a * np.arange(len(counts))).sum())


def permute_and_flip(p: int, k: int, a: float) -> float:
    """The integral of prod (1 - u exp(-a j))^N_j: equal gaps, permute-and-flip."""
    counts = log_counts(p, k)[1:]
    t, weights = _quadrature()
    j = np.arange(1, len(counts) + 1)
    logs = np.exp(counts)[:, None] * np.log1p(-np.exp(-t[None, :] - a * j[:, None]))
    return float(weights @ np.exp(logs.sum(axis=0) - t))


def drawn(true: Floats, other: Floats, curve: Floats, flips: bool, terms: int = TERMS) -> Floats:
    """The probability that T is drawn, for each of several tables.

    Parameters
    ----------
    true, other : arrays of shape (tables, k) and (tables, p - k)
        What each variable gains, times eta.
    curve : array of shape (tables, most swaps + 1)
        What is added to the gain of a support that is j swaps from T, times eta; 0 for j = 0 and 1.
    flips : bool
        Permute-and-flip in place of the exponential mechanism.
    terms : int
        Terms of the series.
    """
    if not other.shape[1]:
        return np.ones(len(true))
    low, high = true.min(axis=1), other.max(axis=1)
    swaps = np.arange(1, curve.shape[1])
    # The most that a support of j swaps may be ahead of T; beside it all sums are moderate.
    ahead = swaps * (high - low)[:, None] + curve[:, 1:]

    def sums(m: Floats) -> Floats:
        found = _polynomials(np.exp(m * (low[:, None] - true)), len(swaps))
        return found * _polynomials(np.exp(m * (other - high[:, None])), len(swaps))

    if not flips:
        logs = np.log(np.maximum(sums(np.ones((1, 1, 1)))[0], _TINY)) + ahead
        return np.asarray(1.0 / (1.0 + np.exp(np.minimum(logs, _HUGE)).sum(axis=1)))
    behind = np.maximum(_best(true, other, curve), 0.0)

    def log_sums(m: Floats) -> Floats:
        # Relative to the best support, so that no odds pass 1.
        return np.asarray(np.log(np.maximum(sums(m), _TINY)) + m * (ahead - behind[:, None]))

    return _flipped(log_sums, behind, terms)


def drawn_by_swaps(odds: Floats, counts: Floats, flips: bool, terms: int = TERMS) -> float:
    """The probability that T is drawn, from the odds of its single swaps.

    With s_t the sum over v of the odds of swapping t for v, sums over supports of j swaps are about
    e_j(s_t, t in T) / j!: exact for equal gaps of single swaps that add up, and p much above j.

    Parameters
    ----------
    odds : array of shape (k, columns)
        eta (f(T) - f(T - t + v)) for t in T and some v that are not.
    counts : array of shape (columns,)
        How many columns each of these v stands for.
    """
    if not odds.size:
        return 1.0
    most = min(len(odds), max(1, round(float(counts.sum()))))
    behind = np.maximum(odds.max(keepdims=True)[0], 0.0)
    factorials = np.asarray(gammaln(np.arange(1, most + 1) + 1.0))

    def log_sums(m: Floats) -> Floats:
        high = odds.max(axis=1)
        logs = np.log(np.exp(m * (odds - high[:, None])) @ counts) + m[..., 0] * high
        top = logs.max(axis=1, keepdims=True)
        sums = np.maximum(_polynomials(np.exp(logs - top), most), _TINY)
        j = np.arange(1, most + 1)
        found = np.log(sums) + j * top - factorials - m[:, :, 0] * behind
        return np.asarray(found[:, None, :])

    if not flips:
        logs = log_sums(np.ones((1, 1, 1)))[0, 0] + behind
        return float(1.0 / (1.0 + np.exp(np.minimum(logs, _HUGE)).sum()))
    return float(_flipped(log_sums, behind, terms)[0])


def _flipped(log_sums: Callable[[Floats], Floats], behind: Floats, terms: int) -> Floats:
    """Permute-and-flip: the integral of exp(-sum of u^m / m D_m), as far as terms matter.

    ``log_sums`` gives log D_m by swaps, of shape (m, tables, swaps), relative to the best support,
    which is ``behind`` ahead of T.
    """
    t, steps = _quadrature()
    exponent, before = np.zeros((len(behind), len(t))), np.inf
    for first in range(1, terms + 1, _AT_ONCE):
        m = np.arange(first, min(first + _AT_ONCE, terms + 1), dtype=np.float64)
        weights = np.exp(np.minimum(log_sums(m[:, None, None]), _HUGE)).sum(axis=2) / m[:, None]
        exponent += weights.T @ np.exp(-m[:, None] * t)
        found = np.exp(-behind) * (np.exp(-exponent - t) @ steps)
        if before - found.mean() < _ENOUGH:
            break
        before = float(found.mean())
    return np.asarray(found)


def _best(true: Floats, other: Floats, curve: Floats) -> Floats:
    """How far the best support is ahead of T; 0 or less where that is the best."""
    most = curve.shape[1] - 1
    worst = np.sort(true, axis=1)[:, :most]
    best = -np.sort(-other, axis=1)[:, :most]
    return np.asarray((np.cumsum(best - worst, axis=1) + curve[:, 1:]).max(axis=1))


def _polynomials(values: Floats, degree: int) -> Floats:
    """e_1, ..., e_degree of the numbers along the last axis, which are between 0 and 1."""
    found = np.zeros((degree + 1, *values.shape[:-1]))
    found[0] = 1.0
    with np.errstate(under="ignore"):
        for i in range(values.shape[-1]):
            found[1:] += found[:-1] * values[..., i]
    return np.moveaxis(found[1:], 0, -1)


def _quadrature() -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    # Panels grow with t: what happens near u = 1 happens fast.
    ends = _FARTHEST * (np.arange(_PANELS + 1) / _PANELS) ** 2
    half = np.diff(ends)[:, None] / 2
    return ((ends[:-1, None] + half) + half * nodes).ravel(), (half * weights).ravel()


def _log_binomial(n: int, j: NDArray[np.int64]) -> Floats:
    return np.asarray(gammaln(n + 1.0) - gammaln(j + 1.0) - gammaln(n - j + 1.0))


def most_swaps(p: int, k: int) -> int:
    """How many variables of a support can be swapped at most."""
    return min(k, p - k)
