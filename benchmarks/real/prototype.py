"""A selection without the engine: intercept, private scale and groups, by trying all supports.

For choosing defaults. With floats and NumPy's noise: not for use. A *choice* is a number or a
categorical column as a whole; k counts choices. Scaled columns lie in [-1, 1], those of levels in
{0, 1}, of which one is on in a record: a group costs what one number costs, and the reach is
r (k + v) with an intercept of the constant value v.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from dpsubset.privacy.scale import histogram, rank_errors
from dpsubset.table.door import STEPS

from .tables import Floats, load
from .utility import deviance_explained

Sets = NDArray[np.int64]

#: Up to so many supports all are tried.
MOST_SETS = 40_000

#: Beyond: up to so many, all of some promising choices; and a sample of so many others for each
#: number of choices from outside.
INNER_SETS = 10_000
SAMPLED = 4_000

#: Largest error of a score: a hundredth of the least spread.
_GAP = 0.02

#: For the random sets of labels, and how many sets the logistic judge tries for the best one.
_RANDOM, _TRIED = 100, 200


@dataclass(frozen=True, eq=False)
class Prepared:
    """A table in scaled units: columns of choices, and the last one of ones.

    Attributes
    ----------
    x : array of shape (n, columns + 1)
        Missing cells of numbers at 0, and all levels off where a category is missing.
    y : array of int64
        The response on the grid of its declared bounds.
    first : array of int64
        Choice j has the columns first[j] to first[j + 1].
    """

    name: str
    labels: bool
    x: Floats
    y: NDArray[np.int64]
    first: Sets
    gram: Floats
    choices: list[str]

    @property
    def n(self) -> int:
        """Records."""
        return len(self.y)

    @property
    def p(self) -> int:
        """Choices."""
        return len(self.first) - 1


@functools.cache
def prepared(name: str) -> Prepared:
    """A table with its columns scaled from declared bounds, levels in groups."""
    table = load(name)
    columns, first, choices = [], [], []
    for j, column in enumerate(table.names):
        text, _, _ = column.partition("=")
        cells, (low, high) = table.x[:, j], table.bounds[j]
        alone = sum(other.partition("=")[0] == text for other in table.names) == 1
        if alone or "=" not in column:
            cells = 2 * (np.clip(cells, low, high) - low) / (high - low) - 1
        if alone or "=" not in column or choices[-1:] != [text]:
            first.append(j)
            choices.append(text)
        columns.append(np.nan_to_num(cells, nan=0.0))
    x = np.column_stack([*columns, np.ones(table.n)])
    bottom, top = table.y_bounds
    y = np.clip(2 * (table.y - bottom) / (top - bottom) - 1, -1, 1)
    return Prepared(
        name, table.labels, x, np.rint(y * STEPS).astype(np.int64),
        np.array([*first, len(columns)], dtype=np.int64), x.T @ x / table.n, choices,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Supports:
    """Supports that stand for all of size k, each for ``weight`` of them."""

    sets: Sets
    weight: Floats


@functools.cache
def supports(name: str, k: int) -> Supports:
    """All supports, or all of some choices with a sample of the others."""
    p = prepared(name).p
    if math.comb(p, k) <= MOST_SETS:
        sets = np.array(list(itertools.combinations(range(p), k)), dtype=np.int64)
        return Supports(sets, np.ones(len(sets)))
    count = next(m for m in range(p, k, -1) if math.comb(m, k) <= INNER_SETS)
    inner = np.array(sorted(_promising(name, count)))
    outer = np.setdiff1d(np.arange(p), inner)
    rng = np.random.default_rng(k)
    parts = [np.array(list(itertools.combinations(inner, k)), dtype=np.int64)]
    weights = [np.ones(len(parts[0]))]
    for m in range(1, k + 1):
        there = math.comb(len(outer), m) * math.comb(len(inner), k - m)
        if there == 0:
            continue
        some = np.array([[*rng.choice(outer, m, False), *rng.choice(inner, k - m, False)]
                         for _ in range(min(SAMPLED, there))], dtype=np.int64)  # fmt: skip
        parts.append(np.sort(some, axis=1))
        weights.append(np.full(len(some), there / len(some)))
    return Supports(np.concatenate(parts), np.concatenate(weights))


def _promising(name: str, count: int) -> list[int]:
    """Half by their own fit, the others by forward selection."""
    p = prepared(name).p
    alone = _fits(name, np.arange(p)[:, None])
    chosen: list[int] = []
    while len(chosen) < min(count // 2, p):
        more = [j for j in range(p) if j not in chosen]
        chosen.append(more[int(np.argmax(_fits(name, np.array([[*chosen, j] for j in more]))))])
    for j in np.argsort(-alone).tolist():
        if len(chosen) < count and j not in chosen:
            chosen.append(j)
    return chosen


@functools.cache
def _standard(name: str) -> tuple[Floats, Floats, Floats, float]:
    """Columns as an analyst has them, standardised, missing cells at the mean; and moments."""
    table = load(name)
    filled = np.where(np.isnan(table.x), np.nanmean(table.x, axis=0), table.x)
    deviation = filled.std(axis=0)
    x = (filled - filled.mean(axis=0)) / np.where(deviation > 0, deviation, np.inf)
    y = table.y - table.y.mean()
    gram = x.T @ x / len(y) + 1e-8 * np.eye(x.shape[1])
    return x, gram, x.T @ y / len(y), float(y @ y) / len(y)


def _fits(name: str, sets: Sets) -> Floats:
    """R2 of least squares with an intercept on all columns of the choices."""
    _, gram, c, total = _standard(name)
    return _explained(gram, c, sets.astype(np.int64), prepared(name).first) / total


class Judge:
    """Utility of supports: 1 is the best of its size, 0 what random ones have."""

    def __init__(self, name: str, k: int) -> None:
        self._name, self._sets = name, supports(name, k)
        self._labels = prepared(name).labels
        self._kept: dict[int, float] = {}
        self.fits = _fits(name, self._sets.sets)
        share = self._sets.weight / self._sets.weight.sum()
        if self._labels:
            likely = np.argsort(-self.fits)[:_TRIED].tolist()
            rng = np.random.default_rng(k)
            some = rng.choice(len(share), _RANDOM, p=share).tolist()
            self.best = max(self._deviance(i) for i in likely)
            self.random = float(np.mean([self._deviance(i) for i in some]))
        else:
            self.best, self.random = float(self.fits.max()), float(share @ self.fits)

    def utilities(self, drawn: NDArray[np.intp]) -> Floats:
        """Of supports by their position."""
        fits = self.fits[drawn]
        if self._labels:
            fits = np.array([self._deviance(i) for i in drawn.tolist()])
        return np.asarray((fits - self.random) / (self.best - self.random))

    def _deviance(self, i: int) -> float:
        if i not in self._kept:
            first = prepared(self._name).first
            columns = [j for choice in self._sets.sets[i] for j in range(first[choice],
                       first[choice + 1])]  # fmt: skip
            x, y = _standard(self._name)[0][:, columns], load(self._name).y
            self._kept[i] = deviance_explained(x, y)
        return self._kept[i]


@functools.cache
def judge(name: str, k: int) -> Judge:
    """Kept: best sets are searched for once."""
    return Judge(name, k)


def quantile(
    y: NDArray[np.int64], share: Fraction, weight: float | None, rng: np.random.Generator
) -> float:
    """Of the exponential mechanism on rank errors; None is no noise."""
    errors = rank_errors(histogram(y, STEPS), share) / share.denominator
    if weight is None:
        return float(np.mean(np.flatnonzero(errors == errors.min()))) - STEPS
    mass = np.cumsum(np.exp(-weight * errors))
    return float(np.searchsorted(mass, rng.random() * mass[-1])) - STEPS


def range_of(reach: float, logistic: bool = False) -> float:
    """Of a loss, by the sharp rule."""
    if logistic:
        return reach
    return 4 * reach if reach <= 1 else (1 + reach) ** 2


def draws(
    scores: Floats, weight: Floats, eta: float | None, count: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Permute-and-flip: the largest of -score + Exponential(eta). None is no noise.

    A support that stands for w of them has the largest of w such noises.
    """
    if eta is None:
        return np.array([np.argmin(scores)])
    # Who is further away wins with a probability of e**-8 at most, all of them together.
    near = scores <= scores.min() + (math.log(weight.sum()) + 8) / eta
    places, gain, w = np.flatnonzero(near), -eta * scores[near], weight[near]
    found = np.empty(count, dtype=np.intp)
    for i in range(count):
        noise = rng.standard_exponential(len(w))
        many = w > 1
        if many.any():
            noise[many] = -np.log(-np.expm1(-rng.standard_exponential(many.sum()) / w[many]))
        found[i] = places[np.argmax(gain + noise)]
    return found


