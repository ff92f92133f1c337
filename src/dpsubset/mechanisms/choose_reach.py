"""Choose-reach: first how large predictions may be, from a public grid, then a set.

    1. B from the grid, by the score  g(B) = min over S of f~_B(S) + log C(p, k) / eta_B
    2. S by the score f~_B(S)

A larger reach B explains more, and a record moves scores further: the same epsilon is worth less.
What explains more is in the data, the rest is public: with eta_B the weight of scores at reach B,
a draw is worse than the best set by log C(p, k) / eta_B at most, in the mean. So g(B) is what can
be expected of B. The best score moves as little as the scores do, so that the first step costs no
more than a choice among a few sets; but reaches often differ by less than its noise.
docs/mechanisms.md has what it was worth on real tables: nothing that could be told from chance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError
from ..base.validation import check_fraction
from ..objective.sensitivity import Sensitivity
from ..privacy.guarantee import Cost, Guarantee, shown_up
from ..privacy.random import Randomness
from ..privacy.relations import RELATIONS
from ..search.best import Best
from ..search.enumerate import ScoredSupports, enumerate_supports
from ..search.region import Region
from .choose_size import LOOSE, least
from .shared.base import Data, Outcome, Sampler, ScoreMechanism, Setting
from .shared.plain import PLAIN, check_form

#: Most reaches of a grid: each of them has a search of its own.
_MOST = 20

#: Most that the public part of a score may be: scores fit in int64.
_LARGEST = 2**32


@dataclass(frozen=True)
class ChooseReach(ScoreMechanism):
    """The reach from the best scores at each of a few, then a set at that reach.

    Attributes
    ----------
    factors : tuple of numbers
        The grid: multiples of the reach that the problem has.
    form : {"exponential", "permute-and-flip"}
        What is drawn from the scores, in both steps.
    share : number
        Of epsilon, for the reach.
    """

    factors: Any = (Fraction(4, 5), Fraction(1), Fraction(3, 2))
    form: str = "permute-and-flip"
    share: Any = Fraction(1, 10)

    name = "choose-reach"
    summary = (
        "How large predictions may be is drawn first, from the best score at each of a few public "
        "bounds and what the noise would be there; then a set of variables at that bound."
    )
    source = "ours"
    promises = "pure epsilon; the reach is chosen too, and not told"
    running_time = "a certified search for each reach, and one race: milliseconds to seconds"
    use_when = "epsilon n is large, and nobody knows how much the variables explain; not for labels"

    def __post_init__(self) -> None:
        check_form(self.form)
        given = self.factors
        if not isinstance(given, Sequence) or isinstance(given, str):
            given = (given,)
        factors = tuple(check_fraction(factor, "factors") for factor in given)
        if not 1 <= len(factors) <= _MOST or len(set(factors)) < len(factors):
            raise ArgumentError(f"factors are 1 to {_MOST} different numbers")
        if not all(Fraction(1, 100) <= factor <= 100 for factor in factors):
            raise ArgumentError("factors must lie between 0.01 and 100")
        self._settle(factors=tuple(sorted(factors)), share=check_fraction(self.share, "share"))
        if not Fraction(1, 1000) <= self.share <= Fraction(999, 1000):
            raise ArgumentError("share must lie between 0.001 and 0.999")

    def check(self, setting: Setting) -> None:
        """Every reach of the grid must be possible."""
        super().check(setting)
        self.settings(setting)

    def settings(self, setting: Setting) -> list[Setting]:
        """The second step at each reach, the smallest first. Public."""
        found = []
        for factor in self.factors:
            problem = setting.problem.with_prediction_bound(
                float(factor * setting.problem.prediction_bound)
            )
            sensitivity = Sensitivity.of(problem, setting.sensitivity.rule)
            rest = (1 - self.share) * setting.epsilon
            found.append(replace(setting, problem=problem, sensitivity=sensitivity, epsilon=rest))
        return found

    def first_eta(self, setting: Setting) -> Fraction:
        """The weight of scores in the choice of the reach."""
        largest = self.settings(setting)[-1].sensitivity
        spread = largest.score_range(setting.problem.neighbours) + 2 * LOOSE * largest.score_step
        return Fraction(self.share) * setting.epsilon / spread

    def guarantee(self, setting: Setting, *, seeded: bool = False) -> Guarantee:
        """Both steps, from the weights that they are drawn with; the second at its dearest."""
        settings, declared = self.settings(setting), setting.problem.neighbours
        largest = settings[-1].sensitivity
        costs = {}
        for relation in RELATIONS:
            first = largest.score_range(relation) + 2 * LOOSE * largest.score_step
            second = max(self.eta(at) * at.sensitivity.score_range(relation) for at in settings)
            costs[relation] = Cost(self.first_eta(setting) * first + second)
        return Guarantee(declared, costs, seeded)

    def noise(self, at: Setting) -> Fraction:
        """log C(p, k) / eta: what a draw is worse by than the best set, at most, in the mean."""
        supports = Fraction(math.log(at.problem.supports))
        return min(supports / self.eta(at), Fraction(_LARGEST))

    def prepare(self, data: Data, setting: Setting) -> Sampler:
        """The best score at every reach; the races are made when they are asked for."""
        settings = self.settings(setting)
        best = []
        for at in settings:
            engine = data.engine(at, math.inf)  # for optimisation
            best.append(least(Best(engine, Region.whole(at.problem, at.problem.k))))
        first = PLAIN[self.form]().sampler(
            self._of_reaches(settings, best), self.first_eta(setting)
        )
        return _Reached(first, settings, PLAIN[self.form](), data)

    def outcomes(
        self, data: Data, setting: Setting
    ) -> tuple[list[Outcome], NDArray[np.float64]] | None:
        """All supports and their log probabilities, over all reaches."""
        settings = self.settings(setting)
        plain = PLAIN[self.form]()
        parts = [
            enumerate_supports(data.digest, at.problem, at.sensitivity.score_step)
            for at in settings
        ]
        best = [int(part.scores.min()) for part in parts]
        of_reaches = plain.log_probabilities(
            self._of_reaches(settings, best), self.first_eta(setting)
        )
        logs = [
            log + plain.log_probabilities(part, self.eta(at))
            for log, part, at in zip(of_reaches, parts, settings, strict=True)
        ]
        supports: list[Outcome] = [tuple(row) for row in parts[0].supports.tolist()]
        return supports, np.logaddexp.reduce(logs, axis=0)

    def _of_reaches(self, settings: list[Setting], best: list[int]) -> ScoredSupports:
        """Reaches as candidates of a plain mechanism: places in the grid, with their scores."""
        # Units are powers of two, so that each is a multiple of the least.
        unit = min(at.sensitivity.score_step for at in settings)
        scores = [
            score * int(at.sensitivity.score_step / unit) + int(self.noise(at) / unit)
            for score, at in zip(best, settings, strict=True)
        ]
        places = np.arange(len(settings), dtype=np.int64).reshape(-1, 1)
        return ScoredSupports(places, np.array(scores, dtype=np.int64), unit)

    def race(self, engine: Any, eta: Fraction) -> Sampler:
        """Of the second step."""
        return PLAIN[self.form]().race(engine, eta)

    def sampler(self, scored: ScoredSupports, eta: Fraction) -> Sampler:
        """Of the second step, by its definition."""
        return PLAIN[self.form]().sampler(scored, eta)

    def log_probabilities(self, scored: ScoredSupports, eta: Fraction) -> NDArray[np.float64]:
        """Of the second step."""
        return PLAIN[self.form]().log_probabilities(scored, eta)

    def details(self, setting: Setting) -> list[str]:
        """The score, the grid, and the share of the reach."""
        reaches = ", ".join(shown_up(at.problem.prediction_bound) for at in self.settings(setting))
        return [
            *super().details(setting),
            f"The reach was drawn first, at {self.share} of epsilon, from {reaches}; a row moves "
            "scores as far as the reach allows, and what is said of that above is about the "
            "problem's own.",
        ]


class _Reached(Sampler):
    """A reach, then a set at that reach; races are kept from draw to draw."""

    def __init__(
        self, reaches: Sampler, settings: list[Setting], plain: ScoreMechanism, data: Data
    ) -> None:
        self._reaches, self._settings, self._plain, self._data = reaches, settings, plain, data
        self._samplers: dict[int, Sampler] = {}

    def draw(self, rng: Randomness) -> Outcome:
        drawn = self._reaches.draw(rng)
        assert drawn is not None
        (place,) = drawn
        if place not in self._samplers:
            self._samplers[place] = self._plain.prepare(self._data, self._settings[place])
        return self._samplers[place].draw(rng)
