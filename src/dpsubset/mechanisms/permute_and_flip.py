"""Permute-and-flip: visit supports in random order, accept S with probability q_S.

    q_S = exp(-eta (f(S) - min f))

For any scores, at most the expected error of the exponential mechanism at the same epsilon (McKenna
and Sheldon 2020); hence the default.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..privacy.random import Randomness
from ..search.engine import Engine
from ..search.enumerate import ScoredSupports, log_permute_and_flip
from ..search.race import Race
from .shared.base import Outcome, Sampler, ScoreMechanism


class PermuteAndFlip(ScoreMechanism):
    """McKenna and Sheldon's mechanism over all C(p, k) supports, drawn exactly."""

    name = "permute-and-flip"
    place = 1
    summary = (
        "The candidate sets are visited in a random order, all orders being equally likely. Each "
        "is accepted with a probability that is smaller, the worse its score is: "
        "exp(-eta * (f(S) - min f)). The first set that is accepted is released."
    )
    source = "McKenna and Sheldon 2020; the use over supports and the exact draw are ours"
    promises = "pure epsilon"
    running_time = "milliseconds to seconds: branch and bound, exact"
    use_when = "there is no reason for another: the default"

    def race(self, engine: Engine, eta: Fraction) -> Sampler:
        return Race(engine, eta, permute_and_flip=True)

    def sampler(self, scored: ScoredSupports, eta: Fraction) -> Sampler:
        """Draw an exact permutation and exact coin flips."""
        return _Flips(scored, eta)

    def log_probabilities(self, scored: ScoredSupports, eta: Fraction) -> NDArray[np.float64]:
        """Evaluate one polynomial integral for each support."""
        return log_permute_and_flip(scored, eta)


class _Flips(Sampler):
    def __init__(self, scored: ScoredSupports, eta: Fraction) -> None:
        self._scored = scored
        self._differences = scored.differences.tolist()
        self._weight = eta * scored.score_step

    def draw(self, rng: Randomness) -> Outcome:
        for i in rng.permutation(len(self._differences)):
            if rng.bernoulli_exp(self._weight, self._differences[i]):
                return self._scored.support(i)
        raise AssertionError("the best support is always accepted")
