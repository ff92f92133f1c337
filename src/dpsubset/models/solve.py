"""From noisy moments to a model. It uses what was released and public facts, nothing else.

Let A, b, t be X'X, X'y, y'y of a table, in scaled units with the constant last, and A~, b~, t~ the
same with noise of a known deviation s an entry.

*Coefficients* are shrunk, so that noise is not taken for signal. With G, g and v the moments about
the means, g~ = G beta + noise, and beta taken as a priori normal with mean 0 and a variance
tau^2 = v / (m mean(diag G)), by which columns of the usual spread explain the response as a whole,

    beta = tau^2 G (tau^2 G^2 + s^2)^-1 g~,

with eigenvalues of G~ below 0, which no table has, at 0. The intercept makes means fit. Without
noise it is least squares.

*Intervals* are not shrunk. If A theta = b is the least squares model of the table itself, then

    theta~ - theta = A~^-1 (b~ - A~ theta),    theta~ = A~^-1 b~,

exactly, and b~ - A~ theta is linear in the noise. So its variance is known up to theta, for which
theta~ stands: s^2 W W' with W = W(theta~), see `Entries.noise_map`. An interval for the table's own
coefficient has 1.96 deviations of this. Sampling adds sigma^2 A^-1 to it, as for least squares with
errors of equal variance sigma^2.

*R2* is that of the shrunk model on the table: 2 beta'g - beta'G beta over v, where the noise that
the model has taken for signal, 2 trace(H s^2 W W') in the mean, is taken off.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .entries import Entries

Floats = NDArray[np.float64]

#: Of the normal distribution: 95 % lie within so many deviations.
QUANTILE = 1.959964


@dataclass(frozen=True)
class Solution:
    """A model in scaled units, the constant last. Public: made of what was released.

    Attributes
    ----------
    theta : array
        The shrunk coefficients.
    plain : array
        Those that are not shrunk, in the units asked for: intervals lie around them.
    of_table, of_both : arrays
        Deviations of these: of the noise alone, and of noise and sampling.
    spread, response_spread : array and float
        Standard deviations of the columns and of the response, as far as they can be told.
    r2 : float
        NaN, as the spreads, where nothing was released that tells it.
    """

    theta: Floats
    plain: Floats
    of_table: Floats
    of_both: Floats
    spread: Floats
    response_spread: float
    r2: float


def solve(
    entries: Entries,
    released: list[int],
    n: int | None,
    deviation: float,
    units: Floats | None = None,
) -> Solution:
    """The model of released sums.

    Parameters
    ----------
    entries : Entries
        Which sums they are.
    released : list of int
    n : int, optional
        The number of rows, where it is public.
    deviation : float
        Of the noise of each sum, in scaled units.
    units : array, optional
        A matrix that intervals are asked for in the units of: they are of ``units @ theta``.
    """
    gram, c, yy = entries.moments(released, n)
    m = entries.m
    # A table without rows has a model too, if a vague one.
    rows = max(float(gram[m, m]), 1.0)
    gram[m, m] = rows
    means, mean = gram[:m, m] / rows, float(c[m]) / rows
    centred = gram[:m, :m] - rows * np.outer(means, means)
    g, total = c[:m] - rows * means * mean, yy - rows * mean**2
    # Nothing varies by more than bounds allow, nor can less than the noise be told from nothing.
    least = max(deviation, 1e-12 * rows)
    total = float(np.clip(total, least, max(rows, least)))
    variances = np.clip(np.diag(centred), least, max(rows, least))
    shrunk, factors = _shrunk(centred, g, total / max(m, 1) / (variances.mean() if m else 1.0),
                              deviation)  # fmt: skip
    theta = np.append(shrunk, mean - means @ shrunk)
    plain, of_table, of_both = _intervals(
        entries, gram, c, yy, deviation, np.eye(m + 1) if units is None else units
    )
    taken = 0.0
    if deviation and m:
        moved = entries.noise_map(theta)
        moved = moved[:m] - np.outer(means, moved[m])
        taken = 2 * deviation**2 * float(((factors @ moved) * moved).sum())
    explained = 2 * shrunk @ g - shrunk @ centred @ shrunk - taken
    return Solution(
        theta, plain, of_table, of_both,
        spread=np.sqrt(variances / rows),
        response_spread=float(np.sqrt(total / rows)),
        r2=float(np.clip(explained / total, 0.0, 1.0)),
    )  # fmt: skip


def of_coefficients(theta: Floats, deviation: float | None, units: Floats) -> Solution:
    """The model of released coefficients; their deviation by noise, where it is known.

    Nothing is known of columns and response beside them: no spread, no R2, no sampling error.
    """
    size = len(theta)
    unknown = np.full(size, np.inf)
    of_table = unknown
    if deviation is not None:
        of_table = deviation * np.sqrt((units**2).sum(axis=1))
    nothing = np.full(size - 1, np.nan)
    return Solution(theta, units @ theta, of_table, unknown, nothing, np.nan, np.nan)


def _shrunk(centred: Floats, g: Floats, tau2: float, deviation: float) -> tuple[Floats, Floats]:
    """Coefficients, and the matrix H that they are H g of."""
    if not len(g):
        return np.zeros(0), np.zeros((0, 0))
    values, vectors = np.linalg.eigh(centred)
    values = np.maximum(values, 0.0)
    # What is 0 up to rounding is 0, with and without noise.
    known = values > 1e-10 * max(float(values.max()), 1e-300)
    below = tau2 * values**2 + deviation**2
    each = np.divide(tau2 * values, below, out=np.zeros_like(values), where=known)
    factors = (vectors * each) @ vectors.T
    return factors @ g, factors


def _intervals(
    entries: Entries, gram: Floats, c: Floats, yy: float, deviation: float, units: Floats
) -> tuple[Floats, Floats, Floats]:
    """Unshrunk coefficients in these units, and their deviations by noise and by both."""
    size = entries.m + 1
    if np.linalg.matrix_rank(gram, hermitian=True) < size:
        return np.zeros(size), np.full(size, np.inf), np.full(size, np.inf)
    inverse = np.linalg.inv(gram)
    plain, inverse = inverse @ c, units @ inverse
    by_noise = inverse @ entries.noise_map(plain)
    of_table = deviation * np.sqrt((by_noise**2).sum(axis=1))
    rows = gram[-1, -1]
    total = max(yy - c[-1] ** 2 / rows, 0.0)
    left = yy - plain @ c
    # Noise may leave less than nothing, or more than there is.
    left = left if 0 < left <= total else total
    variance = left / max(rows - size, 1.0)
    # Of A^-1 only what a table can have.
    values, vectors = np.linalg.eigh(gram)
    root = inverse @ (vectors * np.sqrt(np.maximum(values, 0.0)))
    sampling = variance * (root**2).sum(axis=1)
    return units @ plain, of_table, np.sqrt(of_table**2 + sampling)