def scores(
    table: Prepared, sets: Sets, target: Floats, radius: float, v: float, logistic: bool = False
) -> Floats:
    """The least loss in the box on all supports, less what is the same for all."""
    gram, c = table.gram.copy(), table.x.T @ target / table.n
    gram[-1] *= v
    gram[:, -1] *= v
    c[-1] *= v
    if logistic:
        rows = np.ascontiguousarray(table.x.T)
        rows[-1] *= v
        return _logistic(rows, gram, target, sets, table.first, radius)
    return table.n * _boxed(gram, c, sets, table.first, radius, _GAP / table.n)


def _kernel(function: Any) -> Any:
    return numba.njit(cache=True, fastmath=True)(function)


@_kernel
def _columns(support, first, out):
    m = 0
    for choice in support:
        for j in range(first[choice], first[choice + 1]):
            out[m] = j
            m += 1
    return m


@_kernel
def _boxed(gram, c, sets, first, radius, gap):
    """The least b'Gb - 2c'b with |b_j| <= radius for each support; the last column is in all."""
    last = len(c) - 1
    values = np.empty(len(sets))
    columns = np.empty(len(c), dtype=np.int64)
    b, slope = np.empty(len(c)), np.empty(len(c))
    kept = np.zeros(len(c))  # what a column had when it was last used: a good start
    for i in range(len(sets)):
        m = _columns(sets[i], first, columns)
        columns[m] = last
        m += 1
        for s in range(m):
            b[s] = kept[columns[s]]
        for s in range(m):
            slope[s] = -c[columns[s]]
            for t in range(m):
                slope[s] += gram[columns[s], columns[t]] * b[t]
        for _ in range(3000):
            for s in range(m):
                h = gram[columns[s], columns[s]]
                if h < 1e-12:
                    continue
                there = min(max(b[s] - slope[s] / h, -radius), radius)
                step = there - b[s]
                if step != 0.0:
                    b[s] = there
                    for t in range(m):
                        slope[t] += step * gram[columns[t], columns[s]]
            off = 0.0
            for s in range(m):
                off += abs(slope[s]) * radius + slope[s] * b[s]
            if 2 * off <= gap:
                break
        value = 0.0
        for s in range(m):
            kept[columns[s]] = b[s]
            value += b[s] * (slope[s] - c[columns[s]])
        values[i] = value
    return values


