"""Utility of a set of choices: 1 is the best set of its size, 0 is what random sets have.

(fit of the set - mean fit of random sets) / (best set's fit - mean fit of random sets)

The fit is R2 of least squares with an intercept on all columns of the choices, one for each level
of a category; for labels it is the share of the deviance that a logistic model with an intercept
explains. The judge sees the table as an analyst would: unclipped, without noise, missing numbers at
their column's mean, and no level on where one is missing. It is the same for every setting.

Out of sample, the model of a set is fitted on one half of the rows and judged on the other.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from .tables import Floats, Loaded, Places, load

Set = tuple[int, ...]

#: Up to so many sets all are tried; beyond, forward selection and swaps.
MOST_SETS = 1_000_000

#: First choices from which forward selection starts.
STARTS = 8

#: Random sets for their mean, where there are too many to take all.
RANDOM_SETS = 300
RANDOM_LABELLED = 100

#: Of standardised columns: copies of a column must not make a system singular, nor must levels
#: that sum to 1.
_RIDGE = 1e-8
_LOGISTIC_RIDGE = 1e-6

#: Halvings of the rows for fits out of sample, each used both ways, and random sets for their mean.
HALVINGS = 2
RANDOM_OUTSIDE = 40

#: Of standardised columns, out of sample: a level that is missing in one half counts for nothing.
_OUTSIDE_RIDGE = 1e-6
_OUTSIDE_LOGISTIC_RIDGE = 1e-4

#: Swaps that a logistic search tries in each pass: those that least squares likes best.
_SWAPS = 200


class Linear:
    """R2 of sets of choices, from moments. Also for noisy moments, which need a ridge.

    Choice j has the columns from starts[j] to starts[j + 1].
    """

    def __init__(
        self, gram: Floats, c: Floats, total: float, starts: Places, ridge: float = _RIDGE
    ) -> None:
        self._gram = gram + ridge * np.eye(len(c))
        self._c, self._total, self._starts = c, total, starts.astype(np.int64)
        self.p = len(starts) - 1

    @classmethod
    def of(cls, x: Floats, y: Floats, starts: Places) -> Linear:
        """Of standardised columns, and the response less its mean."""
        y = y - y.mean()
        return cls(x.T @ x / len(y), x.T @ y / len(y), float(y @ y) / len(y), starts)

    def __call__(self, sets: Places) -> Floats:
        """R2 of each row of choices."""
        return _explained(self._gram, self._c, sets.astype(np.int64), self._starts) / self._total


def _kernel(function: Any) -> Any:
    return numba.njit(cache=True)(function)


@_kernel
def _explained(gram, c, sets, starts):
    """c'G^-1 c on the columns of each set, by Cholesky."""
    values = np.empty(len(sets))
    columns = np.empty(len(c), dtype=np.int64)
    lower, z = np.empty((len(c), len(c))), np.empty(len(c))
    for i in range(len(sets)):
        m = 0
        for choice in sets[i]:
            for j in range(starts[choice], starts[choice + 1]):
                columns[m] = j
                m += 1
        value = 0.0
        for s in range(m):
            rest = c[columns[s]]
            for t in range(s + 1):
                entry = gram[columns[s], columns[t]]
                for u in range(t):
                    entry -= lower[s, u] * lower[t, u]
                # What rounding leaves of a copy is no reason to divide by nothing.
                lower[s, t] = math.sqrt(max(entry, 1e-10)) if s == t else entry / lower[t, t]
                if t < s:
                    rest -= lower[s, t] * z[t]
            z[s] = rest / lower[s, s]
            value += z[s] * z[s]
        values[i] = value
    return values


def best_linear(
    fit: Linear, k: int, starts: int = STARTS, most: int | None = None
) -> tuple[Set, bool]:
    """The set of k choices with the best fit, and whether all were tried.

    Where there are more than ``most``: forward selection from each of the best first choices, then
    swaps of one choice until none helps.
    """
    if math.comb(fit.p, k) <= (MOST_SETS if most is None else most):
        sets = _all_sets(fit.p, k)
        return tuple(sets[int(np.argmax(fit(sets)))].tolist()), True
    alone = fit(np.arange(fit.p)[:, None])
    found: dict[Set, float] = {}
    for first in np.argsort(-alone)[:starts].tolist():
        chosen = [first]
        while len(chosen) < k:
            more = np.array([[*chosen, j] for j in range(fit.p) if j not in chosen])
            chosen = more[int(np.argmax(fit(more)))].tolist()
        value = float(fit(np.array([chosen]))[0])
        while True:
            swaps = np.array(_swaps(chosen, fit.p))
            values = fit(swaps)
            if values.max() <= value + 1e-12:
                break
            chosen, value = swaps[int(np.argmax(values))].tolist(), float(values.max())
        found[tuple(sorted(chosen))] = value
    return max(found, key=found.__getitem__), False


