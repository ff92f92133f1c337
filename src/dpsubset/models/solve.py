"""Compute a model from noisy moments; post-processing of a release.

Let A, b, t be X'X, X'y, y'y of a table, in scaled units with the constant last, and A~, b~, t~ the
same with noise of a known deviation s an entry.

*Coefficients* are shrunk, so that noise is not mistaken for signal. With G, g and v the moments
about the means, g~ = G beta + noise, and beta a priori normal with mean 0 and a variance
tau^2 = v / (m mean(diag G)), at which columns of average variance explain the response as a whole,

    beta = tau^2 G (tau^2 G^2 + s^2)^-1 g~,

with negative eigenvalues of G~, which no table has, set to 0. The intercept matches the means.
Without noise the result is least squares.

*Intervals* are not shrunk: see `intervals.py`.

*R2* is that of the model on the table: 2 beta'g - beta'G beta over v, less the expected
contribution of noise, 2 trace(H s^2 W W'), and less what an intercept that does not match the means
adds to the error. If the model has other released coefficients, their noise is independent of that
of the sums, which then contributes nothing in the mean. The *residual variance* is the rest of v,
(1 - R2) v, over the number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .entries import Entries
from .intervals import QUANTILE, Moments, Posterior, in_unit, intervals, normalised

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Solution:
    """A model in scaled units, the constant last. Public: computed from released numbers."""

    #: The shrunk coefficients.
    theta: Floats
    #: The unshrunk coefficients, in the requested units.
    plain: Floats
    #: Ends of 95 % intervals for these: by the noise alone, and by noise and sampling.
    of_table: Floats
    of_both: Floats
    #: Estimated standard deviations of the columns and of the response.
    spread: Floats
    response_spread: float
    #: NaN, like the deviations, where no released number determines it.
    r2: float
    #: Variance of the response about the model, or NaN.
    residual_variance: float


def solve(
    entries: Entries,
    released: list[int],
    n: int | None,
    deviation: float,
    units: Floats | None = None,
    theta: Floats | None = None,
) -> Solution:
    """The model of released entries, or of other released coefficients ``theta``.

    ``n`` is the number of rows, where it is public. If some may not count, their number is among
    the released entries, and n is an upper bound for it. ``deviation`` is that of the noise of each
    entry, in scaled units. Intervals are for ``units @ theta``.
    """
    gram, c, yy = entries.moments(released, n)
    m = entries.m
    # A table without rows has a model, too.
    rows = max(float(gram[m, m]), 1.0)
    gram[m, m] = rows
    # Means lie within the bounds.
    means, mean = np.clip(gram[:m, m] / rows, -1, 1), float(np.clip(c[m] / rows, -1, 1))
    centred = gram[:m, :m] - rows * np.outer(means, means)
    g, total = c[:m] - rows * means * mean, yy - rows * mean**2
    # Variances are at most what the bounds allow; below the noise level they are unknown.
    least = max(deviation, 1e-12 * rows)
    total = float(np.clip(total, least, max(rows, least)))
    variances = np.clip(np.diag(centred), least, max(rows, least))
    shrunk, factors = _shrunk(centred, g, total / max(m, 1) / (variances.mean() if m else 1.0),
                              deviation)  # fmt: skip
    given = theta is not None
    if theta is None:
        theta = np.append(shrunk, mean - means @ shrunk)
    slopes = theta[:m]
    posterior = None
    if deviation:
        posterior = Posterior.of(
            centred, g, means, mean, total / max(m, 1) / variances, deviation, deviation / rows
        )
    plain, of_table, of_both = intervals(
        Moments(entries, gram, c, yy, deviation),
        posterior,
        np.eye(m + 1) if units is None else units,
    )
    taken = 0.0
    if deviation and m and not given:
        moved = entries.noise_map(theta)
        moved = moved[:m] - np.outer(means, moved[m])
        taken = 2 * deviation**2 * float(((factors @ moved) * moved).sum())
    # The noise of the sums is independent of coefficients that are not made from them.
    explained = 2 * slopes @ g - slopes @ centred @ slopes - taken
    explained -= rows * float(theta[m] + means @ slopes - mean) ** 2
    r2 = float(np.clip(explained / total, 0.0, 1.0))
    return Solution(
        theta, plain, of_table, of_both,
        spread=np.sqrt(variances / rows),
        response_spread=float(np.sqrt(total / rows)),
        r2=r2,
        residual_variance=min(total / rows, 1.0) * (1 - r2),
    )  # fmt: skip


def of_coefficients(theta: Floats, deviation: float | None, units: Floats) -> Solution:
    """The model of released coefficients, with the deviation of their noise where it is known.

    Nothing else is known of columns and response: no deviations, no R2, no sampling error.
    """
    size = len(theta)
    rows, units_of_rows = normalised(units)
    points = rows @ theta
    plain = points * units_of_rows
    unknown = np.column_stack([np.full(size, -np.inf), np.full(size, np.inf)])
    of_table = unknown
    if deviation is not None:
        half = QUANTILE * deviation * np.sqrt((rows**2).sum(axis=1))
        ends = zip(points - half, points + half, units_of_rows, strict=True)
        of_table = np.array([in_unit((low, high), unit) for low, high, unit in ends])
    nothing = np.full(size - 1, np.nan)
    return Solution(theta, plain, of_table, unknown, nothing, np.nan, np.nan, np.nan)


def _shrunk(centred: Floats, g: Floats, tau2: float, deviation: float) -> tuple[Floats, Floats]:
    """Coefficients, and the matrix H with coefficients H g."""
    if not len(g):
        return np.zeros(0), np.zeros((0, 0))
    values, vectors = np.linalg.eigh(centred)
    values = np.maximum(values, 0.0)
    # Eigenvalues that are 0 up to rounding count as 0, with and without noise.
    known = values > 1e-10 * max(float(values.max()), 1e-300)
    below = tau2 * values**2 + deviation**2
    each = np.divide(tau2 * values, below, out=np.zeros_like(values), where=known)
    factors = (vectors * each) @ vectors.T
    return factors @ g, factors
