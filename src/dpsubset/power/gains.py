"""What each variable gains on a made-up table: how far it lowers the score of a support it joins.

Columns are independent here, and the score is least squares. With c_i = Cov(x_i, h(y)), v the
variance of a clipped column and b_i the best coefficient that is allowed, a true variable gains
about n (2 b_i c_i - b_i^2 v), and any other one nothing; in n rows c_i and v are known up to errors
of size 1 / sqrt(n), which are drawn from their normal limits:

    v_i^ = v + sqrt((E x^4 - v^2) / n) z        c_i^ = c_i (v_i^ / v) + sqrt(v t_i^2 / n) z'

t_i^2 is the variance that is left of the response beside x_i once the other k - 1 true variables
have taken their part. Another variable gains max over b of n (2 b c^ - b^2 v), with c^ around 0.

`models` has what the constraint does. Covariances come from Hermite series: E f(x) h(y) is the sum
of r^m f_m h_m, with r the correlation of x and y.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..api.request import SelectionRequest
from .closed import most_swaps
from .models import Model, model_of
from .population import Population
from .scales import counted, drawn_scales

Floats = NDArray[np.float64]

#: Terms of the Hermite series, and points that integrals over a Gaussian are taken at.
_TERMS, _POINTS, _FARTHEST = 24, 1201, 8.0


@dataclass(frozen=True)
class Gains:
    """Of several made-up tables, in units of the score.

    Attributes
    ----------
    true, other : arrays of shape (tables, k) and (tables, p - k)
        What variables gain one by one.
    curve : array of shape (tables, most swaps + 1)
        What j swaps gain beyond j single ones.
    gap : float
        What a swap costs, on average.
    """

    true: Floats
    other: Floats
    curve: Floats
    gap: float


def made_up_gains(
    planned: SelectionRequest, population: Population, n: int, tables: int, seed: int
) -> Gains:
    """Gains on ``tables`` made-up tables of n rows. The same seed has the same normal draws."""
    v, fourth, model = _population(planned, population, n, tables, seed)
    k, others = population.k, population.p - population.k
    rng = np.random.default_rng([seed, 1])
    z = rng.standard_normal((2, tables, k))
    squares = v + np.sqrt((fourth - v**2) / n) * z[0]
    products = model.c * squares / v + np.sqrt(v * model.beside / n) * z[1]
    noise = np.sqrt(v * model.without_one / n)[:, None] * rng.standard_normal((tables, others))
    curve = model.curve(most_swaps(population.p, k))
    return Gains(
        true=n * model.true_gains(products, squares),
        other=n * model.other_gains(noise),
        curve=n * np.broadcast_to(curve, (tables, curve.shape[1])),
        gap=n * float(model.alone.mean()),
    )


def _population(
    planned: SelectionRequest, population: Population, n: int, tables: int, seed: int
) -> tuple[float, float, Model]:
    """E x^2, E x^4 and the best model of a clipped population, for each scale that is drawn."""
    points, masses, hermite = _gaussian()
    x = np.clip(points / population.x_bound, -1, 1)
    v, fourth = float(masses @ x**2), float(masses @ x**4)
    scales = drawn_scales(planned, population, n, tables, np.random.default_rng([seed, 0]))
    h = np.stack([counted(scale, population, points) for scale in scales])
    powers = population.weights[:, None] ** np.arange(_TERMS)
    c = ((h * masses) @ hermite.T * (hermite @ (masses * x))) @ powers.T
    mean = h @ masses
    return v, fourth, model_of(planned.setting.problem, n, c, v, mean, h**2 @ masses - mean**2)


def _gaussian() -> tuple[Floats, Floats, Floats]:
    """Points, their masses under a standard Gaussian, and normalised Hermite polynomials there."""
    points = np.linspace(-_FARTHEST, _FARTHEST, _POINTS)
    masses = np.exp(-(points**2) / 2)
    masses /= masses.sum()
    hermite = np.empty((_TERMS, _POINTS))
    hermite[0], hermite[1] = 1.0, points
    for m in range(2, _TERMS):
        hermite[m] = (points * hermite[m - 1] - np.sqrt(m - 1) * hermite[m - 2]) / np.sqrt(m)
    return points, masses, hermite