@functools.lru_cache(maxsize=2)
def _all_sets(p: int, k: int) -> Places:
    every = itertools.chain.from_iterable(itertools.combinations(range(p), k))
    return np.fromiter(every, dtype=np.int64, count=k * math.comb(p, k)).reshape(-1, k)


def _swaps(chosen: Iterable[int], p: int) -> list[list[int]]:
    chosen = list(chosen)
    others = [j for j in range(p) if j not in chosen]
    return [[*chosen[:i], j, *chosen[i + 1 :]] for i in range(len(chosen)) for j in others]


def outside_linear(inside: Floats, outside: Floats) -> float:
    """R2 on some rows of least squares on others.

    Each is the matrix of sums of products of the rows' 1, columns and response.
    """
    ridge = _OUTSIDE_RIDGE * inside[0, 0] * np.eye(len(inside) - 1)
    b = np.linalg.solve(inside[:-1, :-1] + ridge, inside[:-1, -1])
    fitted = np.append(-b, 1.0)
    constant = np.zeros(len(inside))
    constant[0], constant[-1] = -inside[0, -1] / inside[0, 0], 1.0
    return float(1 - (fitted @ outside @ fitted) / (constant @ outside @ constant))


def outside_logistic(x: Floats, y: Floats, half: Places) -> float:
    """Share of the deviance outside ``half`` that a logistic model of the rows in it explains."""
    b = logistic(x[half], y[half], _OUTSIDE_LOGISTIC_RIDGE)[0]
    other = np.ones(len(y), dtype=bool)
    other[half] = False
    t = b[0] + x[other] @ b[1:]
    share = y[half].mean()
    null = -(y[other] * math.log(share) + (1 - y[other]) * math.log(1 - share)).sum()
    return float(1 - (np.logaddexp(0, t).sum() - y[other] @ t) / null)


def deviance_explained(x: Floats, y: Floats) -> float:
    """1 - deviance / that of the intercept alone."""
    return logistic(x, y, _LOGISTIC_RIDGE)[1]


def logistic(x: Floats, y: Floats, weight: float) -> tuple[Floats, float]:
    """Coefficients and the share of the deviance explained, by Newton's method with halved steps.

    ``weight`` times the number of rows is the ridge.
    """
    n = len(y)
    design = np.column_stack([np.ones(n), x])
    ridge = np.full(design.shape[1], weight * n)
    ridge[0] = 0.0
    share = y.mean()
    null = -2 * n * (share * math.log(share) + (1 - share) * math.log(1 - share))
    b = np.zeros(design.shape[1])
    b[0] = math.log(share / (1 - share))
    t = design @ b
    value = _penalised(t, y, b, ridge)
    for _ in range(50):
        mean = 1 / (1 + np.exp(-np.clip(t, -500, 500)))
        slope = design.T @ (y - mean) - ridge * b
        curve = (design * (mean * (1 - mean))[:, None]).T @ design + np.diag(ridge + 1e-9)
        step = np.linalg.solve(curve, slope)
        size = 1.0
        while size > 1e-6:
            there = b + size * step
            t_there = design @ there
            value_there = _penalised(t_there, y, there, ridge)
            if value_there <= value:
                break
            size /= 2
        else:
            break
        gained = value - value_there
        b, t, value = there, t_there, value_there
        if gained < 1e-7 * null:
            break
    return b, float(1 - 2 * (value - ridge @ b**2 / 2) / null)


def _penalised(t: Floats, y: Floats, b: Floats, ridge: Floats) -> float:
    return float(np.logaddexp(0, t).sum() - y @ t + ridge @ b**2 / 2)


@dataclass(frozen=True)
class Ends:
    """What the fits of sets of one size are compared with."""

    best: Set
    best_fit: float
    random_fit: float
    exhaustive: bool


