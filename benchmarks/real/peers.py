"""What people could use instead, in a few lines each. Floats and NumPy's noise: for comparison only.

All are given the declared bounds, and all protect against one record replaced. Where a choice was
open, the one that is better for the peer was taken.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.stats import norm

import dpsubset as dps

from .tables import Floats, Loaded
from .utility import Linear, Set, best_linear

DELTA = 1e-6

#: Starts of the search on noisy moments: it is done anew for each draw.
_STARTS = 2

#: Of the objective when there is no noise.
_LEAST_RIDGE = 1e-6


def centred(table: Loaded) -> tuple[Floats, Floats, dps.Bounds]:
    """The table and bounds of the same width around the columns' means, which come for free.

    A user would have to spend a part of epsilon on them; the peer is spared that.
    """
    x = np.where(np.isnan(table.x), np.nanmean(table.x, axis=0), table.x)
    half = [(high - low) / 2 for low, high in table.bounds]
    around = [(m - h, m + h) for m, h in zip(x.mean(axis=0).tolist(), half, strict=True)]
    middle, width = float(table.y.mean()), (table.y_bounds[1] - table.y_bounds[0]) / 2
    return x, table.y, dps.Bounds(x=around, y=(middle - width, middle + width))


def moment_sensitivity(d: int) -> float:
    """Largest l2 change of all z_i, z_i z_j (i < j) and z_i^2 of d columns in [-1, 1].

    Attained at corners: flip m of the d columns. Then m sums and m (d - m) products move by 2
    each, squares by nothing. Interior points move squares, and less of all else.
    """
    return max(2 * math.sqrt(m * (d + 1 - m)) for m in range(1, d + 1))


def gaussian_deviation(sensitivity: float, epsilon: float, delta: float) -> float:
    """The least noise for (epsilon, delta): the analytic Gaussian mechanism of Balle and Wang."""

    def excess(ratio: float) -> float:
        """Delta at a deviation of ``ratio`` sensitivities, less the one allowed."""
        a, b = 1 / (2 * ratio), epsilon * ratio
        return norm.cdf(a - b) - math.exp(epsilon + norm.logcdf(-a - b)) - delta

    return sensitivity * brentq(excess, 1e-3, 1e4)


def noisy_moments(
    table: Loaded, k: int, epsilon: float | None, rng: np.random.Generator
) -> Set:
    """Gaussian noise on all moments of all columns once, then the best subset on them."""
    gram, n = _moments(table)
    d = table.p + 1
    noise = 0.0
    if epsilon is not None:
        noise = gaussian_deviation(moment_sensitivity(d), epsilon, DELTA) / n
        upper = np.triu(rng.normal(scale=noise, size=gram.shape))
        upper[0, 0] = 0.0  # n is public
        gram = gram + upper + np.triu(upper, 1).T
    means = gram[0, 1:]
    covariance = gram[1:, 1:] - np.outer(means, means)
    # The noise matrix has eigenvalues down to about -2 sqrt(d) deviations: a ridge of that size
    # keeps every subset's system positive.
    ridge = 2 * math.sqrt(d) * noise + 1e-9
    lowest = float(np.linalg.eigvalsh(covariance[:-1, :-1])[0])
    ridge += max(0.0, -lowest - ridge + 1e-9)
    fit = Linear(covariance[:-1, :-1], covariance[:-1, -1], 1.0, ridge)
    return best_linear(fit, k, _STARTS)[0]


@functools.lru_cache(maxsize=1)
def _moments(table: Loaded) -> tuple[Floats, int]:
    x, y = table.scaled
    z = np.column_stack([np.ones(table.n), x, y])
    return z.T @ z / table.n, table.n


def largest_coefficients(
    table: Loaded, epsilon: float | None, rng: np.random.Generator
) -> list[int]:
    """Columns by the size of their coefficients in a private linear model, largest first.

    Objective perturbation (Chaudhuri, Monteleoni and Sarwate 2011), pure epsilon. Rows with a
    column of ones are scaled into the unit ball. The loss is logistic for labels and
    log cosh(y - t) for numbers: both have slopes of at most 1, as the proof needs.
    """
    x, y = table.scaled
    d, n = table.p + 1, table.n
    rows = np.column_stack([np.ones(n), x]) / math.sqrt(d)
    curvature = 0.25 if table.labels else 1.0
    push, ridge = np.zeros(d), _LEAST_RIDGE
    if epsilon is not None:
        # Half of epsilon for the noise, half for how the curvature depends on a record.
        ridge = curvature / (n * math.expm1(epsilon / 4))
        push = rng.normal(size=d)
        push *= rng.gamma(d, 4 / epsilon) / np.linalg.norm(push) / n

    def objective(b: Floats) -> tuple[float, Floats]:
        t = rows @ b
        if table.labels:
            value, slope = np.logaddexp(0, -y * t).mean(), -y / (1 + np.exp(y * t))
        else:
            gap = t - y
            value, slope = (np.logaddexp(gap, -gap) - math.log(2)).mean(), np.tanh(gap)
        value += push @ b + ridge / 2 * b @ b
        return value, rows.T @ slope / n + push + ridge * b

    found = minimize(objective, np.zeros(d), jac=True, method="L-BFGS-B", options={"maxiter": 200})
    return np.argsort(-np.abs(found.x[1:]), kind="stable").tolist()
