"""Tracing adversaries: they infer from a release who was in the table.

Cai, Wang and Zhang 2021 prove lower bounds with adversaries that see a record, the released
estimate M(D) and fresh draws from the population, and say IN or OUT:

======= ====================== ============================================ =======================
section population             statistic                                    IN above
======= ====================== ============================================ =======================
2.3     mean in d dimensions   <x - x~, M>                                  sigma^2 sqrt(8 d L)
3.1     s-sparse mean          sum of x_j - x~_j over S(M)                  sigma sqrt(8 s L)
4.1     s-sparse regression    sum of x_j (y - y~) over S(M)                sigma sqrt(2 s L)
4.3     regression             <x (y - y~), M>                              sigma^2 sqrt(2 d L)
======= ====================== ============================================ =======================

with L = log(1/delta), x~ or y~ fresh, and S(M) the s largest coordinates of M. `trace` runs one of
them against any estimator, on simulated data. If M is (epsilon, delta)-private, then no threshold
distinguishes members from outsiders better than

    P(IN | member) <= e^epsilon P(IN | outsider) + delta.

The published thresholds make false alarms as rare as delta, for bounds up to constants. On tables
of a size that can be simulated, members rarely pass them either. So rates are also taken at the
threshold that has a given false positive rate, found on other trials.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..audit.empirical import LEVEL, lower_bounds, one_sided_bounds
from ..base.errors import ArgumentError

Floats = NDArray[np.float64]

#: What an adversary sees: a vector of coordinates, or a support.
Released = Floats | Sequence[int]


@dataclass(frozen=True)
class Table:
    """Records: covariates, and a response for regressions."""

    x: Floats
    y: Floats | None = None


@dataclass(frozen=True)
class Trial:
    """A table, and two records under suspicion: one of its members, and an outsider.

    ``references`` are the fresh draws that either is compared with: x~ or y~.
    """

    table: Table
    member: tuple[Floats, float]
    outsider: tuple[Floats, float]
    references: tuple[Any, Any]


Estimator = Callable[[Table], Released]


@dataclass(frozen=True)
class Adversary(ABC):
    """A population, and a statistic that is larger for members than for outsiders."""

    #: Records and coordinates.
    n: int
    d: int
    #: Scale of the population.
    sigma: float = 1.0

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Trial:
        """A population of this kind, a table from it, and two suspects."""

    @abstractmethod
    def statistic(self, suspect: tuple[Floats, float], reference: Any, released: Released) -> float:
        """What the adversary computes."""

    @abstractmethod
    def threshold(self, delta: float) -> float:
        """The published one: IN above it."""


@dataclass(frozen=True)
class MeanAdversary(Adversary):
    """Section 2.3: signs with mean p_j uniform in [-1, 1], times sigma."""

    def draw(self, rng: np.random.Generator) -> Trial:
        """Member and outsider are compared with draws of their own."""
        return _signs(self, rng.uniform(-1, 1, self.d), rng)

    def statistic(self, suspect: tuple[Floats, float], reference: Any, released: Released) -> float:
        """<x - x~, M>."""
        return float((suspect[0] - reference) @ np.asarray(released))

    def threshold(self, delta: float) -> float:
        """sigma^2 sqrt(8 d log(1/delta))."""
        return self.sigma**2 * math.sqrt(8 * self.d * math.log(1 / delta))


@dataclass(frozen=True)
class SparseMeanAdversary(Adversary):
    """Section 3.1: s coordinates have means from the top of a Beta sample, the others are 0."""

    #: How many.
    s: int = 1
    #: The constant in the published Beta parameter, this times log(d / s).
    concentration: float = 1.0

    def draw(self, rng: np.random.Generator) -> Trial:
        """As Section 2.3, with means of 0 where x is 0 too."""
        return _signs(self, _top_of_beta(self, rng), rng)

    def statistic(self, suspect: tuple[Floats, float], reference: Any, released: Released) -> float:
        """Sum over S(M) of x_j - x~_j."""
        chosen = largest(released, self.s)
        return float((suspect[0][chosen] - reference[chosen]).sum())

    def threshold(self, delta: float) -> float:
        """sigma sqrt(8 s log(1/delta))."""
        return self.sigma * math.sqrt(8 * self.s * math.log(1 / delta))


@dataclass(frozen=True)
class SparseRegressionAdversary(Adversary):
    """Section 4.1: a record shows one coordinate of the support, or the others and no signal.

    Cai, Wang and Zhang draw covariates relative to S(M(D)), known only once D is; here they are
    drawn relative to the support of beta, which S(M(D)) estimates.
    """

    s: int = 1
    concentration: float = 1.0

    def draw(self, rng: np.random.Generator) -> Trial:
        """beta is sigma times the top of a Beta sample; noise has standard deviation sigma / 2."""
        beta = self.sigma * _top_of_beta(self, rng)
        inside = np.flatnonzero(beta)
        x = np.zeros((self.n + 1, self.d))
        half = rng.random(self.n + 1) < 0.5
        outside = beta == 0
        x[np.ix_(~half, outside)] = rng.uniform(
            -1 / math.sqrt(self.s), 1 / math.sqrt(self.s), (int((~half).sum()), int(outside.sum()))
        )
        rows = np.flatnonzero(half)
        x[rows, rng.choice(inside, len(rows))] = rng.choice([-1.0, 1.0], len(rows))
        return _responses(self, x, beta, rng)

    def statistic(self, suspect: tuple[Floats, float], reference: Any, released: Released) -> float:
        """Sum over S(M) of x_j (y - y~)."""
        return float(suspect[0][largest(released, self.s)].sum() * (suspect[1] - reference))

    def threshold(self, delta: float) -> float:
        """sigma sqrt(2 s log(1/delta))."""
        return self.sigma * math.sqrt(2 * self.s * math.log(1 / delta))


@dataclass(frozen=True)
class RegressionAdversary(Adversary):
    """Section 4.3: a record shows one coordinate, as +-sqrt(d)."""

    def draw(self, rng: np.random.Generator) -> Trial:
        """beta is sigma times uniform in [-1, 1]; noise has standard deviation sigma / 2."""
        beta = self.sigma * rng.uniform(-1, 1, self.d)
        x = np.zeros((self.n + 1, self.d))
        signs = rng.choice([-1.0, 1.0], self.n + 1)
        x[np.arange(self.n + 1), rng.integers(self.d, size=self.n + 1)] = math.sqrt(self.d) * signs
        return _responses(self, x, beta, rng)

    def statistic(self, suspect: tuple[Floats, float], reference: Any, released: Released) -> float:
        """<x (y - y~), M>."""
        return float((suspect[0] @ np.asarray(released)) * (suspect[1] - reference))

    def threshold(self, delta: float) -> float:
        """sigma^2 sqrt(2 d log(1/delta))."""
        return self.sigma**2 * math.sqrt(2 * self.d * math.log(1 / delta))


@dataclass(frozen=True)
class Rates:
    """How often the adversary says IN, of members and of outsiders, at one threshold."""

    threshold: float
    members: int
    outsiders: int
    trials: int

    @property
    def true_positive(self) -> float:
        """The fraction of members that the statistic declares to be members."""
        return self.members / self.trials

    @property
    def false_positive(self) -> float:
        """The fraction of outsiders that it declares to be members."""
        return self.outsiders / self.trials

    @property
    def true_positive_interval(self) -> tuple[float, float]:
        """Clopper and Pearson's; each side is wrong with probability `LEVEL`."""
        return _interval(self.members, self.trials)

    @property
    def false_positive_interval(self) -> tuple[float, float]:
        return _interval(self.outsiders, self.trials)

    @property
    def separates(self) -> bool:
        """Whether members can be distinguished from outsiders with certainty."""
        return self.true_positive_interval[0] > self.false_positive_interval[1]

    def contradicts(self, epsilon: float, delta: float = 0.0) -> bool:
        """Whether no (epsilon, delta)-private estimator has these rates."""
        trials = self.trials
        both = (
            (self.members, self.outsiders),
            (trials - self.outsiders, trials - self.members),
        )
        bounds = [lower_bounds(a, trials, b, trials, delta, 2 * LEVEL) for a, b in both]
        return bool(max(bounds) > epsilon)

    def __str__(self) -> str:
        shown = [
            f"{rate:.4f} [{low:.4f}, {high:.4f}]"
            for rate, (low, high) in (
                (self.true_positive, self.true_positive_interval),
                (self.false_positive, self.false_positive_interval),
            )
        ]
        return f"IN for members {shown[0]}, for outsiders {shown[1]}; {self.trials} trials"


