"""Top-R: the scores of all but the R best supports are replaced by the R-th best score.

    g(S) = min(f~(S), f~_(R)),   f~_(R) the R-th smallest score of all

The mechanism draws from g: among R supports, and one event for the other C(p, k) - R, which have
equal scores. Behdin, Prastakos and Mazumder 2024 draw from those by at most T uniform tries over
all supports (by default without a limit: until one is found), and return the last try in any case.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import flint
import numpy as np
from numpy.typing import NDArray

from ...base.errors import ArgumentError
from ...base.rounding import ball, upper
from ...base.validation import check_int
from ...objective.problem import Problem
from ...privacy.guarantee import Cost, Guarantee
from ...privacy.random import Randomness
from ...search.best import best_supports
from ...search.engine import Engine, Flat, Leaf, Listed
from ...search.enumerate import ScoredSupports
from ...search.race import Race
from ...search.region import Region
from ..shared.base import Data, Distribution, Outcome, Sampler, ScoreMechanism, Setting
from ..shared.plain import PLAIN, check_form, flips

#: Largest default R; the R best are found and stored one by one.
_LARGEST_R = 20_000


@dataclass(frozen=True)
class TopR(ScoreMechanism):
    """Behdin, Prastakos and Mazumder's mechanism on certified R best supports.

    Attributes
    ----------
    R : int, optional
        Number of supports that keep their own score. The default is k (p - k) + 2, but at most
        20,000: one more than the number of supports that differ from a given one in at most one
        variable.
    T : int, optional
        Largest number of uniform draws to find a support that is not among the R best; unlimited by
        default. A finite T costs more than epsilon, by Theorem 1 of Behdin, Prastakos and Mazumder
        2024, and needs a public n.
    form : {"exponential", "permute-and-flip"}
        The mechanism that draws from the flattened scores.
    """

    R: int | None = None
    T: int | None = None
    form: str = "exponential"

    name = "top-r"
    place = 3
    summary = (
        "The R sets with the best scores keep them, and all other sets get the R-th best score. "
        "One set is drawn by these scores."
    )
    source = "Behdin, Prastakos and Mazumder 2024; Prastakos, Behdin and Mazumder 2025"
    promises = (
        "pure epsilon; for a finite T the larger epsilon' of Theorem 1 of Behdin, Prastakos and "
        "Mazumder 2024"
    )
    running_time = "a certified search for the R best: milliseconds to seconds"
    use_when = (
        "published figures are to be reproduced; exact draws find the best support more often"
    )

    def __post_init__(self) -> None:
        check_form(self.form)
        for name in ("R", "T"):
            value = getattr(self, name)
            if value is None:
                continue
            self._set_options(**{name: check_int(value, name)})
            if getattr(self, name) < 1:
                raise ArgumentError(f"{name} must be at least 1")

    def check(self, setting: Setting) -> None:
        super().check(setting)
        if self.T is not None and not setting.problem.n_is_public:
            raise ArgumentError(
                "a finite T costs an epsilon that depends on the number of rows, which is private "
                "under add-remove: leave T out, or take neighbours='replace-one'"
            )

    def count(self, problem: Problem) -> int:
        """R, the number of supports that keep their own score."""
        free = problem.picks
        rule = min(free * (problem.p - problem.k) + 2, _LARGEST_R)
        return min(rule if self.R is None else self.R, problem.supports)

    def priced_by_rows(self, setting: Setting) -> bool:
        """A finite T, if it has any support left to try."""
        problem = setting.problem
        return self.T is not None and self.count(problem) < problem.supports

    def guarantee(self, setting: Setting, *, seeded: bool = False) -> Guarantee:
        """Epsilon, or for a finite T the epsilon prime of their Theorem 1."""
        plain = super().guarantee(setting, seeded=seeded)
        problem = setting.problem
        if self.T is None or not self.priced_by_rows(setting):
            return plain
        if setting.n is None:
            raise ArgumentError("the guarantee of a finite T depends on the number of rows")
        epsilon = plain.costs["replace-one"].epsilon
        # Scores lie between -tau and n + tau: at b = 0 a record costs at most 1 under any loss.
        span = self.eta(setting) * (setting.n + 2 * setting.sensitivity.tau)
        prime = epsilon_prime(epsilon, span, self.count(problem), problem.supports, self.T)
        return Guarantee(problem.neighbours, {"replace-one": Cost(prime)}, seeded)

    def prepare(self, data: Data, setting: Setting) -> Sampler:
        """Find the R best with the engine, then race without a search."""
        # eta = inf: bounds for optimisation, since no other score is needed.
        return self.race(data.engine(setting, math.inf), self.eta(setting))

    def race(self, engine: Engine, eta: Fraction) -> Sampler:
        """Two leaves: a list of R supports, and all others at one score."""
        best = best_supports(engine, self.count(engine.problem))
        known = {support: score for score, support in best}
        last = best[-1][0]
        everything = Region.whole(engine.problem)
        leaves: list[Leaf] = [Listed(list(known), list(known.values()))]
        if everything.count() > len(known):
            leaves.append(Flat(everything, last, frozenset(known)))
        race = Race(engine, eta, permute_and_flip=flips(self.form), leaves=leaves)
        return race if self.T is None else _Tries(race, frozenset(known), everything, self.T)

    def sampler(self, scored: ScoredSupports, eta: Fraction) -> Sampler:
        flat, top = self._flattened(scored)
        oracle = PLAIN[self.form]().sampler(flat, eta)
        if self.T is None:
            return oracle
        return _Tries(oracle, frozenset(map(scored.support, top)), scored, self.T)

    def log_probabilities(self, scored: ScoredSupports, eta: Fraction) -> NDArray[np.float64]:
        """The plain mechanism on flattened scores; with T tries, shifted as in their Lemma A.3."""
        flat, top = self._flattened(scored)
        logs = PLAIN[self.form]().log_probabilities(flat, eta)
        if self.T is None or len(top) == len(scored):
            return logs
        # All tries fail with probability q^T, and then the last is uniform on the R best.
        failed = (len(top) / len(scored)) ** self.T
        moved = logs + math.log1p(-failed)
        tail = np.ones(len(scored), dtype=bool)
        tail[top] = False
        extra = math.log(np.exp(logs[tail]).sum()) + math.log(failed / len(top))
        moved[top] = np.logaddexp(logs[top], extra)
        return moved

    def outcomes(self, data: Data, setting: Setting) -> Distribution | None:
        """All supports and their log probabilities, with the default R filled in."""
        if self.R is not None:
            return super().outcomes(data, setting)
        return replace(self, R=self.count(setting.problem)).outcomes(data, setting)

    def _flattened(self, scored: ScoredSupports) -> tuple[ScoredSupports, NDArray[np.int64]]:
        """The flattened scores and the places of the R best; ties in the order of the supports."""
        if self.R is None:
            raise ArgumentError("over a list of supports R has to be given")
        top = np.argsort(scored.scores, kind="stable")[: self.R]
        scores = np.minimum(scored.scores, scored.scores[top[-1]])
        return ScoredSupports(scored.supports, scores, scored.score_step), top


def epsilon_prime(epsilon: Fraction, span: Fraction, R: int, supports: int, T: int) -> Fraction:
    """epsilon' = log(e^epsilon + gamma) - log(1 - q^T) of their Theorem 1, rounded up.

    q = R / C(p, k), and gamma = q^T / delta_0, where delta_0 = exp(-span) / C(p, k) is the smallest
    probability of a support and ``span`` is eta times the largest difference of scores.
    """
    with flint.ctx.workprec(128):
        failed = ball(Fraction(R, supports)) ** T
        gamma = failed * supports * ball(span).exp()
        return upper((ball(epsilon).exp() + gamma).log() - (1 - failed).log())


class _Tries(Sampler):
    """The tail by at most T uniform tries over all supports, the last of which is returned."""

    def __init__(
        self,
        flattened: Sampler,
        top: frozenset[tuple[int, ...]],
        everything: Region | ScoredSupports,
        T: int,
    ) -> None:
        self._flattened, self._top, self._everything, self._tries = flattened, top, everything, T

    def draw(self, rng: Randomness) -> Outcome:
        drawn = self._flattened.draw(rng)
        if drawn in self._top:
            return drawn
        for _ in range(self._tries):
            drawn = self._uniform(rng)
            if drawn not in self._top:
                break
        return drawn

    def _uniform(self, rng: Randomness) -> Outcome:
        if isinstance(self._everything, Region):
            return self._everything.draw(rng)
        return self._everything.support(rng.below(len(self._everything)))
