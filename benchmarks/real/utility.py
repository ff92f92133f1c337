"""Utility of a set of variables: 1 is the best set of its size, 0 is what random sets have.

(fit of the set - mean fit of random sets) / (best set's fit - mean fit of random sets)

The fit is R2 of least squares with an intercept; for labels it is the share of the deviance that a
logistic model with an intercept explains. The judge sees the table as an analyst would: unclipped,
without noise, missing cells at their column's mean. It is the same for every setting.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .tables import Floats, Loaded, load

Set = tuple[int, ...]
Sets = NDArray[np.intp]

#: Up to so many sets all are tried; beyond, forward selection and swaps.
MOST_SETS = 60_000

#: First variables from which forward selection starts.
STARTS = 8

#: Random sets for their mean, where there are too many to take all.
RANDOM_SETS = 300
RANDOM_LABELLED = 100

#: Of standardised columns: copies of a column must not make a system singular.
_RIDGE = 1e-8
_LOGISTIC_RIDGE = 1e-6

#: Swaps that a logistic search tries in each pass: those that least squares likes best.
_SWAPS = 200


class Linear:
    """R2 of sets, from moments. Also for noisy moments, which need a ridge."""

    def __init__(self, gram: Floats, c: Floats, total: float, ridge: float = _RIDGE) -> None:
        self._gram = gram + ridge * np.eye(len(c))
        self._c, self._total = c, total
        self.p = len(c)

    @classmethod
    def of(cls, x: Floats, y: Floats) -> Linear:
        """Of standardised columns, and the response less its mean."""
        y = y - y.mean()
        return cls(x.T @ x / len(y), x.T @ y / len(y), float(y @ y) / len(y))

    def __call__(self, sets: Sets) -> Floats:
        """R2 of each row of positions."""
        parts = []
        for some in np.array_split(sets, max(1, len(sets) // 20_000)):
            gram = self._gram[some[:, :, None], some[:, None, :]]
            c = self._c[some]
            solved = np.linalg.solve(gram, c[:, :, None])[:, :, 0]
            parts.append(np.einsum("ij,ij->i", solved, c) / self._total)
        return np.concatenate(parts)


def best_linear(fit: Linear, k: int, starts: int = STARTS) -> tuple[Set, bool]:
    """The set of size k with the best fit, and whether all were tried.

    Where there are too many: forward selection from each of the best first variables, then swaps
    of one variable until none helps.
    """
    if math.comb(fit.p, k) <= MOST_SETS:
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


def _all_sets(p: int, k: int) -> Sets:
    return np.array(list(itertools.combinations(range(p), k)), dtype=np.intp)


def _swaps(chosen: Iterable[int], p: int) -> list[list[int]]:
    chosen = list(chosen)
    others = [j for j in range(p) if j not in chosen]
    return [[*chosen[:i], j, *chosen[i + 1 :]] for i in range(len(chosen)) for j in others]


def deviance_explained(x: Floats, y: Floats) -> float:
    """1 - deviance / that of the intercept alone, by Newton's method with halved steps."""
    n = len(y)
    design = np.column_stack([np.ones(n), x])
    ridge = np.full(design.shape[1], _LOGISTIC_RIDGE * n)
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
    return 1 - 2 * (value - float(ridge @ b**2) / 2) / null


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
    """The fits of sets of one table, each computed once."""

    def __init__(self, table: Loaded) -> None:
        filled = np.where(np.isnan(table.x), np.nanmean(table.x, axis=0), table.x)
        deviation = filled.std(axis=0)
        # A constant column explains nothing: 0.
        self._x = (filled - filled.mean(axis=0)) / np.where(deviation > 0, deviation, np.inf)
        self._y, self._labels = table.y, table.labels
        self._linear = Linear.of(self._x, table.y)
        self._kept: dict[Set, float] = {}
        self._ends: dict[int, Ends] = {}
        self.p = table.p

    def fit(self, chosen: Iterable[int]) -> float:
        """R2 or the share of the deviance."""
        key = tuple(sorted(chosen))
        if key not in self._kept:
            if self._labels:
                self._kept[key] = deviance_explained(self._x[:, key], self._y)
            else:
                self._kept[key] = float(self._linear(np.array([key]))[0])
        return self._kept[key]

    def utility(self, chosen: Iterable[int]) -> float:
        """1 for the best set of this size, 0 for what random ones have in the mean."""
        key = tuple(chosen)
        ends = self.ends(len(key))
        return (self.fit(key) - ends.random_fit) / (ends.best_fit - ends.random_fit)

    def share(self, chosen: Iterable[int]) -> float:
        """Of the best set's fit."""
        key = tuple(chosen)
        return self.fit(key) / self.ends(len(key)).best_fit

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
        while True:
            swaps = np.array(_swaps(chosen, self.p))
            likely = swaps[np.argsort(-self._linear(swaps))[:_SWAPS]]
            best = max((tuple(sorted(s)) for s in likely.tolist()), key=self.fit)
            if self.fit(best) <= self.fit(chosen) + 1e-9:
                return chosen
            chosen = best

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