@dataclass(frozen=True)
class Tracing:
    """What an adversary makes of an estimator: at a chosen threshold, and at the published one."""

    chosen: Rates
    paper: Rates


def trace(
    adversary: Adversary,
    estimator: Estimator,
    trials: int,
    rng: np.random.Generator,
    *,
    false_positive: float = 0.1,
    delta: float = 0.1,
) -> Tracing:
    """Run an adversary against an estimator, with a fresh population and table every time.

    The estimator maps a `Table` to a vector of d numbers or, if sparse, to a support. Half of the
    trials set a threshold that aims at ``false_positive``, the other half are counted. ``delta`` is
    for the published threshold.
    """
    if trials < 20:
        raise ArgumentError("trials must be at least 20")
    found = np.empty((trials, 2))
    for row in found:
        trial = adversary.draw(rng)
        released = estimator(trial.table)
        suspects = zip((trial.member, trial.outsider), trial.references, strict=True)
        row[:] = [adversary.statistic(who, reference, released) for who, reference in suspects]
    half = trials // 2
    first, second = found[:half], found[half:]
    threshold = float(np.quantile(first[:, 1], 1 - false_positive))
    return Tracing(
        *(
            Rates(t, int((second[:, 0] > t).sum()), int((second[:, 1] > t).sum()), len(second))
            for t in (threshold, adversary.threshold(delta))
        )
    )


