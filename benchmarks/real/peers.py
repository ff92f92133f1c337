"""What people could use instead, in a few lines each. With floats and NumPy's noise: not for use.

All are given the declared bounds and levels, and all protect against one record replaced. Where a
choice was open, the one that is better for the peer was taken; ridges were tuned on the split
`choose`.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

import dpsubset as dps
from dpsubset.data.quantize import STEPS
from dpsubset.privacy.quantiles import QuantileSampler, histogram
from dpsubset.privacy.random import Randomness, SeededSource

from .tables import Coded, Floats, Loaded
from .utility import Linear, Set, best_linear

DELTA = 1e-6

#: Of the noisy moments, in sqrt(d) noise deviations, with the response in its declared scale and
#: in a private one. Of 0.5, 1, 2, 4, 8 and 16 the best in the mean over epsilon 0.5, 1 and 3, or as
#: good as that: split `choose` without ames, k = 3, 4 draws.
_MOMENT_RIDGE, _SCALED_RIDGE = 8.0, 2.0

#: Of the linear model, over epsilon and the largest squared length of a row. In the same trial the
#: best of 0.01, 0.03, 0.06, 0.1, 0.3 and 1, with 0.03 as good; and with a private scale of 0.03,
#: 0.06 and 0.1, with 0.1 as good.
_MODEL_RIDGE = 0.06

#: Starts of the search on noisy moments, and up to how many sets it tries all: it is done anew for
#: each draw.
_STARTS, _MOST_SETS = 2, 60_000

#: Of the objective when there is no noise.
_LEAST_RIDGE = 1e-6

#: Most steps of Newton's method.
_NEWTON = 60


def centred(table: Loaded) -> tuple[Floats, Floats, dps.Bounds]:
    """The columns and bounds of the same width around their means, which come for free.

    A user would have to spend a part of epsilon on them; the peer is spared that. The response is
    centred likewise.
    """
    x, y = table.coded.x, table.coded.y
    numbers = ~table.coded.groups[table.coded.owners]
    around = [(m - h, m + h) for m, h in zip(x.mean(axis=0), np.where(numbers, 1.0, 0.5),
                                             strict=True)]  # fmt: skip
    return x, y, dps.Bounds(x=around, y=(y.mean() - 1, y.mean() + 1))


def moment_sensitivity(numbers: int, groups: int = 0) -> float:
    """Largest l2 change of all moments: of numbers in [-1, 1], the response among them, and groups.

    The moments are z_i, z_i z_j (i < j) and z_i^2; of levels, which are their own squares and
    whose products within a group are 0, those of different groups only. Attained where numbers are
    at corners, f of them change sign, and c groups another level. A sign moves its sum and its
    products with numbers that stay by 2; and those with the levels of a group that stays, of which
    one is on. A new level moves two sums by 1, and two products with each number and each group.
    """

    def squared(f: int, c: int) -> int:
        signs = 4 * f * (1 + numbers - f + groups - c)
        levels = 2 * c * (1 + numbers) + 2 * (math.comb(groups, 2) - math.comb(groups - c, 2))
        return signs + levels

    return math.sqrt(max(squared(f, c) for f in range(numbers + 1) for c in range(groups + 1)))


def gaussian_deviation(sensitivity: float, epsilon: float, delta: float) -> float:
    """The least noise for (epsilon, delta): the analytic Gaussian mechanism of Balle and Wang."""

    def excess(ratio: float) -> float:
        """Delta at a deviation of ``ratio`` sensitivities, less the one allowed."""
        a, b = 1 / (2 * ratio), epsilon * ratio
        return norm.cdf(a - b) - math.exp(epsilon + norm.logcdf(-a - b)) - delta

    return sensitivity * brentq(excess, 1e-3, 1e4)


def noisy_moments(
    table: Loaded, k: int, epsilon: float | None, seed: int, scale: dps.ResponseRange | None = None
) -> Set:
    """Gaussian noise on all moments of all columns once, then the best set of choices on them.

    With a ``scale``, a part of epsilon is spent on centre and width of the response first.
    """
    coded, left, size = table.coded, epsilon, _MOMENT_RIDGE
    if scale is not None:
        coded, left = _rescaled(coded, epsilon, seed, scale)
        gram, size = _moments(coded), _SCALED_RIDGE
    else:
        gram = _kept_moments(coded)
    groups, d = int(coded.groups.sum()), len(gram) - 1
    noise = 0.0
    if left is not None:
        sensitivity = moment_sensitivity(int((~coded.groups).sum()) + 1, groups)
        noise = gaussian_deviation(sensitivity, left, DELTA) / table.n
        upper = np.triu(np.random.default_rng(seed).normal(scale=noise, size=gram.shape))
        upper[0, 0] = 0.0  # n is public
        for j in np.flatnonzero(coded.groups):
            levels = slice(1 + coded.starts[j], 1 + coded.starts[j + 1])
            upper[levels, levels] = np.diag(upper[0, levels])
        gram = gram + upper + np.triu(upper, 1).T
    means = gram[0, 1:]
    covariance = gram[1:, 1:] - np.outer(means, means)
    # The noise matrix has eigenvalues down to about -2 sqrt(d) deviations: the ridge keeps every
    # set's system positive.
    ridge = size * math.sqrt(d) * noise + 1e-9
    lowest = float(np.linalg.eigvalsh(covariance[:-1, :-1])[0])
    ridge += max(0.0, -lowest - ridge + 1e-9)
    fit = Linear(covariance[:-1, :-1], covariance[:-1, -1], 1.0, coded.starts, ridge)
    return best_linear(fit, k, _STARTS, _MOST_SETS)[0]


def _moments(coded: Coded) -> Floats:
    z = np.column_stack([np.ones(len(coded.y)), coded.x, coded.y])
    return z.T @ z / len(z)


_kept_moments = functools.lru_cache(maxsize=1)(_moments)


def _rescaled(
    coded: Coded, epsilon: float | None, seed: int, scale: dps.ResponseRange
) -> tuple[Coded, float | None]:
    """With the response in a private scale, and what is left of epsilon."""
    y = np.rint(coded.y * STEPS).astype(np.int64)
    spent = scale.budget_fraction * Fraction(10**6 if epsilon is None else str(epsilon))
    rng = Randomness(SeededSource(seed))
    found = QuantileSampler(histogram(y, STEPS), scale.rule, spent, "replace-one").draw(rng)
    clipped = found.images(STEPS)[y + STEPS] / STEPS
    left = None if epsilon is None else epsilon * float(1 - scale.budget_fraction)
    return Coded(coded.x, clipped, coded.starts, coded.groups), left


@functools.lru_cache(maxsize=256)
def largest_coefficients(
    table: Loaded, epsilon: float | None, seed: int, scale: dps.ResponseRange | None = None
) -> list[int]:
    """Choices by the size of their coefficients in a private linear model, largest first.

    Objective perturbation (Chaudhuri, Monteleoni and Sarwate 2011), pure epsilon. Rows with a
    column of ones are scaled into the unit ball, in which levels of a category count as one column.
    The loss is logistic for labels and log cosh(y - t) for numbers: both have slopes of at most 1,
    as the proof needs. With a ``scale``, a part of epsilon is spent on the response's centre and
    width first. Kept, since it is the same for every k.
    """
    coded, labels = table.coded, table.labels
    if scale is not None:
        coded, epsilon = _rescaled(coded, epsilon, seed, scale)
    x, y = coded.x, coded.y
    n, d = table.n, x.shape[1] + 1
    length = 1 + table.p  # squared, at most: one column a choice is on
    rows = np.column_stack([np.ones(n), x]) / math.sqrt(length)
    curvature = 0.25 if labels else 1.0
    push, ridge = np.zeros(d), _LEAST_RIDGE
    if epsilon is not None:
        # A part of epsilon is for how the curvature depends on a record, at most half of it; the
        # rest is for the noise.
        rng = np.random.default_rng(seed)
        ridge = max(_MODEL_RIDGE / (length * epsilon), curvature / (n * math.expm1(epsilon / 4)))
        left = epsilon - 2 * math.log1p(curvature / (n * ridge))
        push = rng.normal(size=d)
        push *= rng.gamma(d, 2 / left) / np.linalg.norm(push) / n

    def objective(b: Floats, t: Floats) -> float:
        gap = y * t if labels else t - y
        loss = np.logaddexp(0, -gap) if labels else np.logaddexp(gap, -gap)
        return float(loss.mean() + push @ b + ridge / 2 * b @ b)

    # Newton's method with halved steps: columns that are nearly copies make gradients slow.
    b, t = np.zeros(d), np.zeros(n)
    value = objective(b, t)
    for _ in range(_NEWTON):
        if labels:
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
    sizes = np.sqrt(np.add.reduceat(b[1:] ** 2, coded.starts[:-1]))
    return np.argsort(-sizes, kind="stable").tolist()
