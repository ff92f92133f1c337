"""Made-up tables behind the door: what a mechanism is given, without reading anything.

Where a mechanism needs records, all cells are made up. Where sums are enough, most of a wide table
need not exist: columns far from those that matter are independent of them, or nearly so, and sums
of their products with anything follow laws that can be drawn from. With A the near columns, the
intercept and the response, a of them in all, A'A = R'R, and Sigma the covariance of the far ones F,

    F'A = Z R,   F'F = Z Z' + W,   Z normal with covariance Sigma,   W Wishart (n - a, Sigma)

which is exact for Gaussian columns. Clipped ones have sums that are close to normal likewise.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..api.request import SelectionRequest
from ..data.gram import GramData
from ..privacy.random import Randomness
from ..schema.layout import STEPS
from .population import Population
from .scales import sampler

Floats = NDArray[np.float64]

#: Correlations with a column that matters below this count as none.
_FAR = 0.01

#: Rows whose cells are made at a time.
_BLOCK = 2**24


def made_up(
    planned: SelectionRequest,
    population: Population,
    n: int,
    rng: np.random.Generator,
    bits: Randomness,
) -> GramData:
    """A table of n rows, with the response in a scale that was drawn from it, if there is one."""
    if planned.records_for is not None:
        return GramData.of_cells(_cells(planned, population, n, population.p, rng, bits), "")
    near = _near(population, n)
    cells = _cells(planned, population, n, near, rng, bits)
    inner = _products(cells)
    return _digest(_with_far(inner, population, n, near, rng), n)


def near_columns(population: Population) -> int:
    """How many of the first columns are correlated with one that matters, or matter."""
    beyond = 1
    if population.rho:
        beyond = math.ceil(math.log(_FAR) / math.log(population.rho))
    return min(population.truth[-1] + beyond, population.p)


def _near(population: Population, n: int) -> int:
    """How many of the first columns are made up cell by cell: all, if rows are few."""
    near = near_columns(population)
    return near if n >= 2 * (population.p + 2) and population.p - near > 8 else population.p


def _cells(
    planned: SelectionRequest, population: Population, n: int, count: int,
    rng: np.random.Generator, bits: Randomness,
) -> NDArray[np.int16]:  # fmt: skip
    """Quantised columns, a row each: ``count`` of the table's, the intercept's, the response."""
    constant = planned.setting.problem.layout.constant
    cells = np.empty((count + (constant != 0) + 1, n), dtype=np.int16)
    cells[count] = constant
    step = max(1, _BLOCK // count)
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        x = population.columns(rows.stop - start, count, rng)
        cells[:count, rows] = _quantised(x.T, population.x_bound)
        y = population.response(x, rng)
        cells[-1, rows] = _quantised(y, 1.0 if population.labels else population.y_bound)
    if planned.response_range is not None:
        response = cells[-1].astype(np.int64)
        images = sampler(planned, response).draw(bits).images(STEPS)
        cells[-1] = images[response + STEPS]
    return cells


def _quantised(values: Floats, bound: float) -> NDArray[np.int16]:
    scaled = values * (STEPS / bound)
    np.clip(scaled, -STEPS, STEPS, out=scaled)
    return np.rint(scaled, out=scaled).astype(np.int16)


def _products(cells: NDArray[np.int16]) -> Floats:
    """Sums of products, exact: integers below 2**53 at a time."""
    found = np.zeros((len(cells), len(cells)))
    step = max(1, _BLOCK // len(cells))
    for start in range(0, cells.shape[1], step):
        part = cells[:, start : start + step].astype(np.float64)
        found += part @ part.T
    return found


def _with_far(
    inner: Floats, population: Population, n: int, near: int, rng: np.random.Generator
) -> Floats:
    """The products of all columns, in the order of the table."""
    far = population.p - near
    if not far:
        return inner
    size = len(inner)
    factor = _far_factor(far, population.rho, population.x_bound)
    # A response that is constant has no row of its own in R.
    values, vectors = np.linalg.eigh(inner)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    z = _times(factor, rng.standard_normal((far, size))) * STEPS
    mixed = np.tril(rng.standard_normal((far, far)), -1)
    mixed[np.diag_indices(far)] = np.sqrt(rng.chisquare(n - size - np.arange(far)))
    outer = _times(factor, mixed) * STEPS
    found = np.empty((size + far, size + far))
    first, last = slice(0, near), slice(near + far, None)
    middle = slice(near, near + far)
    found[first, first] = inner[:near, :near]
    found[first, last] = inner[:near, near:]
    found[last, first] = inner[near:, :near]
    found[last, last] = inner[near:, near:]
    across = z @ root.T
    found[middle, first], found[middle, last] = across[:, :near], across[:, near:]
    found[first, middle], found[last, middle] = across[:, :near].T, across[:, near:].T
    found[middle, middle] = z @ z.T + outer @ outer.T
    return found


def _times(factor: Floats | float, values: Floats) -> Floats:
    return np.asarray(factor @ values if isinstance(factor, np.ndarray) else factor * values)


@lru_cache(maxsize=4)
def _far_factor(far: int, rho: float, bound: float) -> Floats | float:
    """A factor of the covariance of clipped columns; a number if they are independent."""
    points, masses = _points()
    x = np.clip(points / bound, -1, 1)
    lags = np.zeros(far)
    for lag in range(far):
        r = rho**lag
        if lag and r < 1e-4:
            break
        others = np.clip((r * points[:, None] + math.sqrt(1 - r**2) * points) / bound, -1, 1)
        lags[lag] = (masses * x) @ others @ masses
    if not rho:
        return math.sqrt(lags[0])
    places = np.arange(far)
    return np.linalg.cholesky(lags[np.abs(places[:, None] - places)])


def _points() -> tuple[Floats, Floats]:
    points = np.linspace(-7, 7, 281)
    masses = np.exp(-(points**2) / 2)
    return points, masses / masses.sum()


def _digest(products: Floats, n: int) -> GramData:
    """Of sums that include the response's, last."""
    whole = np.rint(products).astype(np.int64)
    p = len(whole) - 1
    return GramData(
        columns=whole,
        slot=np.arange(p),
        diagonal=np.ascontiguousarray(np.diagonal(whole)[:p]),
        c=np.ascontiguousarray(whole[:p, -1]),
        yy=int(whole[-1, -1]),
        n=n,
        records=np.empty((0, 0), dtype=np.int16),
        fingerprint="",
    )
