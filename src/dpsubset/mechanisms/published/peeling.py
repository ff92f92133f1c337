"""Peeling: the k noisy largest |X'y|_j, picked one after the other."""

from __future__ import annotations

import numpy as np

from ...data.quantize import STEPS
from ...objective.problem import Problem
from ...privacy.budget import RECORDS
from ...privacy.guarantee import Guarantee, shown_up
from ...privacy.random import Randomness
from ..shared.base import OPENDP_NOISE, Data, Distribution, Mechanism, Outcome, Sampler, Setting
from ..shared.rounds import Rounds, over_supports


class Peeling(Mechanism):
    """Cai, Wang and Zhang's Algorithm 2 on the correlations of the variables with the response."""

    name = "peeling"
    place = 9
    summary = (
        "Variables are picked one after the other. Each time the remaining variable with the "
        "largest score after noise is picked. The score |x_j'y| says how strongly a variable and "
        "the response vary together."
    )
    source = "Cai, Wang and Zhang 2021, Algorithm 2; noise and constants are ours"
    promises = "pure epsilon, or (epsilon, delta) where that needs less noise"
    running_time = "milliseconds, for any p: X'y is computed once"
    use_when = (
        "p is very large and variables are nearly uncorrelated, since it scores them one by one"
    )
    takes_delta = "may"
    takes_groups = takes_intercept = True
    on_groups = "a choice has the largest |x_j'y| of its columns"
    on_intercept = (
        "not used. Values are measured from the middle of their bounds; levels are 0 and 1. If the "
        "mean of the response is far from its middle, columns whose means are far from theirs are "
        "favoured"
    )
    seedable = False
    randomness = OPENDP_NOISE

    def rounds(self, setting: Setting) -> Rounds:
        """One round with one pick for each free variable."""
        return Rounds.of(setting, 1, setting.problem.picks)

    def change(self, setting: Setting) -> int:
        """How far neighbouring tables can move |X'y|_j: a record adds x_j y, at most STEPS^2 in
        size.

        The largest of several entries moves no further than each of them.
        """
        return RECORDS[setting.problem.neighbours] * STEPS**2

    def guarantee(self, setting: Setting, *, seeded: bool = False) -> Guarantee:
        return self.rounds(setting).guarantee(setting, seeded)

    def prepare(self, data: Data, setting: Setting) -> Sampler:
        return _Peeler(self, data, setting)

    def outcomes(self, data: Data, setting: Setting) -> Distribution | None:
        """Sums over the orders of picks."""
        problem, rounds = setting.problem, self.rounds(setting)
        scale = rounds.pick_scale(problem.picks, self.change(setting))
        return over_supports(problem, rounds.log_supports(problem, _scores(data, problem), scale))

    def details(self, setting: Setting) -> list[str]:
        scale = self.rounds(setting).pick_scale(setting.problem.picks, self.change(setting))
        layout = setting.problem.layout
        several = ", the largest of its columns' where it has several" if layout.grouped else ""
        sentences = [
            f"The score of a variable is |x_j'y| in scaled units{several}. A row that is added or "
            "removed changes it by at most 1, a row that is replaced by at most 2. The scale of "
            f"the noise is {shown_up(scale / STEPS**2)}. Limits of coefficients and the ridge play "
            "no part.",
        ]
        if layout.has_intercept:
            sentences.append(
                "Nor does the intercept: variables and response are measured from the middle of "
                "their bounds, without subtracting their means."
            )
        return [*sentences, self.rounds(setting).details()]


class _Peeler(Sampler):
    def __init__(self, mechanism: Peeling, data: Data, setting: Setting) -> None:
        self._rounds, self._change = mechanism.rounds(setting), mechanism.change(setting)
        self._problem = setting.problem
        self._scores = _scores(data, setting.problem)

    def draw(self, rng: Randomness) -> Outcome:
        problem = self._problem
        picks = self._rounds.pick(self._scores, problem.picks, self._change)
        free = problem.free
        return problem.support(free[i] for i in picks)


def _scores(data: Data, problem: Problem) -> list[int]:
    """|x'y| of the free choices; the largest of several columns."""
    each, layout = np.abs(data.gram.c), problem.layout
    if layout.grouped:
        each = np.maximum.reduceat(each[: layout.starts[-1]], layout.starts[:-1])
    size = each.tolist()
    return [size[j] for j in problem.free]
