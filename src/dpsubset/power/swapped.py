"""A made-up table's probability from the scores of single swaps, where there are many columns.

Columns that do not matter are alike: the near ones, which are correlated with those that do, are
made up one by one, and a few far ones stand for all others. The scores of T and of all its single
swaps on that small table give the odds of the mechanism, and `closed.drawn_by_swaps` the
probability. No search is needed, which takes long for losses of records.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from ..api.request import SelectionRequest
from ..mechanisms.permute_and_flip import PermuteAndFlip
from ..objective.losses import scorer
from ..privacy.random import Randomness
from .closed import GAP_ERROR, drawn_by_swaps
from .population import Population
from .question import Question
from .tables import made_up, near_columns

#: Far columns that stand for all of them.
_FAR = 16
#: Tables with fewer columns are searched.
_FEW = 64


@dataclass(frozen=True)
class Swapped:
    """A small table that stands for a wide one.

    Attributes
    ----------
    planned, population
        Of the small table: the models are the same, as their radius depends on k alone.
    near, far : int
        Columns that are made up one by one, and those that the last ones stand for.
    """

    planned: SelectionRequest
    population: Population
    eta: Fraction
    near: int
    far: int

    @classmethod
    def of(
        cls, question: Question, planned: SelectionRequest, n: int, epsilon: object
    ) -> Swapped | None:
        """For many columns; None where the whole table is made up and drawn from."""
        population = question.population
        near = near_columns(population)
        if not question.weighs_scores(planned) or population.p <= max(_FEW, near + _FAR):
            return None
        small = replace(population, p=near + _FAR)
        stands_for = replace(question, population=small).planned(n, epsilon)
        far = population.p - near
        return cls(stands_for, small, question.eta(planned), near, far)

    def shares(
        self, n: int, rng: np.random.Generator, bits: Randomness
    ) -> tuple[float, float, float]:
        """The probability that T is drawn from a table, and with smaller and larger gaps.

        Two swaps cost more or less than one and the other where columns are correlated: gaps that
        are off by `GAP_ERROR` stand for that.
        """
        digest = made_up(self.planned, self.population, n, rng, bits)
        setting, truth = self.planned.setting, self.population.truth
        others = [v for v in range(self.population.p) if v not in truth]
        swaps = [sorted({*truth} - {t} | {v}) for t in truth for v in others]
        scores = scorer(digest, setting.problem, setting.sensitivity.score_step).scores(
            np.array([truth, *swaps], dtype=np.int64)
        )
        odds = float(self.eta * setting.sensitivity.score_step) * (scores[0] - scores[1:])
        counts = np.array([1.0 if v < self.near else self.far / _FAR for v in others])
        flips = isinstance(self.planned.mechanism, PermuteAndFlip)
        likely, low, high = (
            drawn_by_swaps((1 + change) * odds.reshape(len(truth), -1), counts, flips)
            for change in (0.0, -GAP_ERROR, GAP_ERROR)
        )
        return likely, low, high
