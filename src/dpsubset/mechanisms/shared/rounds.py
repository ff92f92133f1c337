"""Rounds of noisy picks, with noisy values between them, out of one budget.

A round picks the noisy largest of a list of integers; between two rounds, the integers that were
picked may be released with noise. What all of it costs is a sum: of epsilons (pure), or of rhos
(zCDP), whichever needs less noise. The choice depends on the budget and the number of picks only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ...base.errors import ArgumentError
from ...privacy.accounting import rho_for
from ...privacy.budget import Budget
from ...privacy.guarantee import Guarantee, shown_up
from ...privacy.noise import LARGEST, Measure
from ...search.enumerate import ScoredSupports, log_exponential, log_permute_and_flip
from .base import Setting


@dataclass(frozen=True)
class Rounds:
    """What each round may cost: epsilon under the measure "pure", rho under "zcdp"."""

    measure: Measure
    rounds: int
    picks: Fraction
    values: Fraction

    @classmethod
    def of(cls, setting: Setting, rounds: int, count: int, share: Fraction = Fraction(1)) -> Rounds:
        """The budget of a setting for rounds of ``count`` picks each.

        ``share`` of it goes to picks, the rest to values; all of it to picks if there is one round.
        """
        pure = cls._shared("pure", setting.epsilon, rounds, share)
        if not setting.delta or not count:
            return pure
        rho = rho_for(setting.epsilon, setting.delta)
        zcdp = cls._shared("zcdp", rho, rounds, share)
        # In units of the sensitivity a pick has scale 2 count / picks or sqrt(count / (2 picks)).
        return zcdp if 8 * count * zcdp.picks > pure.picks**2 else pure

    @classmethod
    def _shared(cls, measure: Measure, total: Fraction, rounds: int, share: Fraction) -> Rounds:
        if rounds == 1:
            return cls(measure, 1, total, Fraction(0))
        return cls(measure, rounds, share * total / rounds, (1 - share) * total / (rounds - 1))

    @property
    def total(self) -> Fraction:
        """Of all rounds."""
        return self.rounds * self.picks + (self.rounds - 1) * self.values

    def guarantee(self, setting: Setting, seeded: bool) -> Guarantee:
        """Under either relation: noise for one record covers two at twice the loss."""
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
        """Indices of the ``count`` noisy largest: one round."""
        return self._of_picks.picks(scores, count, sensitivity)

    def pick_scale(self, count: int, sensitivity: int) -> Fraction:
        """The scale of the noise in `pick`."""
        return self._of_picks.pick_scale(count, sensitivity)

    def release(self, values: Sequence[int], sensitivity: int) -> list[int]:
        """Values that were picked, with noise."""
        return self._of_values.values(values, sensitivity)

    def value_scale(self, count: int, sensitivity: int) -> Fraction:
        """The scale of the noise in `release`: ``count`` values may all move by the sensitivity."""
        return self._of_values.value_scale(count, sensitivity)

    def log_pick(self, scores: Sequence[int], scale: Fraction) -> NDArray[np.float64]:
        """Closed form of a single pick at this scale, in logarithms."""
        best = max(scores)
        gaps = np.array([min(best - score, LARGEST) for score in scores], dtype=np.int64)
        scored = ScoredSupports(np.empty((len(scores), 0), dtype=np.int64), gaps, Fraction(1))
        closed = log_permute_and_flip if self.measure == "pure" else log_exponential
        return closed(scored, 1 / scale)

    def log_sets(
        self, scores: Sequence[int], count: int, sensitivity: int
    ) -> dict[tuple[int, ...], float]:
        """Closed form of `pick`, as sets: sums over all orders in which a set can be picked."""
        scale = self.pick_scale(count, sensitivity)
        sets: dict[tuple[int, ...], float] = {(): 0.0}
        for _ in range(count):
            longer: dict[tuple[int, ...], float] = {}
            for chosen, so_far in sets.items():
                left = [i for i in range(len(scores)) if i not in chosen]
                logs = self.log_pick([scores[i] for i in left], scale)
                for i, log in zip(left, logs.tolist(), strict=True):
                    key = tuple(sorted((*chosen, i)))
                    longer[key] = float(np.logaddexp(longer.get(key, -np.inf), so_far + log))
            sets = longer
        return sets

    def details(self, setting: Setting) -> str:
        """A sentence on how the budget is shared out."""
        if self.measure == "pure":
            return "Its rounds are purely private each, and their epsilons add up."
        return (
            "Its rounds are accounted for by zero-concentrated privacy, rho = "
            f"{shown_up(self.total, 4)} in all, converted to epsilon at the delta given."
        )


def check_linear(name: str, setting: Setting) -> None:
    """Refuse losses whose gradient is not linear in the moments."""
    if setting.problem.loss != "least-squares":
        raise ArgumentError(f"{name} is for least squares only")