class Judge:
    """The fits of sets of choices of one table, each computed once."""

    def __init__(self, table: Loaded) -> None:
        filled = np.where(np.isnan(table.x), np.nanmean(table.x, axis=0), table.x)
        deviation = filled.std(axis=0)
        # A constant column explains nothing: 0.
        self._x = (filled - filled.mean(axis=0)) / np.where(deviation > 0, deviation, np.inf)
        self._y, self._labels, self._starts = table.y, table.labels, table.starts
        self._linear = Linear.of(self._x, table.y, table.starts)
        self._kept: dict[Set, float] = {(): 0.0}
        self._outside: dict[Set, float] = {(): 0.0}
        self._ends: dict[int, Ends] = {}
        self._random_outside: dict[int, float] = {}
        self.p = table.p

    def fit(self, chosen: Iterable[int]) -> float:
        """R2 or the share of the deviance."""
        key = tuple(sorted(chosen))
        if key not in self._kept:
            if self._labels:
                self._kept[key] = deviance_explained(self._columns(key), self._y)
            else:
                self._kept[key] = float(self._linear(np.array([key]))[0])
        return self._kept[key]

    def fit_outside(self, chosen: Iterable[int]) -> float:
        """The fit on rows that its model has not seen, in the mean over fixed halvings."""
        key = tuple(sorted(chosen))
        if key not in self._outside:
            if self._labels:
                x = self._columns(key)
                fits = [outside_logistic(x, self._y, half) for half in self._halves]
            else:
                columns = [c + 1 for j in key for c in self._range(j)]
                part = np.ix_([0, *columns, -1], [0, *columns, -1])
                fits = [outside_linear(a[part], b[part]) for a, b in self._sums]
            self._outside[key] = float(np.mean(fits))
        return self._outside[key]

    def _columns(self, chosen: Set) -> Floats:
        return self._x[:, [c for j in chosen for c in self._range(j)]]

    def _range(self, choice: int) -> range:
        return range(self._starts[choice], self._starts[choice + 1])

    @functools.cached_property
    def _halves(self) -> list[Places]:
        halves = []
        for seed in range(HALVINGS):
            order = np.random.default_rng(seed).permutation(len(self._y))
            halves += [order[: len(order) // 2], order[len(order) // 2 :]]
        return halves

    @functools.cached_property
    def _sums(self) -> list[tuple[Floats, Floats]]:
        """Sums of products of each half, and of the other one."""
        rows = np.column_stack([np.ones(len(self._y)), self._x, self._y])
        whole = rows.T @ rows
        inside = [rows[half].T @ rows[half] for half in self._halves]
        return [(one, whole - one) for one in inside]

    def utility_outside(self, chosen: Iterable[int], k: int) -> float:
        """The same out of sample, in the same units: what is left of the best set's advantage.

        The best set itself has less than 1 where its fit is in part that of chance.
        """
        if k not in self._random_outside:
            rng = np.random.default_rng(k)
            sets = [rng.choice(self.p, k, False) for _ in range(RANDOM_OUTSIDE)]
            self._random_outside[k] = float(np.mean([self.fit_outside(each) for each in sets]))
        ends, random = self.ends(k), self._random_outside[k]
        return (self.fit_outside(chosen) - random) / (ends.best_fit - ends.random_fit)

    def utility(self, chosen: Iterable[int], k: int) -> float:
        """1 for the best set of k, 0 for what random ones have in the mean.

        A set may have fewer than k: whoever named fewer is judged by these.
        """
        ends = self.ends(k)
        return (self.fit(chosen) - ends.random_fit) / (ends.best_fit - ends.random_fit)

    def share(self, chosen: Iterable[int], k: int) -> float:
        """Of the best set's fit."""
        return self.fit(chosen) / self.ends(k).best_fit

    def ends(self, k: int) -> Ends:
        """Best set and random sets of size k."""
        if k not in self._ends:
            best, exhaustive = best_linear(self._linear, k)
            if self._labels:
                best, exhaustive = self._polished(best), False
            self._ends[k] = Ends(best, self.fit(best), self._random(k), exhaustive)
        return self._ends[k]

    def _polished(self, chosen: Set) -> Set:
        """From the best set by least squares on, swaps that help the logistic model."""
        while len(chosen) < self.p:
            swaps = np.array(_swaps(chosen, self.p))
            likely = swaps[np.argsort(-self._linear(swaps))[:_SWAPS]]
            best = max((tuple(sorted(s)) for s in likely.tolist()), key=self.fit)
            if self.fit(best) <= self.fit(chosen) + 1e-9:
                break
            chosen = best
        return chosen

    def _random(self, k: int) -> float:
        if not self._labels and math.comb(self.p, k) <= MOST_SETS:
            return float(self._linear(_all_sets(self.p, k)).mean())
        rng = np.random.default_rng(k)
        count = RANDOM_LABELLED if self._labels else RANDOM_SETS
        return float(np.mean([self.fit(rng.choice(self.p, k, False)) for _ in range(count)]))


@functools.cache
def judge(name: str) -> Judge:
    """The judge of a table, kept: best sets are searched for once."""
    return Judge(load(name))
