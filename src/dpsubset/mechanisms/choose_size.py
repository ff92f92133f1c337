"""Choose-size: draw the number of variables first, then the variables.

    1. s from 0, ..., k, by the score  g(s) = min over |S| = s of f~(S) + phi s
    2. S of size s, by the score f~(S)

Each step is permute-and-flip with a fraction of epsilon. A minimum over all sets of a size changes
no more than the scores do, so the first step has k + 1 candidates and needs little noise. Unlike
`penalised`, it does not have to distinguish one size from all sets of another.

Cai, Wang and Zhang 2021 (Section 5.2) draw the size from cross-validated errors. A record takes
part in the fits of all folds but one and may change each of them, and with it the errors of all
other records. The sensitivity of such an error is no smaller than the error itself, unless every
fit is private and paid for. The best score of a size, with a public penalty, needs neither.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from ..base.errors import ArgumentError
from ..base.validation import check_fraction
from ..privacy.guarantee import Cost, Guarantee
from ..privacy.random import Randomness
from ..search.best import Best
from ..search.engine import Engine
from ..search.enumerate import ScoredSupports, check_size, enumerate_supports
from ..search.race import Race
from ..search.region import Region
from .penalised import Penalised
from .shared.base import Data, Distribution, Outcome, Sampler, Setting
from .shared.plain import PLAIN, flips

#: Largest error of the best score of a size, in steps of the grid of scores.
SLACK = 1


@dataclass(frozen=True)
class ChooseSize(Penalised):
    """The size from the best score of every size, then a set of that size.

    Attributes
    ----------
    phi : number, optional
        Penalty for each variable, in scaled units. The default is that of `penalised`, with limits
        for the epsilon of the second step.
    form : {"exponential", "permute-and-flip"}
        The mechanism that draws from the scores, in both steps.
    share : number
        Fraction of epsilon for the choice of the size.
    """

    form: str = "permute-and-flip"
    share: Any = Fraction(1, 4)

    name = "choose-size"
    summary = (
        "The number of variables is drawn first, by the best score of every size up to k with a "
        "public penalty phi for each variable. Then a set of that size is drawn by its score."
    )
    source = "ours, in place of the cross-validation of Cai, Wang and Zhang 2021, Section 5.2"
    promises = "pure epsilon; the number of variables is chosen too"
    running_time = "a certified search for each size, and one race: milliseconds to seconds"
    use_when = (
        "the number of relevant variables is unknown; names somewhat fewer than penalised, with a "
        "lower R2"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set_options(share=check_fraction(self.share, "share"))
        if not Fraction(1, 1000) <= self.share <= Fraction(999, 1000):
            raise ArgumentError("share must lie between 0.001 and 0.999")

    def etas(self, setting: Setting) -> tuple[Fraction, Fraction]:
        """Weights of the scores for the size, which have an additional error, and for the set."""
        sensitivity, neighbours = setting.sensitivity, setting.problem.neighbours
        size_range = sensitivity.score_range(neighbours) + 2 * SLACK * sensitivity.score_step
        return self.share * setting.epsilon / size_range, (1 - self.share) * self.eta(setting)

    def guarantee(self, setting: Setting, *, seeded: bool = False) -> Guarantee:
        """The cost of both steps, from the weights that the draws use."""
        for_size, for_set = self.etas(setting)
        costs = {}
        for relation in self._relations(setting):
            score_range = setting.sensitivity.score_range(relation)
            more = 2 * SLACK * setting.sensitivity.score_step
            costs[relation] = Cost(for_size * (score_range + more) + for_set * score_range)
        return Guarantee(setting.problem.neighbours, costs, seeded)

    def prepare(self, data: Data, setting: Setting) -> Sampler:
        """Find the best score of every size; races are built on demand."""
        for_size, for_set = self.etas(setting)
        engine = data.engine(setting, math.inf, self.penalty(setting))  # for optimisation
        sizes = range(len(setting.problem.always_include), setting.problem.k + 1)
        best = [best_score(Best(engine, Region.whole(setting.problem, s))) for s in sizes]
        listed = _sizes_as_candidates(list(sizes), best, setting.sensitivity.score_step)
        first = PLAIN[self.form]().sampler(listed, for_size)
        return _SizeThenSet(first, data.engine(setting, for_set), for_set, flips(self.form))

    def outcomes(self, data: Data, setting: Setting) -> Distribution | None:
        problem, score_step = setting.problem, setting.sensitivity.score_step
        for_size, for_set = self.etas(setting)
        sizes = range(len(problem.always_include), problem.k + 1)
        parts: list[ScoredSupports] = []
        for size in sizes:
            part = replace(problem, k=size)  # the radius stays
            check_size(part)
            parts.append(enumerate_supports(data.gram, part, score_step))
        best = [
            int(part.scores.min()) + size * self.penalty(setting)
            for size, part in zip(sizes, parts, strict=True)
        ]
        of_sizes = self.log_probabilities(
            _sizes_as_candidates(list(sizes), best, score_step), for_size
        )
        logs = [
            log + self.log_probabilities(part, for_set)
            for log, part in zip(of_sizes, parts, strict=True)
        ]
        supports: list[Outcome] = [tuple(row) for part in parts for row in part.supports.tolist()]
        return supports, np.concatenate(logs)

    def details(self, setting: Setting) -> list[str]:
        return [
            *super().details(setting),
            f"The number of variables was drawn with {self.share} of epsilon, by the best score of "
            "every size.",
        ]


def best_score(search: Best) -> int:
    """The best score, certified up to `SLACK` steps of the grid.

    Deciding between many equal sets, or proving that none is better by a single step, could take a
    search through all of them.
    """
    while search.high - search.low > SLACK:
        search.narrow()
    return search.high


def _sizes_as_candidates(
    sizes: list[int], scores: list[int], score_step: Fraction
) -> ScoredSupports:
    """Sizes as candidates of a plain mechanism."""
    column = np.array(sizes, dtype=np.int64).reshape(-1, 1)
    return ScoredSupports(column, np.array(scores, dtype=np.int64), score_step)


class _SizeThenSet(Sampler):
    """A size, then a set of that size; races are reused between draws."""

    def __init__(self, sizes: Sampler, engine: Engine, eta: Fraction, flip: bool) -> None:
        self._sizes, self._engine, self._eta, self._flip = sizes, engine, eta, flip
        self._races: dict[int, Race] = {}

    def draw(self, rng: Randomness) -> Outcome:
        drawn = self._sizes.draw(rng)
        assert drawn is not None
        (size,) = drawn
        if size not in self._races:
            leaf = self._engine.leaf(Region.whole(self._engine.problem, size))
            self._races[size] = Race(
                self._engine, self._eta, permute_and_flip=self._flip, leaves=[leaf]
            )
        return self._races[size].draw(rng)
