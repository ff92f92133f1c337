"""Plans by simulation: made-up tables, and draws of the mechanism itself from each, or its odds.

The mean over tables of the share of draws that name the true support. Its interval is Wilson's,
with as many trials as the variation between tables leaves: with T tables and d draws of each, m
their mean and s^2 the variance of the tables' shares, that is

    T m (1 - m) / s^2,   between T, where draws from one table tell nothing new, and T d

and T where all shares are 0 or all are 1, since then nothing is known of s^2. The quantile is
Student's, for T - 1.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

from ..api.request import SelectionRequest
from ..base.errors import ArgumentError, SearchLimitError
from ..mechanisms import Data
from ..privacy.random import Randomness, SeededSource, SystemSource
from ..search.engine import Limits
from .expectation import LEVEL, Estimate, widened
from .population import Population
from .question import Question
from .swapped import Swapped
from .tables import made_up

Progress = Callable[[float], None]

#: Draws from each made-up table: much cheaper than another table, and worth less.
DRAWS = 10
#: Most tables, where nobody says how many.
_MOST = 400
#: After how many tables the number of all is decided on, by the time that these took.
_LOOKS = (1, 2, 4, 8, 16)
#: Seconds that a table may be searched, however little time is left: a first one compiles, perhaps.
_PATIENCE = 5.0


@dataclass(frozen=True)
class Effort:
    """How long to simulate.

    Attributes
    ----------
    tables : int, optional
        How many made-up tables; by default as many as there is time for.
    seconds : float
        For all of it.
    seed : int, optional
        Makes the tables and, where the mechanism has seeds, the draws reproducible.
    """

    tables: int | None = None
    seconds: float = 6.0
    seed: int | None = None

    def part(self, share: float) -> Effort:
        """Some of it."""
        tables = None if self.tables is None else max(2, round(share * self.tables))
        return Effort(tables, share * self.seconds, self.seed)


def simulated(
    question: Question, n: int, epsilon: Any, effort: Effort, progress: Progress | None = None
) -> Estimate:
    """Made-up tables of n rows, one after another, and draws from each."""
    planned, population = question.planned(n, epsilon), question.population
    source = SystemSource() if effort.seed is None else SeededSource(effort.seed)
    bits, seeds = Randomness(source), np.random.SeedSequence(effort.seed)
    start = time.perf_counter()
    swapped = Swapped.of(question, planned, n, epsilon)
    count, shares, first = effort.tables or _MOST, list[float](), 0.0
    below, above = 0.0, 0.0
    while len(shares) < count:
        rng = np.random.default_rng(seeds.spawn(1)[0])
        if swapped is not None:
            likely, low, high = swapped.shares(n, rng, bits)
            shares.append(likely)
            below, above = below + likely - low, above + high - likely
        else:
            left = start + effort.seconds - time.perf_counter()
            # Whoever asks for a number of tables waits for them.
            limit = math.inf if effort.tables else max(left, _PATIENCE)
            shares.append(_share(planned, population, n, rng, bits, limit))
        first = first or time.perf_counter()
        if effort.tables is None and len(shares) in _LOOKS:
            # Decided by the first ones, and not by how long later ones take: what is hard to search
            # is hard to get right.
            count = len(shares) + _more(len(shares), start, first, effort.seconds)
        if progress is not None:
            progress(len(shares) / count)
    mean, interval = _interval(np.array(shares))
    if swapped is not None:
        lowest, highest = interval[0] - below / len(shares), interval[1] + above / len(shares)
        interval = widened(mean, (max(0.0, lowest), min(1.0, highest)))
    return Estimate(mean, interval, len(shares), 0 if swapped else DRAWS, simulated=True)


def _more(done: int, start: float, first: float, seconds: float) -> int:
    """How many more tables there is time for; the first one has compiled and imported things."""
    now = time.perf_counter()
    if done == 1:
        return 1 if first - start < max(seconds, _PATIENCE) else 0
    each = (now - first) / (done - 1)
    end = max(start + seconds, first + seconds / 3)
    return max(0, min(_MOST - done, math.floor((end - now) / each)))


def _share(
    planned: SelectionRequest,
    population: Population,
    n: int,
    rng: np.random.Generator,
    bits: Randomness,
    seconds: float,
) -> float:
    """How many of a few draws from a table name the true support."""
    digest = made_up(planned, population, n, rng, bits)
    try:
        data = Data(digest, Limits(seconds=seconds))
        sampler = planned.mechanism.prepare(data, planned.setting)
        return sum(sampler.draw(bits) == population.truth for _ in range(DRAWS)) / DRAWS
    except SearchLimitError:
        raise ArgumentError(
            f"a made-up table took longer to search than {seconds:.1f} seconds: "
            "give more seconds, or a number of tables, which is waited for"
        ) from None


def _interval(shares: Any) -> tuple[float, tuple[float, float]]:
    count, mean = len(shares), float(shares.mean())
    if count < 2:
        return mean, (0.0, 1.0)
    variance, trials = float(shares.var(ddof=1)), float(count)
    if variance > 0:
        trials = min(max(count * mean * (1 - mean) / variance, count), count * DRAWS)
    z = float(student.ppf((1 + LEVEL) / 2, count - 1))
    return mean, wilson(mean, trials, z)


def wilson(mean: float, trials: float, z: float) -> tuple[float, float]:
    """Wilson's interval of a share of so many trials."""
    grown = 1 + z**2 / trials
    centre = (mean + z**2 / (2 * trials)) / grown
    half = z / grown * math.sqrt(mean * (1 - mean) / trials + (z / (2 * trials)) ** 2)
    return max(0.0, centre - half), min(1.0, centre + half)