def largest(released: Released, s: int) -> NDArray[np.int64]:
    """S(M): the s largest coordinates of a vector; a support as it is."""
    if isinstance(released, np.ndarray):
        return np.argsort(-released, kind="stable")[:s]
    return np.array(released, dtype=np.int64)


def _signs(adversary: Adversary, mean: Floats, rng: np.random.Generator) -> Trial:
    """Records of +-sigma with these means; 0 where the mean is 0."""
    up = rng.random((adversary.n + 3, adversary.d)) < (1 + mean) / 2
    x = adversary.sigma * np.where(mean == 0, 0.0, np.where(up, 1.0, -1.0))
    *rows, outsider, one, two = x
    return Trial(Table(np.array(rows)), (rows[0], 0.0), (outsider, 0.0), (one, two))


def _responses(adversary: Adversary, x: Floats, beta: Floats, rng: np.random.Generator) -> Trial:
    """The last row is the outsider; y~ is a second response of the same row."""
    signal = x @ beta
    y, other = (signal + rng.normal(0, adversary.sigma / 2, len(x)) for _ in range(2))
    table = Table(x[:-1], y[:-1])
    return Trial(table, (x[0], y[0]), (x[-1], y[-1]), (other[0], other[-1]))


def _top_of_beta(
    adversary: SparseMeanAdversary | SparseRegressionAdversary, rng: np.random.Generator
) -> Floats:
    """The s largest of d draws from Beta(b, b), b = concentration * log(d / s), others 0."""
    d, s = adversary.d, adversary.s
    if not 0 < s < d:
        raise ArgumentError("s must lie between 1 and d - 1")
    shape = adversary.concentration * math.log(d / s)
    q = rng.beta(shape, shape, d)
    kept = np.zeros(d)
    top = largest(q, s)
    kept[top] = q[top]
    return kept


def _interval(hits: int, trials: int) -> tuple[float, float]:
    low, high = one_sided_bounds(hits, trials, LEVEL)
    return float(low), float(high)
