"""Rounds of noisy picks with noisy values between them, under one budget.

A round picks the noisy largest entries of a list of integers; between two rounds, the picked
integers may be released with noise. The costs add up: epsilons (pure) or rhos (zCDP), whichever
needs less noise. The choice between the two depends on the budget and the number of picks only.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ...objective.problem import Problem
from ...privacy.accounting import rho_for
from ...privacy.budget import Budget
from ...privacy.guarantee import Guarantee, shown_up
from ...privacy.noise import LARGEST, Measure
from ...search.enumerate import (
    ScoredSupports,
    list_supports,
    log_exponential,
    log_permute_and_flip,
)
from .base import Distribution, Setting

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Rounds:
    """The cost of each round: epsilon under the measure "pure", rho under "zcdp"."""

    measure: Measure
    rounds: int
    picks: Fraction
    values: Fraction

    @classmethod
    def of(
        cls, setting: Setting, rounds: int, count: int, pick_fraction: Fraction = Fraction(1)
    ) -> Rounds:
        """The budget of a setting for rounds of ``count`` picks each.

        ``pick_fraction`` of it goes to picks, the rest to values; all of it to picks if there is
        one round.
        """
        pure = cls._split("pure", setting.epsilon, rounds, pick_fraction)
        if not setting.delta or not count:
            return pure
        rho = rho_for(setting.epsilon, setting.delta)
        zcdp = cls._split("zcdp", rho, rounds, pick_fraction)
        # Relative to the sensitivity, a pick has scale 2 count / picks or sqrt(count / (2 picks)).
        return zcdp if 8 * count * zcdp.picks > pure.picks**2 else pure

    @classmethod
    def _split(
        cls, measure: Measure, total: Fraction, rounds: int, pick_fraction: Fraction
    ) -> Rounds:
        if rounds == 1:
            return cls(measure, 1, total, Fraction(0))
        return cls(
            measure,
            rounds,
            pick_fraction * total / rounds,
            (1 - pick_fraction) * total / (rounds - 1),
        )

    @property
    def total(self) -> Fraction:
        """The cost of all rounds."""
        return self.rounds * self.picks + (self.rounds - 1) * self.values

    def guarantee(self, setting: Setting, seeded: bool) -> Guarantee:
        """Guarantee under either relation: noise for one record covers two at twice the loss."""
        declared = setting.problem.neighbours
        costs = Budget(self.measure, self.total, setting.delta).costs(declared)
        return Guarantee(declared, costs, seeded)

    @property
    def _of_picks(self) -> Budget:
        return Budget(self.measure, self.picks)

    @property
    def _of_values(self) -> Budget:
        return Budget(self.measure, self.values)

    def pick(self, scores: Sequence[int], count: int, sensitivity: int) -> list[int]:
        """Indices of the ``count`` noisy largest scores: one round."""
        return self._of_picks.picks(scores, count, sensitivity)

    def pick_scale(self, count: int, sensitivity: int) -> Fraction:
        """The scale of the noise in `pick`."""
        return self._of_picks.pick_scale(count, sensitivity)

    def release(self, values: Sequence[int], sensitivity: int) -> list[int]:
        """Add noise to picked values."""
        return self._of_values.values(values, sensitivity)

    def value_scale(self, count: int, sensitivity: int) -> Fraction:
        """The scale of the noise in `release`, if ``count`` values move by the sensitivity."""
        return self._of_values.value_scale(count, sensitivity)

    def log_pick(self, scores: Sequence[int], scale: Fraction) -> NDArray[np.float64]:
        """The distribution of a single pick at this scale in closed form, as logarithms."""
        best = max(scores)
        gaps = np.array([min(best - score, LARGEST) for score in scores], dtype=np.int64)
        scored = ScoredSupports(np.empty((len(scores), 0), dtype=np.int64), gaps, Fraction(1))
        closed = log_permute_and_flip if self.measure == "pure" else log_exponential
        return closed(scored, 1 / scale)

    def log_sets(
        self, scores: Sequence[int], count: int, scale: Fraction
    ) -> dict[tuple[int, ...], float]:
        """The distribution of the set that `pick` returns: sums over all orders of its picks."""
        sets: dict[tuple[int, ...], float] = {(): 0.0}
        for _ in range(count):
            longer: dict[tuple[int, ...], float] = {}
            for chosen, so_far in sets.items():
                left = [i for i in range(len(scores)) if i not in chosen]
                logs = self.log_pick([scores[i] for i in left], scale)
                for i, log in zip(left, logs.tolist(), strict=True):
                    add_log(longer, tuple(sorted((*chosen, i))), so_far + log)
            sets = longer
        return sets

    def log_supports(
        self, problem: Problem, scores: Sequence[int], scale: Fraction
    ) -> dict[tuple[int, ...], float]:
        """The distribution of the support whose free choices `pick` returns, by their scores."""
        sets, free = self.log_sets(scores, problem.picks, scale), problem.free
        return {problem.support(free[i] for i in chosen): log for chosen, log in sets.items()}

    def details(self) -> str:
        """A sentence on the composition of the rounds."""
        if self.measure == "pure":
            return "Each round is purely private, and the epsilons of the rounds add up."
        return (
            "The cost of the rounds is counted as zero-concentrated differential privacy, "
            f"rho = {shown_up(self.total, 4)} in all, and converted to epsilon at the given delta."
        )


def add_log(logs: dict[Key, float], key: Key, log: float) -> None:
    """Add a probability to that of an outcome, both as logarithms."""
    logs[key] = float(np.logaddexp(logs.get(key, -np.inf), log))


def over_supports(problem: Problem, logs: Mapping[tuple[int, ...], float]) -> Distribution:
    """All supports, and the logarithms of their probabilities."""
    supports = [tuple(row) for row in list_supports(problem).tolist()]
    return [*supports], np.array([logs.get(support, -np.inf) for support in supports])
