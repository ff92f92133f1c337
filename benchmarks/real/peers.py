"""What people could use instead, in a few lines each. With floats and NumPy's noise: not for use.

All are given the declared bounds, and all protect against one record replaced. Where a choice was
open, the one that is better for the peer was taken; ridges were tuned on the split `choose`.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

import dpsubset as dps

from .tables import Floats, Loaded
from .utility import Linear, Set, best_linear

DELTA = 1e-6

#: Of the noisy moments, in sqrt(d) noise deviations. Of 0, 0.1, 0.5, 1, 2, 4 and 8 the best in the
#: mean, with 8 as good within the noise of that trial: split `choose` without ames, k = 3, 4 draws.
_MOMENT_RIDGE = 4.0

#: Of the linear model, over d and epsilon. In the same trial, of 0, 0.01, 0.03, 0.1, 0.3 and 1
#: over d, 0.1 was best at epsilon 0.5 and 0.03 at 1 and 3. This rule runs between them; the rule
#: itself was not tried against others.
_MODEL_RIDGE = 0.06

#: Starts of the search on noisy moments: it is done anew for each draw.
_STARTS = 2

#: Of the objective when there is no noise.
_LEAST_RIDGE = 1e-6

#: Most steps of Newton's method.
_NEWTON = 60


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


def noisy_moments(table: Loaded, k: int, epsilon: float | None, seed: int) -> Set:
    """Gaussian noise on all moments of all columns once, then the best subset on them."""
    gram, n = _moments(table)
    d = table.p + 1
    noise = 0.0
    if epsilon is not None:
        noise = gaussian_deviation(moment_sensitivity(d), epsilon, DELTA) / n
        upper = np.triu(np.random.default_rng(seed).normal(scale=noise, size=gram.shape))
        upper[0, 0] = 0.0  # n is public
        gram = gram + upper + np.triu(upper, 1).T
    means = gram[0, 1:]
    covariance = gram[1:, 1:] - np.outer(means, means)
    # The noise matrix has eigenvalues down to about -2 sqrt(d) deviations: the ridge keeps every
    # subset's system positive.
    ridge = _MOMENT_RIDGE * math.sqrt(d) * noise + 1e-9
    lowest = float(np.linalg.eigvalsh(covariance[:-1, :-1])[0])
    ridge += max(0.0, -lowest - ridge + 1e-9)
    fit = Linear(covariance[:-1, :-1], covariance[:-1, -1], 1.0, ridge)
    return best_linear(fit, k, _STARTS)[0]


@functools.lru_cache(maxsize=1)
def _moments(table: Loaded) -> tuple[Floats, int]:
    x, y = table.scaled
    z = np.column_stack([np.ones(table.n), x, y])
    return z.T @ z / table.n, table.n


@functools.lru_cache(maxsize=256)
def largest_coefficients(table: Loaded, epsilon: float | None, seed: int) -> list[int]:
    """Columns by the size of their coefficients in a private linear model, largest first.

    Objective perturbation (Chaudhuri, Monteleoni and Sarwate 2011), pure epsilon. Rows with a
    column of ones are scaled into the unit ball. The loss is logistic for labels and
    log cosh(y - t) for numbers: both have slopes of at most 1, as the proof needs. Kept, since
    it is the same for every k.
    """
    x, y = table.scaled
    d, n = table.p + 1, table.n
    rows = np.column_stack([np.ones(n), x]) / math.sqrt(d)
    curvature = 0.25 if table.labels else 1.0
    push, ridge = np.zeros(d), _LEAST_RIDGE
    if epsilon is not None:
        # A part of epsilon is for how the curvature depends on a record, at most half of it; the
        # rest is for the noise.
        rng = np.random.default_rng(seed)
        ridge = max(_MODEL_RIDGE / (d * epsilon), curvature / (n * math.expm1(epsilon / 4)))
        left = epsilon - 2 * math.log1p(curvature / (n * ridge))
        push = rng.normal(size=d)
        push *= rng.gamma(d, 2 / left) / np.linalg.norm(push) / n

    def objective(b: Floats, t: Floats) -> float:
        gap = y * t if table.labels else t - y
        loss = np.logaddexp(0, -gap) if table.labels else np.logaddexp(gap, -gap)
        return float(loss.mean() + push @ b + ridge / 2 * b @ b)

    # Newton's method with halved steps: columns that are nearly copies make gradients slow.
    b, t = np.zeros(d), np.zeros(n)
    value = objective(b, t)
    for _ in range(_NEWTON):
        if table.labels:
            chance = 1 / (1 + np.exp(np.clip(y * t, -500, 500)))
            slope, weight = -y * chance, chance * (1 - chance)
        else:
            slope = np.tanh(t - y)
            weight = 1 - slope**2
        gradient = rows.T @ slope / n + push + ridge * b
        step = np.linalg.solve((rows * weight[:, None]).T @ rows / n + ridge * np.eye(d), gradient)
        size = 1.0
        while objective(b - size * step, rows @ (b - size * step)) > value and size > 1e-9:
            size /= 2
        b = b - size * step
        t = rows @ b
        last, value = value, objective(b, t)
        if last - value < 1e-10:
            break
    return np.argsort(-np.abs(b[1:]), kind="stable").tolist()