@_kernel
def _logistic(rows, gram, y, sets, first, radius):
    """The least logistic loss with |b_j| <= radius, by quadratics above it: curvature 1/4."""
    n, last = len(y), len(rows) - 1
    values = np.empty(len(sets))
    columns = np.empty(len(rows), dtype=np.int64)
    b, slope, t = np.empty(len(rows)), np.empty(len(rows)), np.empty(n)
    for i in range(len(sets)):
        m = _columns(sets[i], first, columns)
        columns[m] = last
        m += 1
        b[:m] = 0.0
        t[:] = 0.0
        for _ in range(60):
            for a in range(n):
                t[a] = -y[a] / (1 + math.exp(y[a] * t[a]))
            for s in range(m):
                slope[s] = np.dot(rows[columns[s]], t) / n
            moved = 0.0
            for _ in range(30):
                largest = 0.0
                for s in range(m):
                    h = gram[columns[s], columns[s]] / 4
                    if h < 1e-12:
                        continue
                    there = min(max(b[s] - slope[s] / h, -radius), radius)
                    step = there - b[s]
                    b[s] = there
                    largest = max(largest, abs(step))
                    for u in range(m):
                        slope[u] += step * gram[columns[u], columns[s]] / 4
                moved += largest
                if largest < 1e-6:
                    break
            t[:] = 0.0
            for s in range(m):
                t += b[s] * rows[columns[s]]
            if moved < 1e-4:
                break
        value = 0.0
        for a in range(n):
            value += math.log1p(math.exp(-y[a] * t[a]))
        values[i] = value
    return values


@_kernel
def _explained(gram, c, sets, first):
    """c'G^-1 c for each support, by Cholesky."""
    values = np.empty(len(sets))
    columns = np.empty(len(c), dtype=np.int64)
    lower, z = np.empty((len(c), len(c))), np.empty(len(c))
    for i in range(len(sets)):
        m = _columns(sets[i], first, columns)
        value = 0.0
        for s in range(m):
            for t in range(s + 1):
                x = gram[columns[s], columns[t]]
                for u in range(t):
                    x -= lower[s, u] * lower[t, u]
                if s == t:
                    lower[s, s] = math.sqrt(max(x, 1e-9))
                else:
                    lower[s, t] = x / lower[t, t]
            x = c[columns[s]]
            for u in range(s):
                x -= lower[s, u] * z[u]
            z[s] = x / lower[s, s]
            value += z[s] * z[s]
        values[i] = value
    return values
