"""The exponential mechanism: support S with probability proportional to exp(-eta f(S))."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..privacy.guarantee import Guarantee
from ..privacy.random import Randomness
from ..privacy.random.draws import Categorical
from ..search.engine import Engine
from ..search.enumerate import ScoredSupports, log_exponential
from ..search.race import Race
from .shared.base import Outcome, Sampler, ScoreMechanism, Setting


class Exponential(ScoreMechanism):
    """McSherry and Talwar's mechanism over all C(p, k) supports, drawn exactly."""

    name = "exponential"
    place = 2
    summary = (
        "One of all candidate sets is drawn at random. A set is less likely, the worse its score "
        "is: its probability is proportional to exp(-eta * f(S))."
    )
    source = "McSherry and Talwar 2007; Roy, Wang and Tewari 2024; the exact draw is ours"
    promises = "pure epsilon"
    running_time = "milliseconds to seconds: branch and bound, exact"
    use_when = "results must be comparable with the literature"

    def guarantee(self, setting: Setting, *, seeded: bool = False) -> Guarantee:
        """A guarantee with bounded range: the log ratios lie in an interval of length epsilon."""
        found = super().guarantee(setting, seeded=seeded)
        ranged = {
            relation: replace(cost, bounded_range=True) for relation, cost in found.costs.items()
        }
        return replace(found, costs=ranged)

    def race(self, engine: Engine, eta: Fraction) -> Sampler:
        return Race(engine, eta, permute_and_flip=False)

    def sampler(self, scored: ScoredSupports, eta: Fraction) -> Sampler:
        return _Inversion(scored, eta)

    def log_probabilities(self, scored: ScoredSupports, eta: Fraction) -> NDArray[np.float64]:
        return log_exponential(scored, eta)


class _Inversion(Sampler):
    def __init__(self, scored: ScoredSupports, eta: Fraction) -> None:
        self._scored = scored
        self._categorical = Categorical(scored.differences.tolist(), eta * scored.score_step)

    def draw(self, rng: Randomness) -> Outcome:
        return self._scored.support(self._categorical.draw(rng))
