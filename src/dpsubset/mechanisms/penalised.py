"""Penalised: supports of every size up to k, scored by f~(S) + phi |S|.

The number of variables is chosen too. All sizes have the same coefficient set, with the radius for
k, so that one range holds for all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError
from ..base.validation import check_fraction
from ..privacy.guarantee import Guarantee, shown_up
from ..privacy.relations import PUBLIC_N, RELATIONS, Neighbours
from ..search.engine import Engine
from ..search.enumerate import ScoredSupports, check_size, enumerate_supports
from ..search.race import Race
from ..search.region import Region
from .shared.base import Data, Distribution, Outcome, Sampler, ScoreMechanism, Setting
from .shared.plain import PLAIN, check_form, flips

#: Largest phi times k, so that scores fit in int64.
_LARGEST = 2**32

#: Default of phi as a fraction of n, where n is public and noise allows it. docs/developers.md has
#: the measurements.
DEFAULT_GAIN = Fraction(1, 100)


@dataclass(frozen=True)
class Penalised(ScoreMechanism):
    """Lei, Charest, Slavkovic, Smith and Fienberg's mechanism over all sizes up to k.

    Attributes
    ----------
    phi : number, optional
        Penalty for each variable: the improvement of the objective, in scaled units, that
        justifies one more variable. Rounded down to the grid of the scores. The default is n / 100
        if n is public, limited to the interval from log C(p, k) / (k eta) to 2 log(p) / eta. At the
        lower limit a table without signal gives the empty set the same weight as all sets of k
        together; at the upper limit noise hardly ever adds a variable that explains nothing. If n
        is private, the default is the lower limit.
    form : {"exponential", "permute-and-flip"}
        The mechanism that draws from the penalised scores.
    """

    phi: Any = None
    form: str = "exponential"

    name = "penalised"
    place = 6
    summary = (
        "Sets of every size up to k are candidates. Each variable adds a public penalty phi to the "
        "score of a set, so that a larger set has to fit better. One set is drawn by its score."
    )
    source = "Lei, Charest, Slavkovic, Smith and Fienberg 2018; the exact draw is ours"
    promises = "pure epsilon; the number of variables is chosen too"
    running_time = "milliseconds to seconds: branch and bound over every size, exact"
    use_when = "the number of relevant variables is unknown, but small"
    chooses_size = True

    def __post_init__(self) -> None:
        check_form(self.form)
        if self.phi is None:
            return
        self._set_options(phi=check_fraction(self.phi, "phi"))
        if self.phi < 0:
            raise ArgumentError("phi must be 0 or greater")

    def check(self, setting: Setting) -> None:
        """Refuse a phi with which scores would not fit in int64."""
        super().check(setting)
        phi = self._default_range(setting)[1] if self.phi is None else self.phi
        if phi * setting.problem.k > _LARGEST:
            raise ArgumentError(f"phi times k must be at most {_LARGEST}")

    def penalty(self, setting: Setting) -> int:
        """Phi in steps of the grid of scores. Public."""
        if self.phi is not None:
            phi = Fraction(self.phi)
        else:
            phi, most = self._default_range(setting)
            if setting.n is not None:
                phi = min(max(phi, setting.n * DEFAULT_GAIN), most)
        return int(phi / setting.sensitivity.score_step)

    def etas(self, setting: Setting) -> tuple[Fraction, Fraction]:
        """Weights of the scores for the size and for the variables; here both are drawn at once."""
        eta = self.eta(setting)
        return eta, eta

    def _default_range(self, setting: Setting) -> tuple[Fraction, Fraction]:
        """The range of the default phi; neither end depends on the number of rows."""
        problem, (_, eta) = setting.problem, self.etas(setting)
        largest = Fraction(_LARGEST, problem.k)
        picks = problem.picks
        even = math.log(math.comb(len(problem.free), picks)) / picks if picks else 0.0
        least = min(Fraction(even) / eta, largest)
        most = min(2 * Fraction(math.log(problem.p)) / eta, largest)
        return least, max(least, most)

    def guarantee(self, setting: Setting, *, seeded: bool = False) -> Guarantee:
        found = super().guarantee(setting, seeded=seeded)
        return found.limited_to(self._relations(setting))

    def _relations(self, setting: Setting) -> tuple[Neighbours, ...]:
        """The relations with a stated cost: phi is published, and may be computed from n."""
        follows_n = self.phi is None and setting.problem.n_is_public
        return PUBLIC_N if follows_n else RELATIONS

    def prepare(self, data: Data, setting: Setting) -> Sampler:
        """A race that starts from one region for every size."""
        eta = self.eta(setting)
        return self.race(data.engine(setting, eta, self.penalty(setting)), eta)

    def race(self, engine: Engine, eta: Fraction) -> Sampler:
        problem = engine.problem
        sizes = range(len(problem.always_include), problem.k + 1)
        leaves = [engine.leaf(Region.whole(problem, size)) for size in sizes]
        return Race(engine, eta, permute_and_flip=flips(self.form), leaves=leaves)

    def sampler(self, scored: ScoredSupports, eta: Fraction) -> Sampler:
        return PLAIN[self.form]().sampler(scored, eta)

    def log_probabilities(self, scored: ScoredSupports, eta: Fraction) -> NDArray[np.float64]:
        return PLAIN[self.form]().log_probabilities(scored, eta)

    def outcomes(self, data: Data, setting: Setting) -> Distribution | None:
        """All supports of all sizes and their log probabilities."""
        problem, score_step = setting.problem, setting.sensitivity.score_step
        supports: list[Outcome] = []
        scores: list[NDArray[np.int64]] = []
        for size in range(len(problem.always_include), problem.k + 1):
            part = replace(problem, k=size)  # the radius stays
            check_size(part)
            scored = enumerate_supports(data.gram, part, score_step)
            supports += [tuple(row) for row in scored.supports.tolist()]
            scores.append(scored.scores + size * self.penalty(setting))
        places = np.arange(len(supports)).reshape(-1, 1)
        everything = ScoredSupports(places, np.concatenate(scores), score_step)
        return supports, self.log_probabilities(everything, self.eta(setting))

    def details(self, setting: Setting) -> list[str]:
        phi = self.penalty(setting) * setting.sensitivity.score_step
        return [*super().details(setting), f"phi = {shown_up(phi)} in scaled units."]
