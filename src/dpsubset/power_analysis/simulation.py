"""Estimate the probability of recovery: one draw of the mechanism from each simulated table.

Draws are independent, so their number of successes is binomial; the interval is the exact one of
Clopper and Pearson. Table i depends on the seed and i alone: two estimates with the same seed use
common random numbers, and their difference has a smaller variance than that of independent ones.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from scipy.special import betaincinv

from ..api.request import SelectionRequest
from ..base.errors import ArgumentError, SearchLimitError
from ..mechanisms import Data
from ..privacy.random import Randomness, SeededSource
from ..search.bounds.linear_algebra import single_threaded_blas
from ..search.engine import Limits
from .population import Population
from .scenario import Scenario
from .tables import simulate_table

Progress = Callable[[float], None]
Result = TypeVar("Result")

#: The confidence of intervals.
CONFIDENCE = 0.95
#: The most tables that are simulated unless the caller gives a number.
_MOST_TABLES = 1000
#: After how many tables the total number is computed from the time that they took. Later tables do
#: not change it: whether a search takes long is not independent of its outcome.
_TIMED = (1, 2, 4, 8, 16)
#: Seconds that one search may take even if less time is left, for instance while code is compiled.
_PATIENCE = 5.0


@dataclass(frozen=True)
class Effort:
    """How much to simulate.

    Parameters
    ----------
    tables : int, optional
        The number of simulated tables; as many as `seconds` allow if None.
    seconds : float
        Approximate time limit, ignored if `tables` is given.
    seed : int
        Two estimates with the same seed use common random numbers.
    """

    tables: int | None = None
    seconds: float = 6.0
    seed: int = field(default_factory=lambda: int(np.random.SeedSequence().entropy))  # type: ignore[arg-type]

    def fraction(self, fraction: float) -> Effort:
        """A part of this effort, with the same seed."""
        tables = None if self.tables is None else max(2, round(fraction * self.tables))
        return replace(self, tables=tables, seconds=fraction * self.seconds)

    def renewed(self) -> Effort:
        """The same effort with a different seed, derived from this one."""
        return replace(self, seed=int(np.random.SeedSequence([self.seed, 1]).generate_state(1)[0]))


@dataclass(frozen=True)
class Recovery:
    """In how many simulated tables the true support was released, and how much of it."""

    #: Tables from which exactly the true support was released.
    successes: int
    tables: int
    #: True variables that were released, summed over the tables.
    named: int

    @property
    def probability(self) -> float:
        """The fraction of tables from which exactly the true support was released."""
        return self.successes / self.tables

    @property
    def expected_found(self) -> float:
        """The mean number of true variables that are released."""
        return self.named / self.tables

    @property
    def interval(self) -> tuple[float, float]:
        """The Clopper-Pearson interval of the probability."""
        return clopper_pearson(self.successes, self.tables)


def simulate_recovery(
    scenario: Scenario, n: int, epsilon: Any, effort: Effort, progress: Progress | None = None
) -> Recovery:
    """Simulate tables of n rows, and draw from the mechanism once for each."""
    request, truth = scenario.request(n, epsilon), scenario.population.truth

    def drawn(seed: np.random.SeedSequence, seconds: float) -> tuple[int, ...] | None:
        return _drawn(request, scenario.population, n, seed, seconds)

    supports = simulate(drawn, effort, progress)
    named = sum(len(set(truth).intersection(support or ())) for support in supports)
    return Recovery(supports.count(truth), len(supports), named)


def simulate(
    one: Callable[[np.random.SeedSequence, float], Result],
    effort: Effort,
    progress: Progress | None = None,
) -> list[Result]:
    """Call a function for each simulated table, with its seed and the seconds that it may take."""
    start, first = time.perf_counter(), 0.0
    count = effort.tables or _MOST_TABLES
    found: list[Result] = []
    while (done := len(found)) < count:
        left = start + effort.seconds - time.perf_counter()
        limit = math.inf if effort.tables else max(left, _PATIENCE)
        seed = np.random.SeedSequence([effort.seed, done])
        with single_threaded_blas():  # threads cost more than they save on products of this size
            found.append(one(seed, limit))
        done += 1
        first = first or time.perf_counter()
        if effort.tables is None and done in _TIMED:
            count = min(_MOST_TABLES, done + _affordable(done, start, first, effort.seconds))
        if progress is not None:
            progress(done / count)
    return found


def within(progress: Progress | None, start: float, end: float) -> Progress | None:
    """The progress of a part that goes from one fraction of the whole to another."""
    if progress is None:
        return None
    return lambda fraction: progress(start + (end - start) * fraction)


def clopper_pearson(successes: int, trials: int) -> tuple[float, float]:
    """The exact two-sided confidence interval of a binomial probability."""
    tail, failures = (1 - CONFIDENCE) / 2, trials - successes
    low = betaincinv(successes, failures + 1, tail) if successes else 0.0
    high = betaincinv(successes + 1, failures, 1 - tail) if failures else 1.0
    return float(low), float(high)


def _affordable(done: int, start: float, first: float, seconds: float) -> int:
    """How many more tables there is time for. The first one may have compiled code."""
    now = time.perf_counter()
    if done == 1:
        return 1 if first - start < max(seconds, _PATIENCE) else 0
    end = max(start + seconds, first + seconds / 3)
    return max(0, math.floor((end - now) * (done - 1) / (now - first)))


def _drawn(
    request: SelectionRequest,
    population: Population,
    n: int,
    seed: np.random.SeedSequence,
    seconds: float,
) -> tuple[int, ...] | None:
    """A draw from one simulated table."""
    bits = Randomness(SeededSource(int(seed.generate_state(1)[0])))
    request, table = simulate_table(request, population, n, np.random.default_rng(seed), bits)
    try:
        sampler = request.mechanism.prepare(Data(table, Limits(seconds=seconds)), request.setting)
        return sampler.draw(bits)
    except SearchLimitError:
        raise ArgumentError(
            f"the search on a simulated table took longer than {seconds:.1f} seconds: give more "
            "seconds, or a number of tables, which has no time limit"
        ) from None
