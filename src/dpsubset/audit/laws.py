"""Probability laws of what steps release: draws, and log ratios of an outcome on two tables.

Audits of steps compare neighbouring tables by them; see `steps.py`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.quantize import STEPS
from ..models.noisy_moments import NoisyMoments
from ..privacy import sup_norm
from ..privacy.budget import Budget
from ..privacy.noisy_counts import NoisyCounts
from ..privacy.quantiles import QuantileRule, QuantileSampler, log_probabilities
from ..privacy.random import Randomness
from ..privacy.random_stopping import Stopping
from ..privacy.relations import Neighbours


class Law(ABC):
    """What a step releases of one table. Private, if the table were."""

    @abstractmethod
    def draw(self, rng: Randomness) -> Sequence[int]:
        """As the program draws."""

    @abstractmethod
    def log(self, outcome: Sequence[int]) -> float:
        """Of an outcome's probability, up to a constant that all tables share."""

    @abstractmethod
    def farthest(self, other: Any) -> float:
        """The largest |log ratio| of an outcome, from the law of another table."""


@dataclass(frozen=True)
class _WithNoise(Law):
    """Integers with noise, whose log ratio is largest at the values of either table."""

    values: tuple[int, ...]

    def farthest(self, other: _WithNoise) -> float:
        return -min(self.log(other.values), other.log(self.values))


@dataclass(frozen=True)
class SupNorm(_WithNoise):
    """Integers with noise that falls with its largest entry."""

    noise: NoisyMoments | NoisyCounts

    def draw(self, rng: Randomness) -> Sequence[int]:
        return self.noise.draw(self.values, rng)

    def log(self, outcome: Sequence[int]) -> float:
        far = max(abs(w - v) for w, v in zip(outcome, self.values, strict=True))
        return -float(self.noise.eta * far)


@dataclass(frozen=True)
class Laplace(_WithNoise):
    """Integers with noise of their own each."""

    budget: Budget
    change: int

    def draw(self, rng: Randomness) -> Sequence[int]:
        return self.budget.values(self.values, self.change)

    def log(self, outcome: Sequence[int]) -> float:
        scale = self.budget.value_scale(len(self.values), self.change)
        far = sum(abs(w - v) for w, v in zip(outcome, self.values, strict=True))
        return -float(far / scale)


@dataclass(frozen=True)
class Quantiles(Law):
    """Quantiles of several histograms: one draw each."""

    rule: QuantileRule
    epsilon: Fraction
    neighbours: Neighbours
    counts: tuple[NDArray[np.int64], ...]

    @cached_property
    def _logs(self) -> list[NDArray[np.float64]]:
        weight = self.rule.weight(self.epsilon, self.neighbours)
        return [
            log_probabilities(counts, share, weight)
            for counts in self.counts
            for share in self.rule.probs
        ]

    @cached_property
    def _samplers(self) -> list[QuantileSampler]:
        return [QuantileSampler(c, self.rule, self.epsilon, self.neighbours) for c in self.counts]

    def draw(self, rng: Randomness) -> Sequence[int]:
        return [q for sampler in self._samplers for q in sampler.draw(rng).quantiles]

    def log(self, outcome: Sequence[int]) -> float:
        """Quantiles are independent, given the table."""
        return float(sum(log[q + STEPS] for log, q in zip(self._logs, outcome, strict=True)))

    def farthest(self, other: Quantiles) -> float:
        """All quantiles at their worst together."""
        gaps = [a - b for a, b in zip(self._logs, other._logs, strict=True)]
        return float(max(sum(gap.max() for gap in gaps), -sum(gap.min() for gap in gaps)))


@dataclass(frozen=True)
class BestRun(Law):
    """The best of a random number of runs: each picks a count at random and adds noise, its score.

    With q the probabilities of scores of one run and f the generating function of the number of
    runs, w is the best with probability f(q(<= w)) - f(q(< w)), which its outcomes share.
    """

    stopping: Stopping
    epsilon: Fraction
    counts: tuple[int, ...]

    def draw(self, rng: Randomness) -> Sequence[int]:
        def run() -> tuple[int, int]:
            chosen = rng.below(len(self.counts))
            (noisy,) = sup_norm.add_noise([self.counts[chosen]], self.epsilon, rng)
            return chosen, noisy

        return self.stopping.best(rng, run, lambda found: found[1])

    def log(self, outcome: Sequence[int]) -> float:
        chosen, noisy = outcome
        first, last = self._ends
        return float(self._logs[chosen, min(max(noisy, first), last) - first])

    def farthest(self, other: BestRun) -> float:
        """Over all outcomes that either table has at a noticeable probability."""
        first, last = max(self._ends[0], other._ends[0]), min(self._ends[1], other._ends[1])
        one, two = (
            law._logs[:, first - law._ends[0] : last + 1 - law._ends[0]] for law in (self, other)
        )
        return float(np.abs(one - two).max())

    @property
    def _ends(self) -> tuple[int, int]:
        far = math.ceil(15 / self.epsilon)  # floats cannot distinguish the probabilities beyond it
        return min(self.counts) - far, max(self.counts) + far

    @cached_property
    def _logs(self) -> NDArray[np.float64]:
        first, last = self._ends
        values = np.arange(first, last + 1)
        r = np.exp(-float(self.epsilon))
        # Of one run: its outcomes, and the chance of a higher score than each value.
        far = np.abs(values - np.array(self.counts)[:, None])
        each = (1 - r) / (1 + r) * r**far / len(self.counts)
        beyond = [
            np.where(values >= v, r ** (np.abs(values - v) + 1), 1 + r - r ** np.abs(values - v))
            for v in self.counts
        ]
        above = np.mean(beyond, axis=0) / (1 + r)
        scores = each.sum(axis=0)
        best = self.stopping.between(above, above + scores)
        return np.asarray(np.log(each) + np.log(best) - np.log(scores))
