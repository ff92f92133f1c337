"""Simulated tables, as the sums or records that a mechanism works on.

Mechanisms that need records have all rows drawn. For those that need only X'X and X'y, a table with
many rows is drawn with fewer of them; its sums, and the histogram of its response, are rescaled.
With S the expected products of one row and G the sums over m simulated rows, the sums of n > m rows
are taken to be

    n S + sqrt(n / m) (G - m S)

which has the mean and the covariances of the sums of n rows. Both distributions are close to
normal, since cells are bounded and m is in the thousands. S follows from Hermite series: for
standard normal x and y with correlation r, E f(x) g(y) = sum over d of r^d f_d g_d, where f_d and
g_d are the coefficients of f and g in normalised Hermite polynomials.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from ..api.request import SelectionRequest, sampler_of
from ..base.errors import ArgumentError
from ..data.gram import GramData
from ..privacy.quantiles import RangeInSteps, histogram
from ..privacy.random import Randomness
from ..schema.layout import STEPS
from .population import Population

Floats = NDArray[np.float64]

#: A table is drawn with about so many cells, and at least so many rows, if sums are rescaled.
_CELLS, _FEWEST_ROWS = 2**16, 1024
#: With more columns X'X is too large: all rows are drawn, and products are computed on demand.
_MOST_COLUMNS = 2048
#: The most cells of any table: 512 MB.
MOST_CELLS = 2**28
#: Cells that are drawn at a time, in float64.
_BLOCK = 2**22
#: Terms of a Hermite series, and the points at which expectations are evaluated.
_TERMS, _POINTS, _LIMIT = 24, 4001, 8.0


def simulate_table(
    request: SelectionRequest,
    population: Population,
    n: int,
    rng: np.random.Generator,
    bits: Randomness,
) -> tuple[SelectionRequest, GramData]:
    """Draw a table of n rows; the response is in a released range if the request has one.

    Returns the request with the prediction bound that follows from a released class share, and the
    table.
    """
    rows = _rows(request, population.p, n)
    if rows * population.p > MOST_CELLS:
        raise ArgumentError(
            f"a simulated table of {n:,} rows and {population.p:,} columns has too many cells: "
            f"give a smaller n or p, with at most {MOST_CELLS:,} cells"
        )
    cells = _cells(request, population, rows, rng)
    scale = None
    if request.response_range is not None:
        response = cells[-1].astype(np.int64)
        counts = histogram(response, STEPS)
        if rows < n:
            masses = _response_masses(population)
            cumulated = np.rint(np.cumsum(_rescaled(counts, masses, rows, n)))
            counts = np.diff(cumulated, prepend=0.0).astype(np.int64)
        sampler = sampler_of(
            request.response_range, counts, request.range_epsilon, request.neighbours
        )
        request, scale = request.with_released(sampler.draw(bits))
        assert scale is not None
        cells[-1] = scale.images(STEPS)[response + STEPS]
    if request.records_for is not None or population.p > _MOST_COLUMNS:
        return request, GramData.of_cells(cells, "")
    floats = cells.astype(np.float64)
    sums = floats @ floats.T  # exact: integers below 2**53
    if rows < n:
        expected = _expected_products(population, request.setting.problem.layout.constant, scale)
        sums = _rescaled(sums, expected, rows, n)
    return request, _gram(sums, n)


def _rescaled(sums: NDArray[Any], expected: Floats, rows: int, n: int) -> Floats:
    """Turn sums over some rows into sums over n rows; they stay positive if they were."""
    factor = math.sqrt(n / rows)
    return np.asarray((n - factor * rows) * expected + factor * sums)


def _rows(request: SelectionRequest, p: int, n: int) -> int:
    """How many rows are drawn."""
    rows = max(_CELLS // p, _FEWEST_ROWS)
    exact = request.records_for is not None or p > _MOST_COLUMNS
    return n if exact else min(n, rows)


def _cells(
    request: SelectionRequest, population: Population, n: int, rng: np.random.Generator
) -> NDArray[np.int16]:
    """Draw quantized cells: one row for each column, the intercept's and the response last."""
    constant, p = request.setting.problem.layout.constant, population.p
    cells = np.empty((p + (constant != 0) + 1, n), dtype=np.int16)
    cells[p] = constant
    step = max(1, _BLOCK // p)
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        x = population.columns(rows.stop - start, rng)
        y = population.response(x, rng)
        cells[-1, rows] = _quantized(y, 1.0 if population.labels else population.y_bound)
        cells[:p, rows] = _quantized(x.T, population.x_bound)
    return cells


def _quantized(values: Floats, bound: float) -> NDArray[np.int16]:
    scaled = values * (STEPS / bound)
    np.clip(scaled, -STEPS, STEPS, out=scaled)
    return np.rint(scaled, out=scaled).astype(np.int16)


def _expected_products(population: Population, constant: int, scale: RangeInSteps | None) -> Floats:
    """The expected products of one row's quantized cells, in the order of `_cells`."""
    points, masses, hermite = _gaussian()
    p = population.p
    f, squares, between = _column_products(population)
    y = _response_at(points, population, scale)
    h = hermite @ (masses * y)
    found = np.zeros((p + (constant != 0) + 1,) * 2)
    found[:p, :p] = between
    found[np.arange(p), np.arange(p)] = squares
    powers = population.correlations[:, None] ** np.arange(_TERMS)
    found[:p, -1] = found[-1, :p] = powers @ (f * h)
    if constant:  # the mean of a column is 0
        found[p, p] = (constant / STEPS) ** 2
        found[p, -1] = found[-1, p] = constant / STEPS * float(masses @ y)
    found[-1, -1] = masses @ y**2
    return found * float(STEPS) ** 2


@lru_cache(maxsize=4)
def _response_masses(population: Population) -> Floats:
    """The probability of each value of the grid: a standard normal clipped at the bound, or its
    sign.
    """
    if population.labels:
        return np.where(np.abs(np.arange(-STEPS, STEPS + 1)) == STEPS, 0.5, 0.0)
    edges = (np.arange(-STEPS, STEPS) + 0.5) / STEPS * population.y_bound
    masses = np.diff(np.concatenate([[0.0], ndtr(edges), [1.0]]))
    return np.asarray(masses / masses.sum())


def _response_at(points: Floats, population: Population, scale: RangeInSteps | None) -> Floats:
    """The quantized response, in [-1, 1], at points of its Gaussian distribution."""
    y = np.clip(points / population.y_bound, -1, 1)
    if population.labels:
        y = np.where(points < 0, -1.0, 1.0)
    if scale is None:
        return np.asarray(y)
    return np.clip((y * STEPS - float(scale.centre)) / float(scale.half_width), -1, 1)


@lru_cache(maxsize=4)
def _column_products(population: Population) -> tuple[Floats, float, Floats]:
    """Hermite coefficients of a clipped column, its variance, and covariances of columns."""
    points, masses, hermite = _gaussian()
    x = np.clip(points / population.x_bound, -1, 1)
    f = hermite @ (masses * x)
    by_distance = (float(population.rho) ** np.arange(population.p))[:, None] ** np.arange(_TERMS)
    places = np.arange(population.p)
    covariances = (by_distance @ f**2)[np.abs(places[:, None] - places)]
    return f, float(masses @ x**2), covariances


@lru_cache(maxsize=1)
def _gaussian() -> tuple[Floats, Floats, Floats]:
    """Points, their masses under a standard normal, and normalised Hermite polynomials there."""
    points = np.linspace(-_LIMIT, _LIMIT, _POINTS)
    masses = np.exp(-(points**2) / 2)
    masses /= masses.sum()
    hermite = np.empty((_TERMS, _POINTS))
    hermite[0], hermite[1] = 1.0, points
    for d in range(2, _TERMS):
        hermite[d] = (points * hermite[d - 1] - np.sqrt(d - 1) * hermite[d - 2]) / np.sqrt(d)
    return points, masses, hermite


def _gram(products: Floats, n: int) -> GramData:
    """Wrap sums of products whose last row is the response's."""
    sums = np.rint(products).astype(np.int64)
    p = len(sums) - 1
    return GramData(
        columns=sums,
        slot=np.arange(p),
        diagonal=np.ascontiguousarray(np.diagonal(sums)[:p]),
        c=np.ascontiguousarray(sums[:p, -1]),
        yy=int(sums[-1, -1]),
        n=n,
        records=np.empty((0, 0), dtype=np.int16),
        fingerprint="",
    )
